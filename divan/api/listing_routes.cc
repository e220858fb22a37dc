// Listings of a database's documents: _all_docs, _design_docs.
#include <fmt/core.h>

#include "divan/api/listing_pages.h"
#include "divan/base/json.h"
#include "divan/docs/partition.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/read_ahead.h"
#include "divan/docs/sequence.h"

namespace divan::api {
namespace {

constexpr std::size_t kPageRows = 20'000;
// Number of documents that are prefetched together from a remote store.
constexpr std::size_t kDocumentsTogether = 1'000;
// Sorts after all ids that begin with "_design/".
constexpr const char* kAfterDesignDocuments = "_design0";

docs::DocumentRange design_range(const docs::DocumentRange& wanted) {
  docs::DocumentRange range = wanted;
  auto& lower = range.descending ? range.end_id : range.start_id;
  auto& upper = range.descending ? range.start_id : range.end_id;
  lower = std::max(lower.value_or(""), std::string(docs::kDesignPrefix));
  upper = std::min(upper.value_or(kAfterDesignDocuments), std::string(kAfterDesignDocuments));
  return range;
}

std::int64_t count_design_documents(kv::Transaction& tx, const docs::Database& database) {
  std::int64_t count = 0;
  docs::visit_documents(tx, database, design_range({}), [&](const std::string&, const docs::Leaf&) {
    ++count;
    return true;
  });
  return count;
}

// The rows are documents with their winners.
class DocumentPages final : public ListingPages<docs::Leaf> {
 public:
  DocumentPages(const Context& context, std::string name, index::views::ViewParams wanted, bool design_only)
      : ListingPages(context, std::move(name), std::move(wanted), !design_only),
        design_only_(design_only),
        from_the_start_(!params().keys && !range().start_id && !params().partition) {
    if (design_only_) range() = design_range(range());
    if (params().partition) range() = docs::in_partition(range(), *params().partition);
  }

 private:
  void append_head(kv::Transaction& tx, const docs::Database& database, std::string& out) override {
    if (params().partition && !database.is_partitioned()) throw index::views::no_partitions();
    const auto info = docs::read_info(tx, database);
    const std::int64_t total = design_only_ ? count_design_documents(tx, database) : info.doc_count;
    out += fmt::format("{{\"total_rows\":{},", total);
    out += from_the_start_
               ? fmt::format("\"offset\":{},",
                             std::min<std::uint64_t>(params().skip, static_cast<std::uint64_t>(total)))
               : "\"offset\":null,";
    if (params().update_seq)
      out += "\"update_seq\":" + json::quoted(docs::to_sequence(info.update_seq)) + ",";
    out += "\"rows\":[";
  }

  bool lists(std::string_view id) const override { return !design_only_ || docs::is_design(id); }

  void visit(kv::Transaction& tx, const docs::Database& database, const docs::DocumentRange& range,
             const Visitor& visit) override {
    docs::visit_documents(tx, database, range, visit);
  }

  std::optional<docs::Leaf> read(kv::Transaction& tx, const docs::Database& database,
                                 const std::string& id) override {
    ahead_.used();
    if (id.empty()) return std::nullopt;
    auto tree = docs::read_tree(tx, database, id, kv::Isolation::snapshot);
    return tree.empty() ? std::nullopt : std::optional(std::move(tree.front()));
  }

  docs::AttachmentForm form() const {
    return docs::attachment_form(params().attachments, params().att_encoding_info);
  }

  // On a remote store the bodies of a page are prefetched together, once its rows are known.
  void append_row(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                  const docs::Leaf& winner, std::string& out) override {
    if (params().keys || !params().include_docs || form() != docs::AttachmentForm::stubs || !tx.is_remote()) {
      append_document_row(tx, database, id, winner, out);
      return;
    }
    ids_.push_back(id);
    winners_.push_back(winner);
    winners_.back().path.ids.resize(1);
    found_bytes_ += winner.body_bytes;
  }

  bool is_full(const std::string& out, std::size_t rows) const override {
    return out.size() + found_bytes_ >= kPageBytes || rows >= kPageRows || ids_.size() >= kDocumentsTogether;
  }

  void before_key(kv::Transaction& tx, const docs::Database& database, std::size_t first) override {
    if (!tx.is_remote() || skip() > 0 || first < expected_) return;
    std::vector<std::string> ids;
    const auto most = std::min<std::uint64_t>(left(), ahead_.next());
    for (std::size_t i = first; i < params().keys->size() && ids.size() < most; ++i)
      ids.push_back(id_of_key(key(i)));
    docs::prefetch_trees(tx, database, ids);
    if (params().include_docs) docs::prefetch_winners(tx, database, ids, kPageBytes);
    expected_ = first + ids.size();
  }

  void end_page(kv::Transaction& tx, const docs::Database& database, std::string& out) override {
    if (!ids_.empty()) {
      docs::prefetch_bodies(tx, database, winners_);
      if (params().conflicts) docs::prefetch_trees(tx, database, ids_);
    }
    for (std::size_t i = 0; i < ids_.size(); ++i)
      append_document_row(tx, database, ids_[i], winners_[i], out);
    ids_.clear();
    winners_.clear();
    found_bytes_ = 0;
    // The next page prefetches its keys again, in its own transaction.
    expected_ = 0;
    ahead_.end_page();
  }

  void append_document_row(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                           const docs::Leaf& winner, std::string& out) {
    const std::string quoted = json::quoted(id);
    begin_row(out);
    out +=
        fmt::format(R"({{"id":{},"key":{},"value":{{"rev":{}{}}})", quoted, quoted,
                    json::quoted(winner.revision().to_string()), winner.deleted ? ",\"deleted\":true" : "");
    if (params().include_docs) {
      out += ",\"doc\":";
      if (winner.deleted) {
        out += "null";
      } else {
        docs::RevTree tree;
        if (params().conflicts) tree = docs::read_tree(tx, database, id, kv::Isolation::snapshot);
        docs::append_document(out, id, winner, docs::read_body(tx, database, winner, form()), tree,
                              {.conflicts = params().conflicts.value_or(false)});
      }
    }
    out += '}';
  }

  const bool design_only_;
  const bool from_the_start_;
  // Rows of this page whose bodies have not been read yet.
  std::vector<std::string> ids_;
  std::vector<docs::Leaf> winners_;
  std::uint64_t found_bytes_ = 0;
  std::size_t expected_ = 0;  // keys before this one have been prefetched
  docs::ReadAhead ahead_{kDocumentsTogether};
};

}  // namespace

std::unique_ptr<PageSource> all_document_pages(const Context& context, std::string database,
                                               index::views::ViewParams params) {
  return std::make_unique<DocumentPages>(context, std::move(database), std::move(params), false);
}

Async<RouteResult> all_documents(const Context& context, const CallPtr& call) {
  const bool design_only = call->path()[1] == "_design_docs";
  return stream_listing(context, call, [&](index::views::ViewParams params) {
    return std::make_unique<DocumentPages>(context, call->path()[0], std::move(params), design_only);
  });
}

}  // namespace divan::api
