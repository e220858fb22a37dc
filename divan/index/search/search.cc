#include "divan/index/search/search.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/document.h"
#include "divan/docs/reader.h"
#include "divan/index/search/highlighter.h"
#include "divan/index/search/query_parser.h"

namespace divan::index::search {
namespace {

constexpr std::size_t kDefaultHighlightSize = 100;
// The most bytes before the last result.
constexpr std::size_t kMaxResponseBytes = 64 << 20;

// The query, in one partition if there is one.
Query parse(const SearchParams& params, const text::Analyzer& analyzer) {
  Query query = parse_query(params.query, analyzer);
  return params.partition ? in_partition(std::move(query), *params.partition) : query;
}

// The field of `group_field`, which may end with its type.
std::string group_field(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text.ends_with("<number>"))
    throw bad_request("Group by number not supported. Group by string terms only.");
  if (text.ends_with("<string>")) text.remove_suffix(8);
  if (text.empty() || text.find('<') != std::string_view::npos)
    throw bad_request(fmt::format("Unrecognized group_field parameter: {}", text));
  return std::string(text);
}

}  // namespace

Search::Search(std::shared_ptr<const SearchIndex> index, SearchParams params)
    : index_(std::move(index)), params_(std::move(params)), query_(parse(params_, index_->analyzer())) {
  for (const auto& [field, labels] : params_.ranges) {
    Range& range = ranges_.emplace_back(Range{.field = field, .queries = {}});
    for (const auto& [label, text] : labels) {
      auto query = parse_query(text, index_->analyzer());
      if (query.kind != Query::Kind::number_range)
        throw bad_request(fmt::format("{} was not a well-formed range specification", text));
      range.queries.emplace_back(label, std::move(query));
    }
  }
  if (params_.group_field) group_field(*params_.group_field);
}

// One run of a search, in one transaction.
class Search::Run {
 public:
  Run(const Search& search, kv::Transaction& tx, const docs::Database& database)
      : search_(search),
        params_(search.params_),
        tx_(tx),
        database_(database),
        keys_(IndexKeys(database, search.index_->signature())),
        statistics_(params_.bookmark && !params_.bookmark->values.empty()
                        ? Statistics(params_.bookmark->statistics)
                        : Statistics()),
        searcher_(tx, keys_, statistics_),
        limit_(params_.limit.value_or(database.is_partitioned() ? kPartitionedLimit : kDefaultLimit)) {}

  std::string run() {
    matches_ = searcher_.search(search_.query_);
    for (const auto& path : params_.drilldown) drill_down(path);
    json::Writer writer(out_);
    writer.begin_object();
    if (params_.group_field) {
      write_groups(writer);
    } else {
      write_results(writer);
    }
    if (!params_.counts.empty()) write_counts(writer);
    if (!params_.ranges.empty()) write_ranges(writer);
    writer.end_object();
    out_ += '\n';
    return std::move(out_);
  }

 private:
  using Indices = Sorter::Indices;

  // Keeps the matches with one of the values of a facet.
  void drill_down(const std::vector<std::string>& path) {
    Matches with_value;
    // Facets are stored up to this length.
    std::set<std::string, std::less<>> wanted;
    for (auto value = path.begin() + 1; value != path.end(); ++value)
      wanted.emplace(utf8_prefix(*value, kMaxStringBytes));
    searcher_.visit_column(
        Column::facets, path.front(), [&](DocumentNumber number, std::string_view payload) {
          const auto values = decode_strings(payload);
          const bool has_value =
              std::ranges::any_of(values, [&](const auto& value) { return wanted.contains(value); });
          if (has_value) with_value.push_back({number, 0});
        });
    make_unique(with_value);
    matches_ = intersection(matches_, with_value);
  }

  // The first of `indices` in the order of the sorter, at most `limit_`.
  Indices first_of(Indices indices, const Sorter& sorter) const {
    sorter.sort(indices, 0, limit_);
    indices.resize(std::min<std::uint64_t>(limit_, indices.size()));
    return indices;
  }

  void write_results(json::Writer& writer) {
    const Sorter sorter(searcher_, matches_, params_.sort);
    const auto page = first_of(sorter.after(params_.bookmark), sorter);
    Bookmark bookmark = params_.bookmark.value_or(Bookmark());
    bookmark.statistics = statistics_.values();
    if (!page.empty()) {
      bookmark.values = sorter.values(page.back());
      bookmark.number = matches_[page.back()].number;
    }
    writer.key("total_rows").number(static_cast<std::int64_t>(matches_.size()));
    writer.key("bookmark").string(bookmark.encode());
    writer.key("rows");
    write_rows(writer, page, sorter);
  }

  void write_groups(json::Writer& writer) {
    const auto values = read_strings(searcher_, matches_, group_field(*params_.group_field));
    const Sorter group_order(searcher_, matches_, params_.group_sort);
    const Sorter sorter(searcher_, matches_, params_.sort);
    std::map<SortValue, Indices> groups;
    for (std::size_t i = 0; i < matches_.size(); ++i) groups[values[i]].push_back(i);
    // Groups are sorted by their first matches in that order.
    std::vector<std::pair<std::size_t, SortValue>> order;
    for (const auto& [value, indices] : groups) {
      const auto first = std::ranges::min_element(
          indices, [&](std::size_t a, std::size_t b) { return group_order.is_before(a, b); });
      order.emplace_back(*first, value);
    }
    std::ranges::sort(order,
                      [&](const auto& a, const auto& b) { return group_order.is_before(a.first, b.first); });
    if (order.size() > params_.group_limit) order.resize(params_.group_limit);

    const bool is_old = params_.has_old_group_names;
    std::int64_t grouped = 0;
    for (const auto& [first, value] : order) grouped += static_cast<std::int64_t>(groups[value].size());
    writer.key(is_old ? "total_hits" : "total_rows").number(static_cast<std::int64_t>(matches_.size()));
    if (is_old) writer.key("total_grouped_hits").number(grouped);
    writer.key("groups").begin_array();
    for (const auto& [first, value] : order) {
      auto& indices = groups[value];
      writer.begin_object().key("by");
      write(writer, value);
      writer.key(is_old ? "total_hits" : "total_rows").number(static_cast<std::int64_t>(indices.size()));
      writer.key(is_old ? "hits" : "rows");
      write_rows(writer, first_of(std::move(indices), sorter), sorter);
      writer.end_object();
    }
    writer.end_array();
  }

  void write_counts(json::Writer& writer) {
    writer.key("counts").begin_object();
    for (const auto& field : params_.counts) {
      std::map<std::string, std::int64_t> counts;
      searcher_.visit_column(Column::facets, field, [&](DocumentNumber number, std::string_view payload) {
        if (find(matches_, number) == nullptr) return;
        auto values = decode_strings(payload);
        std::ranges::sort(values);
        values.erase(std::unique(values.begin(), values.end()), values.end());
        for (const auto& value : values) ++counts[value];
      });
      std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
      std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second > b.second; });
      writer.key(field).begin_object();
      for (const auto& [value, count] : sorted) writer.key(value).number(count);
      writer.end_object();
    }
    writer.end_object();
  }

  void write_ranges(json::Writer& writer) {
    writer.key("ranges").begin_object();
    for (const auto& range : search_.ranges_) {
      std::vector<std::int64_t> counts(range.queries.size());
      searcher_.visit_column(
          Column::numbers, range.field, [&](DocumentNumber number, std::string_view payload) {
            if (find(matches_, number) == nullptr) return;
            const auto values = decode_numbers(payload);
            searcher_.spend(counts.size() * values.size() / 4);
            for (std::size_t i = 0; i < counts.size(); ++i) {
              const auto is_in = [&](double value) { return is_in_range(range.queries[i].second, value); };
              if (std::ranges::any_of(values, is_in)) ++counts[i];
            }
          });
      writer.key(range.field).begin_object();
      for (std::size_t i = 0; i < counts.size(); ++i) writer.key(range.queries[i].first).number(counts[i]);
      writer.end_object();
    }
    writer.end_object();
  }

  void write_rows(json::Writer& writer, const Indices& indices, const Sorter& sorter) {
    std::vector<DocumentNumber> numbers;
    for (const auto index : indices) numbers.push_back(matches_[index].number);
    const auto documents = read_documents(tx_, keys_, numbers);
    writer.begin_array();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (out_.size() > kMaxResponseBytes)
        throw Error(413, "response_too_large",
                    fmt::format("The response would have more than {} bytes; use a smaller limit.",
                                kMaxResponseBytes));
      const auto& document = documents[i];
      writer.begin_object().key("id").string(document.id);
      writer.key("order").begin_array();
      for (const auto& value : sorter.values(indices[i])) write(writer, value);
      writer.number(static_cast<std::int64_t>(numbers[i])).end_array();
      writer.key("fields");
      write_fields(writer, document.fields);
      if (!params_.highlight_fields.empty()) write_highlights(writer, document.fields);
      if (params_.include_docs) write_document(writer, document.id);
      writer.end_object();
    }
    writer.end_array();
  }

  void write_fields(json::Writer& writer, const std::string& fields) const {
    if (!params_.include_fields) {
      writer.raw(fields);
      return;
    }
    writer.begin_object();
    json::for_each_member(fields, [&](std::string_view raw_name, std::string_view value) {
      const auto name = json::unescape(raw_name);
      if (std::ranges::find(*params_.include_fields, name) != params_.include_fields->end())
        writer.key(name).raw(value);
      return true;
    });
    writer.end_object();
  }

  void write_highlights(json::Writer& writer, const std::string& fields) {
    if (!highlighter_) {
      highlighter_.emplace(search_.query_,
                           HighlightStyle{.before = params_.highlight_pre_tag,
                                          .after = params_.highlight_post_tag,
                                          .fragments = params_.highlight_number,
                                          .size = params_.highlight_size == 0 ? kDefaultHighlightSize
                                                                              : params_.highlight_size});
    }
    writer.key("highlights").begin_object();
    for (const auto& field : params_.highlight_fields) {
      writer.key(field).begin_array();
      json::for_each_member(fields, [&](std::string_view raw_name, std::string_view value) {
        if (json::unescape(raw_name) != field) return true;
        const auto add = [&](std::string_view one) {
          if (const auto text = json::string_value(one)) {
            searcher_.spend(highlighter_->cost(*text));
            for (const auto& fragment :
                 highlighter_->fragments(search_.index_->analyzer().analyzer_for(field), *text))
              writer.string(fragment);
          }
          return true;
        };
        if (!json::for_each_element(value, add)) add(value);
        return true;
      });
      writer.end_array();
    }
    writer.end_object();
  }

  // As it is now: it may have been changed since it was indexed.
  void write_document(json::Writer& writer, const std::string& id) const {
    const auto tree = docs::read_tree(tx_, database_, id, kv::Isolation::snapshot);
    writer.key("doc");
    if (tree.empty() || tree.front().deleted) {
      writer.null();
      return;
    }
    std::string document;
    docs::append_document(document, id, tree.front(), docs::read_body(tx_, database_, tree.front()), tree,
                          {});
    writer.raw(document);
  }

  const Search& search_;
  const SearchParams& params_;
  kv::Transaction& tx_;
  const docs::Database& database_;
  const SearchKeys keys_;
  Statistics statistics_;
  Searcher searcher_;
  const std::uint64_t limit_;
  Matches matches_;
  std::optional<Highlighter> highlighter_;
  std::string out_;
};

std::string Search::run(kv::Transaction& tx, const docs::Database& database,
                        const kv::Versionstamp& known) const {
  const IndexKeys keys(database, index_->signature());
  if (read_sequence(tx, keys, kv::Isolation::snapshot) < known) throw not_found("The index was removed.");
  return Run(*this, tx, database).run();
}

}  // namespace divan::index::search
