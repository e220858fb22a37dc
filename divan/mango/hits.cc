#include "divan/mango/hits.h"

#include <algorithm>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::mango {

using index::search::Bookmark;
using index::search::DocumentNumber;
using index::search::SortField;
using index::search::Statistics;
using selector::Condition;
using selector::Operator;

namespace {

std::vector<SortField> sort_fields(const std::vector<std::string>& texts) {
  std::vector<SortField> fields;
  for (const auto& text : texts) fields.push_back(SortField::parse(text));
  return fields;
}

}  // namespace

Hits::Hits(kv::Transaction& tx, const docs::Database& database, const Plan& plan, const Condition& condition,
           const std::optional<Bookmark>& place)
    : tx_(tx),
      keys_(index::IndexKeys(database, plan.index().text->signature())),
      statistics_(place ? Statistics(place->statistics) : Statistics()),
      searcher_(tx, keys_, statistics_),
      matches_(searcher_.search(plan.text_query)),
      sorter_(searcher_, matches_, sort_fields(plan.text_sort)),
      left_(sorter_.after(place)) {
  find_alternatives(condition, false, *plan.index().text);
}

void Hits::find_alternatives(const Condition& condition, bool is_alternative,
                             const index::search::SearchIndex& index) {
  if (condition.op == Operator::text && is_alternative) {
    Statistics statistics;
    index::search::Searcher searcher(tx_, keys_, statistics);
    const auto query = text_query(condition, *index.text_map(), index.analyzer()).value().query;
    // Stop words are ignored.
    if (query.kind != index::search::Query::Kind::none) texts_[&condition] = searcher.search(query);
  }
  is_alternative = is_alternative || condition.op == Operator::any_of;
  for (const auto& child : condition.children) find_alternatives(child, is_alternative, index);
}

std::vector<Hits::Hit> Hits::next(std::size_t count) {
  sorter_.sort(left_, next_, count);
  const auto end = std::min(next_ + count, left_.size());
  std::vector<Hit> hits;
  std::vector<DocumentNumber> numbers;
  for (; next_ < end; ++next_) {
    hits.push_back({.id = {}, .match = left_[next_]});
    numbers.push_back(matches_[left_[next_]].number);
  }
  auto documents = index::search::read_documents(tx_, keys_, numbers);
  for (std::size_t i = 0; i < hits.size(); ++i) hits[i].id = std::move(documents[i].id);
  return hits;
}

bool Hits::has_text(const Hit& hit, const Condition& text) const {
  const auto found = texts_.find(&text);
  return found == texts_.end() || index::search::find(found->second, matches_[hit.match].number) != nullptr;
}

Bookmark Hits::bookmark(const Hit& hit) const {
  return {.statistics = statistics_.values(),
          .values = sorter_.values(hit.match),
          .number = matches_[hit.match].number};
}

Bookmark decode_text_bookmark(std::string_view text) {
  try {
    return Bookmark::decode(text);
  } catch (const Error&) {
    throw Error(400, "invalid_bookmark", "Invalid bookmark value: " + json::quoted(text));
  }
}

}  // namespace divan::mango
