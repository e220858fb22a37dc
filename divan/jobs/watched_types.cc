#include "divan/jobs/watched_types.h"

#include <fmt/core.h>

#include "divan/jobs/rows.h"

namespace divan::jobs {

bool WatchedTypes::refresh(const std::shared_ptr<Notifier>& notifier) {
  const bool watched = !may_have_changed();
  std::string version;
  std::optional<Types> types;
  std::shared_ptr<kv::Watch> watch;
  store_.run([&](kv::Transaction& tx) {
    types.reset();
    watch.reset();
    version = tx.get(types_key(), kv::Isolation::snapshot).value_or("");
    if (version == version_ && watched) return;
    if (version != version_) types = read(tx);
    watch = tx.try_watch(types_key());
  });
  if (watch) {
    watch->on_end([notifier, weak = std::weak_ptr(watch)] {
      // Not if the watch was cancelled: the store may cancel the next one, too.
      if (const auto ended = weak.lock(); ended && ended->fired()) notifier->notify();
    });
    watch_ = std::move(watch);
  }
  if (!types) return false;
  types_ = *std::move(types);
  version_ = std::move(version);
  return true;
}

WatchedTypes::Types WatchedTypes::read(kv::Transaction& tx) {
  Types types;
  for (const auto& type : queue_.types(tx)) {
    try {
      if (auto settings = queue_.find_type(tx, type)) types.emplace(type, *std::move(settings));
    } catch (const Error& error) {
      queue_.report_damage(type_key(type),
                           fmt::format("The settings of job type {} are damaged: {}", type, error.reason()));
    }
  }
  return types;
}

}  // namespace divan::jobs
