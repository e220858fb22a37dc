// A database's changes.
#include <fmt/core.h>

#include <charconv>
#include <set>

#include "divan/api/document_filter.h"
#include "divan/api/routes.h"
#include "divan/api/tail.h"
#include "divan/base/json.h"
#include "divan/docs/changes.h"
#include "divan/docs/contents.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/reader.h"
#include "divan/docs/sequence.h"

namespace divan::api {
namespace {

// Number of changes up to which `pending` is counted; from there on it is omitted.
constexpr std::int64_t kMaxCounted = 10'000;
// Maximum number of rows that a filter scans in one transaction.
constexpr std::size_t kMaxScannedRows = 10'000;
// Bytes of documents after which a page ends.
constexpr std::size_t kMaxPageBytes = 1 << 20;
// Minimum number of changes to which a filter of documents is applied in one transaction.
constexpr std::size_t kFilteredTogether = 100;
// Maximum number of changes that are prefetched together with the database's record.
constexpr std::size_t kMaxReadAhead = 1000;

// What a row shows besides the document's id.
struct Shape {
  bool include_docs = false;
  bool all_leaves = false;  // style=all_docs
  bool conflicts = false;
  docs::AttachmentForm attachments = docs::AttachmentForm::stubs;
  DocumentFilterPtr filter{};

  bool needs_bodies() const { return include_docs || filter; }
};

// The leaves of a changed document that its row shows.
struct ShownLeaves {
  docs::RevTree tree;  // if it is needed
  std::vector<docs::Leaf> leaves;
};

class ChangesReader final : public RowReader {
 public:
  ChangesReader(const Context& context, const docs::Database& database, Shape shape)
      : context_(context), database_(database), shape_(std::move(shape)) {}

  RowPage read(const kv::Versionstamp& since, std::size_t limit, const RowFilter& filter) const override {
    RowPage page{.position = since};
    const auto tx = context_.store.begin();
    prefetch_changes(*tx, since, limit);
    if (exists(*tx, page)) {
      Collector found(shape_.filter ? std::max(limit, kFilteredTogether) : limit, filter);
      docs::visit_changes(*tx, database_, since, found.visitor());
      append_rows(*tx, found, limit, page);
    }
    return page;
  }

  RowPage read_backwards(const kv::Versionstamp& since, const std::optional<kv::Versionstamp>& before,
                         std::size_t limit, const RowFilter& filter) const override {
    RowPage page{.position = before.value_or(since)};
    const auto tx = context_.store.begin();
    if (exists(*tx, page)) {
      Collector found(shape_.filter ? std::max(limit, kFilteredTogether) : limit, filter);
      docs::visit_changes_backwards(*tx, database_, since, before, found.visitor());
      append_rows(*tx, found, limit, page);
    }
    return page;
  }

  kv::Versionstamp last() const override {
    const auto tx = context_.store.begin();
    RowPage page;
    return exists(*tx, page) ? docs::last_sequence(*tx, database_) : kv::Versionstamp();
  }

  std::optional<Filtering> filtering() const override {
    if (!shape_.filter) return std::nullopt;
    return Filtering{database_.number(), shape_.filter->calls_functions()};
  }

  std::optional<std::int64_t> pending(const kv::Versionstamp& position) const override {
    const auto tx = context_.store.begin();
    prefetch_changes(*tx, position, kMaxReadAhead);
    RowPage page;
    if (!exists(*tx, page)) return 0;
    const std::int64_t count = docs::count_changes(*tx, database_, position, kMaxCounted);
    if (count < kMaxCounted) return count;
    return std::nullopt;
  }

 private:
  // Collects the changes of a visit that the filter selects.
  struct Collector {
    Collector(std::size_t limit_in, const RowFilter& filter_in) : limit(limit_in), filter(filter_in) {}

    docs::ChangeVisitor visitor() {
      return [this](const docs::Change& change) {
        last_scanned = change.sequence;
        if (!filter || filter(change.id)) changes.push_back(change);
        cut = changes.size() >= limit || ++scanned >= kMaxScannedRows;
        return !cut;
      };
    }

    const std::size_t limit;
    const RowFilter& filter;
    std::vector<docs::Change> changes{};
    std::optional<kv::Versionstamp> last_scanned{};
    std::size_t scanned = 0;
    bool cut = false;
  };

  void prefetch_changes(kv::Transaction& tx, const kv::Versionstamp& since, std::size_t limit) const {
    if (!tx.is_remote()) return;
    kv::Prefetch reads;
    context_.catalog.prefetch(reads, database_.name());
    docs::prefetch_changes(reads, database_, since, std::min(limit, kMaxReadAhead));
    tx.prefetch(reads);
  }

  // If the database was deleted or recreated since the feed began, the feed ends.
  bool exists(kv::Transaction& tx, RowPage& page) const {
    const auto found = context_.catalog.find(tx, database_.name());
    page.ended = !found || found->number() != database_.number();
    return !page.ended;
  }

  void append_rows(kv::Transaction& tx, const Collector& found, std::size_t limit, RowPage& page) const {
    page.more = found.cut;
    if (tx.is_remote() && needs_trees()) {
      std::vector<std::string> ids;
      for (const auto& change : found.changes) ids.push_back(change.id);
      docs::prefetch_trees(tx, database_, ids);
    }
    if (found.last_scanned) page.position = *found.last_scanned;
    std::vector<std::string> bodies(found.changes.size());
    if (shape_.needs_bodies()) bodies = docs::read_bodies(tx, database_, found.changes, kMaxPageBytes);
    auto shown = leaves_of(tx, found.changes, bodies);
    if (shape_.filter) apply_filter(tx, found.changes, bodies, shown);
    std::size_t read = 0, bytes = 0;
    for (; read < shown.size() && page.rows.size() < limit && bytes < kMaxPageBytes; ++read) {
      if (shown[read].leaves.empty()) continue;
      const docs::Change& change = found.changes[read];
      page.rows.push_back({change.sequence, change.id, row(tx, change, bodies[read], shown[read])});
      bytes += page.rows.back().row.json.size();
    }
    if (read < found.changes.size()) {
      page.more = true;
      page.position = found.changes[read - 1].sequence;
    }
  }

  static docs::Leaf winner_of(const docs::Change& change) {
    docs::Leaf leaf;
    leaf.path = {change.winner.generation, {change.winner.id}};
    leaf.deleted = change.deleted;
    return leaf;
  }

  // The leaves that the style shows, of the changes whose bodies were read.
  std::vector<ShownLeaves> leaves_of(kv::Transaction& tx, const std::vector<docs::Change>& changes,
                                     const std::vector<std::string>& bodies) const {
    std::vector<ShownLeaves> shown(bodies.size());
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (needs_trees())
        shown[i].tree = docs::read_tree(tx, database_, changes[i].id, kv::Isolation::snapshot);
      if (shape_.all_leaves) {
        shown[i].leaves = shown[i].tree;
      } else {
        shown[i].leaves.push_back(winner_of(changes[i]));
      }
    }
    return shown;
  }

  // Removes the leaves that the filter does not select. If it takes long, only the first changes remain.
  void apply_filter(kv::Transaction& tx, const std::vector<docs::Change>& changes,
                    const std::vector<std::string>& bodies, std::vector<ShownLeaves>& shown) const {
    if (shown.empty()) return;
    std::vector<std::string> documents;  // of complete changes, one after the other
    std::size_t read = 0, bytes = 0;
    for (; read < shown.size() && bytes < kMaxPageBytes && !has_large_leaves(shown[read]); ++read) {
      for (const auto& leaf : shown[read].leaves) {
        documents.push_back(leaf_json(tx, changes[read], leaf, bodies[read]));
        bytes += documents.back().size();
      }
    }
    std::vector<bool> selected;
    if (read == 0) {
      selected = select_leaves(tx, changes[0], bodies[0], shown[0].leaves);
      read = 1;
    } else {
      selected = shape_.filter->select(documents);
    }
    while (selected.size() < shown.front().leaves.size()) {
      const auto more = shape_.filter->select(std::span(documents).subspan(selected.size()));
      selected.insert(selected.end(), more.begin(), more.end());
    }
    std::size_t next = 0, done = 0;
    for (; done < read && next + shown[done].leaves.size() <= selected.size(); ++done)
      std::erase_if(shown[done].leaves, [&](const auto&) { return !selected[next++]; });
    shown.resize(done);
  }

  // Returns true if the leaves must not be in memory together.
  static bool has_large_leaves(const ShownLeaves& shown) {
    std::uint64_t bytes = 0;
    for (const auto& leaf : shown.leaves) bytes += leaf.body_bytes;
    return shown.leaves.size() > 1 && bytes > kMaxPageBytes;
  }

  std::string leaf_json(kv::Transaction& tx, const docs::Change& change, const docs::Leaf& leaf,
                        const std::string& winner_body) const {
    std::string json;
    const bool is_winner = leaf.revision() == change.winner;
    docs::append_document(json, change.id, leaf,
                          is_winner ? winner_body : docs::read_body(tx, database_, leaf), {}, {});
    return json;
  }

  // Tests all leaves, in pieces.
  std::vector<bool> select_leaves(kv::Transaction& tx, const docs::Change& change,
                                  const std::string& winner_body,
                                  const std::vector<docs::Leaf>& leaves) const {
    std::vector<bool> selected;
    std::vector<std::string> documents;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      documents.push_back(leaf_json(tx, change, leaves[i], winner_body));
      bytes += documents.back().size();
      if (bytes < kMaxPageBytes && i + 1 < leaves.size()) continue;
      for (std::size_t done = 0; done < documents.size();) {
        const auto some = shape_.filter->select(std::span(documents).subspan(done));
        selected.insert(selected.end(), some.begin(), some.end());
        done += some.size();
      }
      documents.clear();
      bytes = 0;
    }
    return selected;
  }

  FeedRow row(kv::Transaction& tx, const docs::Change& change, const std::string& body,
              const ShownLeaves& shown) const {
    FeedRow row;
    row.seq = docs::to_sequence(change.sequence);
    row.json = "{\"seq\":";
    json::append_string(row.json, row.seq);
    row.json += ",\"id\":";
    json::append_string(row.json, change.id);
    row.json += ",\"changes\":[";
    for (const auto& leaf : shown.leaves) {
      row.json += row.json.ends_with('[') ? "{\"rev\":" : ",{\"rev\":";
      json::append_string(row.json, leaf.revision().to_string());
      row.json += '}';
    }
    row.json += change.deleted ? "],\"deleted\":true" : "]";
    if (shape_.include_docs) {
      row.json += ",\"doc\":";
      docs::append_document(row.json, change.id, winner_of(change),
                            docs::with_attachment_form(tx, database_, body, shape_.attachments), shown.tree,
                            {.conflicts = shape_.conflicts});
    }
    row.json += '}';
    return row;
  }

  bool needs_trees() const { return shape_.all_leaves || shape_.conflicts; }

  const Context& context_;
  const docs::Database database_;
  const Shape shape_;
};

// A filter that needs only the documents' ids; `body` is that of a POST. document_filter() has the others.
RowFilter parse_filter(const Call& call, std::string_view body) {
  const auto name = call.param("filter");
  if (name == "_design") return docs::is_design;
  if (name != "_doc_ids") return {};
  const bool is_post = call.method() == "POST";
  const std::string text = is_post ? "" : json::compact(call.param("doc_ids").value_or("null"));
  const std::string_view list = is_post ? json::member(body, "doc_ids").value_or("") : text;
  std::set<std::string, std::less<>> ids;
  const bool is_array = json::for_each_element(list, [&](std::string_view id) {
    ids.insert(json::string_value(id).value_or(""));
    return true;
  });
  if (!is_array) throw bad_request("`doc_ids` filter parameter is not a list.");
  return [ids = std::move(ids)](std::string_view id) { return ids.contains(id); };
}

// 0: none.
std::uint64_t seq_interval(const Call& call) {
  const auto text = call.param("seq_interval");
  if (!text) return 0;
  std::uint64_t interval = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), interval);
  if (error != std::errc() || end != text->data() + text->size() || interval == 0)
    throw bad_request(fmt::format("`seq_interval` is `{}`; expected an integer, 1 or more.", *text));
  return interval;
}

}  // namespace

Async<RouteResult> changes(const Context& context, const CallPtr& call) {
  call->allow("GET,POST");
  std::string body;
  if (call->method() == "POST" && !call->body().empty()) {
    body = call->json_body();
    if (!body.starts_with('{')) throw bad_request("Request body must be a JSON object");
  }
  auto options = parse_feed_options(*call);
  // As in CouchDB, 0 means 1 here.
  if (options.limit == 0) options.limit = 1;
  Shape shape;
  shape.include_docs = call->flag("include_docs");
  shape.conflicts = call->flag("conflicts");
  shape.attachments = docs::attachment_form(call->flag("attachments"), call->flag("att_encoding_info"));
  const auto style = call->param("style").value_or("main_only");
  if (style != "main_only" && style != "all_docs")
    throw bad_request(fmt::format("`style` is `{}`; expected main_only or all_docs.", style));
  shape.all_leaves = style == "all_docs";
  RowFeed feed;
  feed.descending = call->flag("descending");
  feed.pending = true;
  feed.filter = parse_filter(*call, body);
  feed.seq_interval = seq_interval(*call);
  if (options.limit) feed.limit = *options.limit;
  const auto since = since_param(*call);
  const std::string& name = call->path()[0];
  context.store.run([&](kv::Transaction& tx) {
    const auto database = context.catalog.open(tx, name);
    feed.since = kv::Versionstamp();
    // As in CouchDB, a descending feed ignores `since`: it goes from the last change to the first.
    if (since && !feed.descending)
      feed.since = *since == "now" ? docs::last_sequence(tx, database) : parse_since(tx, *since);
    shape.filter = document_filter(context, tx, database, *call);
    feed.reader = std::make_shared<ChangesReader>(context, database, shape);
    feed.tail = fmt::format("changes/{}/{}{}{}{}{}", database.number(), shape.include_docs ? 'd' : '-',
                            shape.all_leaves ? 'l' : '-', shape.conflicts ? 'c' : '-',
                            static_cast<int>(shape.attachments), shape.filter ? shape.filter->key() : "");
  });
  feed.channel = events::database_channel(name);
  return respond_with_rows(context, *call, std::move(options), std::move(feed));
}

}  // namespace divan::api
