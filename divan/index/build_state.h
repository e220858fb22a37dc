// The state of one run of a build's job; private to the builder.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <stop_token>
#include <string>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/catalog.h"
#include "divan/index/builds.h"
#include "divan/index/slots.h"

namespace divan::index {

// One run of a build's job.
struct Build {
  jobs::Attempt attempt;
  std::int64_t priority = 0;
  BuildRequest request;
  IndexPtr index;
  std::optional<IndexKeys> keys;  // of the index, once the build has begun
  std::int64_t started_on = 0;    // seconds since 1970
  std::int64_t done = 0;          // changes that this run has written to the index
  std::int64_t total = 0;         // changes for this run, as far as counted
  std::int64_t failures = 0;      // documents for which a function failed
  kv::Versionstamp written;       // the index's sequence
  kv::Versionstamp read;          // sequence up to which batches were read
  bool read_all = false;          // whether `read` was the end of the changes
  kv::Versionstamp all_new;       // documents with changes up to this sequence were never in the index
  bool cancelled = false;
  bool worked = false;         // this run has written to the index
  bool finished = false;       // the attempt has ended
  bool wanted = true;          // a design document defines the index, as far as known
  bool failed_before = false;  // the index's last build failed
  MonotonicTime began;         // this run, or its work since it was last up to date
  Slots::Id slot = 0;
  BuildLimits limits;
  std::stop_source stop;

  // Finds the index. The design document for which the build was requested may no longer define it while
  // another one does.
  bool find(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds) {
    if (auto found = find_index(tx, database, kinds, request.design_document, request.signature)) {
      request.design_document = found->design_document();
      index = found->within(limits);
      return wanted = true;
    }
    return wanted = false;
  }

  docs::Database open(kv::Transaction& tx, docs::Catalog& catalog) const {
    auto database = catalog.open(tx, request.database);
    // Another database of the same name is not the requested one.
    if (database.number() != request.database_number) throw not_found("Database does not exist.");
    return database;
  }

  // For messages.
  std::string name() const {
    if (request.database.empty()) return fmt::format("The index job `{}`", attempt.id);
    return fmt::format("The build of `{}` in `{}`", request.design_document, request.database);
  }

  // In the form of /_active_tasks.
  std::string progress(const Clock& clock) const {
    const std::int64_t all = std::max(total, done);
    // Maximum bytes of a design document's id.
    constexpr std::size_t kMaxShownBytes = 1000;
    std::string out;
    json::Writer(out)
        .begin_object()
        .key("type")
        .string("indexer")
        .key("database")
        .string(request.database)
        .key("design_document")
        .string(utf8_prefix(request.design_document, kMaxShownBytes))
        .key("changes_done")
        .number(done)
        .key("total_changes")
        .number(all)
        .key("progress")
        .number(all == 0 ? 100 : done * 100 / all)
        .key("map_failures")
        .number(failures)
        .key("started_on")
        .number(started_on)
        .key("updated_on")
        .number(clock.wall_ms() / 1000)
        .end_object();
    return out;
  }
};

}  // namespace divan::index
