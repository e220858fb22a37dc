// Searches of random documents, whose results must be those of a reference, which compares the terms of every
// document; and searches during merges.
#include <random>
#include <regex>

#include "divan/index/search/merger.h"
#include "divan/index/search/query_parser.h"
#include "divan/index/search/search_testing.h"

namespace divan::index::search {
namespace {

using SearchReferenceTest = SearchFixture;

// The documents of a reference: their words by field.
struct Reference {
  struct Document {
    std::map<std::string, std::vector<std::string>> words;
    double n = 0;
  };
  std::map<std::string, Document> documents;

  static bool has_phrase(const Query& query, const std::vector<std::string>& words) {
    // Tries all places for all terms of the phrase.
    const std::function<bool(std::size_t, std::vector<std::int64_t>)> place =
        [&](std::size_t term, const std::vector<std::int64_t>& places) {
          if (term == query.terms.size()) {
            std::int64_t least = INT64_MAX, most = INT64_MIN;
            for (std::size_t i = 0; i < places.size(); ++i) {
              const auto moved = places[i] - static_cast<std::int64_t>(query.terms[i].second);
              least = std::min(least, moved);
              most = std::max(most, moved);
            }
            return most - least <= static_cast<std::int64_t>(query.slop);
          }
          for (std::size_t at = 0; at < words.size(); ++at) {
            if (words[at] != query.terms[term].first) continue;
            if (std::ranges::find(places, static_cast<std::int64_t>(at)) != places.end()) continue;
            auto more = places;
            more.push_back(static_cast<std::int64_t>(at));
            if (place(term + 1, more)) return true;
          }
          return false;
        };
    return place(0, {});
  }

  static bool matches(const Query& query, const Document& document) {
    using Kind = Query::Kind;
    const auto found = document.words.find(query.field);
    const std::vector<std::string> words =
        found == document.words.end() ? std::vector<std::string>() : found->second;
    const auto any = [&](const auto& predicate) { return std::ranges::any_of(words, predicate); };
    switch (query.kind) {
      case Kind::all: return true;
      case Kind::term: return any([&](const auto& word) { return word == query.text; });
      case Kind::phrase: return has_phrase(query, words);
      case Kind::prefix: return any([&](const auto& word) { return word.starts_with(query.text); });
      case Kind::wildcard: {
        std::string pattern = std::regex_replace(query.text, std::regex("\\*"), ".*");
        pattern = std::regex_replace(pattern, std::regex("\\?"), ".");
        return any([&](const auto& word) { return std::regex_match(word, std::regex(pattern)); });
      }
      case Kind::regex:
        return any([&](const auto& word) { return std::regex_match(word, std::regex(query.text)); });
      case Kind::text_range:
        return any([&](const auto& word) {
          return (query.with_lower ? word >= query.lower : word > query.lower) &&
                 (query.with_upper ? word <= query.upper : word < query.upper);
        });
      case Kind::number_range: return query.field == "n" && is_in_range(query, document.n);
      case Kind::boolean: break;
      default: return false;
    }
    bool has_must = false, must = true, should = false;
    for (const auto& clause : query.clauses) {
      const bool is_match = matches(clause.query, document);
      if (clause.occur == Occur::must_not && is_match) return false;
      if (clause.occur == Occur::must) {
        has_must = true;
        must = must && is_match;
      }
      if (clause.occur == Occur::should) should = should || is_match;
    }
    return has_must ? must : should;
  }

  std::vector<std::string> search(const Query& query) const {
    std::vector<std::string> found;
    for (const auto& [id, document] : documents) {
      if (matches(query, document)) found.push_back(id);
    }
    return found;
  }
};

std::string random_word(std::mt19937& random) {
  // Words with few letters, so that they repeat and are similar.
  std::string word;
  for (auto letters = 1 + random() % 3; letters > 0; --letters) word += static_cast<char>('a' + random() % 3);
  return word;
}

std::string random_query(std::mt19937& random, int depth = 0) {
  const std::string field = random() % 3 == 0 ? "title:" : "";
  switch (random() % (depth > 2 ? 8 : 12)) {
    case 0: return field + random_word(random) + "*";
    case 1: return field + random_word(random) + "?";
    case 2: return field + "?" + random_word(random).substr(1) + "*";
    case 3: return field + "/[ab]" + random_word(random) + "?/";
    case 4: return field + "[" + random_word(random) + " TO " + random_word(random) + "}";
    case 5: return fmt::format("n:{{{} TO {}]", random() % 10, random() % 10);
    case 6:
      return fmt::format("{}\"{} {} {}\"~{}", field, random_word(random), random_word(random),
                         random_word(random), random() % 4);
    case 7: return fmt::format("{}\"{} {}\"", field, random_word(random), random_word(random));
    case 8: return "(" + random_query(random, depth + 1) + " AND " + random_query(random, depth + 1) + ")";
    case 9: return "(" + random_query(random, depth + 1) + " OR " + random_query(random, depth + 1) + ")";
    case 10: return "(*:* NOT " + random_query(random, depth + 1) + ")";
    default: return "(+" + random_query(random, depth + 1) + " " + random_query(random, depth + 1) + ")";
  }
}

TEST_F(SearchReferenceTest, FindsWhatAComparisonWithEveryDocumentFinds) {
  put(without_newlines(kDesign));
  std::mt19937 random(11);
  Reference reference;
  std::map<std::string, std::string> revisions;
  const auto words = [&] {
    std::string text;
    for (auto count = 1 + random() % 8; count > 0; --count)
      text += (text.empty() ? "" : " ") + random_word(random);
    return text;
  };
  const auto split = [](const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) parts.push_back(word);
    return parts;
  };
  std::size_t found = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<std::string> ids, documents;
    for (auto count = 1 + random() % 30; count > 0; --count) {
      const auto id = fmt::format("{:03}", random() % 300);
      if (std::ranges::find(ids, id) != ids.end()) continue;
      ids.push_back(id);
      const auto revision = revisions.find(id);
      const std::string rev = revision == revisions.end() ? "" : R"("_rev":")" + revision->second + "\",";
      if (!rev.empty() && random() % 4 == 0) {
        documents.push_back(fmt::format(R"({{"_id":"{}",{}"_deleted":true}})", id, rev));
        reference.documents.erase(id);
        continue;
      }
      const auto text = words(), title = words();
      const double n = static_cast<double>(random() % 10);
      documents.push_back(
          fmt::format(R"({{"_id":"{}",{}"text":"{}","title":"{}","n":{}}})", id, rev, text, title, n));
      reference.documents[id] = {{{"default", split(text)}, {"title", split(title)}}, n};
    }
    const auto written = put_all(documents);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      revisions[ids[i]] = written[i];
      if (!reference.documents.contains(ids[i])) revisions.erase(ids[i]);
    }
    build();
    EXPECT_EQ(state().documents, static_cast<std::int64_t>(reference.documents.size()));
    for (int i = 0; i < 20; ++i) {
      const auto text = random_query(random);
      const auto expected = reference.search(parse_query(text, index()->analyzer()));
      const auto response = search({{"q", json::quoted(text)}, {"limit", "200"}, {"sort", "\"<doc>\""}});
      auto sorted = ids_of(response);
      std::ranges::sort(sorted);
      EXPECT_EQ(total(response), static_cast<std::int64_t>(expected.size())) << text;
      if (expected.size() <= 200) { EXPECT_EQ(sorted, expected) << text; }
      found += expected.size();
    }
  }
  EXPECT_GT(found, 10'000u);
  // Segments were merged, and those that were replaced are gone.
  EXPECT_LT(state().segments.front(), kMergedSegments);
  EXPECT_GE(state().segments.size(), 2u);
}

// The first merge of an index: of a level whose rows take several transactions, to a level that is new.
TEST_F(SearchReferenceTest, AllIsFoundDuringAMerge) {
  put(without_newlines(kDesign));
  constexpr int kBatch = 20, kWords = 60;
  int documents = 0;
  while (state().segments.empty() || state().segments[0] < kMergedSegments - 1) {
    std::vector<std::string> texts;
    for (int i = 0; i < kBatch; ++i, ++documents) {
      std::string words = "common phrase";
      for (int word = 0; word < kWords; ++word) words += fmt::format(" w{}x{}", documents, word);
      texts.push_back(fmt::format(R"({{"_id":"{}","text":"{}"}})", documents, words));
    }
    put_all(texts);
    build();
  }
  const auto keys = store->run(
      [&](kv::Transaction& tx) { return IndexKeys(catalog.open(tx, "db"), index()->signature()); });
  auto begun = state();
  ASSERT_EQ(begun.segments.size(), 1u);
  begun.segments[0] = kMergedSegments;
  store->run([&](kv::Transaction& tx) { tx.set(SearchKeys(keys).state(), begun.encode()); });
  int pieces = 0;
  while (const auto piece = merge_piece(*store, keys)) {
    store->run([&](kv::Transaction& tx) { piece->write(tx, keys); });
    ++pieces;
    for (const auto* query : {"common", "\"common phrase\"", "w0x0 OR w*x0", "comm*"})
      EXPECT_EQ(total(search({{"q", json::quoted(query)}})), documents) << query << " after piece " << pieces;
  }
  EXPECT_GT(pieces, 1);
  EXPECT_EQ(state().segments.size(), 2u);
}

}  // namespace
}  // namespace divan::index::search
