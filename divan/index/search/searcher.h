// Finds the documents of a full-text index that match a query.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/search/live_documents.h"
#include "divan/index/search/matches.h"
#include "divan/index/search/query.h"

namespace divan::index::search {

/// Collection statistics, on which scores depend: the number of documents, and for each term of a query the
/// number of documents with it and the average length of its field. All pages of a search are scored with
/// those of the first page, so that documents that did not change keep their order. A value type.
class Statistics {
 public:
  Statistics() = default;
  explicit Statistics(std::vector<double> recorded) : values_(std::move(recorded)), is_recorded_(true) {}

  /// `value`, which is recorded; or the value that was recorded when the same query was scored first.
  double record(double value);
  /// Throws bad_request unless all recorded values were used.
  void end() const;
  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;
  bool is_recorded_ = false;
  std::size_t next_ = 0;
};

/// How much a search may do: it may read this many entries of terms and fields, or do what takes as long.
inline constexpr std::uint64_t kLeastBudget = 10'000'000;
inline constexpr std::uint64_t kBudgetOfADocument = 20;  ///< in addition, for each document of the index

/// Searches in one transaction. Scores are those of Okapi BM25, with k1 = 1.2 and b = 0.75, for terms and
/// phrases; what expands to several terms, and ranges of numbers, have the score 1 (a fuzzy term: its
/// similarity); all are multiplied with their boosts and added. Not thread-safe.
class Searcher {
 public:
  Searcher(kv::Transaction& tx, const SearchKeys& keys, Statistics& statistics);

  /// Live documents that match. Throws search_too_expensive (413).
  Matches search(const Query& query);

  /// Calls `visit` with the entries of a field of the documents, in any order.
  void visit_column(Column column, std::string_view field,
                    const std::function<void(DocumentNumber number, std::string_view payload)>& visit);
  /// For what is done with the results. Throws search_too_expensive (413).
  void spend(std::uint64_t amount);

 private:
  struct Posting {
    DocumentNumber number = 0;
    Occurrences occurrences;
  };
  // The postings of a term. Positions refer to the rows.
  struct Postings {
    std::vector<Posting> list;
    std::deque<std::string> rows;
  };
  // The places of a phrase with the same terms, which are alternatives.
  struct PhraseTerms;

  // What matches; of a term, only what is in `among` too.
  Matches evaluate(const Query& query, const Matches* among = nullptr);
  Matches evaluate_boolean(const Query& query);
  std::optional<Matches> evaluate_all(const Query& query);
  Matches evaluate_any(std::span<const Clause* const> clauses);
  Matches evaluate_term(const Query& query, const Matches* among);
  Matches evaluate_phrase(const Query& query);
  Matches evaluate_expanded(const Query& query);
  Matches evaluate_numbers(const Query& query);
  Matches evaluate_ids(const Query& query);
  Matches evaluate_partition(const Query& query);
  Matches all();
  void visit_rows(const std::function<std::string(int level)>& prefix,
                  const std::function<void(DocumentNumber first, std::string_view value)>& visit);
  Postings read_postings(std::string_view field, std::string_view term);
  double average_length(std::string_view field);
  double idf(std::size_t documents_with_term);
  void visit_terms(
      std::string_view field, const std::string& begin, const std::string& end,
      const std::function<void(std::string_view term, DocumentNumber first, std::string_view value)>& visit);
  void visit_ids(const std::string& begin, const std::string& end,
                 const std::function<void(std::string_view id, DocumentNumber number)>& visit);

  kv::Transaction& tx_;
  const SearchKeys& keys_;
  Statistics& statistics_;
  LiveDocuments live_;
  const IndexState state_;
  std::uint64_t budget_;    // what is left
  const double documents_;  // for scores
};

}  // namespace divan::index::search
