// Listings of documents by id: what _all_docs, _design_docs and _local_docs have in common.
#pragma once

#include "divan/api/queries.h"
#include "divan/api/routes.h"

namespace divan::api {

/// The rows of a listing, page by page; each page is read in one transaction. `Row` is the content of a row
/// without its id. Not thread-safe.
template <class Row>
class ListingPages : public PageSource {
 public:
  ListingPages(const Context& context, std::string database, index::views::ViewParams params,
               bool may_be_partition = false)
      : context_(context),
        name_(std::move(database)),
        params_(std::move(params)),
        range_(document_range(params_)),
        skip_(params_.skip),
        left_(params_.limit.value_or(UINT64_MAX)) {
    check_listing_params(params_, may_be_partition);
  }

  bool next(std::string& out) final {
    const auto tx = context_.store.begin();
    const auto database = context_.catalog.open(*tx, name_);
    if (!number_) {
      append_head(*tx, database, out);
      number_ = database.number();
    }
    // The database was deleted since the first page, and a new one created with its name, which has none of
    // the rows so far.
    if (database.number() != *number_) throw not_found("Database does not exist.");
    const bool more = params_.keys ? read_keys(*tx, database, out) : read_range(*tx, database, out);
    end_page(*tx, database, out);
    if (more) return true;
    out += first_row_ ? "]}\n" : "\n]}\n";
    return false;
  }

 protected:
  static constexpr std::size_t kPageBytes = 256 << 10;
  using Visitor = std::function<bool(const std::string& id, const Row&)>;

  /// Appends the beginning of the response, up to the first row.
  virtual void append_head(kv::Transaction& tx, const docs::Database& database, std::string& out) = 0;
  /// Returns true if documents with this id are part of the listing.
  virtual bool lists(std::string_view id) const = 0;
  /// Visits the rows of a range.
  virtual void visit(kv::Transaction& tx, const docs::Database& database, const docs::DocumentRange& range,
                     const Visitor& visit) = 0;
  virtual std::optional<Row> read(kv::Transaction& tx, const docs::Database& database,
                                  const std::string& id) = 0;
  /// Appends a row, after begin_row(), or holds it until end_page().
  virtual void append_row(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                          const Row& row, std::string& out) = 0;
  /// Returns true if the page ends after `rows`.
  virtual bool is_full(const std::string& out, std::size_t rows) const = 0;
  /// Called before key `next` is read.
  virtual void before_key(kv::Transaction&, const docs::Database&, std::size_t /*next*/) {}
  virtual void end_page(kv::Transaction&, const docs::Database&, std::string& /*out*/) {}

  void begin_row(std::string& out) { out += std::exchange(first_row_, false) ? "\n" : ",\n"; }
  const index::views::ViewParams& params() const { return params_; }
  docs::DocumentRange& range() { return range_; }
  std::uint64_t skip() const { return skip_; }
  std::uint64_t left() const { return left_; }
  /// Key `i` in the order of the response.
  const std::string& key(std::size_t i) const {
    const auto& keys = *params_.keys;
    return keys[params_.descending ? keys.size() - 1 - i : i];
  }

 private:
  bool read_range(kv::Transaction& tx, const docs::Database& database, std::string& out) {
    if (left_ == 0) return false;
    std::size_t rows = 0;
    bool is_cut = false;
    visit(tx, database, range_, [&](const std::string& id, const Row& row) {
      if (resumed_at_ == id) return true;
      resumed_at_ = id;
      if (skip_ > 0) {
        --skip_;
      } else {
        append_row(tx, database, id, row, out);
        if (--left_ == 0) return false;
      }
      is_cut = is_full(out, ++rows);
      return !is_cut;
    });
    if (!is_cut) return false;
    range_.start_id = resumed_at_;
    return true;
  }

  bool read_keys(kv::Transaction& tx, const docs::Database& database, std::string& out) {
    for (std::size_t rows = 0; next_key_ < params_.keys->size() && left_ > 0; ++rows) {
      if (is_full(out, rows)) return true;
      before_key(tx, database, next_key_);
      const std::string& wanted = key(next_key_);
      ++next_key_;
      if (skip_ > 0) {
        --skip_;
        continue;
      }
      --left_;
      const std::string id = id_of_key(wanted);
      // CouchDB omits these after it has counted them for skip and limit.
      if (!lists(id)) continue;
      if (const auto row = read(tx, database, id)) {
        append_row(tx, database, id, *row, out);
      } else {
        begin_row(out);
        out += "{\"key\":" + wanted + ",\"error\":\"not_found\"}";
      }
    }
    return false;
  }

  const Context& context_;
  const std::string name_;
  const index::views::ViewParams params_;
  docs::DocumentRange range_;
  std::uint64_t skip_;
  std::uint64_t left_;
  std::optional<std::int64_t> number_;  // of the database, after the first page
  bool first_row_ = true;
  std::string resumed_at_;  // the last document that was read; the next page begins with it
  std::size_t next_key_ = 0;
};

/// Responds with a listing, or with several in one request. `make(params)` creates the pages of one listing.
template <class Make>
Async<RouteResult> stream_listing(const Context& context, const CallPtr& call, const Make& make) {
  const bool several = is_multi_query(*call, 2);
  call->allow(several ? "POST" : "GET,POST");
  if (!several) return stream_pages(context, *call, make(parse_query_params(*call)));
  std::vector<std::unique_ptr<PageSource>> sources;
  for (auto& params : parse_queries(*call)) sources.push_back(make(std::move(params)));
  return stream_pages(context, *call, multi_query_pages(std::move(sources)));
}

/// The rows of _all_docs.
std::unique_ptr<PageSource> all_document_pages(const Context& context, std::string database,
                                               index::views::ViewParams params);

}  // namespace divan::api
