// Settings: sections of keys and values with CouchDB's names, from an ini file, the environment and the
// command line. They can be changed at run time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/ini.h"
#include "divan/base/mutex.h"

namespace divan {

/// Later sources override earlier ones: the ini file, the file of run-time changes, the environment, the
/// command line. Thread-safe.
class Config {
 public:
  using Section = ini::Section;
  using Sections = ini::Sections;
  /// Called after a setting was changed or removed.
  using Listener = std::function<void(const std::string& section, const std::string& key)>;

  Config() = default;

  /// Reads an ini file; throws internal_error naming file and line if it cannot be read.
  void load(const std::string& path);

  /// Reads `path` if it exists, and writes run-time changes to it from now on.
  void keep_changes_in(const std::string& path);

  /// Reads variables DIVAN_SECTION_KEY ("DIVAN_CHTTPD_PORT=5985"); `environment` has the form of main()'s. A
  /// section whose name contains underscores must be known already; otherwise the section ends at the first
  /// underscore.
  void load_environment(const char* const* environment);

  /// Sets a value without writing it to a file. For the command line.
  void override_with(std::string_view section, std::string_view key, std::string_view value);

  std::optional<std::string> get(std::string_view section, std::string_view key) const;
  std::string get(std::string_view section, std::string_view key, std::string_view fallback) const;
  /// Throws bad_request, naming the setting, if its value is not an integer in [min, max].
  std::int64_t get_int(std::string_view section, std::string_view key, std::int64_t fallback,
                       std::int64_t min, std::int64_t max) const;
  /// Likewise for floating-point numbers.
  double get_number(std::string_view section, std::string_view key, double fallback, double min,
                    double max) const;
  bool get_bool(std::string_view section, std::string_view key, bool fallback) const;

  Sections all() const;

  /// Changes a setting, writes it to the file of changes and calls the listeners; returns the old value.
  /// Throws bad_request if a file cannot hold the setting (ini::can_hold()), and internal_error if the file
  /// cannot be written; the setting is then unchanged.
  std::optional<std::string> set(const std::string& section, const std::string& key,
                                 const std::string& value);
  /// Removes a setting; returns the old value, or nullopt if it was not set.
  std::optional<std::string> erase(const std::string& section, const std::string& key);

  /// Names of settings: section and key.
  using Names = std::vector<std::pair<std::string, std::string>>;
  /// Takes the values that `load` reads into an empty Config, also those of the file of changes, and calls
  /// the listeners for each setting that differs. Settings for which `may_change` is false stay as they are;
  /// returns their names if they differ. If `load` or a listener throws, nothing is changed. Neither may
  /// change settings itself.
  Names reload(const std::function<void(Config& fresh)>& load,
               const std::function<bool(const std::string& section, const std::string& key)>& may_change);

  /// Adds a listener. Call during start-up only. A listener may veto a change by throwing bad_request. It
  /// must not change settings itself, since changes are serialized.
  void on_change(Listener listener) { listeners_.push_back(std::move(listener)); }

 private:
  std::optional<std::string> change(const std::string& section, const std::string& key,
                                    const std::optional<std::string>& value);
  void write_changes() const;

  // One change at a time: held during a change, its listeners and its undoing.
  Mutex changing_{MutexRank::config_change, "Config::changing_"};
  mutable Mutex mutex_{MutexRank::config, "Config::mutex_"};  // protects the three members below
  Sections values_;
  Sections changes_;
  std::string changes_path_;
  std::vector<Listener> listeners_;
};

}  // namespace divan
