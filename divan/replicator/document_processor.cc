#include "divan/replicator/document_processor.h"

#include <fmt/core.h>

#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/docs/reader.h"
#include "divan/replicator/document_rows.h"

namespace divan::replicator {
namespace {

// Changes that are processed in one transaction, and about as many bytes of documents.
constexpr std::size_t kChangesAtOnce = 100;
constexpr std::size_t kBytesAtOnce = 1 << 20;
constexpr std::size_t kNamesAtOnce = 100;
// After this time databases are looked for even if no watch has fired.
constexpr Duration kLongestPause = std::chrono::seconds(30);
constexpr Duration kPollInterval = std::chrono::seconds(1);  // without a watch
constexpr Duration kRetryPause = std::chrono::seconds(5);

std::string in_use_reason(const std::string& id, const std::string& name, const std::string& document,
                          const ReplicationJob& other) {
  if (other.database.empty()) {
    return fmt::format(
        "Replication `{}` specified by document `{}` already running as a transient replication, started via "
        "`_replicate` API endpoint",
        id, document);
  }
  return fmt::format(
      "Replication `{}` specified by document `{}` in db `{}` already started by document `{}` in db `{}`",
      id, document, name, other.document, other.database);
}

}  // namespace

void mark_changed_databases(docs::Catalog& catalog) {
  catalog.on_change(
      [](kv::Transaction& tx, const docs::Database& database, events::DatabaseEvent, std::string_view) {
        if (!is_replicator_database(database.name())) return;
        tx.set(rows::changed(database.name()), "");
        tx.add(rows::signal(), 1);
      });
}

DocumentProcessor::DocumentProcessor(kv::Database& store, docs::Catalog& catalog, jobs::Queue& queue,
                                     const Clock& clock, std::string server_uuid,
                                     std::function<void(const std::string& id)> cancelled)
    : store_(store),
      catalog_(catalog),
      queue_(queue),
      clock_(clock),
      server_uuid_(std::move(server_uuid)),
      cancelled_(std::move(cancelled)),
      loop_(clock, "replicator_docs", [this] { return step(); }) {}

void DocumentProcessor::find_databases() {
  store_.run([&](kv::Transaction& tx) {
    pending_.clear();
    for (auto& name : catalog_.list(tx)) {
      if (is_replicator_database(name)) pending_.insert(std::move(name));
    }
  });
}

MonotonicTime DocumentProcessor::step() {
  if (is_first_) find_databases();
  is_first_ = false;
  bool is_more = false;
  store_.run([&](kv::Transaction& tx) {
    std::set<std::string> marked;
    is_more =
        tx.scan(kv::below(rows::all_changed()), {.limit = kNamesAtOnce, .isolation = kv::Isolation::snapshot},
                [&](std::string_view key, std::string_view) {
                  if (auto name = rows::changed_name(key)) marked.insert(*std::move(name));
                  return true;
                });
    watch_ = tx.try_watch(rows::signal());
    pending_.merge(marked);
  });
  MonotonicTime next = clock_.now() + (watch_ ? kLongestPause : kPollInterval);
  for (auto it = pending_.begin(); it != pending_.end() && !loop_.stopped();) {
    try {
      process(*it);
      it = pending_.erase(it);
    } catch (const std::exception& error) {
      log::error("Cannot process the documents of `{}`; trying again: {}", *it, error.what());
      next = clock_.now() + kRetryPause;
      ++it;
    }
  }
  if (is_more) return clock_.now();
  if (watch_) watch_->on_end([notifier = loop_.notifier()] { notifier->notify(); });
  return next;
}

void DocumentProcessor::process(const std::string& name) {
  for (bool is_more = true; is_more && !loop_.stopped();) {
    std::vector<std::string> cancelled;
    store_.run([&](kv::Transaction& tx) {
      cancelled.clear();
      is_more = process_next(tx, name, cancelled);
    });
    for (const auto& id : cancelled) cancelled_(id);
  }
}

// Returns true if there is more to do.
bool DocumentProcessor::process_next(kv::Transaction& tx, const std::string& name,
                                     std::vector<std::string>& cancelled) {
  const auto database = catalog_.find(tx, name);
  const auto stored = tx.get(rows::processed(name));
  const bool is_marked = tx.get(rows::changed(name)).has_value();
  rows::Processed processed = stored ? rows::decode_processed(*stored) : rows::Processed();
  if (stored && (!database || database->number() != processed.number)) {
    if (!cancel_all(tx, name, cancelled)) tx.clear(rows::processed(name));
    return true;
  }
  if (!database) {
    if (is_marked) tx.clear(rows::changed(name));
    return false;
  }
  std::vector<docs::Change> changes;
  docs::visit_changes(tx, *database, processed.position, [&](const docs::Change& change) {
    changes.push_back(change);
    return changes.size() < kChangesAtOnce;
  });
  const auto bodies = docs::read_bodies(tx, *database, changes, kBytesAtOnce);
  bool is_more = changes.size() == kChangesAtOnce || bodies.size() < changes.size();
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    processed = {database->number(), changes[i].sequence};
    if (process_document(tx, *database, changes[i], bodies[i], cancelled)) continue;
    is_more = true;
    break;
  }
  if (!bodies.empty() || !stored)
    tx.set(rows::processed(name), rows::encode({database->number(), processed.position}));
  if (is_marked && !is_more) tx.clear(rows::changed(name));
  return is_more;
}

// Returns false if the document was written, which must be the last in its transaction.
bool DocumentProcessor::process_document(kv::Transaction& tx, const docs::Database& database,
                                         const docs::Change& change, std::string_view body,
                                         std::vector<std::string>& cancelled) {
  if (docs::is_design(change.id)) return true;
  const auto& name = database.name();
  const auto row = rows::requested(name, change.id);
  const auto before = tx.get(row);
  const auto forget = [&] {
    if (!before) return;
    cancel(tx, name, change.id, *before, cancelled);
    tx.clear(row);
  };
  if (change.deleted || outcome_of(body)) {
    forget();
    return true;
  }
  ReplicationJob job;
  try {
    job = job_of_document(name, change.id, body);
  } catch (const Error& error) {
    if (error.status() >= 500 && error.status() != 501) throw;
    forget();
    return fail(tx, database, change.id, error.reason());
  }
  const auto id = job.replication.id(server_uuid_);
  if (before && *before != id) forget();
  const auto present = queue_.find(tx, kJobType, id);
  if (present && !jobs::has_ended(present->state)) {
    const auto data = queue_.data(tx, *present);
    const auto other = ReplicationJob::parse_or_null(data);
    if (other && (other->database != name || other->document != change.id)) {
      if (before && *before == id) tx.clear(row);
      return fail(tx, database, change.id, in_use_reason(id, name, change.id, *other));
    }
    if (data == job.to_json() && !present->cancel) {
      tx.set(row, id);
      return true;
    }
  }
  try {
    queue_.add(tx, kJobType, id, job.to_json(), {});
  } catch (const Error& error) {
    if (error.status() >= 500) throw;
    return fail(tx, database, change.id, error.reason());
  }
  tx.set(row, id);
  return true;
}

bool DocumentProcessor::fail(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                             std::string_view reason) {
  log::info("Document `{}` of `{}` is invalid: {}", id, database.name(), reason);
  const auto tree = docs::read_tree(tx, database, id);
  if (tree.empty() || tree.front().deleted) return true;
  return !record_failure(tx, database, id, tree.front(), reason, clock_.wall_ms());
}

// Cancels the job unless it is that of another document.
void DocumentProcessor::cancel(kv::Transaction& tx, const std::string& name, const std::string& document,
                               const std::string& job, std::vector<std::string>& cancelled) {
  const auto present = queue_.find(tx, kJobType, job);
  if (!present || jobs::has_ended(present->state)) return;
  const auto data = ReplicationJob::parse_or_null(queue_.data(tx, *present));
  if (!data || data->database != name || data->document != document) return;
  queue_.cancel(tx, kJobType, job);
  cancelled.push_back(job);
}

// Cancels the jobs of documents of a database that is gone. Returns true if there are more.
bool DocumentProcessor::cancel_all(kv::Transaction& tx, const std::string& name,
                                   std::vector<std::string>& cancelled) {
  const std::string prefix = rows::all_requested(name);
  const auto page = tx.get_range(kv::below(prefix), {.limit = kChangesAtOnce});
  for (const auto& row : page.rows) {
    kv::tuple::Reader reader(std::string_view(row.key).substr(prefix.size()));
    cancel(tx, name, reader.take_string().value_or(""), row.value, cancelled);
    tx.clear(row.key);
  }
  return page.more;
}

}  // namespace divan::replicator
