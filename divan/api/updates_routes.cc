// The feed of created, updated and deleted databases: /_db_updates.
#include <fmt/core.h>

#include "divan/api/routes.h"
#include "divan/api/tail.h"
#include "divan/base/json.h"
#include "divan/docs/sequence.h"
#include "divan/updates/feed.h"

namespace divan::api {
namespace {

// Maximum number of rows that a read scans in one transaction.
constexpr std::size_t kMaxScannedRows = 10'000;

// The account that a database belongs to: the part of its name before the first slash.
std::optional<std::string_view> account_of(std::string_view database) {
  const std::size_t slash = database.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return database.substr(0, slash);
}

bool has_account_feeds(const Context& context) {
  return context.config.get_bool("global_changes", "account_feeds", false);
}

// Which rows are shown, and with which members.
struct Shape {
  bool show_account = false;
  std::optional<std::string> account{};  // only rows of this account; nullopt: all
};

class UpdatesReader final : public RowReader {
 public:
  UpdatesReader(const Context& context, Shape shape) : context_(context), shape_(std::move(shape)) {}

  RowPage read(const kv::Versionstamp& since, std::size_t limit, const RowFilter& filter) const override {
    RowPage page{.position = since, .ended = is_disabled()};
    if (page.ended) return page;
    const auto tx = context_.store.begin();
    updates::visit_updates(*tx, since, visitor(limit, filter, page));
    return page;
  }

  RowPage read_backwards(const kv::Versionstamp& since, const std::optional<kv::Versionstamp>& before,
                         std::size_t limit, const RowFilter& filter) const override {
    RowPage page{.position = before.value_or(since), .ended = is_disabled()};
    if (page.ended) return page;
    const auto tx = context_.store.begin();
    updates::visit_updates_backwards(*tx, since, before, visitor(limit, filter, page));
    return page;
  }

  kv::Versionstamp last() const override { return updates::last_update(*context_.store.begin()); }

 private:
  // The feeds of accounts may be disabled while they are open.
  bool is_disabled() const { return shape_.account && !has_account_feeds(context_); }

  updates::UpdateVisitor visitor(std::size_t limit, const RowFilter& filter, RowPage& page) const {
    return [this, limit, &filter, &page, scanned = std::size_t{0}](const updates::Update& update) mutable {
      page.position = update.sequence;
      const bool is_visible = !shape_.account || account_of(update.database) == shape_.account;
      if (is_visible && (!filter || filter(update.database)))
        page.rows.push_back({update.sequence, update.database, row_of(update)});
      page.more = page.rows.size() >= limit || ++scanned >= kMaxScannedRows;
      return !page.more;
    };
  }

  FeedRow row_of(const updates::Update& update) const {
    FeedRow row;
    row.seq = docs::to_sequence(update.sequence);
    row.json = fmt::format(R"({{"db_name":{},"type":"{}",)", json::quoted(update.database), update.kind);
    if (shape_.show_account) {
      row.json += "\"account\":" + json::quoted(account_of(update.database).value_or("_admin")) + ",";
    }
    row.json += fmt::format(R"("seq":"{}"}})", row.seq);
    return row;
  }

  const Context& context_;
  const Shape shape_;
};

// The account whose rows a user may read; nullopt: all. Throws unauthorized.
std::optional<std::string> visible_account(const Context& context, const Call& call) {
  const User& user = call.user();
  if (user.admin) return std::nullopt;
  if (user.name.empty() || !has_account_feeds(context)) throw unauthorized("You are not a server admin.");
  return user.name;
}

// Depends on the rows and on the shape.
std::string etag_of(const kv::Versionstamp& last, const Shape& shape) {
  std::string tag = docs::to_sequence(last);
  if (shape.show_account) tag += "-account";
  // A name may have characters that are not allowed in header fields.
  if (shape.account) tag += fmt::format("-{:x}", std::hash<std::string>()(*shape.account));
  return "\"" + tag + "\"";
}

// CouchDB uses this error name here, and nowhere else.
void check_limit(const Call& call) {
  const auto limit = call.param("limit");
  if (!limit || (!limit->empty() && limit->find_first_not_of("0123456789") == std::string::npos)) return;
  throw Error(400, "invalid_integer", fmt::format("`limit` is not a number: {}", *limit));
}

}  // namespace

Async<RouteResult> database_updates(const Context& context, const CallPtr& call) {
  Shape shape{.account = visible_account(context, *call)};
  call->allow("GET");
  check_limit(*call);
  auto options = parse_feed_options(*call);
  RowFeed feed;
  feed.descending = call->flag("descending");
  shape.show_account = call->user().admin && context.config.get_bool("global_changes", "show_account", false);
  const auto since = since_param(*call);
  kv::Versionstamp last;
  context.store.run([&](kv::Transaction& tx) {
    last = updates::last_update(tx);
    if (since) feed.since = *since == "now" ? last : parse_since(tx, *since);
  });
  if (options.mode == FeedMode::normal) {
    const std::string etag = etag_of(last, shape);
    if (auto unchanged = not_modified(*call, etag)) return returned(std::move(unchanged));
    options.headers.push_back({"ETag", etag});
  }
  feed.tail = fmt::format("updates/{}/{}", shape.show_account ? 'a' : '-', shape.account.value_or(""));
  feed.channel = updates::feed_channel();
  feed.reader = std::make_shared<UpdatesReader>(context, std::move(shape));
  return respond_with_rows(context, *call, std::move(options), std::move(feed));
}

}  // namespace divan::api
