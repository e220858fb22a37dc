// The feed of what happened to databases: /_db_updates.
#include "divan/api/channel_waker.h"
#include "divan/api/feed.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/docs/sequence.h"
#include "divan/http/etag.h"
#include "divan/updates/feed.h"

namespace divan::api {
namespace {

// Rows that a read may look at in one transaction.
constexpr std::size_t kMaxLookedAt = 10'000;

// The account that a database belongs to: what is before the first slash of its name.
std::optional<std::string_view> account_of(std::string_view database) {
  const std::size_t slash = database.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return database.substr(0, slash);
}

bool has_account_feeds(const Context& context) {
  return context.config.get_bool("global_changes", "account_feeds", false);
}

struct UpdatesOptions {
  kv::Versionstamp since;
  bool descending = false;
  bool show_account = false;
  std::optional<std::string> account;  // whose rows are seen; nothing: all
};

class UpdatesSource final : public FeedSource {
 public:
  UpdatesSource(const Context& context, UpdatesOptions options)
      : context_(context),
        options_(std::move(options)),
        place_(options_.since),
        waker_(context.catalog.bus(), updates::feed_channel()) {}

  void arm(const std::function<void()>& wake) override { waker_.arm(wake); }

  bool read(std::size_t limit, std::vector<FeedRow>& rows) override {
    // The feeds of accounts may be switched off while there are some.
    if (options_.account && !has_account_feeds(context_)) ended_ = true;
    if (ended_) return false;
    const auto tx = context_.store.begin();
    bool cut = false;
    std::size_t looked_at = 0;
    const auto visit = [&](const updates::Update& update) {
      place_ = update.sequence;
      if (!options_.account || account_of(update.database) == options_.account)
        rows.push_back(row_of(update));
      cut = rows.size() >= limit || ++looked_at >= kMaxLookedAt;
      return !cut;
    };
    if (options_.descending) {
      updates::visit_updates_backwards(*tx, options_.since, begun_ ? std::optional(place_) : std::nullopt,
                                       visit);
    } else {
      updates::visit_updates(*tx, place_, visit);
    }
    begun_ = true;
    return cut;
  }

  std::string last_seq() const override { return docs::to_sequence(place_); }

  bool ended() const override { return ended_; }

 private:
  FeedRow row_of(const updates::Update& update) const {
    FeedRow row;
    row.seq = docs::to_sequence(update.sequence);
    row.json = fmt::format(R"({{"db_name":{},"type":"{}",)", json::quoted(update.database), update.kind);
    if (options_.show_account) {
      row.json += "\"account\":" + json::quoted(account_of(update.database).value_or("_admin")) + ",";
    }
    row.json += fmt::format(R"("seq":"{}"}})", row.seq);
    return row;
  }

  const Context context_;
  const UpdatesOptions options_;
  kv::Versionstamp place_;
  bool begun_ = false;
  bool ended_ = false;
  ChannelWaker waker_;
};

// Whose rows a user sees; nothing: all. Throws unauthorized.
std::optional<std::string> account_seen(const Context& context, const Call& call) {
  const User& user = call.user();
  if (user.admin) return std::nullopt;
  if (user.name.empty() || !has_account_feeds(context)) throw unauthorized("You are not a server admin.");
  return user.name;
}

// It changes with the rows, and with what is shown of them.
std::string etag_of(const kv::Versionstamp& last, const UpdatesOptions& options) {
  std::string tag = docs::to_sequence(last);
  if (options.show_account) tag += "-account";
  // Header fields are no place for just any name.
  if (options.account) tag += fmt::format("-{:x}", std::hash<std::string>()(*options.account));
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
  UpdatesOptions options;
  options.account = account_seen(context, *call);
  call->allow("GET");
  check_limit(*call);
  auto feed = parse_feed_options(*call);
  options.descending = call->flag("descending");
  options.show_account =
      call->user().admin && context.config.get_bool("global_changes", "show_account", false);
  const auto since = since_param(*call);
  const auto last = context.store.run([&](kv::Transaction& tx) { return updates::last_update(tx); });
  if (since) options.since = *since == "now" ? last : docs::parse_sequence(*since);
  if (feed.mode == FeedMode::normal) {
    const std::string etag = etag_of(last, options);
    const auto known = call->header("If-None-Match");
    if (known && http::if_none_match(*known, etag)) {
      http::Response unchanged;
      unchanged.status = 304;
      unchanged.headers.push_back({"ETag", etag});
      return unchanged;
    }
    feed.headers.push_back({"ETag", etag});
  }
  if (options.descending) feed.mode = FeedMode::normal;
  start_feed(context, call, std::make_unique<UpdatesSource>(context, std::move(options)), feed);
  return std::nullopt;
}

}  // namespace divan::api
