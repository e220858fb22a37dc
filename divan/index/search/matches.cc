#include "divan/index/search/matches.h"

#include <algorithm>

namespace divan::index::search {

Matches::const_iterator first_from(const Matches& matches, DocumentNumber number) {
  return std::ranges::lower_bound(matches, number, {}, &Match::number);
}

const Match* find(const Matches& matches, DocumentNumber number) {
  const auto found = first_from(matches, number);
  return found != matches.end() && found->number == number ? &*found : nullptr;
}

void make_unique(Matches& matches) {
  const auto before = [](const Match& a, const Match& b) {
    return a.number != b.number ? a.number < b.number : a.score > b.score;
  };
  if (!std::is_sorted(matches.begin(), matches.end(), before)) std::ranges::sort(matches, before);
  const auto is_same = [](const Match& a, const Match& b) { return a.number == b.number; };
  matches.erase(std::unique(matches.begin(), matches.end(), is_same), matches.end());
}

Matches intersection(const Matches& a, const Matches& b) {
  if (a.size() > b.size()) return intersection(b, a);
  // Few are looked up in many; otherwise it is faster to go through both.
  const bool is_looked_up = a.size() < b.size() / 8;
  Matches both;
  auto other = b.begin();
  for (const Match& match : a) {
    if (is_looked_up) {
      other = std::ranges::lower_bound(other, b.end(), match.number, {}, &Match::number);
    } else {
      while (other != b.end() && other->number < match.number) ++other;
    }
    if (other == b.end()) break;
    if (other->number == match.number) both.push_back({match.number, match.score + other->score});
  }
  return both;
}

Matches union_of(const Matches& a, const Matches& b) {
  Matches either;
  either.reserve(a.size() + b.size());
  auto x = a.begin();
  for (const Match& match : b) {
    while (x != a.end() && x->number < match.number) either.push_back(*x++);
    if (x != a.end() && x->number == match.number) {
      either.push_back({match.number, match.score + x++->score});
    } else {
      either.push_back(match);
    }
  }
  either.insert(either.end(), x, a.end());
  return either;
}

Matches difference(const Matches& a, const Matches& b) {
  Matches rest;
  auto other = b.begin();
  for (const Match& match : a) {
    while (other != b.end() && other->number < match.number) ++other;
    if (other == b.end() || other->number != match.number) rest.push_back(match);
  }
  return rest;
}

void add_scores(Matches& a, const Matches& b) {
  auto match = a.begin();
  for (const Match& more : b) {
    match = std::ranges::lower_bound(match, a.end(), more.number, {}, &Match::number);
    if (match == a.end()) return;
    if (match->number == more.number) match->score += more.score;
  }
}

}  // namespace divan::index::search
