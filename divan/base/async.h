// Coroutines: work that waits without holding a thread.
//
// A coroutine is a function that returns Async<T> and contains co_await or co_return. It starts when it is
// awaited, and its awaiter continues when it has returned or thrown. (Other functions that return Async<T>
// pass on that of a coroutine; they run, and throw, when they are called, so their results are awaited at
// once.)
//
//   Async<http::Response> put(const Context& context, Call& call) {
//     co_await call.run(context.store, [&](kv::Transaction& tx) { ... });
//     co_return ...;
//   }
//
// What a coroutine waits for resumes it through an Executor, which says on which thread it continues.
// A coroutine is never destroyed while it waits: each wait ends, with what was waited for or with an
// exception that unwinds the coroutine. So its locals may be referred to by whatever will resume it.
//
// No mutex may be held across a co_await. GCC 12 destroys some temporary objects in co_await expressions
// twice (https://gcc.gnu.org/bugzilla/show_bug.cgi?id=99576): a lambda there must capture references only,
// and there must be no conditional operator with such an object.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "divan/base/check.h"

namespace divan {

/// Resumes coroutines on its threads. Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Resumes the coroutine soon, not during the call. Must not fail: the coroutine is never resumed
  /// otherwise.
  virtual void resume(std::coroutine_handle<> coroutine) = 0;
};

namespace detail {

// A coroutine that ends while start() is still running it, on the same thread, returns to its awaiter like a
// function: a loop of them does not grow the stack, whether or not the compiler makes tail calls. One that
// has waited continues its awaiter on the thread on which it ends.
class PromiseBase {
 public:
  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept { return Final{}; }
  void unhandled_exception() noexcept { error_ = std::current_exception(); }

  /// Returns true if the coroutine waits, and will resume `awaiter`.
  bool start(std::coroutine_handle<> self, std::coroutine_handle<> awaiter) {
    awaiter_ = awaiter;
    const PromiseBase* const outer = std::exchange(starting_, this);
    self.resume();
    // If it waits, it may have ended on another thread and be destroyed by now.
    return std::exchange(starting_, outer) == this;
  }

 protected:
  void rethrow_error() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  struct Final {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) noexcept {
      PromiseBase& promise = self.promise();
      if (starting_ != &promise) return promise.awaiter_;
      starting_ = nullptr;
      return std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };

  // What start() runs on this thread.
  static inline thread_local const PromiseBase* starting_ = nullptr;

  std::coroutine_handle<> awaiter_;
  std::exception_ptr error_;
};

template <class T>
class Promise : public PromiseBase {
 public:
  auto get_return_object() { return std::coroutine_handle<Promise>::from_promise(*this); }
  template <class U>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T take() {
    rethrow_error();
    DIVAN_CHECK(value_.has_value(), "a coroutine has no result");
    return *std::move(value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class Promise<void> : public PromiseBase {
 public:
  auto get_return_object() { return std::coroutine_handle<Promise>::from_promise(*this); }
  void return_void() {}
  void take() const { rethrow_error(); }
};

}  // namespace detail

/// The result of a coroutine. Must be awaited at most once. Not thread-safe.
template <class T>
class [[nodiscard]] Async {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Async(Handle coroutine) : coroutine_(coroutine) {}  // NOLINT(google-explicit-constructor)
  Async(Async&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Async& operator=(Async&&) = delete;
  ~Async() {
    if (coroutine_) coroutine_.destroy();
  }

  /// Runs the coroutine. Returns what it returns, and throws what it throws.
  auto operator co_await() && {
    struct Awaiter {
      Handle coroutine;
      bool await_ready() const { return false; }
      bool await_suspend(std::coroutine_handle<> awaiter) const {
        return coroutine.promise().start(coroutine, awaiter);
      }
      T await_resume() const { return coroutine.promise().take(); }
    };
    return Awaiter{coroutine_};
  }

 private:
  Handle coroutine_;
};

/// A coroutine that nobody awaits: it starts at once and destroys itself at its end. It must not throw.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    [[noreturn]] void unhandled_exception() { std::terminate(); }
  };
};

/// co_await resume_on(executor): continues on a thread of the executor.
inline auto resume_on(Executor& executor) {
  struct Awaiter {
    Executor& executor;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) const { executor.resume(coroutine); }
    void await_resume() const {}
  };
  return Awaiter{executor};
}

}  // namespace divan
