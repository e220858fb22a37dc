#include "divan/app/statistics.h"

#include <filesystem>

#include "divan/kv/embedded/engine.h"
#include "divan/kv/fdb/engine.h"

namespace divan::app {
namespace {

using Kind = api::Statistics::Kind;

std::uint64_t open_files() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  // One of them is that of the directory.
  return error ? 0 : static_cast<std::uint64_t>(std::distance(begin(files), end(files)) - 1);
}

}  // namespace

void add_store_statistics(api::Statistics& statistics, const OpenStore& store) {
  statistics.add("couchdb.commits", Kind::counter, "transactions committed",
                 [embedded = store.embedded, fdb = store.fdb]() -> std::uint64_t {
                   if (embedded != nullptr) return embedded->stats().commits;
                   return fdb != nullptr ? fdb->commits() : 0;
                 });
}

void add_process_statistics(api::Statistics& statistics) {
  statistics.add("couchdb.open_os_files", Kind::gauge, "open file descriptors", open_files);
}

void add_document_statistics(api::Statistics& statistics, const docs::Catalog& catalog) {
  statistics.add("couchdb.document_writes", Kind::counter, "documents written",
                 [&catalog] { return catalog.documents_written(); });
}

void add_password_statistics(api::Statistics& statistics, const api::Accounts& accounts) {
  statistics.add("couchdb.password_hashing_slow", Kind::counter,
                 "passwords hashed to be compared with a stored hash",
                 [&accounts] { return accounts.stats().right + accounts.stats().wrong; });
}

void add_js_statistics(api::Statistics& statistics, const js::Pool& pool) {
  const std::string group = "couchdb.query_server.";
  statistics.add(group + "process_count", Kind::gauge, "JavaScript processes",
                 [&pool] { return pool.stats().alive; });
  statistics.add(group + "process_starts", Kind::counter, "JavaScript processes started",
                 [&pool] { return pool.stats().started; });
  statistics.add(group + "process_exits", Kind::counter, "JavaScript processes that have ended",
                 [&pool] { return pool.stats().died + pool.stats().recycled; });
  statistics.add(group + "process_error_exits", Kind::counter,
                 "JavaScript processes that ended because of an error",
                 [&pool] { return pool.stats().died; });
  statistics.add("couchdb.mrview.map_doc", Kind::counter, "documents mapped",
                 [&pool] { return pool.stats().documents; });
}

void add_updates_statistics(api::Statistics& statistics, const updates::Sequencer& sequencer) {
  statistics.add("global_changes.db_writes", Kind::counter, "rows written to the updates feed",
                 [&sequencer] { return sequencer.stats().rows; });
  statistics.add("global_changes.rpcs", Kind::counter, "transactions of the updates feed",
                 [&sequencer] { return sequencer.stats().transactions; });
  statistics.add("global_changes.listener_pending_updates", Kind::gauge,
                 "commits whose marks were not read yet", [&sequencer] { return sequencer.stats().unseen; });
  statistics.add("global_changes.server_pending_updates", Kind::gauge,
                 "marks that were read and are not rows yet",
                 [&sequencer] { return sequencer.stats().pending; });
}

}  // namespace divan::app
