#include "divan/http/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/base/mutex.h"
#include "divan/http/serializer.h"

namespace divan::http {
namespace {

// One timer per loop checks all timeouts, so that a request does not pay for a timer of its own. A timeout is
// late by at most one tick, a quarter of the shortest timeout.
std::chrono::milliseconds tick_length(const ServerOptions& options) {
  const auto shortest = std::min({options.idle_timeout, options.head_timeout, options.body_timeout,
                                  options.send_timeout, options.linger_timeout, options.half_close_timeout});
  return std::clamp<std::chrono::milliseconds>(shortest / 4, std::chrono::milliseconds(5),
                                               std::chrono::milliseconds(1000));
}

// Number of coroutines that continue before sockets are served again.
constexpr std::size_t kCoroutinesAtOnce = 64;

}  // namespace

class Loop::LoopMailbox final : public Mailbox {
 public:
  LoopMailbox(Loop& loop, std::shared_ptr<asio::io_context> context)
      : loop_(loop), context_(std::move(context)) {}

  bool push(std::shared_ptr<ExchangeState> state) override { return add(waiting_, std::move(state)); }
  bool resume(std::coroutine_handle<> coroutine) override { return add(coroutines_, coroutine); }

  bool call_after(std::chrono::nanoseconds delay, std::function<void()> callback) override {
    std::lock_guard lock(mutex_);
    if (!open_) return false;
    // The loop ends when nothing is left to do, so not before the timer.
    asio::post(*context_, [context = context_.get(), delay, callback = std::move(callback)] {
      const auto timer = std::make_shared<Timer>(*context, delay);
      timer->async_wait([timer, callback](const ErrorCode&) { callback(); });
    });
    return true;
  }

  bool claim_idle_thread() override { return idle_.exchange(false); }
  void set_idle(bool idle) { idle_ = idle; }

  /// Moves at most `most` of the queued coroutines into `coroutines`, which is empty. collect() must follow:
  /// until then the io thread is not woken, since it is awake.
  void collect_coroutines(std::vector<std::coroutine_handle<>>& coroutines, std::size_t most) {
    std::lock_guard lock(mutex_);
    if (coroutines_.size() <= most) return coroutines_.swap(coroutines);
    const auto end = coroutines_.begin() + static_cast<std::ptrdiff_t>(most);
    coroutines.assign(coroutines_.begin(), end);
    coroutines_.erase(coroutines_.begin(), end);
  }

  /// Moves the queued states into `states`. States that an exception has left in it are queued again.
  void collect(std::vector<std::shared_ptr<ExchangeState>>& states) {
    {
      std::lock_guard lock(mutex_);
      waiting_.swap(states);
      posted_ = open_ && !coroutines_.empty();
      if (!posted_) return;
    }
    post();
  }

  void close() {
    std::lock_guard lock(mutex_);
    open_ = false;
  }

 private:
  template <class T>
  bool add(std::vector<T>& queue, T item) {
    {
      std::lock_guard lock(mutex_);
      if (!open_) return false;
      queue.push_back(std::move(item));
      if (std::exchange(posted_, true)) return true;
    }
    post();
    return true;
  }

  // Without the lock, since this wakes the io thread with a system call.
  void post() {
    asio::post(*context_, [&loop = loop_] { loop.serve_mail(kCoroutinesAtOnce); });
  }

  Loop& loop_;
  const std::shared_ptr<asio::io_context> context_;
  std::atomic<bool> idle_ = false;                                   // see Exchange::claim_idle_thread()
  Mutex mutex_{MutexRank::exchange_mailbox, "LoopMailbox::mutex_"};  // protects the members below
  bool open_ = true;
  bool posted_ = false;
  std::vector<std::shared_ptr<ExchangeState>> waiting_;
  std::vector<std::coroutine_handle<>> coroutines_;
};

Loop::Loop(const ServerOptions& options, const Clock& clock, const Handler& handler)
    : options_(options),
      clock_(clock),
      handler_(handler),
      context_(std::make_shared<asio::io_context>(1)),
      mailbox_(std::make_shared<LoopMailbox>(*this, context_)),
      work_(context_->get_executor()),
      tick_(*context_),
      stop_deadline_(*context_),
      tick_length_(tick_length(options)) {}

Loop::~Loop() = default;

void Loop::run() {
  serve();
  mailbox_->close();
  // What was put into the mailbox after the last handler ended and before it was closed.
  context_->restart();
  serve();
  serve_mail(SIZE_MAX);
}

void Loop::serve() {
  for (;;) {
    try {
      do {
        mailbox_->set_idle(false);
        context_->poll();
        // Nothing is ready: the next event is the first one after a wait.
        mailbox_->set_idle(true);
      } while (context_->run_one() > 0);
      return;
    } catch (const std::exception& e) { log::error("An HTTP connection failed: {}", e.what()); }
  }
}

std::shared_ptr<Mailbox> Loop::mailbox() const { return mailbox_; }

void Loop::adopt(Socket socket) {
  if (stopping_) {
    --count_;
    return;
  }
  const auto connection = std::make_shared<Connection>(std::move(socket), *this);
  connection->index = connections_.size();
  connections_.push_back(connection);
  timed_.push_back(true);
  if (!std::exchange(ticking_, true)) arm_tick();
  connection->start();
}

void Loop::remove(Connection& connection) {
  const auto index = connection.index;
  DIVAN_CHECK(index < connections_.size() && connections_[index].get() == &connection,
              "connection {} of {} is not in its place in the table", index, connections_.size());
  DIVAN_CHECK(count_ >= connections_.size(), "{} connections are counted, and {} are open", count_.load(),
              connections_.size());
  connections_.back()->index = index;
  connections_[index].swap(connections_.back());
  connections_.pop_back();
  timed_[index] = timed_.back();
  timed_.pop_back();
  --count_;
  if (stopping_ && connections_.empty()) {
    tick_.cancel();
    stop_deadline_.cancel();
  }
}

// Runs an action on a connection. If it throws, only this connection is closed.
template <class Action>
void Loop::guarded(Connection& connection, Action action) {
  try {
    try {
      return action(connection);
    } catch (const std::exception& e) { log::error("An HTTP connection failed: {}", e.what()); }
    connection.abort();
  } catch (const std::exception& e) { log::error("An HTTP connection failed to close: {}", e.what()); }
}

template <class Action>
void Loop::for_each_connection(Action action) {
  // Backwards, since a connection that closes is replaced by the table's last.
  for (auto i = connections_.size(); i-- > 0;) {
    const auto connection = connections_[i];
    guarded(*connection, action);
  }
}

void Loop::begin_stop() {
  stopping_ = true;
  work_.reset();
  for_each_connection([](Connection& connection) { connection.stop(); });
  if (connections_.empty()) {
    tick_.cancel();
    return;
  }
  stop_deadline_.expires_after(options_.stop_timeout);
  stop_deadline_.async_wait([this](const ErrorCode& ec) {
    if (!ec) for_each_connection([](Connection& connection) { connection.abort(); });
  });
}

void Loop::arm_tick() {
  tick_.expires_after(tick_length_);
  tick_.async_wait([this](const ErrorCode& ec) {
    if (!ec) tick();
  });
}

void Loop::tick() {
  const auto now = std::chrono::steady_clock::now();
  // Backwards, as above.
  for (auto i = connections_.size(); i-- > 0;) {
    if (!timed_[i]) continue;
    const auto connection = connections_[i];
    timed_[i] = connection->is_timed();
    guarded(*connection, [now](Connection& timed) { timed.check_timeouts(now); });
  }
  ticking_ = !connections_.empty();
  if (ticking_) arm_tick();
}

void Loop::serve_mail(std::size_t most_coroutines) {
  // Those that respond are served below.
  mailbox_->collect_coroutines(coroutines_, most_coroutines);
  if (coroutines_.size() > 1) mailbox_->set_idle(false);
  for (const auto coroutine : std::exchange(coroutines_, {})) coroutine.resume();
  mailbox_->collect(mail_);
  for (const auto& state : mail_) {
    if (state->connection == nullptr) {
      state->served_late();
      continue;
    }
    const auto connection = state->connection->shared_from_this();
    guarded(*connection, [](Connection& served) { served.service(); });
  }
  mail_.clear();
}

std::string_view Loop::own_fields() {
  const auto second = clock_.wall_ms() / 1000;
  if (second != own_fields_second_) {
    own_fields_second_ = second;
    own_fields_ = fmt::format("Date: {}\r\nServer: Divan/{}\r\n", http_date(second), options_.version);
  }
  return own_fields_;
}

}  // namespace divan::http
