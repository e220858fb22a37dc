// Shared by the tests of searches.
#pragma once

#include "divan/index/search/search.h"
#include "divan/index/search/search_kind.h"
#include "divan/index/views/views_testing.h"

namespace divan::index::search {

/// A design document with the index `words`.
inline constexpr std::string_view kDesign = R"({"_id":"_design/d","indexes":{"words":{
  "analyzer":{"name":"perfield","default":"whitespace","fields":{"key":"keyword"}},
  "index":"function (doc) {
    if (doc.text) index('default', doc.text, {store: true});
    if (doc.title) index('title', doc.title, {store: true, boost: 2});
    if (doc.key) index('key', doc.key, {facet: true, store: true});
    if (doc.n !== undefined) index('n', doc.n, {facet: true});
    (doc.tags || []).forEach(tag => index('tags', tag, {facet: true, store: 'yes'}));
  }"}}})";

inline std::string without_newlines(std::string_view text) {
  std::string one_line(text);
  std::ranges::replace(one_line, '\n', ' ');
  return one_line;
}

/// A fixture with searches of the first index. Not thread-safe.
struct SearchFixture : views::testing::IndexFixture {
  void SetUp() override { set_up(std::make_unique<SearchKind>(pool), 20); }

  std::shared_ptr<const SearchIndex> index() {
    return std::dynamic_pointer_cast<const SearchIndex>(first_index());
  }

  std::string search(const SearchParamTexts& texts) {
    const Search search(index(), parse_params(texts));
    const auto tx = store->begin();
    return json::compact(search.run(*tx, catalog.open(*tx, "db")));
  }
  static std::vector<std::string> ids_of(std::string_view response) {
    std::vector<std::string> ids;
    json::for_each_element(*json::member(response, "rows"), [&](std::string_view row) {
      ids.push_back(*json::string_value(*json::member(row, "id")));
      return true;
    });
    return ids;
  }
  std::vector<std::string> ids(const std::string& query, SearchParamTexts more = {}) {
    more.emplace_back("q", json::quoted(query));
    return ids_of(search(more));
  }
  // The ids on all pages.
  std::vector<std::string> all(SearchParamTexts texts, const std::function<void()>& between = {}) {
    std::vector<std::string> ids;
    for (std::string bookmark;;) {
      auto page = texts;
      if (!bookmark.empty()) page.emplace_back("bookmark", json::quoted(bookmark));
      const auto response = search(page);
      const auto found = ids_of(response);
      if (found.empty()) return ids;
      ids.insert(ids.end(), found.begin(), found.end());
      bookmark = *json::string_value(*json::member(response, "bookmark"));
      if (between) between();
    }
  }
  static std::int64_t total(std::string_view response) {
    return *json::int_value(*json::member(response, "total_rows"));
  }
  IndexState state() {
    return store->run([&](kv::Transaction& tx) {
      return read_state(tx, SearchKeys(IndexKeys(catalog.open(tx, "db"), index()->signature())));
    });
  }
};

}  // namespace divan::index::search
