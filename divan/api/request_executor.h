// Where a request's coroutine runs.
//
// A request begins on the io thread that has read it, which other connections share. There it may do short
// work that does not block: parse a small body, read from memory, start a commit. What takes longer continues
// on a worker thread (allow_blocking()).
#pragma once

#include <type_traits>
#include <utility>

#include "divan/api/function_threads.h"
#include "divan/base/async.h"
#include "divan/base/error.h"
#include "divan/base/thread_pool.h"
#include "divan/http/exchange.h"
#include "divan/kv/store.h"

namespace divan::api {

/// Too many requests wait for a worker thread (503).
class ServerBusy : public Error {
 public:
  ServerBusy() : Error(503, "service_unavailable", "The server is busy.") {}
};

/// The client has closed the connection, so nobody receives this error (499).
class ClientClosed : public Error {
 public:
  ClientClosed() : Error(499, "client_closed_request", "The client closed the connection.") {}
};

/// Not thread-safe, except resume(): used by the request's coroutine.
class RequestExecutor final : public Executor {
 public:
  /// `workers` must not be stopped before the request has ended.
  RequestExecutor(http::Exchange& exchange, ThreadPool& workers) : exchange_(exchange), workers_(workers) {}

  /// On the thread on which the coroutine belongs at the moment.
  void resume(std::coroutine_handle<> coroutine) override {
    if (may_block_ || !exchange_.resume(coroutine)) workers_.resume(coroutine);
  }

  /// On the calling thread, where it must not block.
  void resume_here(std::coroutine_handle<> coroutine) {
    may_block_ = false;
    coroutine.resume();
  }

  /// Returns true if the coroutine runs on a worker thread.
  bool may_block() const { return may_block_; }

  /// Later calls of allow_blocking() wait for a worker however many other requests do: for requests that have
  /// work to complete which must not be lost, and rarely need a worker.
  void admit() { is_admitted_ = true; }

  /// co_await: continues on a worker thread, until resume_here(). The first time it throws
  /// ServerBusy if it gets none.
  auto allow_blocking() {
    struct Awaiter {
      RequestExecutor& executor;
      bool is_refused = false;
      bool await_ready() const { return executor.may_block_; }
      bool await_suspend(std::coroutine_handle<> coroutine) {
        executor.may_block_ = true;
        if (std::exchange(executor.is_admitted_, true)) {
          executor.workers_.resume(coroutine);
          return true;
        }
        if (executor.workers_.submit([coroutine] { coroutine.resume(); })) return true;
        executor.may_block_ = false;
        is_refused = true;
        return false;
      }
      void await_resume() const {
        if (is_refused) throw ServerBusy();
      }
    };
    return Awaiter{*this};
  }

  /// Runs `fn`, which calls functions of design documents or searches, on a thread of `threads`, and holds no
  /// other meanwhile. It may run several times, as FunctionThreads::submit() says. Throws what it throws,
  /// ClientClosed instead of running it for nobody, and ServerBusy if the threads are stopped.
  template <class Fn>
  Async<void> run_on(FunctionThreads& threads, std::int64_t database, FunctionUse use, const Fn& fn) {
    std::exception_ptr error;
    const auto run = [&] {
      try {
        if (exchange_.closed()) throw ClientClosed();
        fn();
      } catch (const SlowFunction&) { throw; } catch (...) {
        error = std::current_exception();
      }
    };
    if (!co_await RunOn<decltype(run)>{*this, threads, database, use, run}) throw ServerBusy();
    if (error) std::rethrow_exception(error);
  }

  /// co_await: continues after `delay`.
  auto pause(Duration delay) {
    struct Awaiter {
      RequestExecutor& executor;
      Duration delay;
      bool await_ready() const { return delay <= Duration(0); }
      void await_suspend(std::coroutine_handle<> coroutine) const {
        RequestExecutor& resumer = executor;
        const bool waits =
            resumer.exchange_.call_after(delay, [&resumer, coroutine] { resumer.resume(coroutine); });
        if (!waits) resumer.resume(coroutine);  // the server stops
      }
      void await_resume() const {}
    };
    return Awaiter{*this, delay};
  }

  /// co_await: kv::Database::run(), without holding the thread during the commit and between tries. On an io
  /// thread `fn` runs there unless it would block; then it runs again on a worker thread.
  template <class Fn>
  Async<std::invoke_result_t<Fn&, kv::Transaction&>> run(kv::Database& store, Fn fn) {
    static_assert(std::is_trivially_destructible_v<Fn>, "capture references: see base/async.h");
    using Result = std::invoke_result_t<Fn&, kv::Transaction&>;
    const auto tx = store.begin();
    for (;;) {
      bool blocks = false;
      Duration delay(0);
      try {
        if (!may_block_) tx->forbid_blocking();
        if constexpr (std::is_void_v<Result>) {
          fn(*tx);
          co_await Commit{*tx, *this};
          tx->commit();
          co_return;
        } else {
          Result result = fn(*tx);
          co_await Commit{*tx, *this};
          tx->commit();
          co_return result;
        }
      } catch (const kv::Error& error) {
        blocks = error.code() == kv::ErrorCode::would_block;
        if (!blocks) delay = tx->start_retry(error);
      }
      if (blocks) {
        co_await allow_blocking();
        tx->reset();
      } else {
        co_await pause(delay);
        tx->restart();
      }
    }
  }

 private:
  template <class Fn>
  struct RunOn {
    RequestExecutor& executor;
    FunctionThreads& threads;
    std::int64_t database;
    FunctionUse use;
    const Fn& fn;
    bool is_refused = false;

    bool await_ready() const { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) {
      // The coroutine may continue, and end, before this returns.
      const bool runs = threads.submit(database, use, [&run = fn, &resumer = executor, coroutine] {
        run();
        resumer.resume(coroutine);
      });
      if (!runs) is_refused = true;
      return runs;
    }
    bool await_resume() const { return !is_refused; }
  };

  struct Commit {
    kv::Transaction& tx;
    RequestExecutor& executor;
    bool await_ready() const { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) const {
      if (!executor.may_block_ && tx.commits_quickly() && executor.exchange_.claim_idle_thread())
        return false;
      // The coroutine may continue, and end, before this returns.
      return tx.start_commit([&resumer = executor, coroutine] { resumer.resume(coroutine); });
    }
    void await_resume() const {}
  };

  http::Exchange& exchange_;
  ThreadPool& workers_;
  bool may_block_ = false;
  bool is_admitted_ = false;  // a worker has been requested before
};

}  // namespace divan::api
