#include "divan/base/mutex.h"

#ifdef DIVAN_CHECK_MUTEX_RANKS

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace divan {
namespace {

// Has no destructor: other objects of the thread may lock mutexes in theirs.
constinit thread_local HeldMutexes held{};

void push(const Mutex& mutex) {
  if (held.count == held.mutexes.size()) {
    std::fputs("A thread locks too many mutexes at once.\n", stderr);
    std::abort();
  }
  held.mutexes[held.count++] = &mutex;
}

}  // namespace

HeldMutexes& held_mutexes() { return held; }

void Mutex::lock() {
  for (std::size_t i = 0; i < held.count; ++i) {
    if (held.mutexes[i]->rank_ < rank_) continue;
    std::fprintf(stderr, "Mutex %s must not be locked while %s is held: see MutexRank.\n", name_,
                 held.mutexes[i]->name_);
    std::abort();
  }
  mutex_.lock();
  push(*this);
}

bool Mutex::try_lock() {
  if (!mutex_.try_lock()) return false;
  push(*this);
  return true;
}

void Mutex::unlock() {
  const Mutex** const end = held.mutexes.data() + held.count;
  static_cast<void>(std::remove(held.mutexes.data(), end, this));
  --held.count;
  mutex_.unlock();
}

}  // namespace divan

#endif
