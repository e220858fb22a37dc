// A settings file of arbitrary bytes is rejected or parsed; settings that may be set are written and read
// back unchanged. The first line, if there is an equals sign in it, is a variable of the environment.
#include "divan/base/config.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fuzz/check.h"

namespace {

using divan::Config;
using divan::fuzz::answers;
using divan::fuzz::check;

const std::string& directory() {
  struct Directory {
    std::string path = (std::filesystem::temp_directory_path() / "divan-fuzz-XXXXXX").string();
    Directory() { check(mkdtemp(path.data()) != nullptr); }
    ~Directory() { std::filesystem::remove_all(path); }
  };
  static const Directory directory;
  return directory.path;
}

// A value that continues over several lines is in the file word by word.
void check_words(std::string_view value, std::string_view text) {
  while (!value.empty()) {
    const auto word = value.substr(0, value.find(' '));
    check(text.find(word) != text.npos);
    value.remove_prefix(std::min(word.size() + 1, value.size()));
  }
}

void check_kept(const Config::Sections& sections, bool must_be_kept) {
  const std::string path = directory() + "/kept.ini";
  std::filesystem::remove(path);
  Config config;
  config.keep_changes_in(path);
  for (const auto& section : sections) {
    for (const auto& setting : section.second) {
      const bool kept = answers(400, [&] { config.set(section.first, setting.first, setting.second); });
      check(kept || !must_be_kept);
    }
  }
  Config again;
  again.keep_changes_in(path);
  check(again.all() == config.all());
  check(!must_be_kept || again.all() == sections);
}

// Sets settings like a client, with arbitrary bytes.
void check_set(std::string_view text) {
  const auto take = [&] {
    const auto line = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return std::string(line);
  };
  const std::string section = take(), key = take(), value = take();
  if (!section.empty() && !key.empty()) check_kept({{section, {{key, value}}}}, false);
}

void check_environment(std::string_view text) {
  const std::string variable =
      "DIVAN_" + std::string(text.substr(0, text.find_first_of(std::string_view("\n\0", 2))));
  const char* environment[] = {variable.c_str(), nullptr};
  Config config;
  config.load_environment(environment);
  for (const auto& [section, keys] : config.all()) {
    for (const auto& [key, value] : keys) check(!key.empty() && variable.ends_with("=" + value));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  check_environment(text);
  check_set(text);
  const std::string path = directory() + "/given.ini";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  Config config;
  if (!answers(500, [&] { config.load(path); })) return 0;
  for (const auto& section : config.all()) {
    for (const auto& [key, value] : section.second) {
      check(text.find(key) != text.npos);
      check_words(value, text);
      const std::string& name = key;
      answers(400, [&] { config.get_int(section.first, name, 0, -5, 5); });
      answers(400, [&] { config.get_bool(section.first, name, false); });
    }
  }
  check_kept(config.all(), true);
  return 0;
}
