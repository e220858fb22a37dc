// The settings of ken, and the rule that decides whether an index may be built: should_start_job of CouchDB's
// ken_server, as a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "divan/base/clock.h"
#include "divan/base/config.h"

namespace divan::ken {

/// A setting of [ken].
struct SettingInfo {
  const char* name;
  std::int64_t fallback;
  std::int64_t min;
  std::int64_t max;
  const char* description;
};
std::span<const SettingInfo> setting_infos();

/// A snapshot of the settings. A value type.
struct Settings {
  std::int64_t limit = 20;
  std::int64_t batch_channels = 20;
  std::int64_t incremental_channels = 80;
  std::int64_t max_incremental_updates = 1000;
  std::int64_t batch_size = 1;
  Duration delay = std::chrono::seconds(5);
  Duration prune_interval = std::chrono::minutes(1);

  std::int64_t channels() const { return batch_channels + incremental_channels; }
};

/// Throws bad_request with the name of an invalid setting.
Settings read_settings(const Config& config);

/// Changes a setting until the process ends; returns the old value. Throws bad_request if the value is out of
/// range.
std::int64_t change_setting(Config& config, std::string_view name, std::int64_t value);

/// Returns true if [ken.ignore] has `database = true`.
bool is_ignored(const Config& config, std::string_view database);

/// Why an index that is behind is not built now.
enum class WaitReason {
  limit,           ///< as many indexes of its database are being built as the limit allows
  channels,        ///< no channel is free
  batch_channels,  ///< it is far behind, and no batch channel is free
  delay,           ///< it was built recently, and less than `batch_size` changed or no batch channel is free
  failed,          ///< its last build failed, and it waits for the next attempt
};
/// The name of the enumerator, and a sentence that explains it.
std::string_view wait_reason_name(WaitReason reason);
std::string_view wait_reason_text(WaitReason reason);

/// The input of the decision whether to build an index.
struct Candidate {
  bool known = false;       // ken remembers its last build
  std::int64_t behind = 0;  // changed documents that are not in it; need not be counted beyond
                            // max_incremental_updates
  std::int64_t moved = 0;   // those that changed since its last build was requested; not beyond batch_size
  Duration idle{};          // since its last build ended
};

/// Returns nullopt if the index may be built while `active` others are, `active_of_database` of them of its
/// database.
std::optional<WaitReason> why_to_wait(const Settings& settings, std::int64_t active,
                                      std::int64_t active_of_database, const Candidate& candidate);

}  // namespace divan::ken
