#include "divan/app/generate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "divan/app/settings.h"
#include "divan/base/error.h"

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

void describe_options(std::string& out, const CLI::App& app) {
  const auto named = options(app, false);
  if (named.empty()) return;
  out += ".SH OPTIONS\n";
  for (const CLI::Option* option : named) {
    out += fmt::format(".TP\n\\fB{}\\fR", roff(fmt::format("{}", fmt::join(names(*option), ", "))));
    if (takes_value(*option)) out += fmt::format(" \\fI{}\\fR", roff(value_name(*option)));
    out += "\n" + roff(option->get_description());
    if (!option->get_default_str().empty())
      out += fmt::format(" (default: {})", roff(option->get_default_str()));
    out += "\n";
  }
}

std::string synopsis(const Described& command) {
  std::string out = fmt::format(".B {}\n", roff(command.path.empty() ? "divan" : "divan " + command.path));
  if (!options(*command.app, false).empty()) out += "[\\fIOPTIONS\\fR]\n";
  for (const CLI::Option* option : options(*command.app, true)) {
    const std::string name = fmt::format("\\fI{}\\fR", roff(option->get_name(true)));
    out += option->get_required() ? name + "\n" : "[" + name + "]\n";
  }
  if (!subcommands(*command.app).empty()) out += "\\fICOMMAND\\fR\n";
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
      out +=
          fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(option->get_name(true)), roff(option->get_description()));
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
    out += fmt::format(".TP\n\\fB{} = {}\\fR\n{}", roff(setting.key), roff(setting.fallback),
                       roff(setting.description));
    out += setting.live ? "\n" : " (read at the start)\n";
  }
  for (const AnyKeySection& any : any_key_sections())
    out += fmt::format(".SH [{}]\n.TP\n\\fB{} = {}\\fR\n{}{}. Example: {}\n", roff(any.section),
                       roff(any.key), roff(any.value), roff(any.description),
                       any.live ? "" : " (read at the start)", roff(any.example));
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
    out += fmt::format("; {}{}\n;{} ={}{}\n", setting.description, setting.live ? "" : " (read at the start)",
                       setting.key, setting.fallback.empty() ? "" : " ", setting.fallback);
  }
  for (const AnyKeySection& any : any_key_sections())
    out += fmt::format("\n[{}]\n; {} = {}: {}{}\n; Example: {}\n", any.section, any.key, any.value,
                       any.description, any.live ? "" : " (read at the start)", any.example);
  return out;
}

// ---- Completions ----

std::string single_quoted(std::string_view text) {
  return "'" + replaced(std::string(text), "'", "'\\''") + "'";
}

std::vector<std::string> words(const Described& command) {
  std::vector<std::string> words;
  for (const CLI::App* one : subcommands(*command.app)) words.push_back(one->get_name());
  for (const CLI::Option* option : options(*command.app, false)) {
    for (auto& name : names(*option)) words.push_back(std::move(name));
  }
  return words;
}

// Patterns of `case` for all commands: ' jobs'|' jobs watch'
std::string path_patterns(const std::vector<Described>& commands) {
  std::vector<std::string> patterns;
  for (const auto& [path, app] : commands) {
    if (!path.empty()) patterns.push_back(single_quoted(" " + path));
  }
  return fmt::format("{}", fmt::join(patterns, "|"));
}

// For options whose values are file names or unknown: ' backup --url'|…
std::string value_patterns(const std::vector<Described>& commands) {
  std::vector<std::string> patterns;
  for (const auto& [path, app] : commands) {
    for (const CLI::Option* option : options(*app, false)) {
      if (!takes_value(*option)) continue;
      for (const auto& name : names(*option))
        patterns.push_back(single_quoted((path.empty() ? "" : " " + path) + " " + name));
    }
  }
  return fmt::format("{}", fmt::join(patterns, "|"));
}

std::string bash_completion(const CLI::App& app) {
  const auto commands = all_commands(app);
  std::string out = "# bash completion for divan\n_divan() {\n";
  out += "  local path= words= i cur=${COMP_WORDS[COMP_CWORD]}\n  COMPREPLY=()\n";
  out += "  for ((i = 1; i < COMP_CWORD; ++i)); do\n";
  out += fmt::format(
      "    case \"$path ${{COMP_WORDS[i]}}\" in {}) path+=\" ${{COMP_WORDS[i]}}\" ;; esac\n  done\n",
      path_patterns(commands));
  out += fmt::format("  case \"$path ${{COMP_WORDS[COMP_CWORD-1]}}\" in {}) return ;; esac\n",
                     value_patterns(commands));
  out += "  case $path in\n";
  for (const auto& command : commands)
    out += fmt::format("    {}) words={} ;;\n", single_quoted(command.path.empty() ? "" : " " + command.path),
                       single_quoted(fmt::format("{}", fmt::join(words(command), " "))));
  out += "  esac\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\n";
  return out + "complete -o default -F _divan divan\n";
}

// An element of _describe's arrays: name:description
std::string zsh_element(std::string_view name, std::string_view description) {
  return single_quoted(fmt::format("{}:{}", replaced(std::string(name), ":", "\\:"), description));
}

std::string zsh_completion(const CLI::App& app) {
  const auto commands = all_commands(app);
  std::string out = "#compdef divan\n_divan() {\n  local place= i\n  local -a commands flags\n";
  out += "  for ((i = 2; i < CURRENT; ++i)); do\n";
  out += fmt::format("    case \"$place $words[i]\" in ({}) place+=\" $words[i]\" ;; esac\n  done\n",
                     path_patterns(commands));
  out += fmt::format("  case \"$place $words[CURRENT-1]\" in ({}) _files; return ;; esac\n",
                     value_patterns(commands));
  out += "  case $place in\n";
  for (const auto& command : commands) {
    out += fmt::format("    ({})\n", single_quoted(command.path.empty() ? "" : " " + command.path));
    out += "      commands=(";
    for (const CLI::App* one : subcommands(*command.app))
      out += " " + zsh_element(one->get_name(), one->get_description());
    out += ")\n      flags=(";
    for (const CLI::Option* option : options(*command.app, false)) {
      for (const auto& name : names(*option)) out += " " + zsh_element(name, option->get_description());
    }
    out += ") ;;\n";
  }
  out += "  esac\n";
  out += "  (( $#commands )) && _describe -t commands command commands\n";
  out += "  [[ $words[CURRENT] == -* ]] && _describe -t options option flags\n";
  return out + "  (( $#commands )) || [[ $words[CURRENT] == -* ]] || _files\n}\n_divan \"$@\"\n";
}

std::string fish_quoted(std::string_view text) {
  return "'" + replaced(replaced(std::string(text), "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_completion(const CLI::App& app) {
  const auto commands = all_commands(app);
  std::vector<std::string> paths;
  for (const auto& [path, command] : commands) {
    if (!path.empty()) paths.push_back(fish_quoted(" " + path));
  }
  std::string out = "# fish completion for divan\nfunction __divan_at\n  set -l place ''\n";
  out += "  for word in (commandline -opc)[2..]\n";
  out += fmt::format(
      "    if contains -- \"$place $word\" {}\n      set place \"$place $word\"\n    end\n  end\n",
      fmt::join(paths, " "));
  out += "  test \"$place\" = \"$argv[1]\"\nend\n";
  for (const auto& [path, command] : commands) {
    const std::string condition =
        fmt::format("-n {}", fish_quoted(fmt::format("__divan_at '{}'", path.empty() ? "" : " " + path)));
    const auto nested = subcommands(*command);
    for (const CLI::App* one : nested)
      out += fmt::format("complete -c divan {} -f -a {} -d {}\n", condition, one->get_name(),
                         fish_quoted(one->get_description()));
    for (const CLI::Option* option : options(*command, false)) {
      out += fmt::format("complete -c divan {}", condition);
      for (const auto& name : option->get_snames()) out += " -s " + name;
      for (const auto& name : option->get_lnames()) out += " -l " + name;
      out += fmt::format("{} -d {}\n", takes_value(*option) ? " -r" : "",
                         fish_quoted(option->get_description()));
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
