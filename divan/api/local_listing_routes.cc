// The listing of a database's local documents: _local_docs.
#include <fmt/core.h>

#include "divan/api/listing_pages.h"
#include "divan/base/json.h"
#include "divan/docs/local.h"

namespace divan::api {
namespace {

constexpr std::size_t kPageRows = 1'000;

// Local documents are neither counted nor part of the changes: as in CouchDB, the numbers in the listing are
// null.
class LocalPages final : public ListingPages<docs::LocalDocument> {
 public:
  using ListingPages::ListingPages;

 private:
  void append_head(kv::Transaction&, const docs::Database&, std::string& out) override {
    out += "{\"total_rows\":null,\"offset\":null,";
    if (params().update_seq) out += "\"update_seq\":null,";
    out += "\"rows\":[";
  }

  bool lists(std::string_view id) const override { return id.starts_with(docs::kLocalPrefix); }

  void visit(kv::Transaction& tx, const docs::Database& database, const docs::DocumentRange& range,
             const Visitor& visit) override {
    docs::visit_locals(tx, database, range, visit);
  }

  std::optional<docs::LocalDocument> read(kv::Transaction& tx, const docs::Database& database,
                                          const std::string& id) override {
    return docs::read_local(tx, database, id);
  }

  void append_row(kv::Transaction&, const docs::Database&, const std::string& id,
                  const docs::LocalDocument& document, std::string& out) override {
    const docs::Revision revision{0, std::to_string(document.revision)};
    const std::string quoted = json::quoted(id);
    begin_row(out);
    out += fmt::format(R"({{"id":{},"key":{},"value":{{"rev":"{}"}})", quoted, quoted, revision.to_string());
    if (params().include_docs) {
      out += ",\"doc\":";
      docs::append_open_document(out, id, revision, false, document.body);
      out += '}';
    }
    out += '}';
  }

  bool is_full(const std::string& out, std::size_t rows) const override {
    return out.size() >= kPageBytes || rows >= kPageRows;
  }
};

}  // namespace

Async<RouteResult> local_documents(const Context& context, const CallPtr& call) {
  return stream_listing(context, call, [&](index::views::ViewParams params) {
    return std::make_unique<LocalPages>(context, call->path()[0], std::move(params));
  });
}

}  // namespace divan::api
