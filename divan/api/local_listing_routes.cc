// The listing of a database's local documents: _local_docs.
#include "divan/api/queries.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/docs/local.h"

namespace divan::api {
namespace {

using index::views::ViewParams;

constexpr std::size_t kPageBytes = 256 << 10;
// Rows or keys.
constexpr std::size_t kPageRows = 1'000;

// Rows page by page; each page is read in one transaction. Nobody counts local documents, and they are in no
// sequence of changes: as in CouchDB the listing's numbers are null.
class LocalPages final : public PageSource {
 public:
  LocalPages(const Context& context, std::string name, ViewParams params)
      : context_(context),
        name_(std::move(name)),
        params_(std::move(params)),
        range_(document_range(params_)),
        skip_(params_.skip),
        left_(params_.limit.value_or(UINT64_MAX)) {
    check_listing_params(params_);
  }

  bool next(std::string& out) override {
    const auto tx = context_.store.begin();
    const auto database = context_.catalog.open(*tx, name_);
    if (!number_) {
      out += "{\"total_rows\":null,\"offset\":null,";
      if (params_.update_seq) out += "\"update_seq\":null,";
      out += "\"rows\":[";
      number_ = database.number();
    }
    // Another one of the same name has nothing to do with the rows so far.
    if (database.number() != *number_) throw not_found("Database does not exist.");
    if (params_.keys ? read_keys(*tx, database, out) : read_range(*tx, database, out)) return true;
    out += first_row_ ? "]}\n" : "\n]}\n";
    return false;
  }

 private:
  bool read_range(kv::Transaction& tx, const docs::Database& database, std::string& out) {
    if (left_ == 0) return false;
    std::size_t rows = 0;
    bool cut = false;
    docs::visit_locals(tx, database, range_, [&](const std::string& id, const docs::LocalDocument& document) {
      if (resumed_at_ == id) return true;
      resumed_at_ = id;
      if (skip_ > 0) {
        --skip_;
      } else {
        append_row(id, document, out);
        if (--left_ == 0) return false;
      }
      cut = out.size() >= kPageBytes || ++rows >= kPageRows;
      return !cut;
    });
    if (!cut || left_ == 0) return false;
    range_.start_id = resumed_at_;
    return true;
  }

  bool read_keys(kv::Transaction& tx, const docs::Database& database, std::string& out) {
    const auto& keys = *params_.keys;
    for (std::size_t rows = 0; next_key_ < keys.size() && left_ > 0; ++rows) {
      if (out.size() >= kPageBytes || rows >= kPageRows) return true;
      const std::string& key = keys[params_.descending ? keys.size() - 1 - next_key_ : next_key_];
      ++next_key_;
      if (skip_ > 0) {
        --skip_;
        continue;
      }
      --left_;
      const std::string id = id_of_key(key);
      // CouchDB leaves these out after it has counted them for skip and limit.
      if (!id.starts_with(docs::kLocalPrefix)) continue;
      if (const auto document = docs::read_local(tx, database, id)) {
        append_row(id, *document, out);
      } else {
        begin_row(out);
        out += "{\"key\":" + key + ",\"error\":\"not_found\"}";
      }
    }
    return false;
  }

  void begin_row(std::string& out) { out += std::exchange(first_row_, false) ? "\n" : ",\n"; }

  void append_row(const std::string& id, const docs::LocalDocument& document, std::string& out) {
    const docs::Revision revision{0, std::to_string(document.revision)};
    const std::string quoted = json::quoted(id);
    begin_row(out);
    out += fmt::format(R"({{"id":{},"key":{},"value":{{"rev":"{}"}})", quoted, quoted, revision.to_string());
    if (params_.include_docs) {
      out += ",\"doc\":";
      docs::append_open_document(out, id, revision, false, document.body);
      out += '}';
    }
    out += '}';
  }

  const Context& context_;
  const std::string name_;
  const ViewParams params_;
  docs::DocumentRange range_;
  std::uint64_t skip_;
  std::uint64_t left_;
  std::optional<std::int64_t> number_;  // of the database, once the first page was read
  bool first_row_ = true;
  std::string resumed_at_;  // the last document that was read, with which the next page begins
  std::size_t next_key_ = 0;
};

}  // namespace

Answer local_documents(const Context& context, const CallPtr& call) {
  call->allow("GET,POST");
  const auto pages = [&](ViewParams params) {
    return std::make_unique<LocalPages>(context, call->path()[0], std::move(params));
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
