// For the tests of queries: indexes without a database.
#pragma once

#include "divan/base/json.h"
#include "divan/index/search/search_kind.h"
#include "divan/index/views/view_kind.h"
#include "divan/mango/indexes.h"

namespace divan::mango::testing {

/// Creates indexes. Not thread-safe.
class Definitions {
 public:
  /// All documents, and an index for each of `fields` ("a,b") with its name, in a design document of its own.
  std::vector<Index> all(const std::vector<std::string>& fields) {
    std::vector<Index> indexes(1);
    for (const auto& names : fields) indexes.push_back(one(names));
    return indexes;
  }

  Index one(const std::string& fields, std::string_view filter = "{}") {
    const auto views = index::views::parse_views("_design/" + fields, design(fields, filter), pool_, {});
    return indexes_in(views).front();
  }

  /// A full-text index. `definition` is what `index` of its design document has.
  Index text(const std::string& design, std::string_view definition) {
    const std::string body =
        R"({"language":"query","indexes":{"text":{"index":)" + json::compact(definition) + "}}}";
    const auto index = index::search::SearchKind(pool_).indexes(design, body).front();
    return {.design_document = design,
            .name = "text",
            .columns = {},
            .text = std::dynamic_pointer_cast<const index::search::SearchIndex>(index)};
  }

  /// The body of the design document of an index.
  static std::string design(const std::string& fields, std::string_view filter = "{}") {
    std::string body, names;
    for (const char c : fields) names += c == ',' ? std::string(R"(":"asc",")") : std::string(1, c);
    return R"({"language":"query","views":{")" + fields + R"(":{"map":{"fields":{")" + names +
           R"(":"asc"},"partial_filter_selector":)" + std::string(filter) +
           R"(},"reduce":"_count","options":{}}}})";
  }

 private:
  SystemClock clock_;
  js::Pool pool_{{.binary = DIVAN_JS_BINARY, .processes = 1}, clock_};
};

}  // namespace divan::mango::testing
