// Executes queries: the response of `_find`, page by page. A page is read in one transaction.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "divan/base/clock.h"
#include "divan/base/json.h"
#include "divan/docs/catalog.h"
#include "divan/docs/reader.h"
#include "divan/index/search/bookmark.h"
#include "divan/index/views/rows.h"
#include "divan/mango/bookmark.h"
#include "divan/mango/plan.h"
#include "divan/mango/projection.h"

namespace divan::mango {

/// Where a query reads.
struct FindSource {
  kv::Database& store;
  docs::Catalog& catalog;
  const Clock& clock;
  std::string database;  // its name
  /// The sequence of the plan's index when the caller last read it.
  kv::Versionstamp known_sequence{};
  std::uint64_t scan_warning_threshold = kScanWarningThreshold;
};

/// Throws invalid_bookmark (400) unless the request's bookmark, if there is one, is of the plan's index.
void check_bookmark(const FindRequest& request, const Plan& plan);

/// One query in progress. Not thread-safe. What `source` refers to must outlive it.
class Find {
 public:
  /// `plan` must have chosen an index. Throws invalid_bookmark (400).
  Find(FindSource source, FindRequest request, Plan plan);

  /// Appends the next piece of the response, a JSON object, perhaps an empty one; returns false if the
  /// response is complete. Throws not_found if the database or the index has been removed since the last
  /// piece, selector_too_expensive and search_too_expensive (413), and bad_request if the bookmark is that of
  /// another query of a full-text index.
  bool next(std::string& out);

 private:
  struct Page;
  struct DocumentBatch {
    std::vector<std::string> ids{};
    std::vector<docs::Leaf> winners{};  // without ancestors
    bool is_last = false;               // no documents follow
  };

  docs::DocumentRange document_range() const;
  void read_page(kv::Transaction& tx, const docs::Database& database, Page& page);
  void read_documents(kv::Transaction& tx, const docs::Database& database, Page& page);
  DocumentBatch next_batch(kv::Transaction& tx, const docs::Database& database);
  void read_rows(kv::Transaction& tx, const docs::Database& database, Page& page);
  void plan_rows(const docs::Database& database);
  void add_row(kv::Transaction& tx, const docs::Database& database, const index::views::ViewRow& row,
               Page& page);
  void add_covered(const index::views::ViewRow& row, Page& page);
  void read_hits(kv::Transaction& tx, const docs::Database& database, Page& page);
  // Adds a document to the results, and returns true, if it matches.
  bool add_document(kv::Transaction& tx, const docs::Database& database, std::string_view id,
                    const docs::Leaf& winner, std::string_view body, Page& page,
                    const selector::TextTest& has_text = {});
  // Adds what an index found, unless it has been deleted.
  bool add_found(kv::Transaction& tx, const docs::Database& database, std::string_view id, Page& page,
                 const selector::TextTest& has_text = {});
  void add_match(std::string_view document, Page& page);
  void append_tail(std::string& out) const;
  void write_stats(json::Writer& writer) const;
  void check_sequence(kv::Transaction& tx, const docs::Database& database);

  const FindSource source_;
  const FindRequest request_;
  const Plan plan_;
  const std::optional<Projection> projection_;  // nullopt: all fields
  const MonotonicTime started_;

  std::optional<std::int64_t> number_;  // of the database, after the first page
  kv::Versionstamp last_sequence_;      // of the index
  std::optional<Bookmark> place_;       // of the last result, or the one of the request
  // The same of a full-text index, but of the last document that was tested.
  std::optional<index::search::Bookmark> text_place_;
  std::uint64_t skip_;
  std::uint64_t left_;
  // The rest of what is to be read.
  docs::DocumentRange documents_;
  std::string last_id_;  // of the last document that was read
  std::uint64_t batch_size_ = 0;
  index::views::RowRange rows_;
  std::uint64_t keys_examined_ = 0;
  std::uint64_t documents_examined_ = 0;
  std::uint64_t results_ = 0;
};

}  // namespace divan::mango
