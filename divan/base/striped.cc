#include "divan/base/striped.h"

#include <thread>

// How ReaderGate works
//
// There are several well-known ways to protect readers while a writer frees memory. Hazard pointers and
// per-thread epochs require each reading thread to be registered, and a list of objects that cannot be freed
// yet. An atomic shared_ptr makes all readers write one cache line. Here a reader increments and decrements a
// counter on (nearly always) its own cache line: two atomic additions, no registration, any number of
// threads. The cost is the writer's, which is rare: it reads all counters and waits, so that no object has to
// be freed later.
//
// Why it is safe. The reader adds to its counter and then loads a pointer; the writer stores the pointer
// (unlinks the part) and then loads the counter; all four are sequentially consistent, so there is one total
// order of them. Take one counter and the moment at which the writer sees it at zero. A reader that
// incremented it before that moment has decremented it (with release, so that its reads happened before what
// the writer does next). A reader that increments it after that moment loads the pointer after the writer's
// store, and so cannot reach the unlinked part. Once every counter has been seen at zero, no reader can hold
// the part any more. It does not matter which counter a reader used, or when it read the phase.
//
// Why it terminates. A counter that new readers keep entering might never be seen at zero. So each stripe has
// two counters, and the phase selects the one for new readers. The writer directs new readers to one, waits
// for the other, and then swaps them: each wait is for readers that are already inside, and for the few that
// read the phase just before it changed.

namespace divan {

std::uint64_t StripedCounter::total() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& stripe : stripes_) sum += stripe.value.load(std::memory_order_relaxed);
  return sum;
}

void ReaderGate::wait_for_readers() {
  std::lock_guard lock(writer_);
  for (int round = 0; round < 2; ++round) {
    const auto waited_for = phase_.load(std::memory_order_relaxed);
    phase_.store(waited_for ^ 1U, std::memory_order_seq_cst);
    for (auto& stripe : stripes_) {
      while (stripe.inside[waited_for].load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
    }
  }
}

}  // namespace divan
