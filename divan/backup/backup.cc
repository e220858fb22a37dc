#include "divan/backup/backup.h"

#include <fmt/core.h>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/kv/clock_version.h"

namespace divan::backup {
namespace {

// Far below the store's limit, which also counts overhead.
constexpr std::size_t kTransactionBytes = 4 << 20;

// A cluster adds about a million versions a second, and a hundred million for each recovery. The time since
// the backup is counted twice; this margin covers 36 recoveries within it.
constexpr kv::Version kClusterMargin = 3'600'000'000;

}  // namespace

bool write_backup(kv::Database& store, Header header, const ByteSink& sink) {
  header.shared = store.begin()->is_remote();
  Writer writer(header, sink);
  bool wants_more = true;
  const kv::Version version = store.dump([&](std::string_view key, std::string_view value) {
    wants_more = writer.add(key, value);
    return wants_more;
  });
  return wants_more && writer.finish(version);
}

kv::Version version_after_restore(const Header& header, kv::Version version, std::int64_t now_ms) {
  // If the clock is behind the backup, the elapsed time is unknown.
  const auto created = kv::version_of_clock(header.created_ms);
  const auto now = std::max(kv::version_of_clock(now_ms), created);
  const auto lost = now - created;
  // A store of one process begins with the clock's version at each start, and may have been restarted
  // meanwhile. A cluster's versions do not depend on the date.
  const auto next = header.shared ? version + 2 * lost + kClusterMargin : std::max(version + lost, now);
  if (next <= kMaxRaisedVersion) return next;
  throw bad_request(
      fmt::format("The backup ends with version {}, which is too high to continue from; expected at most {}.",
                  version, kMaxRaisedVersion));
}

void RowLoader::add(std::string_view key, std::string_view value) {
  rows_.push_back({std::string(key), std::string(value)});
  bytes_ += key.size() + value.size();
  if (bytes_ >= kTransactionBytes) flush();
}

void RowLoader::flush() {
  // The engine accounts for overhead besides keys and values.
  for (std::size_t done = 0; done < rows_.size();) {
    done = store_.run([&](kv::Transaction& tx) {
      std::size_t next = done;
      while (next < rows_.size() && tx.approximate_size() < kTransactionBytes) {
        tx.set(rows_[next].key, rows_[next].value);
        ++next;
      }
      DIVAN_CHECK(next > done, "not one row fits into a transaction");
      return next;
    });
  }
  rows_.clear();
  bytes_ = 0;
}

void RowLoader::finish(kv::Version version) {
  flush();
  DIVAN_CHECK(rows_.empty(), "{} rows would not be restored", rows_.size());
  store_.advance_version(version);
}

}  // namespace divan::backup
