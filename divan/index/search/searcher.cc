#include "divan/index/search/searcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "divan/index/search/term_matcher.h"

namespace divan::index::search {
namespace {

// The parameters of BM25: how much repetitions of a term count, and how much the length of a field does.
constexpr double kK1 = 1.2;
constexpr double kB = 0.75;

constexpr std::string_view kIdField = "_id";
constexpr std::string_view kPartitionField = "_partition";

using Isolation = kv::Isolation;

// The phrase in one document: how often it occurs, less for occurrences whose terms are moved.
class PhraseMatcher {
 public:
  // `offsets`: the position of each of the terms in the phrase.
  PhraseMatcher(std::vector<std::uint32_t> offsets, std::uint32_t slop)
      : offsets_(std::move(offsets)), slop_(slop) {}

  // `positions`: those of each term in the document, none of which is empty. Budget is spent by the caller.
  double frequency(const std::vector<std::vector<std::uint32_t>>& positions) const {
    // Positions as if all terms were at the beginning of the phrase: equal, if the phrase occurs.
    std::vector<std::size_t> at(positions.size());
    const auto place = [&](std::size_t term) {
      return static_cast<std::int64_t>(positions[term][at[term]]) - offsets_[term];
    };
    double frequency = 0;
    for (;;) {
      std::size_t first = 0;
      std::int64_t last = place(0);
      for (std::size_t term = 1; term < positions.size(); ++term) {
        if (place(term) < place(first)) first = term;
        last = std::max(last, place(term));
      }
      const auto width = last - place(first);
      if (width <= slop_ && are_different(positions, at)) frequency += 1.0 / static_cast<double>(1 + width);
      if (++at[first] == positions[first].size()) return frequency;
    }
  }

 private:
  // A word in the document can be only one word of the phrase.
  static bool are_different(const std::vector<std::vector<std::uint32_t>>& positions,
                            const std::vector<std::size_t>& at) {
    for (std::size_t a = 1; a < at.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (positions[a][at[a]] == positions[b][at[b]]) return false;
      }
    }
    return true;
  }

  const std::vector<std::uint32_t> offsets_;
  const std::int64_t slop_;
};

}  // namespace

double Statistics::record(double value) {
  if (!is_recorded_) {
    values_.push_back(value);
    return value;
  }
  if (next_ == values_.size()) throw bad_request("The bookmark belongs to another query.");
  return values_[next_++];
}

void SearchBudget::spend(std::uint64_t amount) {
  spent_ += amount;
  if (spent_ <= kMost) return;
  throw Error(413, "search_too_expensive",
              fmt::format("The search would compare more than {} entries. Wildcards that begin with more "
                          "letters, or fewer sort fields and ranges, need less.",
                          kMost));
}

Searcher::Searcher(kv::Transaction& tx, const SearchKeys& keys, Statistics& statistics)
    : tx_(tx),
      keys_(keys),
      statistics_(statistics),
      live_(tx, keys),
      state_(read_state(tx, keys)),
      documents_(std::max(1.0, statistics.record(static_cast<double>(state_.documents)))) {}

Matches Searcher::search(const Query& query) {
  Matches matches = evaluate(query);
  std::vector<DocumentNumber> numbers;
  for (const Match& match : matches) {
    if (numbers.empty() || numbers.back() / kLiveDocumentsOfARow != match.number / kLiveDocumentsOfARow)
      numbers.push_back(match.number);
  }
  live_.read(numbers);
  std::erase_if(matches, [&](const Match& match) { return !live_.contains(match.number); });
  return matches;
}

Matches Searcher::evaluate(const Query& query) {
  using Kind = Query::Kind;
  if (query.kind == Kind::none) return {};
  if (query.kind == Kind::all) return all();
  if (query.kind == Kind::boolean) return evaluate_boolean(query);
  if (query.field == kIdField) return evaluate_ids(query);
  if (query.field == kPartitionField) return evaluate_partition(query);
  if (query.kind == Kind::term) return evaluate_term(query);
  if (query.kind == Kind::phrase) return evaluate_phrase(query);
  if (query.kind == Kind::number_range) return evaluate_numbers(query);
  return evaluate_expanded(query);
}

Matches Searcher::all() {
  Matches matches;
  for (const auto number : live_.all()) matches.push_back({number, 1});
  budget_.spend(matches.size());
  return matches;
}

Matches Searcher::evaluate_boolean(const Query& query) {
  std::optional<Matches> required;
  Matches optional, excluded;
  for (const Clause& clause : query.clauses) {
    // All clauses are evaluated, so that statistics are recorded in the same order each time.
    Matches matches = evaluate(clause.query);
    switch (clause.occur) {
      case Occur::must: required = required ? intersection(*required, matches) : std::move(matches); break;
      case Occur::should: optional = union_of(optional, matches); break;
      case Occur::must_not: excluded = union_of(excluded, matches); break;
    }
  }
  if (required) {
    add_scores(*required, optional);
  } else {
    required = std::move(optional);
  }
  Matches matches = excluded.empty() ? *std::move(required) : difference(*required, excluded);
  if (query.boost != 1) {
    for (Match& match : matches) match.score *= query.boost;
  }
  return matches;
}

Searcher::Postings Searcher::read_postings(std::string_view field, std::string_view term,
                                           bool with_positions) {
  Postings postings;
  bool is_sorted = true;
  // Higher levels have smaller numbers, except during a merge.
  for (std::size_t level = state_.segments.size(); level-- > 0;) {
    const std::string begin = keys_.row_begin(static_cast<int>(level), field, term);
    tx_.scan(kv::below(begin), {.isolation = Isolation::snapshot},
             [&](std::string_view key, std::string_view value) {
               const auto first = kv::tuple::Reader(key.substr(begin.size())).take_uint();
               if (!first) throw internal_error("The key of a row of a full-text index is damaged.");
               // Positions are read later.
               if (with_positions) value = postings.rows.emplace_back(value);
               EntryReader reader(Column::terms, *first, value);
               for (Entry entry; reader.next(entry);) {
                 if (!postings.list.empty() && entry.number < postings.list.back().number) is_sorted = false;
                 postings.list.push_back({entry.number, decode_occurrences(entry.payload)});
               }
               budget_.spend(1);
               return true;
             });
  }
  budget_.spend(postings.list.size());
  if (!is_sorted) std::ranges::sort(postings.list, {}, &Posting::number);
  return postings;
}

double Searcher::average_length(std::string_view field) {
  const std::vector<std::string> counters{keys_.documents_of_field(field), keys_.terms_of_field(field)};
  const auto values = tx_.get_many(counters, Isolation::snapshot);
  const auto documents = kv::decode_counter(values[0]);
  const auto terms = kv::decode_counter(values[1]);
  return statistics_.record(
      documents > 0 && terms > 0 ? static_cast<double>(terms) / static_cast<double>(documents) : 1);
}

double Searcher::idf(std::size_t documents_with_term) {
  const double found = std::min(statistics_.record(static_cast<double>(documents_with_term)), documents_);
  return std::log(1 + (documents_ - found + 0.5) / (found + 0.5));
}

Matches Searcher::scored(const std::vector<Posting>& postings, const std::vector<double>& frequencies,
                         double weight, double average_length) const {
  Matches matches;
  matches.reserve(postings.size());
  for (std::size_t i = 0; i < postings.size(); ++i) {
    const auto& occurrences = postings[i].occurrences;
    const double frequency = frequencies.empty() ? occurrences.frequency : frequencies[i];
    const double length = kK1 * (1 - kB + kB * occurrences.length / average_length);
    matches.push_back(
        {postings[i].number, weight * occurrences.boost * frequency * (kK1 + 1) / (frequency + length)});
  }
  return matches;
}

Matches Searcher::evaluate_term(const Query& query) {
  const auto postings = read_postings(query.field, query.text, false);
  const double average = average_length(query.field);
  return scored(postings.list, {}, query.boost * idf(postings.list.size()), average);
}

Matches Searcher::evaluate_phrase(const Query& query) {
  // Of each position: its terms, which are alternatives, and where they occur.
  std::map<std::uint32_t, std::vector<Postings>> by_offset;
  const double average = average_length(query.field);
  double weight = 0;
  for (const auto& [term, offset] : query.terms) {
    auto& postings = by_offset[offset].emplace_back(read_postings(query.field, term, true));
    weight += idf(postings.list.size());
  }

  std::vector<std::uint32_t> offsets;
  std::vector<std::map<DocumentNumber, std::vector<Occurrences>>> alternatives;
  for (const auto& [offset, lists] : by_offset) {
    offsets.push_back(offset);
    auto& documents = alternatives.emplace_back();
    for (const auto& postings : lists) {
      for (const auto& posting : postings.list) documents[posting.number].push_back(posting.occurrences);
    }
  }

  const PhraseMatcher matcher(offsets, query.slop);
  std::vector<Posting> found;
  std::vector<double> frequencies;
  for (const auto& [number, first] : alternatives.front()) {
    std::vector<std::vector<std::uint32_t>> positions;
    std::size_t size = 0;
    for (const auto& documents : alternatives) {
      const auto occurrences = documents.find(number);
      if (occurrences == documents.end()) break;
      auto& list = positions.emplace_back();
      for (const auto& one : occurrences->second) {
        const auto more = decode_positions(one);
        list.insert(list.end(), more.begin(), more.end());
      }
      if (occurrences->second.size() > 1) std::ranges::sort(list);
      size += list.size();
    }
    if (positions.size() < alternatives.size()) continue;
    budget_.spend(size * positions.size());
    const double frequency = matcher.frequency(positions);
    if (frequency == 0) continue;
    found.push_back({number, first.front()});
    frequencies.push_back(frequency);
  }
  return scored(found, frequencies, query.boost * weight, average);
}

void Searcher::visit_terms(
    std::string_view field, const std::string& begin, const std::string& end,
    const std::function<void(std::string_view, const RowKey&, std::string_view)>& visit) {
  for (std::size_t level = 0; level < state_.segments.size(); ++level) {
    const int number = static_cast<int>(level);
    const std::string level_key = keys_.level(number);
    const std::string field_key = keys_.rows(number, Column::terms, field);
    kv::KeyRange range = kv::below(field_key);
    if (!begin.empty()) range.begin = keys_.row_begin(number, field, begin);
    if (!end.empty()) range.end = keys_.row_begin(number, field, end);
    if (range.begin >= range.end) continue;
    tx_.scan(range, {.isolation = Isolation::snapshot}, [&](std::string_view key, std::string_view value) {
      const auto term = kv::tuple::Reader(key.substr(field_key.size())).take_string();
      if (!term) throw internal_error("The key of a row of a full-text index is damaged.");
      budget_.spend(1);
      visit(*term, parse_row_key(key.substr(level_key.size())), value);
      return true;
    });
  }
}

Matches Searcher::evaluate_expanded(const Query& query) {
  const TermMatcher matcher(query);
  Matches matches;
  std::string last_term;
  std::optional<double> similarity;
  bool is_first = true;
  visit_terms(query.field, matcher.begin(), matcher.end(),
              [&](std::string_view term, const RowKey& row, std::string_view value) {
                if (is_first || term != last_term) similarity = matcher.match(term);
                is_first = false;
                last_term = term;
                if (!similarity) return;
                EntryReader reader(Column::terms, row.first, value);
                for (Entry entry; reader.next(entry);) {
                  matches.push_back({entry.number, query.boost * *similarity});
                  budget_.spend(1);
                }
              });
  make_unique(matches);
  return matches;
}

void Searcher::visit_column(Column column, std::string_view field,
                            const std::function<void(DocumentNumber, std::string_view)>& visit) {
  for (std::size_t level = 0; level < state_.segments.size(); ++level) {
    const std::string begin = keys_.rows(static_cast<int>(level), column, field);
    tx_.scan(kv::below(begin), {.isolation = Isolation::snapshot},
             [&](std::string_view key, std::string_view value) {
               const auto first = kv::tuple::Reader(key.substr(begin.size())).take_uint();
               if (!first) throw internal_error("The key of a row of a full-text index is damaged.");
               EntryReader reader(column, *first, value);
               for (Entry entry; reader.next(entry);) {
                 visit(entry.number, entry.payload);
                 budget_.spend(1);
               }
               return true;
             });
  }
}

bool Searcher::has_column(Column column, std::string_view field) {
  bool found = false;
  for (std::size_t level = 0; level < state_.segments.size() && !found; ++level) {
    tx_.scan(kv::below(keys_.rows(static_cast<int>(level), column, field)),
             {.limit = 1, .isolation = Isolation::snapshot}, [&](std::string_view, std::string_view) {
               found = true;
               return false;
             });
  }
  return found;
}

Matches Searcher::evaluate_numbers(const Query& query) {
  const auto is_match = [&](double number) { return is_in_range(query, number); };
  Matches matches;
  visit_column(Column::numbers, query.field, [&](DocumentNumber number, std::string_view payload) {
    if (std::ranges::any_of(decode_numbers(payload), is_match)) matches.push_back({number, query.boost});
  });
  make_unique(matches);
  return matches;
}

void Searcher::visit_ids(const std::string& begin, const std::string& end,
                         const std::function<void(std::string_view, DocumentNumber)>& visit) {
  const std::string prefix = keys_.part(Part::numbers);
  kv::KeyRange range = kv::below(prefix);
  if (!begin.empty()) range.begin = keys_.number(begin);
  if (!end.empty()) range.end = keys_.number(end);
  if (range.begin >= range.end) return;
  tx_.scan(range, {.isolation = Isolation::snapshot}, [&](std::string_view key, std::string_view value) {
    const auto id = kv::tuple::Reader(key.substr(prefix.size())).take_string();
    if (!id) throw internal_error("The key of a document of a full-text index is damaged.");
    budget_.spend(1);
    visit(*id, IndexedDocument::decode(value).number);
    return true;
  });
}

// Ids are terms, but have no entries.
Matches Searcher::evaluate_ids(const Query& query) {
  Matches matches;
  if (query.kind == Query::Kind::term) {
    const auto value = tx_.get(keys_.number(query.text), Isolation::snapshot);
    if (value) matches.push_back({IndexedDocument::decode(*value).number, query.boost});
    return matches;
  }
  if (query.kind == Query::Kind::phrase || query.kind == Query::Kind::number_range) return {};
  const TermMatcher matcher(query);
  visit_ids(matcher.begin(), matcher.end(), [&](std::string_view id, DocumentNumber number) {
    if (const auto similarity = matcher.match(id)) matches.push_back({number, query.boost * *similarity});
  });
  make_unique(matches);
  return matches;
}

// The documents of a partition: their ids begin with it.
Matches Searcher::evaluate_partition(const Query& query) {
  if (query.kind != Query::Kind::term) return {};
  Matches matches;
  visit_ids(query.text + ':', query.text + ';', [&](std::string_view, DocumentNumber number) {
    matches.push_back({number, query.boost});
  });
  make_unique(matches);
  return matches;
}

}  // namespace divan::index::search
