#include "sim/fiber.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

#include <bit>
#include <semaphore>
#include <thread>

namespace divan::sim {

struct Fiber::State {
  std::binary_semaphore go{0};
  std::thread thread;
  bool ending = false;  // without having run
};

Fiber::Fiber() : state_(std::make_unique<State>()) {}

Fiber::Fiber(std::function<Fiber*()> body) : body_(std::move(body)), state_(std::make_unique<State>()) {
  state_->thread = std::thread([this] { run(); });
}

Fiber::~Fiber() {
  if (!state_->thread.joinable()) return;
  state_->ending = true;
  state_->go.release();
  state_->thread.join();
}

void Fiber::run() {
  state_->go.acquire();
  if (!state_->ending) body_()->state_->go.release();
}

void Fiber::switch_to(Fiber& next) {
  next.state_->go.release();
  state_->go.acquire();
}

}  // namespace divan::sim

#else

#include <cxxabi.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "divan/base/mutex.h"

namespace divan::sim {
namespace {

constexpr std::size_t kStackBytes = 1 << 20;  // takes memory only where it is used
constexpr std::size_t kGuardBytes = 1 << 16;

// What a thread's runtime knows of exceptions that are thrown or handled: each fiber has its own. By the C++
// ABI: https://itanium-cxx-abi.github.io/cxx-abi/abi-eh.html#cxx-data
struct Exceptions {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

Exceptions& exceptions() { return *reinterpret_cast<Exceptions*>(abi::__cxa_get_globals()); }

// What the thread keeps for the code that runs: each fiber has its own.
struct ThreadState {
  Exceptions exceptions;
#ifdef DIVAN_CHECK_MUTEX_RANKS
  HeldMutexes mutexes{};
#endif
};

ThreadState save_thread_state() {
  ThreadState state{.exceptions = exceptions()};
#ifdef DIVAN_CHECK_MUTEX_RANKS
  state.mutexes = held_mutexes();
#endif
  return state;
}

void restore_thread_state(const ThreadState& state) {
  exceptions() = state.exceptions;
#ifdef DIVAN_CHECK_MUTEX_RANKS
  held_mutexes() = state.mutexes;
#endif
}

}  // namespace

struct Fiber::State {
  void* stack = nullptr;
  ucontext_t place{};  // where it goes on

  ~State() {
    if (stack != nullptr) munmap(stack, kGuardBytes + kStackBytes);
  }
};

Fiber::Fiber() : state_(std::make_unique<State>()) {}

Fiber::Fiber(std::function<Fiber*()> body) : body_(std::move(body)), state_(std::make_unique<State>()) {
  void* const stack = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap of a stack");
  state_->stack = stack;
  mprotect(stack, kGuardBytes, PROT_NONE);
  ucontext_t& place = state_->place;
  getcontext(&place);
  place.uc_stack.ss_sp = static_cast<char*>(stack) + kGuardBytes;
  place.uc_stack.ss_size = kStackBytes;
  // makecontext() passes on nothing but integers.
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  const auto begin = +[](unsigned int high, unsigned int low) {
    std::bit_cast<Fiber*>(static_cast<std::uintptr_t>(high) << 32 | low)->run();
  };
  makecontext(&place, reinterpret_cast<void (*)()>(begin), 2, static_cast<unsigned int>(self >> 32),
              static_cast<unsigned int>(self));
}

Fiber::~Fiber() = default;

void Fiber::run() {
  restore_thread_state({});
  setcontext(&body_()->state_->place);
}

void Fiber::switch_to(Fiber& next) {
  const ThreadState own = save_thread_state();
  // Not longjmp(): it runs what the thread's frames have registered for cancellation (pthread_once() does),
  // and frames of other fibers are among them.
  swapcontext(&state_->place, &next.state_->place);
  restore_thread_state(own);
}

}  // namespace divan::sim

#endif
