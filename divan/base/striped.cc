#include "divan/base/striped.h"

#include <thread>

// How ReaderGate works
//
// There are many well-known ways to keep a reader's feet dry while a writer frees memory. Hazard pointers and
// per-thread epochs need every reading thread to be registered, and a place to keep what cannot be freed yet.
// A shared_ptr in an atomic makes all readers write one cache line. Here a reader counts itself in and out of
// a counter on (nearly always) its own cache line: two atomic additions, no registration, any number of
// threads; and a writer, which is rare, pays: it looks at all the counters and waits, so that nothing is ever
// left over to be freed later.
//
// Why it is safe. The reader adds to its counter and then loads a pointer; the writer stores the pointer
// (unlinks the part) and then loads the counter; all four are sequentially consistent, so there is one order
// of them that everybody agrees on. Take one counter and the moment at which the writer sees it at zero. A
// reader that counted itself in there before that moment has counted itself out (with release, so that its
// reads happened before what the writer does next). One that counts itself in after that moment loads the
// pointer after the writer's store, and so cannot come upon the unlinked part. When every counter has been
// seen at zero once, no reader can know the part any more. Which counter a reader took, and when it read the
// phase, plays no role in this.
//
// Why it ends. A counter that new readers keep entering might never be seen at zero. So each stripe has two,
// and the phase says which of them is for newcomers. The writer points newcomers at one, waits for the other,
// and then the other way round: each wait is for readers that are already inside, and for those few that read
// the phase just before it changed.

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
