#include "divan/ken/settings.h"

#include <fmt/format.h>

#include "divan/base/error.h"

namespace divan::ken {
namespace {

constexpr std::string_view kSection = "ken";
constexpr std::int64_t kMost = 1'000'000;
constexpr std::int64_t kDayMs = 86'400'000;

constexpr SettingInfo kInfos[] = {
    {"limit", 20, 1, kMost, "builds of one database that ken asks for at once"},
    {"batch_channels", 20, 1, kMost, "builds of any size that ken asks for at once"},
    {"incremental_channels", 80, 0, kMost, "further builds, of indexes that are not far behind"},
    {"max_incremental_updates", 1000, 1, kMost,
     "number of missing changes from which on an index counts as far behind"},
    {"delay", 5000, 0, kDayMs, "milliseconds between builds of an index unless a batch channel is free"},
    {"batch_size", 1, 1, kMost, "number of changes that start a build before `delay` has passed"},
    {"prune_interval", 60'000, 1001, kDayMs, "milliseconds between the times when ken forgets idle indexes"},
};

const SettingInfo& info(std::string_view name) {
  for (const auto& one : kInfos) {
    if (one.name == name) return one;
  }
  throw internal_error(fmt::format("Unknown setting [ken] {}.", name));
}

std::int64_t read(const Config& config, std::string_view name) {
  const auto& found = info(name);
  return config.get_int(kSection, name, found.fallback, found.min, found.max);
}

}  // namespace

std::span<const SettingInfo> setting_infos() { return kInfos; }

Settings read_settings(const Config& config) {
  using std::chrono::milliseconds;
  return {.limit = read(config, "limit"),
          .batch_channels = read(config, "batch_channels"),
          .incremental_channels = read(config, "incremental_channels"),
          .max_incremental_updates = read(config, "max_incremental_updates"),
          .batch_size = read(config, "batch_size"),
          .delay = milliseconds(read(config, "delay")),
          .prune_interval = milliseconds(read(config, "prune_interval"))};
}

std::int64_t change_setting(Config& config, std::string_view name, std::int64_t value) {
  const auto& found = info(name);
  if (value < found.min || value > found.max) {
    throw bad_request(fmt::format("Setting [ken] {} = {} is not a number from {} to {}.", name, value,
                                  found.min, found.max));
  }
  const std::int64_t old = read(config, name);
  config.override_with(kSection, name, std::to_string(value));
  return old;
}

bool is_ignored(const Config& config, std::string_view database) {
  return config.get("ken.ignore", database) == "true";
}

std::string_view wait_reason_name(WaitReason reason) {
  switch (reason) {
    case WaitReason::limit: return "limit";
    case WaitReason::channels: return "channels";
    case WaitReason::batch_channels: return "batch_channels";
    case WaitReason::delay: return "delay";
    case WaitReason::failed: return "failed";
  }
  return "";
}

std::string_view wait_reason_text(WaitReason reason) {
  switch (reason) {
    case WaitReason::limit: return "As many indexes of this database are being built as [ken] limit allows.";
    case WaitReason::channels: return "All channels are taken.";
    case WaitReason::batch_channels:
      return "It is [ken] max_incremental_updates behind, or more, and all batch channels are taken.";
    case WaitReason::delay: return "It was built less than [ken] delay ago.";
    case WaitReason::failed: return "Its last build failed; it is tried again after a pause.";
  }
  return "";
}

std::optional<WaitReason> why_to_wait(const Settings& settings, std::int64_t active,
                                      std::int64_t active_of_database, const Candidate& candidate) {
  if (active_of_database >= settings.limit) return WaitReason::limit;
  if (active >= settings.channels()) return WaitReason::channels;
  const bool batch_channel = active < settings.batch_channels;
  const bool near = candidate.behind < settings.max_incremental_updates;
  if (!candidate.known)
    return batch_channel || near ? std::nullopt : std::optional(WaitReason::batch_channels);
  const bool delay_is_over = candidate.idle > settings.delay;
  if (batch_channel && (delay_is_over || candidate.moved >= settings.batch_size)) return std::nullopt;
  if (near && delay_is_over) return std::nullopt;
  return near || batch_channel ? WaitReason::delay : WaitReason::batch_channels;
}

}  // namespace divan::ken
