// Listings of a database's documents: _all_docs, _design_docs.
#include "divan/api/queries.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/docs/read_ahead.h"
#include "divan/docs/reader.h"
#include "divan/docs/sequence.h"
#include "divan/index/views/params.h"

namespace divan::api {
namespace {

using index::views::ViewParams;

constexpr std::size_t kPageBytes = 256 << 10;
constexpr std::size_t kPageRows = 20'000;
// Of documents that are read from a remote store, those that are asked for together.
constexpr std::size_t kDocumentsTogether = 1'000;
// Behind all ids that begin with "_design/".
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

// Rows of `_all_docs` or `_design_docs`, page by page; each page is read in one transaction.
class DocumentPages final : public PageSource {
 public:
  DocumentPages(const Context& context, std::string name, ViewParams params, bool design_only)
      : context_(context),
        name_(std::move(name)),
        params_(std::move(params)),
        design_only_(design_only),
        range_(document_range(params_)),
        from_the_start_(!params_.keys && !range_.start_id),
        skip_(params_.skip),
        left_(params_.limit.value_or(UINT64_MAX)) {
    check_listing_params(params_);
    if (design_only_) range_ = design_range(range_);
  }

  bool next(std::string& out) override {
    const auto tx = context_.store.begin();
    const auto database = context_.catalog.open(*tx, name_);
    if (!number_) {
      append_head(*tx, database, out);
      number_ = database.number();
    }
    // Another one of the same name has nothing to do with the rows so far.
    if (database.number() != *number_) throw not_found("Database does not exist.");
    const bool more = params_.keys ? read_keys(*tx, database, out) : read_range(*tx, database, out);
    if (more) return true;
    out += first_row_ ? "]}\n" : "\n]}\n";
    return false;
  }

 private:
  void append_head(kv::Transaction& tx, const docs::Database& database, std::string& out) {
    const auto info = docs::read_info(tx, database);
    const std::int64_t total = design_only_ ? count_design_documents(tx, database) : info.doc_count;
    out += fmt::format("{{\"total_rows\":{},", total);
    out += from_the_start_
               ? fmt::format("\"offset\":{},",
                             std::min<std::uint64_t>(params_.skip, static_cast<std::uint64_t>(total)))
               : "\"offset\":null,";
    if (params_.update_seq) out += "\"update_seq\":" + json::quoted(docs::to_sequence(info.update_seq)) + ",";
    out += "\"rows\":[";
  }

  bool read_range(kv::Transaction& tx, const docs::Database& database, std::string& out) {
    if (left_ == 0) return false;
    std::size_t rows = 0;
    bool cut = false;
    // Where bodies are far away, those of a page are asked for together, when its rows are known.
    const bool later = params_.include_docs && tx.is_remote();
    std::vector<std::pair<std::string, docs::Leaf>> found;
    std::uint64_t bytes = 0;  // of their documents
    docs::visit_documents(tx, database, range_, [&](const std::string& id, const docs::Leaf& winner) {
      if (resumed_at_ == id) return true;
      resumed_at_ = id;
      if (skip_ > 0) {
        --skip_;
      } else {
        if (later) {
          found.emplace_back(id, winner);
          found.back().second.path.ids.resize(1);
          bytes += winner.body_bytes;
        } else {
          begin_row(out);
          append_row(tx, database, id, id, &winner, out);
        }
        if (--left_ == 0) return false;
      }
      cut = out.size() + bytes >= kPageBytes || ++rows >= kPageRows || found.size() >= kDocumentsTogether;
      return !cut;
    });
    if (later) append_found(tx, database, found, out);
    if (!cut || left_ == 0) return false;
    range_.start_id = resumed_at_;
    return true;
  }

  bool read_keys(kv::Transaction& tx, const docs::Database& database, std::string& out) {
    const auto& keys = *params_.keys;
    std::size_t expected = 0;
    while (next_key_ < keys.size() && left_ > 0) {
      if (tx.is_remote() && skip_ == 0 && next_key_ >= expected)
        expected = next_key_ + expect_keys(tx, database, ahead_.next());
      const std::string& key = keys[params_.descending ? keys.size() - 1 - next_key_ : next_key_];
      ++next_key_;
      if (skip_ > 0) {
        --skip_;
        continue;
      }
      --left_;
      ahead_.used();
      const std::string id = id_of_key(key);
      // CouchDB leaves these out after it has counted them for skip and limit.
      if (design_only_ && !docs::is_design(id)) continue;
      begin_row(out);
      const auto tree =
          id.empty() ? docs::RevTree() : docs::read_tree(tx, database, id, kv::Isolation::snapshot);
      if (tree.empty()) {
        out += "{\"key\":" + key + ",\"error\":\"not_found\"}";
      } else {
        append_row(tx, database, id, id, &tree.front(), out);
      }
      if (out.size() >= kPageBytes) break;
    }
    ahead_.end_page();
    return next_key_ < keys.size() && left_ > 0;
  }

  // The next ones of `keys`, at most so many; answers how many.
  std::size_t expect_keys(kv::Transaction& tx, const docs::Database& database, std::size_t most) const {
    const auto& keys = *params_.keys;
    std::vector<std::string> ids;
    for (std::size_t i = next_key_; i < keys.size() && ids.size() < std::min<std::uint64_t>(left_, most); ++i)
      ids.push_back(id_of_key(keys[params_.descending ? keys.size() - 1 - i : i]));
    docs::expect_trees(tx, database, ids);
    if (params_.include_docs) docs::expect_winners(tx, database, ids, kPageBytes);
    return ids.size();
  }

  void append_found(kv::Transaction& tx, const docs::Database& database,
                    const std::vector<std::pair<std::string, docs::Leaf>>& found, std::string& out) {
    std::vector<docs::Leaf> leaves;
    std::vector<std::string> ids;
    for (const auto& [id, winner] : found) {
      leaves.push_back(winner);
      ids.push_back(id);
    }
    docs::expect_bodies(tx, database, leaves);
    if (params_.conflicts) docs::expect_trees(tx, database, ids);
    for (const auto& [id, winner] : found) {
      begin_row(out);
      append_row(tx, database, id, id, &winner, out);
    }
  }

  void begin_row(std::string& out) {
    out += first_row_ ? "\n" : ",\n";
    first_row_ = false;
  }

  void append_row(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                  const std::string& key, const docs::Leaf* winner, std::string& out) {
    out += "{\"id\":";
    json::append_string(out, id);
    out += ",\"key\":";
    json::append_string(out, key);
    out += ",\"value\":{\"rev\":";
    json::append_string(out, winner->revision().to_string());
    out += winner->deleted ? ",\"deleted\":true}" : "}";
    if (params_.include_docs) {
      out += ",\"doc\":";
      if (winner->deleted) {
        out += "null";
      } else {
        docs::RevTree tree;
        if (params_.conflicts) tree = docs::read_tree(tx, database, id, kv::Isolation::snapshot);
        docs::append_document(out, id, *winner, docs::read_body(tx, database, *winner), tree,
                              {.conflicts = params_.conflicts.value_or(false)});
      }
    }
    out += '}';
  }

  const Context& context_;
  const std::string name_;
  const ViewParams params_;
  const bool design_only_;
  docs::DocumentRange range_;
  const bool from_the_start_;
  std::uint64_t skip_;
  std::uint64_t left_;
  std::optional<std::int64_t> number_;  // of the database, once the first page was read
  bool first_row_ = true;
  std::string
      resumed_at_;  // the last document that was read: the next page begins with it, and leaves it out
  std::size_t next_key_ = 0;
  docs::ReadAhead ahead_{kDocumentsTogether};
};

}  // namespace

Answer all_documents(const Context& context, const CallPtr& call) {
  call->allow("GET,POST");
  const bool design_only = call->path()[1] == "_design_docs";
  const auto pages = [&](ViewParams params) {
    return std::make_unique<DocumentPages>(context, call->path()[0], std::move(params), design_only);
  };
  if (asks_several(*call, 2)) {
    std::vector<std::unique_ptr<PageSource>> sources;
    for (auto& params : parse_queries(*call)) sources.push_back(pages(std::move(params)));
    stream_pages(context, call, several_pages(std::move(sources)));
  } else {
    stream_pages(context, call, pages(parse_query_params(*call)));
  }
  return std::nullopt;
}

}  // namespace divan::api
