#include "divan/index/search/searcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "divan/index/search/term_matcher.h"

namespace divan::index::search {
namespace {

// The parameters of BM25: how much repetitions of a term count, and how much the length of a field does.
constexpr double kK1 = 1.2;
constexpr double kB = 0.75;

// Boosts of parentheses in parentheses are multiplied; scores remain finite.
constexpr double kMaxScore = 1e30;
// An average length that is recorded in a bookmark can be forged.
constexpr double kLeastAverageLength = 1e-6;
// Matches with several entries of a document are made unique when there are this many, or twice as many as
// remained the last time.
constexpr std::size_t kManyMatches = 1'000'000;

constexpr std::string_view kIdField = "_id";
constexpr std::string_view kPartitionField = "_partition";

using Isolation = kv::Isolation;

// The end of a row's key.
DocumentNumber first_number(std::string_view rest) {
  const auto first = kv::tuple::Reader(rest).take_uint();
  if (!first) throw internal_error("The key of a row of a full-text index is damaged.");
  return *first;
}

// The phrase in one document: how often it occurs, less for occurrences whose terms are moved.
class PhraseMatcher {
 public:
  // A place in the phrase. Places with the same terms have the same group.
  struct Place {
    std::int64_t offset = 0;
    std::size_t group = 0;
  };
  PhraseMatcher(std::vector<Place> places, std::uint32_t slop) : places_(std::move(places)), slop_(slop) {}

  // `positions`: those of the terms of each group in the document, none of which is empty. Takes time
  // proportional to the product of all positions and places.
  double frequency(const std::vector<std::vector<std::uint32_t>>& positions) const {
    // Where the phrase would begin, if a term was not moved.
    std::set<std::int64_t> begins;
    for (const auto& place : places_) {
      for (const auto position : positions[place.group])
        begins.insert(static_cast<std::int64_t>(position) - place.offset);
    }
    std::vector<std::size_t> at(places_.size());
    double frequency = 0;
    for (const auto begin : begins) {
      const auto width = width_from(begin, positions, at);
      if (!width) break;
      if (*width <= slop_) frequency += 1.0 / static_cast<double>(1 + *width);
    }
    return frequency;
  }

 private:
  // By how much the terms are moved at most, if none is before its place in a phrase that begins at `begin`:
  // each takes the first position that is free. Equal terms take different ones. nullopt: there is none.
  // `at`: the positions from which on terms are searched, by place; `begin` grows from call to call.
  std::optional<std::int64_t> width_from(std::int64_t begin,
                                         const std::vector<std::vector<std::uint32_t>>& positions,
                                         std::vector<std::size_t>& at) const {
    std::int64_t width = 0;
    std::vector<std::size_t> taken(positions.size());  // the next free position, by group
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto& [offset, group] = places_[i];
      const auto& list = positions[group];
      while (at[i] < list.size() && static_cast<std::int64_t>(list[at[i]]) - offset < begin) ++at[i];
      const std::size_t position = std::max(at[i], taken[group]);
      if (position >= list.size()) return std::nullopt;
      taken[group] = position + 1;
      width = std::max(width, static_cast<std::int64_t>(list[position]) - offset - begin);
    }
    return width;
  }

  const std::vector<Place> places_;
  const std::int64_t slop_;
};

// The score of a term or phrase that occurs so often in a document, without its weight.
double score(const Occurrences& occurrences, double frequency, double average_length) {
  const double length = kK1 * (1 - kB + kB * occurrences.length / average_length);
  return occurrences.boost * frequency * (kK1 + 1) / (frequency + length);
}

void multiply(Matches& matches, double weight) {
  for (Match& match : matches) match.score *= weight;
}

}  // namespace

double Statistics::record(double value) {
  if (!is_recorded_) {
    values_.push_back(value);
    return value;
  }
  if (next_ == values_.size()) throw bad_request("The bookmark belongs to another query.");
  return values_[next_++];
}

void Statistics::end() const {
  if (is_recorded_ && next_ != values_.size()) throw bad_request("The bookmark belongs to another query.");
}

Searcher::Searcher(kv::Transaction& tx, const SearchKeys& keys, Statistics& statistics)
    : tx_(tx),
      keys_(keys),
      statistics_(statistics),
      live_(tx, keys),
      state_(read_state(tx, keys)),
      budget_(kLeastBudget + kBudgetOfADocument * static_cast<std::uint64_t>(state_.documents)),
      documents_(std::max(1.0, statistics.record(static_cast<double>(state_.documents)))) {}

void Searcher::spend(std::uint64_t amount) {
  if (amount > budget_)
    throw Error(
        413, "search_too_expensive",
        "The search would take too long. Wildcards that begin with more letters, shorter phrases, and fewer "
        "sort fields, counts and ranges need less.");
  budget_ -= amount;
}

Matches Searcher::search(const Query& query) {
  Matches matches = evaluate(query);
  statistics_.end();
  std::vector<DocumentNumber> numbers;
  for (const Match& match : matches) {
    if (numbers.empty() || numbers.back() / kLiveDocumentsOfARow != match.number / kLiveDocumentsOfARow)
      numbers.push_back(match.number);
  }
  live_.read(numbers);
  std::erase_if(matches, [&](const Match& match) { return !live_.contains(match.number); });
  return matches;
}

Matches Searcher::evaluate(const Query& query, const Matches* among) {
  using Kind = Query::Kind;
  if (query.kind == Kind::none) return {};
  if (query.kind == Kind::all) return all();
  if (query.kind == Kind::boolean) return evaluate_boolean(query);
  if (query.field == kIdField) return evaluate_ids(query);
  if (query.field == kPartitionField) return evaluate_partition(query);
  if (query.kind == Kind::term) return evaluate_term(query, among);
  if (query.kind == Kind::phrase) return evaluate_phrase(query);
  if (query.kind == Kind::number_range) return evaluate_numbers(query);
  return evaluate_expanded(query);
}

Matches Searcher::all() {
  Matches matches;
  for (const auto number : live_.all()) matches.push_back({number, 1});
  spend(matches.size());
  return matches;
}

// Clauses are evaluated in the same order each time, whatever is found, so that statistics are recorded in
// the same order, and scores are added in it.
Matches Searcher::evaluate_boolean(const Query& query) {
  std::vector<const Clause*> optional, excluded;
  for (const Clause& clause : query.clauses) {
    if (clause.occur == Occur::should) optional.push_back(&clause);
    if (clause.occur == Occur::must_not) excluded.push_back(&clause);
  }
  auto required = evaluate_all(query);
  Matches matches = evaluate_any(optional);
  if (required) {
    add_scores(*required, matches);
    matches = *std::move(required);
  }
  if (!excluded.empty()) matches = difference(matches, evaluate_any(excluded));
  for (Match& match : matches) match.score = std::min(match.score * query.boost, kMaxScore);
  return matches;
}

// What all mandatory clauses match; nullopt if there is none.
std::optional<Matches> Searcher::evaluate_all(const Query& query) {
  std::optional<Matches> required;
  for (const Clause& clause : query.clauses) {
    if (clause.occur != Occur::must) continue;
    Matches matches = evaluate(clause.query, required ? &*required : nullptr);
    required = required ? intersection(*required, matches) : std::move(matches);
  }
  return required;
}

// What any of these clauses match. In halves, so that no match is copied often.
Matches Searcher::evaluate_any(std::span<const Clause* const> clauses) {
  if (clauses.empty()) return {};
  if (clauses.size() == 1) return evaluate(clauses.front()->query);
  const auto half = clauses.size() / 2;
  const Matches first = evaluate_any(clauses.first(half));
  const Matches rest = evaluate_any(clauses.subspan(half));
  spend((first.size() + rest.size()) / 4);
  return union_of(first, rest);
}

void Searcher::visit_rows(const std::function<std::string(int level)>& prefix,
                          const std::function<void(DocumentNumber first, std::string_view value)>& visit) {
  // Higher levels have smaller numbers, except during a merge.
  for (std::size_t level = state_.levels(); level-- > 0;) {
    const std::string begin = prefix(static_cast<int>(level));
    tx_.scan(kv::below(begin), {.isolation = Isolation::snapshot},
             [&](std::string_view key, std::string_view value) {
               spend(1);
               visit(first_number(key.substr(begin.size())), value);
               return true;
             });
  }
}

Searcher::Postings Searcher::read_postings(std::string_view field, std::string_view term) {
  Postings postings;
  bool is_sorted = true;
  visit_rows([&](int level) { return keys_.row_begin(level, field, term); },
             [&](DocumentNumber first, std::string_view value) {
               value = postings.rows.emplace_back(value);  // positions are decoded later
               EntryReader reader(Column::terms, first, value);
               const std::size_t before = postings.list.size();
               DocumentNumber number = 0;
               for (Occurrences occurrences; reader.next(number, occurrences);) {
                 if (!postings.list.empty() && number < postings.list.back().number) is_sorted = false;
                 postings.list.push_back({number, occurrences});
               }
               spend(postings.list.size() - before);
             });
  if (!is_sorted) std::ranges::sort(postings.list, {}, &Posting::number);
  return postings;
}

double Searcher::average_length(std::string_view field) {
  const std::vector<std::string> counters{keys_.documents_of_field(field), keys_.terms_of_field(field)};
  const auto values = tx_.get_many(counters, Isolation::snapshot);
  const auto documents = kv::decode_counter(values[0]);
  const auto terms = kv::decode_counter(values[1]);
  const double average =
      documents > 0 && terms > 0 ? static_cast<double>(terms) / static_cast<double>(documents) : 1;
  return std::max(statistics_.record(average), kLeastAverageLength);
}

double Searcher::idf(std::size_t documents_with_term) {
  const double found = std::min(statistics_.record(static_cast<double>(documents_with_term)), documents_);
  return std::log(1 + (documents_ - found + 0.5) / (found + 0.5));
}

Matches Searcher::evaluate_term(const Query& query, const Matches* among) {
  const bool has_score = query.boost > 0;  // otherwise it needs no statistics
  const double average = has_score ? average_length(query.field) : 1;
  Matches matches;
  std::size_t found = 0;
  bool is_sorted = true;
  visit_rows([&](int level) { return keys_.row_begin(level, query.field, query.text); },
             [&](DocumentNumber first, std::string_view value) {
               auto candidate = among == nullptr ? Matches::const_iterator() : first_from(*among, first);
               const std::size_t before = found;
               EntryReader reader(Column::terms, first, value);
               DocumentNumber number = 0;
               for (Occurrences occurrences; reader.next(number, occurrences); ++found) {
                 if (among != nullptr) {
                   while (candidate != among->end() && candidate->number < number) ++candidate;
                   if (candidate == among->end() || candidate->number != number) continue;
                 }
                 is_sorted = is_sorted && (matches.empty() || matches.back().number < number);
                 matches.push_back({number, score(occurrences, occurrences.frequency, average)});
               }
               spend(found - before);
             });
  if (!is_sorted) std::ranges::sort(matches, {}, &Match::number);
  multiply(matches, has_score ? query.boost * idf(found) : 0);
  return matches;
}

// The places of a phrase with the same terms, and where these occur.
struct Searcher::PhraseTerms {
  std::vector<std::string> terms;
  std::vector<Postings> postings{};
  std::vector<std::size_t> at{};  // the postings of the document that is looked at

  // Moves to the first document from `number` on with one of the terms; 0 if there is none.
  DocumentNumber seek(DocumentNumber number) {
    DocumentNumber first = 0;
    for (std::size_t i = 0; i < postings.size(); ++i) {
      const auto& list = postings[i].list;
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(at[i]);
      const auto found = std::ranges::lower_bound(begin, list.end(), number, {}, &Posting::number);
      at[i] = static_cast<std::size_t>(found - list.begin());
      if (found != list.end() && (first == 0 || found->number < first)) first = found->number;
    }
    return first;
  }

  std::vector<std::uint32_t> positions(DocumentNumber number) const {
    std::vector<std::uint32_t> all;
    for (std::size_t i = 0; i < postings.size(); ++i) {
      if (at[i] == postings[i].list.size() || postings[i].list[at[i]].number != number) continue;
      const auto more = decode_positions(postings[i].list[at[i]].occurrences);
      all.insert(all.end(), more.begin(), more.end());
    }
    if (postings.size() > 1) std::ranges::sort(all);
    return all;
  }
};

Matches Searcher::evaluate_phrase(const Query& query) {
  const double average = average_length(query.field);
  std::map<std::uint32_t, std::vector<std::string>> by_offset;
  for (const auto& [term, offset] : query.terms) by_offset[offset].push_back(term);
  std::vector<PhraseTerms> groups;
  std::vector<PhraseMatcher::Place> places;
  double weight = 0;
  for (const auto& [offset, terms] : by_offset) {
    const auto same = std::ranges::find(groups, terms, &PhraseTerms::terms);
    places.push_back({offset, static_cast<std::size_t>(same - groups.begin())});
    if (same == groups.end()) {
      auto& group = groups.emplace_back(PhraseTerms{.terms = terms});
      for (const auto& term : terms) group.postings.push_back(read_postings(query.field, term));
      group.at.resize(terms.size());
    }
    for (const auto& postings : groups[places.back().group].postings) weight += idf(postings.list.size());
  }

  const PhraseMatcher matcher(places, query.slop);
  Matches found;
  DocumentNumber number = 1;
  for (;;) {
    // The next document that has terms of all groups.
    bool is_in_all = true;
    for (auto& group : groups) {
      const auto next = group.seek(number);
      if (next == 0) {
        multiply(found, query.boost * weight);
        return found;
      }
      is_in_all = is_in_all && next == number;
      number = std::max(number, next);
    }
    spend(1);
    if (!is_in_all) continue;
    std::vector<std::vector<std::uint32_t>> positions;
    for (const auto& group : groups) positions.push_back(group.positions(number));
    std::uint64_t begins = 0;
    for (const auto& place : places) begins += positions[place.group].size();
    spend(begins * places.size() / 4 + begins);
    const double frequency = matcher.frequency(positions);
    if (frequency > 0) {
      const auto& first = groups.front();
      for (std::size_t i = 0; i < first.postings.size(); ++i) {
        const auto& list = first.postings[i].list;
        if (first.at[i] == list.size() || list[first.at[i]].number != number) continue;
        found.push_back({number, score(list[first.at[i]].occurrences, frequency, average)});
        break;
      }
    }
    ++number;
  }
}

void Searcher::visit_terms(
    std::string_view field, const std::string& begin, const std::string& end,
    const std::function<void(std::string_view, DocumentNumber, std::string_view)>& visit) {
  for (std::size_t level = 0; level < state_.levels(); ++level) {
    const int number = static_cast<int>(level);
    const std::string prefix = keys_.rows(number, Column::terms, field);
    kv::KeyRange range = kv::below(prefix);
    if (!begin.empty()) range.begin = keys_.row_begin(number, field, begin);
    if (!end.empty()) range.end = keys_.row_begin(number, field, end);
    if (range.begin >= range.end) continue;
    tx_.scan(range, {.isolation = Isolation::snapshot}, [&](std::string_view key, std::string_view value) {
      spend(1);
      kv::tuple::Reader reader(key.substr(prefix.size()));
      const auto term = reader.take_string();
      if (!term) throw internal_error("The key of a row of a full-text index is damaged.");
      visit(*term, first_number(reader.rest()), value);
      return true;
    });
  }
}

Matches Searcher::evaluate_expanded(const Query& query) {
  const TermMatcher matcher(query);
  Matches matches;
  std::optional<std::string> last_term;
  std::optional<double> similarity;
  std::size_t many = kManyMatches;
  visit_terms(query.field, matcher.begin(), matcher.end(),
              [&](std::string_view term, DocumentNumber first, std::string_view value) {
                if (term != last_term) {
                  spend(matcher.cost(term));
                  similarity = matcher.match(term);
                  last_term = term;
                }
                if (!similarity) return;
                EntryReader reader(Column::terms, first, value);
                for (Entry entry; reader.next(entry);) {
                  matches.push_back({entry.number, query.boost * *similarity});
                  spend(1);
                }
                if (matches.size() < many) return;
                make_unique(matches);
                many = std::max(kManyMatches, 2 * matches.size());
              });
  make_unique(matches);
  return matches;
}

void Searcher::visit_column(Column column, std::string_view field,
                            const std::function<void(DocumentNumber, std::string_view)>& visit) {
  visit_rows([&](int level) { return keys_.rows(level, column, field); },
             [&](DocumentNumber first, std::string_view value) {
               EntryReader reader(column, first, value);
               for (Entry entry; reader.next(entry);) {
                 visit(entry.number, entry.payload);
                 spend(1 + entry.payload.size() / 64);
               }
             });
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
    spend(1);
    visit(*id, decode_number(value));
    return true;
  });
}

// Ids are terms, but have no entries.
Matches Searcher::evaluate_ids(const Query& query) {
  Matches matches;
  if (query.kind == Query::Kind::term) {
    const auto value = tx_.get(keys_.number(query.text), Isolation::snapshot);
    if (value) matches.push_back({decode_number(*value), query.boost});
    return matches;
  }
  if (query.kind == Query::Kind::phrase || query.kind == Query::Kind::number_range) return {};
  const TermMatcher matcher(query);
  visit_ids(matcher.begin(), matcher.end(), [&](std::string_view id, DocumentNumber number) {
    spend(matcher.cost(id));
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
