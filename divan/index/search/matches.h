// The documents that match a part of a query, with their scores.
#pragma once

#include <vector>

#include "divan/index/search/rows.h"

namespace divan::index::search {

struct Match {
  DocumentNumber number = 0;
  double score = 0;
};

/// In the order of their numbers, each of which occurs once.
using Matches = std::vector<Match>;

/// The first match with this number or a greater one.
Matches::const_iterator first_from(const Matches& matches, DocumentNumber number);
/// The match with this number; null if there is none.
const Match* find(const Matches& matches, DocumentNumber number);
/// Sorts matches, and keeps one of those with the same number, with the highest score.
void make_unique(Matches& matches);
/// Documents in both, with the sums of their scores.
Matches intersection(const Matches& a, const Matches& b);
/// Documents in either, with the sums of their scores.
Matches union_of(const Matches& a, const Matches& b);
/// Documents in `a` that are not in `b`.
Matches difference(const Matches& a, const Matches& b);
/// Adds the scores of `b` to the documents of `a`.
void add_scores(Matches& a, const Matches& b);

}  // namespace divan::index::search
