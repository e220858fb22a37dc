// The settings of ken, and the rule by which they let an index be built: what couch's ken_server calls
// should_start_job, as a function of what is known of the index.
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
  const char* meaning;
};
std::span<const SettingInfo> setting_infos();

/// The settings at a moment. A value type.
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

/// Throws bad_request naming the setting that is none.
Settings read_settings(const Config& config);

/// Changes a setting for as long as the process lives; answers the old value. Throws bad_request for one that
/// is out of range.
std::int64_t change_setting(Config& config, std::string_view name, std::int64_t value);

/// Whether [ken.ignore] says `database = true`.
bool is_ignored(const Config& config, std::string_view database);

/// Why an index that is behind is not built now.
enum class Hold {
  limit,           ///< as many indexes of its database are being built as may be at once
  channels,        ///< no channel is free
  batch_channels,  ///< it is far behind (or was built a moment ago), and no batch channel is free
  delay,   ///< it was built a moment ago, and moved by less than `batch_size` or no batch channel is free
  failed,  ///< its last build failed: it waits for its next attempt
};
/// "limit", "channels" and so on; and the same as a sentence.
std::string_view hold_name(Hold hold);
std::string_view hold_meaning(Hold hold);

/// What is known of an index when it is decided whether to build it.
struct Candidate {
  bool known = false;       // it was built a while ago, which ken remembers
  std::int64_t behind = 0;  // documents that changed and are not in it; need not be counted beyond
                            // max_incremental_updates
  std::int64_t moved = 0;   // those that changed since its last build was asked for; not beyond batch_size
  Duration idle{};          // since its last build ended
};

/// Nothing if the index may be built, while `active` are (of them `active_of_database` of its database).
std::optional<Hold> why_to_wait(const Settings& settings, std::int64_t active,
                                std::int64_t active_of_database, const Candidate& candidate);

}  // namespace divan::ken
