// The feed of what happened to databases: /_db_updates.
#include "divan/api/routes.h"
#include "divan/api/tail.h"
#include "divan/base/json.h"
#include "divan/docs/sequence.h"
#include "divan/http/etag.h"
#include "divan/updates/feed.h"

namespace divan::api {
namespace {

// The account that a database belongs to: what is before the first slash of its name.
std::optional<std::string_view> account_of(std::string_view database) {
  const std::size_t slash = database.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return database.substr(0, slash);
}

bool has_account_feeds(const Context& context) {
  return context.config.get_bool("global_changes", "account_feeds", false);
}

class UpdatesReader final : public RowReader {
 public:
  UpdatesReader(const Context& context, bool show_account) : context_(context), show_account_(show_account) {}

  RowPage read(const kv::Versionstamp& since, std::size_t limit, const Wanted& wanted) const override {
    RowPage page{.place = since};
    const auto tx = context_.store.begin();
    updates::visit_updates(*tx, since, [&](const auto& update) { return add(update, limit, wanted, page); });
    return page;
  }

  RowPage read_backwards(const kv::Versionstamp& since, const std::optional<kv::Versionstamp>& before,
                         std::size_t limit, const Wanted& wanted) const override {
    RowPage page{.place = before.value_or(since)};
    const auto tx = context_.store.begin();
    updates::visit_updates_backwards(*tx, since, before,
                                     [&](const auto& update) { return add(update, limit, wanted, page); });
    return page;
  }

  kv::Versionstamp last() const override { return updates::last_update(*context_.store.begin()); }

 private:
  // Answers whether to go on.
  bool add(const updates::Update& update, std::size_t limit, const Wanted& wanted, RowPage& page) const {
    page.place = update.sequence;
    if (wanted && !wanted(update.database)) return true;
    page.rows.push_back({update.sequence, update.database, row_of(update)});
    page.more = page.rows.size() >= limit;
    return !page.more;
  }

  FeedRow row_of(const updates::Update& update) const {
    FeedRow row;
    row.seq = docs::to_sequence(update.sequence);
    row.json = fmt::format(R"({{"db_name":{},"type":"{}",)", json::quoted(update.database), update.kind);
    if (show_account_) {
      row.json += "\"account\":" + json::quoted(account_of(update.database).value_or("_admin")) + ",";
    }
    row.json += fmt::format(R"("seq":"{}"}})", row.seq);
    return row;
  }

  const Context& context_;
  const bool show_account_;
};

// Whose rows a user sees; nothing: all. Throws unauthorized.
std::optional<std::string> account_seen(const Context& context, const Call& call) {
  const User& user = call.user();
  if (user.admin) return std::nullopt;
  if (user.name.empty() || !has_account_feeds(context)) call.require_admin();
  return user.name;
}

// It changes with the rows, and with what is shown of them.
std::string etag_of(const kv::Versionstamp& last, bool show_account,
                    const std::optional<std::string>& account) {
  std::string tag = docs::to_sequence(last);
  if (show_account) tag += "-account";
  // Header fields are no place for just any name.
  if (account) tag += fmt::format("-{:x}", std::hash<std::string>()(*account));
  return "\"" + tag + "\"";
}

// As CouchDB names the error here, and nowhere else.
void check_limit(const Call& call) {
  const auto limit = call.param("limit");
  if (!limit || (!limit->empty() && limit->find_first_not_of("0123456789") == std::string::npos)) return;
  throw Error(400, "invalid_integer", fmt::format("`limit` is not a number: {}", *limit));
}

}  // namespace

Answer database_updates(const Context& context, const CallPtr& call) {
  const auto account = account_seen(context, *call);
  call->allow("GET");
  check_limit(*call);
  auto options = parse_feed_options(*call);
  RowFeed feed;
  feed.descending = call->flag("descending");
  const bool show_account = !account && context.config.get_bool("global_changes", "show_account", false);
  const auto since_text = since_param(*call);
  const auto last = context.store.run([&](kv::Transaction& tx) { return updates::last_update(tx); });
  if (since_text) feed.since = *since_text == "now" ? last : docs::parse_sequence(*since_text);
  if (options.mode == FeedMode::normal) {
    const std::string etag = etag_of(last, show_account, account);
    const auto known = call->header("If-None-Match");
    if (known && http::if_none_match(*known, etag)) {
      http::Response unchanged;
      unchanged.status = 304;
      unchanged.headers.push_back({"ETag", etag});
      return unchanged;
    }
    options.headers.push_back({"ETag", etag});
  }
  feed.reader = std::make_shared<UpdatesReader>(context, show_account);
  feed.tail = show_account ? "updates with accounts" : "updates";
  feed.channel = updates::feed_channel();
  if (account) {
    // Should the feeds of accounts be switched off, those that are open show nothing more.
    feed.wanted = [&context, account](std::string_view database) {
      return account_of(database) == account && has_account_feeds(context);
    };
  }
  start_row_feed(context, call, options, std::move(feed));
  return std::nullopt;
}

}  // namespace divan::api
