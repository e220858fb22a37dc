#include "divan/replicator/local_peer.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/log.h"
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
#include "divan/events/deletion_watch.h"
#include "divan/functions/filter_functions.h"
#include "divan/functions/validation_functions.h"
#include "divan/selector/selector.h"

namespace divan::replicator {
namespace {

using kv::Isolation;

// Changes that are read in one transaction.
constexpr std::size_t kPageChanges = 1'000;
constexpr int kMaxValidations = 10;
// Of reading an attachment from the source.
constexpr int kMaxRetries = 3;
constexpr std::chrono::milliseconds kRetryPause{500};
// Chunks of contents that are read or written in one transaction.
constexpr std::uint32_t kContentChunks = 10;
constexpr std::size_t kContentBytes = kContentChunks * kv::kChunkBytes;
// How often a shared store is asked for changes of other processes.
constexpr Duration kPollInterval = std::chrono::seconds(1);

std::string local_id(std::string_view id) { return std::string(docs::kLocalPrefix) + std::string(id); }

class LocalWatch final : public PeerWatch {
 public:
  LocalWatch(events::Subscription subscription, bool is_shared)
      : subscription_(std::move(subscription)), is_shared_(is_shared) {}
  Duration poll_interval() const override { return is_shared_ ? kPollInterval : Duration::max(); }

 private:
  const events::Subscription subscription_;
  const bool is_shared_;
};

class LocalDeletionWatch final : public PeerWatch {
 public:
  LocalDeletionWatch(events::Bus& bus, const std::string& name, std::function<void()> wake)
      : watch_(bus, name, std::move(wake)) {}

 private:
  const events::DeletionWatch watch_;
};

class LocalContent final : public ContentReader {
 public:
  LocalContent(kv::Database& store, docs::Database database, docs::Content content)
      : store_(store), database_(std::move(database)), content_(std::move(content)) {}

  std::string next() override {
    const auto count = std::min(kv::chunk_count(content_.length) - first_, kContentChunks);
    if (count == 0) return {};
    auto bytes = store_.run([&](kv::Transaction& tx) {
      return docs::read_content_chunks(tx, database_, content_, first_, count);
    });
    first_ += count;
    return bytes;
  }

 private:
  kv::Database& store_;
  const docs::Database database_;
  const docs::Content content_;
  std::uint32_t first_ = 0;  // the chunk that is read next
};

class LocalPeer final : public Peer {
  // Runs a transaction that reads the database.
  template <class Read>
  auto in_database(const Read& read) {
    return local_.store.run([&](kv::Transaction& tx) { return read(tx, open(tx)); });
  }

  // Throws if it is not the database that it was at first: what another one lacks is unknown.
  docs::Database open(kv::Transaction& tx) {
    auto database = local_.catalog.open(tx, name_);
    if (number_ == 0) number_ = database.number();
    if (number_ != database.number())
      throw Error(503, "database_recreated",
                  fmt::format("The database `{}` was deleted and created again.", name_));
    return database;
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
      return fmt::format("0-{}", docs::write_local(tx, open(tx), document));
    });
  }

  ChangesPage changes(const std::string& since, std::size_t limit, const Replication& replication) override {
    ChangesPage page{.last_sequence = since};
    std::vector<docs::Change> found;
    std::vector<std::string> documents;  // of these, if a filter needs them
    std::unique_ptr<functions::FilterFunction> function;
    const auto& filter = replication.filter;
    in_database([&](kv::Transaction& tx, const docs::Database& database) {
      found.clear();
      documents.clear();
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
      if (!filter.selector && filter.filter.empty()) return;
      if (!filter.filter.empty()) function = read_function(tx, database, filter);
      const auto bodies = docs::read_bodies(tx, database, found, kReadBytes);
      if (bodies.size() < found.size()) {
        page.is_last = false;
        found.resize(bodies.size());
        page.last_sequence = docs::to_sequence(found.back().sequence);
      }
      for (std::size_t i = 0; i < bodies.size(); ++i) {
        docs::append_open_document(documents.emplace_back(), found[i].id, found[i].winner, found[i].deleted,
                                   bodies[i]);
        documents.back() += '}';
      }
    });
    select(filter, function.get(), documents, found);
    in_database([&](kv::Transaction& tx, const docs::Database& database) {
      page.documents.clear();
      for (const auto& change : found) {
        ChangedDocument document{change.id, {change.winner}};
        if (!replication.winning_revs_only && change.other_leaves != 0) {
          document.revisions.clear();
          for (const auto& leaf : docs::read_tree(tx, database, change.id, Isolation::snapshot))
            document.revisions.push_back(leaf.revision());
        }
        page.documents.push_back(std::move(document));
      }
    });
    return page;
  }

  std::unique_ptr<PeerWatch> watch_changes(const std::string& since, const Replication&,
                                           std::function<void()> wake) override {
    auto subscription =
        local_.catalog.bus().subscribe(events::database_channel(name_), {.max_events = 0, .notify = wake});
    const auto begin = docs::parse_sequence(since);
    const bool is_later = in_database([&](kv::Transaction& tx, const docs::Database& database) {
      return docs::last_sequence(tx, database) > begin;
    });
    if (is_later) wake();
    return std::make_unique<LocalWatch>(std::move(subscription), local_.is_shared);
  }

  std::unique_ptr<PeerWatch> watch_deletion(std::function<void()> wake) override {
    auto watch = std::make_unique<LocalDeletionWatch>(local_.catalog.bus(), name_, std::move(wake));
    in_database([](auto&, const auto&) {});
    return watch;
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
      while (result.taken < wanted.size() && bytes < kReadBytes && result.rest.empty()) {
        bytes += read_one(tx, database, wanted[result.taken], result);
        if (result.rest.empty()) ++result.taken;
      }
    });
    return result;
  }

  std::unique_ptr<ContentReader> open_content(const LargeDocument& document,
                                              const AttachmentContent& content) override {
    try {
      return in_database([&](kv::Transaction& tx, const docs::Database& database) {
        const auto found = docs::find_document(tx, database, document.id, document.revision);
        const auto attachment = docs::find_attachment(found.body, content.name);
        if (!attachment) throw not_found();
        return std::make_unique<LocalContent>(local_.store, database,
                                              docs::read_content(tx, database, attachment->md5));
      });
    } catch (const Error& error) {
      if (error.status() != 404) throw;
      return nullptr;
    }
  }

  std::size_t write(std::span<const std::string> documents) override {
    std::vector<docs::IncomingDocument> incoming;
    std::size_t refused = 0;
    const auto database = in_database([](kv::Transaction&, const docs::Database& found) { return found; });
    for (const auto& text : documents) {
      if (auto document = parse(database, text)) {
        incoming.push_back(*std::move(document));
      } else {
        ++refused;
      }
    }
    return refused + write_all(std::move(incoming));
  }

  bool write_large(const LargeDocument& document, Peer& source) override {
    const auto database = in_database([](kv::Transaction&, const docs::Database& found) { return found; });
    auto incoming = parse(database, document.json);
    if (!incoming) return false;
    for (const auto& content : document.contents) {
      const auto attachment =
          std::ranges::find(incoming->attachments, content.name, &docs::IncomingAttachment::name);
      if (attachment == incoming->attachments.end()) return false;
      if (content.length > local_.catalog.max_attachment_bytes()) {
        log::warning("Document `{}` cannot be written to database `{}`: {}", document.id, name_,
                     docs::attachment_too_large(content.name).what());
        return false;
      }
      if (!receive(document, content, source, *attachment)) return false;
    }
    std::vector<docs::IncomingDocument> documents;
    documents.push_back(*std::move(incoming));
    return write_all(std::move(documents)) == 0;
  }

 private:
  // nullopt if it is refused.
  std::optional<docs::IncomingDocument> parse(const docs::Database& database, const std::string& text) const {
    try {
      auto document = docs::parse_document(text);
      if (document.id.empty() || document.id.starts_with(docs::kLocalPrefix))
        throw bad_request("Only documents with an id that are not local can be replicated.");
      docs::given_path(document);
      docs::check_id_in(database, document.id);
      if (local_.prepare) local_.prepare(name_, document);
      return document;
    } catch (const Error& error) {
      log::warning("A document cannot be written to database `{}`: {}", name_, error.what());
      return std::nullopt;
    }
  }

  // Reads a content from the source into an attachment, again if the connection is lost. Returns false if the
  // source no longer has it.
  bool receive(const LargeDocument& document, const AttachmentContent& content, Peer& source,
               docs::IncomingAttachment& attachment) {
    for (int retry = 0;; ++retry) {
      try {
        const auto reader = source.open_content(document, content);
        if (reader) receive(*reader, content.length, attachment);
        return reader != nullptr;
      } catch (const Error& error) {
        if (error.name() != "connection_failed" || retry == kMaxRetries) throw;
        std::this_thread::sleep_for(kRetryPause);
      }
    }
  }

  // A large content is written as an upload.
  void receive(ContentReader& reader, std::uint64_t length, docs::IncomingAttachment& attachment) {
    const int level = local_.catalog.compression_level(attachment.content_type, false);
    auto upload = std::make_shared<docs::Upload>(local_.uploads, name_, level);
    std::uint64_t received = 0;
    std::string pending;
    for (auto bytes = reader.next(); !bytes.empty(); bytes = reader.next()) {
      received += bytes.size();
      if (received > length) break;
      pending += bytes;
      while (pending.size() >= kContentBytes) {
        write_chunks(*upload, std::string_view(pending).substr(0, kContentBytes));
        pending.erase(0, kContentBytes);
      }
    }
    if (received != length)
      throw Error(502, "bad_response",
                  fmt::format("Attachment `{}` has another length than its document says.", attachment.name));
    if (received < kContentBytes) return attachment.set_data(std::move(pending));
    if (!pending.empty()) write_chunks(*upload, pending);
    docs::set_upload(attachment, std::move(upload));
  }

  void write_chunks(docs::Upload& upload, std::string_view bytes) {
    const auto chunks = upload.encode(bytes);
    local_.store.run([&](kv::Transaction& tx) {
      fence_(tx);
      upload.write(tx, chunks);
    });
    upload.written(chunks);
  }

  // Returns the number of those that were refused.
  std::size_t write_all(std::vector<docs::IncomingDocument> documents) {
    docs::BulkReplicate bulk(local_.catalog, name_, std::move(documents));
    for (int validations = 0;;) {
      try {
        do {
          local_.store.run([&](kv::Transaction& tx) {
            fence_(tx);
            open(tx);
            bulk.write(tx);
          });
        } while (bulk.committed());
        const auto refused = bulk.take_refused();
        for (const auto& result : refused) {
          if (result.error->status() == 412) throw Error(*result.error);
        }
        return refused.size();
      } catch (const docs::NotValidated&) {
        if (++validations > kMaxValidations)
          throw Error(503, "service_unavailable",
                      "The functions that validate the documents change too often.");
        validate(bulk);
      }
    }
  }

  // The function that `filter` names: "_view", or a filter.
  std::unique_ptr<functions::FilterFunction> read_function(kv::Transaction& tx,
                                                           const docs::Database& database,
                                                           const ReplicationFilter& filter) const {
    if (filter.filter == "_view") {
      const auto view = json::member(filter.query_params, "view").value_or("");
      return functions::read_view_filter(local_.pool, tx, database, json::string_value(view).value_or(""));
    }
    std::string request;
    json::Writer writer(request);
    writer.begin_object().key("method").string("GET").key("query").raw(filter.query_params);
    writer.key("userCtx").raw(user_context());
    writer.key("secObj").raw(docs::read_config(tx, database, docs::kSecurity).value_or("{}")).end_object();
    return functions::read_filter(local_.pool, tx, database, filter.filter, request);
  }

  // Removes the changes of documents that are not replicated. `documents` has one for each change, if there
  // is a selector or function.
  static void select(const ReplicationFilter& filter, const functions::FilterFunction* function,
                     std::span<const std::string> documents, std::vector<docs::Change>& changes) {
    std::vector<bool> selected;
    if (filter.has_doc_ids) {
      for (const auto& change : changes)
        selected.push_back(std::ranges::binary_search(filter.doc_ids, change.id));
    } else if (filter.selector) {
      const auto selector = selector::Selector::parse(*filter.selector);
      for (const auto& document : documents) selected.push_back(selector.matches(document));
    } else if (function != nullptr) {
      while (selected.size() < documents.size()) {
        const auto more = function->select(documents.subspan(selected.size()), js::Limits());
        selected.insert(selected.end(), more.begin(), more.end());
      }
    } else {
      return;
    }
    std::size_t next = 0;
    std::erase_if(changes, [&](const docs::Change&) { return !selected[next++]; });
  }

  // Returns about how many bytes were read.
  static std::size_t read_one(kv::Transaction& tx, const docs::Database& database,
                              const MissingRevisions& wanted, ReadDocuments& into) {
    const auto tree = docs::read_tree(tx, database, wanted.id, Isolation::snapshot);
    const auto selection = docs::find_revisions(tree, wanted.revisions, true);
    into.failures += selection.missing.size();
    std::size_t bytes = 0;
    for (const auto* leaf : selection.found) {
      if (bytes >= kReadBytes) {
        into.rest.push_back(leaf->revision());
        continue;
      }
      try {
        const auto body = docs::read_body(tx, database, *leaf);
        std::string document;
        docs::append_document(document, wanted.id, *leaf, body, tree, {.revs = true});
        auto contents = lacking_contents(document, wanted.ancestors);
        if (total_length(contents) > kMaxInlineBytes) {
          into.large.push_back({wanted.id, leaf->revision(), std::move(document), std::move(contents)});
          continue;
        }
        if (!contents.empty()) {
          document.clear();
          docs::append_document(document, wanted.id, *leaf, with_data(tx, database, body, contents), tree,
                                {.revs = true});
        }
        bytes += document.size();
        into.documents.push_back(std::move(document));
      } catch (const Error& error) {
        if (error.status() >= 500) throw;
        log::warning("Document `{}` of database `{}` cannot be replicated: {}", wanted.id, database.name(),
                     error.what());
        ++into.failures;
      }
    }
    return bytes;
  }

  // `body` with the data of these contents; the other attachments are stubs.
  static std::string with_data(kv::Transaction& tx, const docs::Database& database, std::string_view body,
                               std::span<const AttachmentContent> contents) {
    return docs::with_contents(body, [&](std::string& out, const docs::Attachment& attachment) {
      if (std::ranges::find(contents, attachment.name, &AttachmentContent::name) == contents.end())
        return docs::append_stub(out, attachment);
      docs::append_data(tx, database, attachment, out);
    });
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
  std::int64_t number_ = 0;  // the database's, once it was opened
};

}  // namespace

std::unique_ptr<Peer> open_local(const LocalStore& local, const std::string& database,
                                 const ReplicationUser& user, Fence fence) {
  return std::make_unique<LocalPeer>(local, database, user, std::move(fence));
}

}  // namespace divan::replicator
