// Settings: sections of keys and values with CouchDB's names, from an ini file, the environment and the
// command line, and changed while running.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/ini.h"

namespace divan {

/// Later sources win: the file given, the file of changes made while running, the environment, the command
/// line. Thread-safe.
class Config {
 public:
  using Section = ini::Section;
  using Sections = ini::Sections;
  /// Called after a setting was changed or removed.
  using Listener = std::function<void(const std::string& section, const std::string& key)>;

  Config() = default;

  /// Reads an ini file; throws internal_error naming file and line if it cannot be read.
  void load(const std::string& path);

  /// Reads `path` if it is there, and writes changes to it from now on.
  void keep_changes_in(const std::string& path);

  /// Takes variables DIVAN_SECTION_KEY ("DIVAN_CHTTPD_PORT=5985"); `environment` as in main(). A section or
  /// key with underscores is found if it is known already, else the section ends at the first underscore.
  void load_environment(const char* const* environment);

  /// Sets without keeping: for the command line.
  void override_with(std::string_view section, std::string_view key, std::string_view value);

  std::optional<std::string> get(std::string_view section, std::string_view key) const;
  std::string get(std::string_view section, std::string_view key, std::string_view fallback) const;
  /// Throws bad_request naming the setting if it is no integer in [min, max].
  std::int64_t get_int(std::string_view section, std::string_view key, std::int64_t fallback,
                       std::int64_t min, std::int64_t max) const;
  /// Likewise if it is no number.
  double get_number(std::string_view section, std::string_view key, double fallback, double min,
                    double max) const;
  bool get_bool(std::string_view section, std::string_view key, bool fallback) const;

  Sections all() const;

  /// Changes a setting, keeps it, tells the listeners; answers the old value. Throws internal_error if it
  /// cannot be written down (then it is not changed), bad_request for a key or value with line breaks.
  std::optional<std::string> set(const std::string& section, const std::string& key,
                                 const std::string& value);
  /// Removes a setting; answers the old value, or nothing if it was not set.
  std::optional<std::string> erase(const std::string& section, const std::string& key);

  /// For start-up. A listener may veto a change by throwing bad_request. It must not change settings itself:
  /// changes come one after the other.
  void on_change(Listener listener) { listeners_.push_back(std::move(listener)); }

 private:
  std::optional<std::string> change(const std::string& section, const std::string& key,
                                    std::optional<std::string> value);
  void write_changes() const;

  std::mutex changing_;  // held for a whole change: with what its listeners do, and its being taken back
  mutable std::mutex mutex_;
  Sections values_;
  Sections changes_;
  std::string changes_path_;
  std::vector<Listener> listeners_;
};

}  // namespace divan
