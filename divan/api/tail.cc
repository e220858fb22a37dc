#include "divan/api/tail.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/docs/sequence.h"

namespace divan::api {
namespace {

constexpr std::size_t kRowsPerRead = 500;
// Maximum size of the rows kept for feeds that did not read them at once.
constexpr std::size_t kKeptBytes = 16 << 10;

std::size_t size_of(const FeedEntry& row) {
  return sizeof(FeedEntry) + row.key.size() + row.row.json.size() + row.row.seq.size();
}

class RowSource final : public FeedSource {
 public:
  RowSource(Tails& tails, RowFeed feed, bool is_live)
      : tails_(tails), feed_(std::move(feed)), position_(feed_.since) {
    if (is_live) tail_ = tails_.get(feed_.tail, feed_.channel, feed_.reader);
  }

  void arm(const RequestWaiter& waiter) override {
    if (!tail_ || following_) return;
    tail_->follow(waiter.waker());
    following_ = true;
  }

  bool read(std::size_t limit, std::vector<FeedRow>& rows) override {
    if (const auto more = read_memory(limit, rows)) return *more;
    // A read that throws SlowFunction is repeated.
    RowPage page = feed_.descending ? feed_.reader->read_backwards(
                                          feed_.since, begun_ ? std::optional(position_) : std::nullopt,
                                          limit, feed_.filter)
                                    : feed_.reader->read(position_, limit, feed_.filter);
    if (std::exchange(begun_, true)) tails_.count_own_read();
    return take(std::move(page), rows);
  }

  std::optional<bool> read_memory(std::size_t limit, std::vector<FeedRow>& rows) override {
    from_tail_ = false;
    // First, rows that are already committed must be returned, and the tail may not have read them yet.
    if (!tail_ || !begun_) return std::nullopt;
    auto page = tail_->read(position_, limit, feed_.filter);
    if (!page) return std::nullopt;
    from_tail_ = true;
    return take(*std::move(page), rows);
  }

  std::string last_seq() const override { return docs::to_sequence(position_); }

  std::optional<std::int64_t> pending() override {
    if (!feed_.pending) return std::nullopt;
    if (feed_.descending) return 0;
    const auto count = tail_pending();
    return count ? count : feed_.reader->pending(position_);
  }

  std::optional<std::int64_t> function_database() const override {
    const auto filtering = feed_.reader->filtering();
    return filtering && filtering->calls_functions ? std::optional(filtering->database) : std::nullopt;
  }

  bool knows_pending() const override { return !feed_.pending || feed_.descending || tail_pending(); }

  bool ended() const override { return ended_; }

 private:
  std::optional<std::int64_t> tail_pending() const {
    return from_tail_ ? tail_->pending(position_) : std::nullopt;
  }

  static void leave_out_seq(FeedRow& row) {
    constexpr std::string_view kBegin = "{\"seq\":";
    row.json.replace(kBegin.size(), json::quoted(row.seq).size(), "null");
    row.seq.clear();
  }

  // Returns whether more rows may be available.
  bool take(RowPage page, std::vector<FeedRow>& rows) {
    position_ = page.position;
    ended_ = page.ended;
    for (auto& row : page.rows) {
      if (feed_.seq_interval > 0 && (feed_.limit - rows_) % feed_.seq_interval != 0) leave_out_seq(row.row);
      ++rows_;
      rows.push_back(std::move(row.row));
    }
    return page.more;
  }

  Tails& tails_;
  const RowFeed feed_;
  std::shared_ptr<Tail> tail_;
  kv::Versionstamp position_;
  bool following_ = false;
  bool begun_ = false;
  bool from_tail_ = false;  // whether the last page came from the tail
  bool ended_ = false;
  std::uint64_t rows_ = 0;  // so far
};

}  // namespace

Tail::Tail(Tails& tails, std::shared_ptr<const RowReader> reader, std::string channel)
    : tails_(tails), reader_(std::move(reader)), channel_(std::move(channel)) {}

void Tail::follow(const std::shared_ptr<Waker>& feed) {
  {
    std::lock_guard lock(followers_mutex_);
    if (followers_.size() >= clean_at_) {
      std::erase_if(followers_, [](const auto& follower) { return follower.expired(); });
      clean_at_ = std::max<std::size_t>(64, followers_.size() * 2);
    }
    followers_.push_back(feed);
    if (!subscription_) {
      // Only the fact that there was an event matters.
      subscription_ = tails_.bus_.subscribe(channel_, {.max_events = 0, .notify = [weak = weak_from_this()] {
                                                         if (const auto tail = weak.lock()) tail->wake();
                                                       }});
    }
  }
  begin();
}

// Subscribes before it reads the position: a commit in between causes only one unnecessary read. The store is
// read without a lock, since it may be slow. If several feeds call this concurrently, the first one wins.
void Tail::begin() {
  {
    std::lock_guard lock(mutex_);
    if (begun_) return;
  }
  const auto last = reader_->last();
  std::lock_guard lock(mutex_);
  if (std::exchange(begun_, true)) return;
  begin_ = end_ = last;
  is_whole_ = true;
}

std::optional<RowPage> Tail::read(const kv::Versionstamp& since, std::size_t limit,
                                  const RowFilter& filter) const {
  std::lock_guard lock(mutex_);
  if (!is_whole_ || since < begin_) return std::nullopt;
  RowPage page;
  page.position = since;
  page.ended = ended_;
  for (auto row = first_after(since); row != rows_.end(); ++row) {
    if (page.rows.size() == limit) {
      page.more = true;
      break;
    }
    page.position = row->position;
    if (!filter || filter(row->key)) page.rows.push_back(*row);
  }
  // What the reader's own filter did not select was scanned, too.
  if (!page.more) page.position = std::max(page.position, end_);
  return page;
}

std::optional<std::int64_t> Tail::pending(const kv::Versionstamp& since) const {
  std::lock_guard lock(mutex_);
  if (!is_whole_ || !at_end_ || since < begin_) return std::nullopt;
  return rows_.end() - first_after(since);
}

std::deque<FeedEntry>::const_iterator Tail::first_after(const kv::Versionstamp& position) const {
  return std::upper_bound(rows_.begin(), rows_.end(), position,
                          [](const auto& after, const FeedEntry& row) { return after < row.position; });
}

void Tail::wake() {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::running) state_ = State::running_and_woken;
    if (state_ != State::idle) return;
    state_ = State::queued;
  }
  submit();
}

void Tail::submit() {
  const auto run_here = [self = shared_from_this()] { self->run(); };
  const auto filtering = reader_->filtering();
  if (!filtering) {
    tails_.threads_.submit(run_here);
  } else if (filtering->calls_functions) {
    tails_.function_threads_.submit(filtering->database, FunctionUse::feed, run_here);
  } else {
    tails_.selecting_threads_.submit(filtering->database, run_here);
  }
}

void Tail::run() {
  {
    std::lock_guard lock(mutex_);
    state_ = State::running;
  }
  bool more = false;
  try {
    // The mailbox notifies of its first event only.
    {
      std::lock_guard lock(followers_mutex_);
      while (subscription_->try_next()) {}
    }
    more = read_new_rows();
  } catch (const std::exception& error) {
    log::error("Cannot read the new rows of {}; each feed will read the store itself: {}", channel_,
               error.what());
    std::lock_guard lock(mutex_);
    is_whole_ = false;
  }
  wake_feeds();
  {
    std::lock_guard lock(mutex_);
    trim(kKeptBytes);
    if (state_ == State::running && !more) {
      state_ = State::idle;
      return;
    }
    state_ = State::queued;
  }
  // Yields to other tails before it continues.
  submit();
}

bool Tail::read_new_rows() {
  kv::Versionstamp since;
  {
    std::lock_guard lock(mutex_);
    if (!begun_) return false;
    since = end_;
  }
  tails_.reads_.add(1);
  RowPage page = reader_->read(since, kRowsPerRead, nullptr);
  std::lock_guard lock(mutex_);
  if (!is_whole_) {
    // Feeds whose position is before begin_ catch up by themselves.
    begin_ = since;
    rows_.clear();
    bytes_ = 0;
    is_whole_ = true;
  }
  ended_ = page.ended;
  at_end_ = !page.more;
  end_ = page.position;
  for (auto& row : page.rows) {
    bytes_ += size_of(row);
    rows_.push_back(std::move(row));
  }
  return page.more;
}

void Tail::wake_feeds() {
  std::vector<std::shared_ptr<Waker>> feeds;
  {
    std::lock_guard lock(followers_mutex_);
    feeds.reserve(followers_.size());
    for (const auto& follower : followers_) {
      if (auto feed = follower.lock()) feeds.push_back(std::move(feed));
    }
  }
  for (const auto& feed : feeds) feed->wake_here();
}

void Tail::trim(std::size_t most_bytes) {
  while (bytes_ > most_bytes && !rows_.empty()) {
    bytes_ -= size_of(rows_.front());
    begin_ = rows_.front().position;
    rows_.pop_front();
  }
}

// Feeds read memory and write to sockets' buffers: more threads than processors would only add context
// switches.
Tails::Tails(events::Bus& bus, FunctionThreads& function_threads)
    : bus_(bus),
      threads_("feeds", std::max(2U, std::thread::hardware_concurrency()), SIZE_MAX),
      selecting_threads_("selected feeds", std::max(2U, std::thread::hardware_concurrency())),
      function_threads_(function_threads) {}

std::shared_ptr<Tail> Tails::get(const std::string& name, const std::string& channel,
                                 const std::shared_ptr<const RowReader>& reader) {
  std::lock_guard lock(mutex_);
  if (tails_.size() >= clean_at_) remove_unused();
  auto& known = tails_[name];
  auto tail = known.lock();
  if (!tail) {
    tail = std::make_shared<Tail>(*this, reader, channel);
    known = tail;
  }
  return tail;
}

TailStats Tails::stats() {
  std::lock_guard lock(mutex_);
  remove_unused();
  return {reads_.total(), own_reads_.total(), tails_.size()};
}

void Tails::remove_unused() {
  absl::erase_if(tails_, [](const auto& tail) { return tail.second.expired(); });
  clean_at_ = std::max<std::size_t>(64, tails_.size() * 2);
}

Async<RouteResult> respond_with_rows(const Context& context, Call& call, FeedOptions options, RowFeed feed) {
  if (feed.descending) options.mode = FeedMode::normal;
  const bool is_live = options.mode != FeedMode::normal;
  return respond_with_feed(context, call,
                           std::make_unique<RowSource>(context.tails, std::move(feed), is_live),
                           std::move(options));
}

}  // namespace divan::api
