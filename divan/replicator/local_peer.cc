#include "divan/replicator/local_peer.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/base/notifier.h"
#include "divan/docs/changes.h"
#include "divan/docs/contents.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/local.h"
#include "divan/docs/partition.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/reader.h"
#include "divan/docs/sequence.h"
#include "divan/docs/writer.h"
#include "divan/events/database_events.h"
#include "divan/functions/validation_functions.h"
#include "divan/selector/selector.h"

namespace divan::replicator {
namespace {

using kv::Isolation;

// Changes that are read in one transaction.
constexpr std::size_t kPageChanges = 1'000;
constexpr int kMaxValidations = 10;
// How often a shared store is asked for changes of other processes.
constexpr Duration kPollInterval = std::chrono::seconds(1);

std::string local_id(std::string_view id) { return std::string(docs::kLocalPrefix) + std::string(id); }

class LocalPeer final : public Peer {
  // Runs a transaction that reads the database.
  template <class Read>
  auto in_database(const Read& read) {
    return local_.store.run([&](kv::Transaction& tx) { return read(tx, local_.catalog.open(tx, name_)); });
  }

 public:
  LocalPeer(const LocalStore& local, std::string name, ReplicationUser user, Fence fence)
      : local_(local), name_(std::move(name)), user_(std::move(user)), fence_(std::move(fence)) {}

  void create(std::string_view params) override {
    const bool is_partitioned = json::member(params, "partitioned").value_or("") == "true";
    local_.store.run([&](kv::Transaction& tx) {
      fence_(tx);
      if (!local_.catalog.find(tx, name_)) local_.catalog.create(tx, name_, is_partitioned);
    });
  }

  std::string update_sequence() override {
    return in_database([&](kv::Transaction& tx, const docs::Database& database) {
      return docs::to_sequence(docs::last_sequence(tx, database));
    });
  }

  std::optional<StoredCheckpoint> read_checkpoint(std::string_view id) override {
    return in_database([&](kv::Transaction& tx, const docs::Database& database) {
      auto found = docs::read_local(tx, database, local_id(id));
      return found ? std::optional(
                         StoredCheckpoint{fmt::format("0-{}", found->revision), std::move(found->body)})
                   : std::nullopt;
    });
  }

  std::string write_checkpoint(std::string_view id, const std::optional<std::string>& revision,
                               std::string_view body) override {
    docs::IncomingDocument document;
    document.id = local_id(id);
    if (revision) document.revision = docs::parse_revision(*revision);
    document.body = body;
    return local_.store.run([&](kv::Transaction& tx) {
      fence_(tx);
      return fmt::format("0-{}", docs::write_local(tx, local_.catalog.open(tx, name_), document));
    });
  }

  ChangesPage changes(const std::string& since, std::size_t limit, const Replication& replication) override {
    if (!replication.filter.filter.empty())
      throw Error(501, "not_implemented",
                  "Filter functions of local sources are not supported yet; use a `selector`.");
    return in_database([&](kv::Transaction& tx, const docs::Database& database) {
      std::vector<docs::Change> found;
      ChangesPage page{.last_sequence = since};
      const auto begin = docs::parse_sequence(since);
      docs::visit_changes(tx, database, begin, [&](const docs::Change& change) {
        found.push_back(change);
        return found.size() < std::min(limit, kPageChanges);
      });
      page.is_last = found.size() < std::min(limit, kPageChanges);
      if (!found.empty()) page.last_sequence = docs::to_sequence(found.back().sequence);
      // Purges have a sequence, but no change.
      if (page.is_last)
        page.last_sequence = docs::to_sequence(std::max(begin, docs::last_sequence(tx, database)));
      if (!select(tx, database, replication.filter, found, page)) page.is_last = false;
      for (const auto& change : found) {
        ChangedDocument document{change.id, {change.winner}};
        if (!replication.winning_revs_only && change.other_leaves != 0) {
          document.revisions.clear();
          for (const auto& leaf : docs::read_tree(tx, database, change.id, Isolation::snapshot))
            document.revisions.push_back(leaf.revision());
        }
        page.documents.push_back(std::move(document));
      }
      return page;
    });
  }

  bool wait_for_changes(const std::string& since, const Replication&,
                        std::chrono::milliseconds most) override {
    auto subscription = local_.catalog.bus().subscribe(
        events::database_channel(name_), {.max_events = 0, .notify = [this] { changed_.notify(); }});
    const auto deadline = local_.clock.now() + most;
    const auto begin = docs::parse_sequence(since);
    while (!changed_.stopped() && local_.clock.now() < deadline) {
      while (subscription.try_next()) {}  // otherwise the next event would not notify
      const bool is_later = in_database([&](kv::Transaction& tx, const docs::Database& database) {
        return docs::last_sequence(tx, database) > begin;
      });
      if (is_later) break;
      changed_.wait_until(
          local_.clock, local_.is_shared ? std::min(deadline, local_.clock.now() + kPollInterval) : deadline);
    }
    return !changed_.stopped();
  }

  std::vector<MissingRevisions> missing(std::span<const ChangedDocument> documents) override {
    return in_database([&](kv::Transaction& tx, const docs::Database& database) {
      std::vector<std::string> ids;
      for (const auto& document : documents) ids.push_back(document.id);
      docs::prefetch_trees(tx, database, ids);
      std::vector<MissingRevisions> all;
      for (const auto& document : documents) {
        const auto tree = docs::read_tree(tx, database, document.id, Isolation::snapshot);
        MissingRevisions missing{document.id, {}, {}};
        for (const auto& revision : document.revisions) {
          if (!docs::knows(tree, revision)) missing.revisions.push_back(revision);
        }
        if (missing.revisions.empty()) continue;
        for (const auto& leaf : tree) missing.ancestors.push_back(leaf.revision());
        all.push_back(std::move(missing));
      }
      return all;
    });
  }

  ReadDocuments read(std::span<const MissingRevisions> wanted) override {
    ReadDocuments result;
    in_database([&](kv::Transaction& tx, const docs::Database& database) {
      result = {};
      std::size_t bytes = 0;
      while (result.taken < wanted.size() && bytes < kReadBytes)
        bytes += read_one(tx, database, wanted[result.taken++], result);
    });
    return result;
  }

  std::size_t write(std::span<const std::string> documents) override {
    std::vector<docs::IncomingDocument> incoming;
    std::size_t refused = 0;
    const auto database = in_database([](kv::Transaction&, const docs::Database& found) { return found; });
    for (const auto& text : documents) {
      try {
        auto document = docs::parse_document(text);
        if (document.id.empty() || document.id.starts_with(docs::kLocalPrefix))
          throw bad_request("Only documents with an id that are not local can be replicated.");
        docs::given_path(document);
        docs::check_id_in(database, document.id);
        incoming.push_back(std::move(document));
      } catch (const Error& error) {
        log::warning("A document cannot be written to database `{}`: {}", name_, error.what());
        ++refused;
      }
    }
    docs::BulkReplicate bulk(local_.catalog, name_, std::move(incoming));
    for (int validations = 0;;) {
      try {
        do {
          local_.store.run([&](kv::Transaction& tx) {
            fence_(tx);
            bulk.write(tx);
          });
        } while (bulk.committed());
        return refused + bulk.take_refused().size();
      } catch (const docs::NotValidated&) {
        if (++validations > kMaxValidations)
          throw Error(503, "service_unavailable",
                      "The functions that validate the documents change too often.");
        validate(bulk);
      }
    }
  }

  void stop() override { changed_.stop(); }

 private:
  // Removes the changes of documents that are not replicated. Returns false if it stopped before the last
  // change, since too many bytes were read.
  static bool select(kv::Transaction& tx, const docs::Database& database, const ReplicationFilter& filter,
                     std::vector<docs::Change>& changes, ChangesPage& page) {
    bool is_all = true;
    if (filter.has_doc_ids) {
      std::erase_if(changes, [&](const docs::Change& change) {
        return !std::ranges::binary_search(filter.doc_ids, change.id);
      });
    }
    if (filter.selector) {
      const auto selector = selector::Selector::parse(*filter.selector);
      const auto bodies = docs::read_bodies(tx, database, changes, kReadBytes);
      if (bodies.size() < changes.size()) {
        is_all = false;
        changes.resize(bodies.size());
        page.last_sequence = docs::to_sequence(changes.back().sequence);
      }
      std::size_t next = 0;
      std::erase_if(changes, [&](const docs::Change& change) {
        std::string document;
        docs::append_open_document(document, change.id, change.winner, change.deleted, bodies[next++]);
        return !selector.matches(document + "}");
      });
    }
    return is_all;
  }

  // Returns about how many bytes were read.
  static std::size_t read_one(kv::Transaction& tx, const docs::Database& database,
                              const MissingRevisions& wanted, ReadDocuments& into) {
    const auto tree = docs::read_tree(tx, database, wanted.id, Isolation::snapshot);
    const auto selection = docs::find_revisions(tree, wanted.revisions, true);
    into.failures += selection.missing.size();
    std::size_t bytes = 0;
    for (const auto* leaf : selection.found) {
      try {
        const auto body = docs::read_body(tx, database, *leaf, docs::AttachmentForm::data);
        bytes += body.size();
        docs::append_document(into.documents.emplace_back(), wanted.id, *leaf, body, tree, {.revs = true});
      } catch (const Error& error) {
        if (error.status() >= 500) throw;
        log::warning("Document `{}` of database `{}` cannot be replicated: {}", wanted.id, database.name(),
                     error.what());
        ++into.failures;
      }
    }
    return bytes;
  }

  // Calls the database's functions `validate_doc_update` for what is still to be written.
  void validate(docs::BulkReplicate& bulk) {
    const auto documents = bulk.unwritten(true);
    std::vector<docs::Verdict> verdicts(documents.size());
    docs::Validators validators;
    functions::ValidationFunctions functions;
    std::vector<std::string> cases;
    std::vector<std::size_t> indices;  // of the documents of `cases`
    std::string context;
    in_database([&](kv::Transaction& tx, const docs::Database& database) {
      validators = {docs::read_validators(tx, database), database.number()};
      functions = functions::read_validation_functions(tx, database, validators.list);
      const auto security = docs::read_config(tx, database, docs::kSecurity).value_or("{}");
      context = "[" + user_context() + "," + security + "]";
      cases.clear();
      indices.clear();
      if (functions.programs.empty()) return;
      for (std::size_t i = 0; i < documents.size(); ++i) {
        const auto found = docs::validation_case(tx, database, *documents[i], false);
        if (!found) continue;
        cases.push_back("[" + found->document + "," + found->replaced_document + "]");
        indices.push_back(i);
        verdicts[i].acceptance = found->acceptance;
      }
    });
    for (const auto& program : functions.programs) call(program, cases, context, indices, verdicts);
    bulk.validated(std::move(validators), verdicts);
  }

  void call(const js::Program& program, const std::vector<std::string>& cases, const std::string& context,
            const std::vector<std::size_t>& indices, std::vector<docs::Verdict>& verdicts) const {
    std::vector<js::Arguments> arguments;
    std::vector<std::size_t> called;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (verdicts[indices[i]].error) continue;
      arguments.push_back({cases[i], context});
      called.push_back(indices[i]);
    }
    for (std::size_t done = 0; done < arguments.size();) {
      const auto results =
          functions::validate(local_.pool, program, std::span(arguments).subspan(done), js::Limits());
      for (const auto& result : results) {
        auto& verdict = verdicts[called[done++]];
        if (result.error) verdict = {result.error, {}};
      }
    }
  }

  std::string user_context() const {
    std::string json;
    json::Writer writer(json);
    writer.begin_object().key("db").string(name_).key("name");
    user_.name.empty() ? writer.null() : writer.string(user_.name);
    writer.key("roles").raw(user_.roles).end_object();
    return json;
  }

  const LocalStore local_;
  const std::string name_;
  const ReplicationUser user_;
  const Fence fence_;
  Notifier changed_;
};

}  // namespace

std::unique_ptr<Peer> open_local(const LocalStore& local, const std::string& database,
                                 const ReplicationUser& user, Fence fence) {
  return std::make_unique<LocalPeer>(local, database, user, std::move(fence));
}

}  // namespace divan::replicator
