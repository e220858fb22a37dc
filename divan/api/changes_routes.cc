// A database's changes, and the feed of all databases.
#include <set>

#include "divan/api/feed.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/docs/changes.h"
#include "divan/docs/reader.h"
#include "divan/docs/sequence.h"
#include "divan/http/etag.h"
#include "divan/updates/feed.h"

namespace divan::api {
namespace {

// How many further changes are counted exactly; beyond that `pending` is left out.
constexpr std::int64_t kMaxCounted = 10'000;
// Rows that a filter may look at in one transaction.
constexpr std::size_t kMaxLookedAt = 10'000;

// Wakes when a bus channel gets an event.
class ChannelWaker {
 public:
  ChannelWaker(events::Bus& bus, std::string channel) : bus_(bus), channel_(std::move(channel)) {}

  void arm(const std::function<void()>& wake) {
    if (!subscription_) {
      // What happened does not matter, only that something did.
      subscription_.emplace(bus_.subscribe(channel_, {.max_events = 0, .notify = wake}));
      return;
    }
    while (subscription_->try_next()) {}
  }

 private:
  events::Bus& bus_;
  const std::string channel_;
  std::optional<events::Subscription> subscription_;
};

struct ChangesOptions {
  kv::Versionstamp since;
  bool descending = false;
  bool include_docs = false;
  bool all_leaves = false;  // style=all_docs
  bool conflicts = false;
  std::optional<std::set<std::string>> ids;  // filter=_doc_ids
  bool design_only = false;                  // filter=_design
};

class ChangesSource final : public FeedSource {
 public:
  ChangesSource(const Context& context, std::string name, ChangesOptions options)
      : context_(context),
        name_(std::move(name)),
        options_(std::move(options)),
        place_(options_.since),
        waker_(context.catalog.bus(), events::database_channel(name_)) {}

  void arm(const std::function<void()>& wake) override { waker_.arm(wake); }

  bool read(std::size_t limit, std::vector<FeedRow>& rows) override {
    const auto tx = context_.store.begin();
    const auto database = open(*tx);
    if (!database) return false;
    bool cut = false;
    std::size_t looked_at = 0;
    std::vector<docs::Change> found;
    const auto visit = [&](const docs::Change& change) {
      place_ = change.sequence;
      if (is_wanted(change)) found.push_back(change);
      cut = found.size() >= limit || ++looked_at >= kMaxLookedAt;
      return !cut;
    };
    if (options_.descending) {
      docs::visit_changes_backwards(*tx, *database, options_.since,
                                    begun_ ? std::optional(place_) : std::nullopt, visit);
    } else {
      docs::visit_changes(*tx, *database, place_, visit);
    }
    begun_ = true;
    append_rows(*tx, *database, found, rows);
    return cut;
  }

  std::string last_seq() const override { return docs::to_sequence(place_); }

  std::optional<std::int64_t> pending() override {
    if (options_.descending || options_.ids || options_.design_only) return 0;
    const auto tx = context_.store.begin();
    const auto database = open(*tx);
    if (!database) return 0;
    const std::int64_t count = docs::count_changes(*tx, *database, place_, kMaxCounted);
    if (count < kMaxCounted) return count;
    return std::nullopt;
  }

  bool ended() const override { return ended_; }

 private:
  // Nothing, and the feed's end, when the database was deleted (or made anew) since the feed began.
  std::optional<docs::Database> open(kv::Transaction& tx) {
    auto database = context_.catalog.find(tx, name_);
    if (!number_) {
      if (!database) throw not_found("Database does not exist.");
      number_ = database->number();
    }
    if (database && database->number() == *number_) return database;
    ended_ = true;
    return std::nullopt;
  }

  bool is_wanted(const docs::Change& change) const {
    if (options_.ids) return options_.ids->contains(change.id);
    return !options_.design_only || docs::is_design(change.id);
  }

  void append_rows(kv::Transaction& tx, const docs::Database& database,
                   const std::vector<docs::Change>& changes, std::vector<FeedRow>& rows) {
    std::vector<std::string> bodies;
    if (options_.include_docs && !options_.descending) bodies = docs::read_bodies(tx, database, changes);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const docs::Change& change = changes[i];
      FeedRow row;
      row.seq = docs::to_sequence(change.sequence);
      row.json = "{\"seq\":";
      json::append_string(row.json, row.seq);
      row.json += ",\"id\":";
      json::append_string(row.json, change.id);
      row.json += ",\"changes\":[";
      docs::RevTree tree;
      if (options_.all_leaves || options_.conflicts) {
        tree = docs::read_tree(tx, database, change.id, kv::Isolation::snapshot);
      }
      append_revisions(change, tree, row.json);
      row.json += change.deleted ? "],\"deleted\":true" : "]";
      if (options_.include_docs) {
        const std::string body = options_.descending
                                     ? docs::read_body(tx, database, change.body_sequence, change.chunks)
                                     : std::move(bodies[i]);
        row.json += ",\"doc\":";
        docs::Leaf leaf;
        leaf.path = {change.winner.generation, {change.winner.id}};
        leaf.deleted = change.deleted;
        docs::append_document(row.json, change.id, leaf, body, tree, {.conflicts = options_.conflicts});
      }
      row.json += '}';
      rows.push_back(std::move(row));
    }
  }

  void append_revisions(const docs::Change& change, const docs::RevTree& tree, std::string& out) const {
    const auto append = [&](const docs::Revision& revision) {
      out += out.ends_with('[') ? "{\"rev\":" : ",{\"rev\":";
      json::append_string(out, revision.to_string());
      out += '}';
    };
    if (!options_.all_leaves) return append(change.winner);
    for (const auto& leaf : tree) append(leaf.revision());
  }

  const Context context_;
  const std::string name_;
  const ChangesOptions options_;
  kv::Versionstamp place_;
  std::optional<std::int64_t> number_;
  bool ended_ = false;
  bool begun_ = false;
  ChannelWaker waker_;
};

class UpdatesSource final : public FeedSource {
 public:
  UpdatesSource(const Context& context, const kv::Versionstamp& since, bool descending)
      : context_(context),
        since_(since),
        place_(since),
        descending_(descending),
        waker_(context.catalog.bus(), updates::feed_channel()) {}

  void arm(const std::function<void()>& wake) override { waker_.arm(wake); }

  bool read(std::size_t limit, std::vector<FeedRow>& rows) override {
    const auto tx = context_.store.begin();
    bool cut = false;
    const auto visit = [&](const updates::Update& update) {
      place_ = update.sequence;
      FeedRow row;
      row.seq = docs::to_sequence(update.sequence);
      row.json = fmt::format(R"({{"db_name":{},"type":"{}","seq":"{}"}})", json::quoted(update.database),
                             update.kind, row.seq);
      rows.push_back(std::move(row));
      cut = rows.size() >= limit;
      return !cut;
    };
    if (descending_) {
      updates::visit_updates_backwards(*tx, since_, begun_ ? std::optional(place_) : std::nullopt, visit);
    } else {
      updates::visit_updates(*tx, place_, visit);
    }
    begun_ = true;
    return cut;
  }

  std::string last_seq() const override { return docs::to_sequence(place_); }

 private:
  const Context context_;
  const kv::Versionstamp since_;
  kv::Versionstamp place_;
  const bool descending_;
  bool begun_ = false;
  ChannelWaker waker_;
};

// `since`, or where an event source was cut off.
std::optional<std::string> since_param(const Call& call) {
  if (const auto last = call.header("Last-Event-ID")) return std::string(*last);
  return call.text("since");
}

void parse_filter(Call& call, ChangesOptions& options) {
  const auto filter = call.param("filter");
  if (!filter) return;
  if (*filter == "_design") {
    options.design_only = true;
  } else if (*filter == "_doc_ids") {
    const std::string list = call.method() == "POST"
                                 ? std::string(json::member(call.json_body(), "doc_ids").value_or(""))
                                 : json::compact(call.param("doc_ids").value_or("null"));
    options.ids.emplace();
    const bool is_array = json::for_each_element(list, [&](std::string_view id) {
      options.ids->insert(json::string_value(id).value_or(""));
      return true;
    });
    if (!is_array) throw bad_request("`doc_ids` filter parameter is not a list.");
  } else {
    throw Error(501, "not_implemented", fmt::format("The filter `{}` is not supported yet.", *filter));
  }
}

}  // namespace

Answer changes(const Context& context, const CallPtr& call) {
  call->allow("GET,POST");
  auto feed = parse_feed_options(*call);
  // CouchDB takes 0 as 1 here.
  if (feed.limit == 0) feed.limit = 1;
  ChangesOptions options;
  options.descending = call->flag("descending");
  options.include_docs = call->flag("include_docs");
  options.conflicts = call->flag("conflicts");
  const auto style = call->param("style").value_or("main_only");
  if (style != "main_only" && style != "all_docs") throw bad_request("`style` is main_only or all_docs.");
  options.all_leaves = style == "all_docs";
  parse_filter(*call, options);
  const auto since = since_param(*call);
  const std::string& name = call->path()[0];
  options.since = context.store.run([&](kv::Transaction& tx) {
    const auto database = context.catalog.open(tx, name);
    if (since == "now") return docs::last_sequence(tx, database);
    return since ? docs::parse_sequence(*since) : kv::Versionstamp();
  });
  if (options.descending) feed.mode = FeedMode::normal;
  start_feed(context, call, std::make_unique<ChangesSource>(context, name, options), feed);
  return std::nullopt;
}

Answer database_updates(const Context& context, const CallPtr& call) {
  call->require_admin();
  call->allow("GET");
  // As CouchDB names it here, and nowhere else.
  const auto limit = call->param("limit");
  if (limit && (limit->empty() || limit->find_first_not_of("0123456789") != std::string::npos)) {
    throw Error(400, "invalid_integer", fmt::format("`limit` is not a number: {}", *limit));
  }
  auto feed = parse_feed_options(*call);
  const bool descending = call->flag("descending");
  const auto since_text = since_param(*call);
  const auto last = context.store.run([&](kv::Transaction& tx) { return updates::last_update(tx); });
  kv::Versionstamp since;
  if (since_text) since = *since_text == "now" ? last : docs::parse_sequence(*since_text);
  if (feed.mode == FeedMode::normal) {
    const std::string etag = "\"" + docs::to_sequence(last) + "\"";
    const auto known = call->header("If-None-Match");
    if (known && http::if_none_match(*known, etag)) {
      http::Response unchanged;
      unchanged.status = 304;
      unchanged.headers.push_back({"ETag", etag});
      return unchanged;
    }
    feed.headers.push_back({"ETag", etag});
  }
  if (descending) feed.mode = FeedMode::normal;
  start_feed(context, call, std::make_unique<UpdatesSource>(context, since, descending), feed);
  return std::nullopt;
}

}  // namespace divan::api
