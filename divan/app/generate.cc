#include "divan/app/generate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "divan/app/settings.h"
#include "divan/base/error.h"
#include "divan/http/field_list.h"

namespace divan::app {
namespace {

// A command with the words that lead to it, such as "jobs watch"; "" is the program itself.
struct Described {
  std::string path;
  const CLI::App* app;
};

std::vector<const CLI::App*> subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::Option*> options(const CLI::App& app, bool positional) {
  return app.get_options([&](const CLI::Option* option) { return option->get_positional() == positional; });
}

void collect(const CLI::App& app, const std::string& path, std::vector<Described>& found) {
  found.push_back({path, &app});
  for (const CLI::App* command : subcommands(app))
    collect(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), found);
}

// The program and all its commands, those with subcommands before these.
std::vector<Described> all_commands(const CLI::App& app) {
  std::vector<Described> found;
  collect(app, "", found);
  return found;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// "-h", "--help"
std::vector<std::string> names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// ---- Manual pages (man(7)) ----

// One paragraph of text.
std::string roff(std::string_view text) {
  std::string out = replaced(replaced(std::string(text), "\\", "\\e"), "-", "\\-");
  // A line that begins with a control character would be a request.
  out = replaced(std::move(out), "\n.", "\n\\&.");
  out = replaced(std::move(out), "\n'", "\n\\&'");
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string page_name(std::string_view path) {
  return path.empty() ? "divan" : "divan-" + replaced(std::string(path), " ", "-");
}

std::string heading(std::string_view page, int section) {
  return fmt::format(".TH {} {} \"\" \"divan {}\" \"Divan\"\n", page, section, DIVAN_VERSION);
}

std::string value_name(const CLI::Option& option) {
  return option.get_type_name().empty() ? "VALUE" : option.get_type_name();
}

// " (excludes --at, --in)". The set is ordered by addresses, which differ from run to run.
std::string relation(std::string_view verb, const std::set<CLI::Option*>& related) {
  std::set<std::string> names;
  for (const CLI::Option* option : related) names.insert(option->get_name());
  return names.empty() ? "" : fmt::format(" ({} {})", verb, fmt::join(names, ", "));
}

std::string description(const CLI::Option& option) {
  std::string text = option.get_description();
  if (!option.get_default_str().empty()) text += fmt::format(" (default: {})", option.get_default_str());
  if (option.get_required() && !option.get_positional()) text += " (required)";
  return text + relation("needs", option.get_needs()) + relation("excludes", option.get_excludes());
}

void describe_options(std::string& out, const CLI::App& app) {
  const auto named = options(app, false);
  if (named.empty()) return;
  out += ".SH OPTIONS\n";
  for (const CLI::Option* option : named) {
    out += fmt::format(".TP\n\\fB{}\\fR", roff(fmt::format("{}", fmt::join(names(*option), ", "))));
    if (takes_value(*option)) out += fmt::format(" \\fI{}\\fR", roff(value_name(*option)));
    out += "\n" + roff(description(*option)) + "\n";
  }
}

std::string synopsis(const Described& command) {
  std::string out = fmt::format(".B {}\n", roff(command.path.empty() ? "divan" : "divan " + command.path));
  if (!options(*command.app, false).empty()) out += "[\\fIOPTIONS\\fR]\n";
  for (const CLI::Option* option : options(*command.app, true)) {
    const std::string name = fmt::format("\\fI{}\\fR", roff(option->get_name(true)));
    out += option->get_required() ? name + "\n" : "[" + name + "]\n";
  }
  if (!subcommands(*command.app).empty())
    out += command.app->get_require_subcommand_min() > 0 ? "\\fICOMMAND\\fR\n" : "[\\fICOMMAND\\fR]\n";
  return out;
}

// Settings have a page of their own.
bool has_settings(const CLI::App& app) { return app.get_footer().ends_with(describe_settings()); }

std::string manual_page(const Described& command) {
  const CLI::App& app = *command.app;
  std::string out = heading(page_name(command.path), 1);
  out += fmt::format(".SH NAME\n{} \\- {}\n", roff(page_name(command.path)), roff(app.get_description()));
  out += ".SH SYNOPSIS\n" + synopsis(command);
  if (const auto positional = options(app, true); !positional.empty()) {
    out += ".SH ARGUMENTS\n";
    for (const CLI::Option* option : positional)
      out += fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(option->get_name(true)), roff(description(*option)));
  }
  describe_options(out, app);
  if (const auto commands = subcommands(app); !commands.empty()) {
    out += ".SH COMMANDS\n";
    for (const CLI::App* one : commands) {
      const std::string path = command.path.empty() ? one->get_name() : command.path + " " + one->get_name();
      out += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(page_name(path)), roff(one->get_description()));
    }
  }
  if (has_settings(app)) {
    out += ".SH FILES\n\\fBdivan.ini\\fR(5) describes the settings.\n";
  } else if (!app.get_footer().empty()) {
    out += ".SH NOTES\n.nf\n" + roff(app.get_footer()) + "\n.fi\n";
  }
  out += ".SH SEE ALSO\n";
  out += command.path.empty() ? "\\fBdivan.ini\\fR(5)\n" : "\\fBdivan\\fR(1)\n";
  return out;
}

std::string settings_page() {
  std::string out = heading("divan.ini", 5);
  out +=
      ".SH NAME\ndivan.ini \\- settings of the Divan server\n.SH DESCRIPTION\n"
      "Sections and their settings, as\n.B key = value\nlines. A line that begins with a semicolon is a "
      "comment. The same settings, except those of [ken.ignore] and [jwt_keys], may be in the environment, "
      "as\n.BR DIVAN_SECTION_KEY ,\nand many can be changed while the server runs.\n";
  std::string section;
  for (const Setting& setting : settings()) {
    if (setting.section != section) out += fmt::format(".SH [{}]\n", roff(section = setting.section));
    out += fmt::format(".TP\n\\fB{} = {}\\fR\n{}{}\n", roff(setting.key), roff(setting.fallback),
                       roff(setting.description), start_note(setting.live));
  }
  for (const AnyKeySection& any : any_key_sections())
    out +=
        fmt::format(".SH [{}]\n.TP\n\\fB{} = {}\\fR\n{}{}. Example: {}\n", roff(any.section), roff(any.key),
                    roff(any.value), roff(any.description), start_note(any.live), roff(any.example));
  return out + ".SH SEE ALSO\n\\fBdivan\\-serve\\fR(1)\n";
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw internal_error(fmt::format("Cannot write {}.", path));
}

void write_manual_pages(const CLI::App& app, const std::string& directory) {
  for (const Described& command : all_commands(app))
    write_file(fmt::format("{}/{}.1", directory, page_name(command.path)), manual_page(command));
  write_file(directory + "/divan.ini.5", settings_page());
}

// ---- The settings file ----

std::string settings_file() {
  std::string out =
      "; The settings of the Divan server. All lines are comments and show the defaults; remove the "
      "semicolon to change\n"
      "; a setting. A running server reads the file again with POST /_node/_local/_config/_reload.\n";
  std::string section;
  for (const Setting& setting : settings()) {
    if (setting.section != section) out += fmt::format("\n[{}]\n", section = setting.section);
    out += fmt::format("; {}{}\n;{} ={}{}\n", setting.description, start_note(setting.live), setting.key,
                       setting.fallback.empty() ? "" : " ", setting.fallback);
  }
  for (const AnyKeySection& any : any_key_sections())
    out += fmt::format("\n[{}]\n; {} = {}: {}{}\n; Example: {}\n", any.section, any.key, any.value,
                       any.description, start_note(any.live), any.example);
  return out;
}

// ---- Completions ----

std::string single_quoted(std::string_view text) {
  return "'" + replaced(std::string(text), "'", "'\\''") + "'";
}

// A word that a shell offers; the description may be empty.
struct Word {
  std::string text;
  std::string description;
};

// What a shell offers for a value.
struct Values {
  enum class Kind { unknown, words, files, directories };
  Kind kind = Kind::unknown;
  std::vector<Word> words = {};
};

// The values of CLI::IsMember are in the name of the type, as in "TEXT:{bash,zsh,fish}". Files and
// directories have names as in --help: FILE, DIR.
Values values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string name = option.get_positional() ? option.get_name(true) : type;
  if (name.ends_with("FILE")) return {Values::Kind::files};
  if (name.ends_with("DIR") || name.ends_with("DIRECTORY")) return {Values::Kind::directories};
  const auto open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  Values values{Values::Kind::words};
  const std::string set = type.substr(open + 1, close - open - 1);
  for (const auto word : http::split_list(set)) values.words.push_back({std::string(word), ""});
  return values;
}

// A place in a command line: " jobs list --state" is the value of this option, " load 2" the second argument,
// and " load -" an option.
struct Place {
  std::string key;
  Values values;
};

std::string prefix(const Described& command) { return command.path.empty() ? "" : " " + command.path; }

std::vector<Place> argument_places(const Described& command) {
  std::vector<Place> places;
  Values commands{Values::Kind::words};
  for (const CLI::App* one : subcommands(*command.app))
    commands.words.push_back({one->get_name(), one->get_description()});
  if (!commands.words.empty()) places.push_back({prefix(command) + " 1", std::move(commands)});
  for (const CLI::Option* option : options(*command.app, true))
    places.push_back({fmt::format("{} {}", prefix(command), places.size() + 1), values_of(*option)});
  return places;
}

std::vector<Place> option_places(const Described& command) {
  std::vector<Place> places;
  Values flags{Values::Kind::words};
  for (const CLI::Option* option : options(*command.app, false)) {
    for (const auto& name : names(*option)) {
      flags.words.push_back({name, option->get_description()});
      if (takes_value(*option)) places.push_back({prefix(command) + " " + name, values_of(*option)});
    }
  }
  places.push_back({prefix(command) + " -", std::move(flags)});
  return places;
}

std::vector<Place> all_places(const std::vector<Described>& commands) {
  std::vector<Place> all;
  for (const auto& command : commands) {
    for (auto& place : argument_places(command)) all.push_back(std::move(place));
    for (auto& place : option_places(command)) all.push_back(std::move(place));
  }
  return all;
}

// Quoted: ' jobs', ' jobs watch'
std::vector<std::string> quoted_paths(const std::vector<Described>& commands) {
  std::vector<std::string> quoted;
  for (const auto& command : commands) {
    if (!command.path.empty()) quoted.push_back(single_quoted(prefix(command)));
  }
  return quoted;
}

// The options that take a value, quoted: ' backup --url'
std::vector<std::string> quoted_value_options(const std::vector<Described>& commands) {
  std::vector<std::string> quoted;
  for (const auto& command : commands) {
    for (const auto& place : option_places(command)) {
      if (!place.key.ends_with(" -")) quoted.push_back(single_quoted(place.key));
    }
  }
  return quoted;
}

// Patterns of `case`: ' restore 1'|' serve --config'
std::string patterns(const std::vector<Place>& places, Values::Kind kind) {
  std::vector<std::string> quoted;
  for (const auto& place : places) {
    if (place.values.kind == kind) quoted.push_back(single_quoted(place.key));
  }
  return fmt::format("{}", fmt::join(quoted, "|"));
}

constexpr std::string_view kBash = R"(# bash completion for divan
_divan() {{
  local path= key= words= before= rest=$COMP_LINE word i n=1
  local args=()
  COMPREPLY=()
  # Readline has split words at : and =, where the line has no space.
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    word=${{COMP_WORDS[i]}}
    if ((i > 1)) && [[ $rest != [[:space:]]* ]]; then args[-1]+=$word; elif ((i > 0)); then args+=("$word"); fi
    rest=${{rest#*"$word"}}
  done
  for ((i = 0; i < ${{#args[@]}} - 1; ++i)); do
    case "$path ${{args[i]}}" in
      {paths}) path+=" ${{args[i]}}" n=1 ;;
      {value_options}) ((++i)) ;;
      *) [[ ${{args[i]}} == -?* ]] || ((++n)) ;;
    esac
  done
  word=${{args[-1]}}
  if ((i == ${{#args[@]}})); then key="$path ${{args[-2]}}"
  elif [[ $word == --*=* ]]; then
    key="$path ${{word%%=*}}"
    [[ $COMP_WORDBREAKS == *=* ]] || before=${{word%%=*}}=
    word=${{word#*=}}
  elif [[ $word == -* ]]; then key="$path -"
  else key="$path $n"
  fi
  case $key in
    {files}) compopt -o default ;;
    {directories}) compopt -o dirnames ;;
{words}  esac
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "$word")
}}
complete -F _divan divan
)";

std::string bash_completion(const CLI::App& app) {
  const auto commands = all_commands(app);
  const auto places = all_places(commands);
  std::string words;
  for (const auto& [key, values] : places) {
    if (values.kind != Values::Kind::words) continue;
    std::vector<std::string> texts;
    for (const auto& word : values.words) texts.push_back(word.text);
    words += fmt::format("    {}) words={} ;;\n", single_quoted(key),
                         single_quoted(fmt::format("{}", fmt::join(texts, " "))));
  }
  return fmt::format(kBash, fmt::arg("paths", fmt::join(quoted_paths(commands), "|")),
                     fmt::arg("value_options", fmt::join(quoted_value_options(commands), "|")),
                     fmt::arg("files", patterns(places, Values::Kind::files)),
                     fmt::arg("directories", patterns(places, Values::Kind::directories)),
                     fmt::arg("words", words));
}

constexpr std::string_view kZsh = R"(#compdef divan
_divan() {{
  local place= key= word=$words[CURRENT] i n=1 result=1
  local -a values
  for ((i = 2; i < CURRENT; ++i)); do
    case "$place $words[i]" in
      ({paths}) place+=" $words[i]" n=1 ;;
      ({value_options}) ((++i)) ;;
      (*) [[ $words[i] == -?* ]] || ((++n)) ;;
    esac
  done
  if ((i > CURRENT)); then key="$place $words[CURRENT-1]"
  elif [[ $word == --*=* ]]; then key="$place ${{word%%=*}}"; compset -P '*='
  elif [[ $word == -* ]]; then key="$place -"
  else key="$place $n"
  fi
  case $key in
    ({files}) _files && result=0 ;;
    ({directories}) _files -/ && result=0 ;;
{words}  esac
  (( $#values )) && _describe value values && result=0
  return result
}}
_divan "$@"
)";

// An element of _describe's arrays: name:description
std::string zsh_element(const Word& word) {
  const std::string text = replaced(word.text, ":", "\\:");
  return single_quoted(word.description.empty() ? text : text + ":" + word.description);
}

std::string zsh_completion(const CLI::App& app) {
  const auto commands = all_commands(app);
  const auto places = all_places(commands);
  std::string words;
  for (const auto& [key, values] : places) {
    if (values.kind != Values::Kind::words) continue;
    std::vector<std::string> elements;
    for (const auto& word : values.words) elements.push_back(zsh_element(word));
    words += fmt::format("    ({}) values=({}) ;;\n", single_quoted(key), fmt::join(elements, " "));
  }
  return fmt::format(kZsh, fmt::arg("paths", fmt::join(quoted_paths(commands), "|")),
                     fmt::arg("value_options", fmt::join(quoted_value_options(commands), "|")),
                     fmt::arg("files", patterns(places, Values::Kind::files)),
                     fmt::arg("directories", patterns(places, Values::Kind::directories)),
                     fmt::arg("words", words));
}

constexpr std::string_view kFish = R"(# fish completion for divan
function __divan_at
  set -l place ''
  set -l n 1
  set -l is_value
  for word in (commandline -opc)[2..]
    if set -q is_value[1]
      set is_value
    else if contains -- "$place $word" {paths}
      set place "$place $word"
      set n 1
    else if contains -- "$place $word" {value_options}
      set is_value yes
    else if not string match -qr '^-.' -- $word
      set n (math $n + 1)
    end
  end
  contains -- $argv[1] "$place" "$place $n"
end
complete -c divan -f
)";

std::string fish_quoted(std::string_view text) {
  return "'" + replaced(replaced(std::string(text), "\\", "\\\\"), "'", "\\'") + "'";
}

// The arguments of fish's `complete` for values.
std::string fish_values(const Values& values) {
  switch (values.kind) {
    case Values::Kind::files: return " -F";
    case Values::Kind::directories: return " -f -a '(__fish_complete_directories)'";
    case Values::Kind::words: {
      std::vector<std::string> texts;
      for (const auto& word : values.words) texts.push_back(word.text);
      return fmt::format(" -f -a {}", fish_quoted(fmt::format("{}", fmt::join(texts, " "))));
    }
    case Values::Kind::unknown: break;
  }
  return " -f";
}

std::string fish_completion(const CLI::App& app) {
  const auto commands = all_commands(app);
  std::string out = fmt::format(kFish, fmt::arg("paths", fmt::join(quoted_paths(commands), " ")),
                                fmt::arg("value_options", fmt::join(quoted_value_options(commands), " ")));
  const auto condition = [](const std::string& place) {
    return fmt::format("complete -c divan -n {}", fish_quoted("__divan_at " + fish_quoted(place)));
  };
  for (const auto& command : commands) {
    for (const auto& [key, values] : argument_places(command)) {
      if (values.kind != Values::Kind::words) out += condition(key) + fish_values(values) + "\n";
      for (const auto& [text, description] : values.words)
        out += fmt::format("{} -a {} -d {}\n", condition(key), text, fish_quoted(description));
    }
    for (const CLI::Option* option : options(*command.app, false)) {
      out += condition(prefix(command));
      for (const auto& name : option->get_snames()) out += " -s " + name;
      for (const auto& name : option->get_lnames()) out += " -l " + name;
      if (takes_value(*option)) out += " -r" + fish_values(values_of(*option));
      out += fmt::format(" -d {}\n", fish_quoted(option->get_description()));
    }
  }
  return out;
}

struct GenerateOptions {
  std::string directory;
  std::string shell;
};

}  // namespace

void add_generate(CLI::App& app, Command& command) {
  auto* generate = app.add_subcommand("generate", "Write manual pages, shell completions or a settings file");
  generate->require_subcommand(1);
  const auto line = std::make_shared<GenerateOptions>();

  auto* man = generate->add_subcommand("man", "Write the manual pages into a directory");
  man->add_option("DIRECTORY", line->directory, "An existing directory")
      ->required()
      ->check(CLI::ExistingDirectory);
  man->callback([&app, &command, line] {
    command = [&app, line] {
      write_manual_pages(app, line->directory);
      return 0;
    };
  });

  auto* completion = generate->add_subcommand("completion", "Print the completion of a shell");
  completion->add_option("SHELL", line->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([&app, &command, line] {
    command = [&app, line] {
      fmt::print("{}", line->shell == "bash"  ? bash_completion(app)
                       : line->shell == "zsh" ? zsh_completion(app)
                                              : fish_completion(app));
      return 0;
    };
  });

  generate->add_subcommand("settings", "Print a settings file that has all settings as comments")
      ->callback([&command] {
        command = [] {
          fmt::print("{}", settings_file());
          return 0;
        };
      });
}

}  // namespace divan::app
