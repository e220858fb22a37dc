// Writes what a batch of documents has in a full-text index: the entries of their terms, and their fields.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "divan/index/document_batch.h"
#include "divan/index/left_out.h"
#include "divan/index/search/field.h"
#include "divan/index/search/live_documents.h"
#include "divan/index/search/rows.h"
#include "divan/text/analyzer.h"

namespace divan::index::search {

/// See MappedBatch. A document becomes visible in one transaction, after all of its rows are written. Not
/// thread-safe.
class SearchBatch final : public DocumentBatch {
 public:
  explicit SearchBatch(std::shared_ptr<const text::Analyzer> analyzer) : analyzer_(std::move(analyzer)) {}

  void add_document(std::string id) override;
  void add_failure(std::size_t document, std::string_view reason) override;
  /// Adds a field of a document. After the last one, end_fields() must be called. Documents must get their
  /// fields in order; one without fields is not in the index.
  void add_field(std::size_t document, const Field& field);
  void end_fields(std::size_t document);
  std::size_t bytes() const override { return bytes_; }

  std::size_t documents() const override { return documents_.size(); }
  std::size_t prepare(kv::Database& store, const IndexKeys& keys, std::size_t first,
                      const IndexedSoFar& so_far) override;
  void write(kv::Transaction& tx, const IndexKeys& keys) const override;
  std::size_t rows() const override { return entries_; }
  std::size_t failures() const override { return failures_; }

 private:
  struct Document {
    StoredDocument stored;
    bool has_fields = false;
    std::optional<LeftOut> left_out{};
    std::optional<LeftOut> left_out_before{};
    DocumentNumber number_before = 0;
    std::vector<std::pair<std::string, std::uint32_t>> lengths_before{};
  };
  // The terms of one field of a document.
  struct FieldTerms {
    absl::flat_hash_map<std::string, std::vector<std::uint32_t>> positions;
    std::uint32_t length = 0;
    std::uint32_t next_position = 0;
    float boost = 1;
    bool is_indexed = false;
    std::vector<double> numbers;
    std::vector<std::string> strings, facets;
    std::vector<std::string> stored;  // JSON
  };
  // The fields so far of the document that is being added.
  struct OpenDocument {
    std::map<std::string, FieldTerms, std::less<>> fields;
    std::vector<const std::string*> names;  // in the order of their first values
    std::size_t name_bytes = 0;
  };

  FieldTerms* find_field(std::size_t document, std::string_view name);
  void add_value(std::size_t document, const Field& field, FieldTerms& terms);
  void add_terms(std::size_t document, const Field& field, std::string_view text, FieldTerms& terms);
  void add_entry(std::size_t document, std::string suffix, std::string_view payload);
  void begin(kv::Database& store, const SearchKeys& keys, const IndexKeys& index_keys, bool all_new);
  void read_before(kv::Transaction& tx, const SearchKeys& keys, const IndexKeys& index_keys);
  void plan_rows(const SearchKeys& keys);
  void plan_documents(kv::Transaction& tx, const SearchKeys& keys, std::size_t first, std::size_t bytes);
  void write_documents(kv::Transaction& tx, const SearchKeys& keys, const IndexKeys& index_keys) const;

  const std::shared_ptr<const text::Analyzer> analyzer_;
  std::vector<Document> documents_;
  OpenDocument open_;
  // By the suffixes of their keys. The numbers are indices of `documents_`.
  absl::flat_hash_map<std::string, std::vector<EntryWriter>> rows_;
  std::size_t bytes_ = 0;
  std::size_t entries_ = 0;
  std::size_t failures_ = 0;

  // Set by prepare(). First the rows are written that readers ignore until the documents are visible, then
  // what makes them visible.
  bool has_begun_ = false;
  DocumentNumber first_number_ = 0;
  std::vector<std::pair<std::string, std::string>> writes_;  // keys and values of the rows
  // The next transaction: some of the rows, then some of the documents.
  std::size_t rows_begin_ = 0, rows_end_ = 0;
  std::size_t documents_begin_ = 0, documents_end_ = 0;
  std::optional<std::pair<DocumentNumber, DocumentNumber>> removed_;      // numbers of an interrupted batch
  std::map<std::uint64_t, NumberSet> live_;                               // rows that change
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> lengths_;  // changes: documents and terms
  IndexState state_;                                                      // after it
};

}  // namespace divan::index::search
