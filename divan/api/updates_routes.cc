// The feed of what happened to databases: /_db_updates.
#include "divan/api/routes.h"
#include "divan/api/tail.h"
#include "divan/base/json.h"
#include "divan/docs/sequence.h"
#include "divan/http/etag.h"
#include "divan/updates/feed.h"

namespace divan::api {
namespace {

class UpdatesReader final : public RowReader {
 public:
  explicit UpdatesReader(const Context& context) : context_(context) {}

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
  static bool add(const updates::Update& update, std::size_t limit, const Wanted& wanted, RowPage& page) {
    page.place = update.sequence;
    if (wanted && !wanted(update.database)) return true;
    FeedRow row;
    row.seq = docs::to_sequence(update.sequence);
    row.json = fmt::format(R"({{"db_name":{},"type":"{}","seq":"{}"}})", json::quoted(update.database),
                           update.kind, row.seq);
    page.rows.push_back({update.sequence, update.database, std::move(row)});
    page.more = page.rows.size() >= limit;
    return !page.more;
  }

  const Context& context_;
};

}  // namespace

Answer database_updates(const Context& context, const CallPtr& call) {
  call->require_admin();
  call->allow("GET");
  // As CouchDB names it here, and nowhere else.
  const auto limit = call->param("limit");
  if (limit && (limit->empty() || limit->find_first_not_of("0123456789") != std::string::npos)) {
    throw Error(400, "invalid_integer", fmt::format("`limit` is not a number: {}", *limit));
  }
  auto options = parse_feed_options(*call);
  RowFeed feed;
  feed.descending = call->flag("descending");
  const auto since_text = since_param(*call);
  const auto last = context.store.run([&](kv::Transaction& tx) { return updates::last_update(tx); });
  if (since_text) feed.since = *since_text == "now" ? last : docs::parse_sequence(*since_text);
  if (options.mode == FeedMode::normal) {
    const std::string etag = "\"" + docs::to_sequence(last) + "\"";
    const auto known = call->header("If-None-Match");
    if (known && http::if_none_match(*known, etag)) {
      http::Response unchanged;
      unchanged.status = 304;
      unchanged.headers.push_back({"ETag", etag});
      return unchanged;
    }
    options.headers.push_back({"ETag", etag});
  }
  feed.reader = std::make_shared<UpdatesReader>(context);
  feed.tail = "updates";
  feed.channel = updates::feed_channel();
  start_row_feed(context, call, options, std::move(feed));
  return std::nullopt;
}

}  // namespace divan::api
