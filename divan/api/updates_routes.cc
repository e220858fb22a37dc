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

}  // namespace

Answer database_updates(const Context& context, const CallPtr& call) {
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
