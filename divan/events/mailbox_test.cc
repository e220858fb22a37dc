#include "divan/events/mailbox.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <utility>

#include "divan/events/test_stream.h"

namespace divan::events {
namespace {

EventPtr shared(std::string kind) { return std::make_shared<const Event>(event_of(std::move(kind))); }

/// The reference model: it keeps all events, and computes on demand which ones a mailbox would hold.
class ReferenceMailbox {
 public:
  explicit ReferenceMailbox(std::size_t max_events) : max_events_(max_events) {}

  void put(const std::string& text) {
    all_.push_back(text);
    while (all_.size() - first_kept_ > max_events_) ++first_kept_;
  }

  std::optional<std::string> take() {
    if (taken_ < first_kept_) {
      const auto missed = first_kept_ - std::exchange(taken_, first_kept_);
      return fmt::format("lagged({})", missed);
    }
    if (taken_ == all_.size()) return std::nullopt;
    first_kept_ = taken_ + 1;
    return all_[taken_++];
  }

 private:
  std::size_t max_events_;
  std::vector<std::string> all_;
  std::size_t taken_ = 0;
  std::size_t first_kept_ = 0;
};

RC_GTEST_PROP(Mailbox, BehavesAsTheReferenceModel, ()) {
  const auto max_events = *rc::gen::inRange<std::size_t>(0, 5);
  int notified = 0;
  Mailbox mailbox(1, {.max_events = max_events, .notify = [&] { ++notified; }});
  ReferenceMailbox reference(max_events);
  int expected_notified = 0;
  bool empty = true;
  int number = 0;
  for (const bool put : *rc::gen::container<std::vector<bool>>(rc::gen::arbitrary<bool>())) {
    if (put) {
      const auto text = std::to_string(++number);
      reference.put(text);
      if (mailbox.put(shared(text)).notify) mailbox.notify();
      expected_notified += std::exchange(empty, false) ? 1 : 0;
    } else {
      const auto expected = reference.take();
      const auto message = mailbox.take();
      RC_ASSERT((message ? std::optional(text_of(*message)) : std::nullopt) == expected);
    }
    // Test whether the reference is empty on a copy.
    auto copy = reference;
    empty = !copy.take();
    RC_ASSERT(notified == expected_notified);
  }
}

TEST(Mailbox, TheMarkerIsInThePositionOfTheDroppedEvents) {
  Mailbox mailbox(1, {.max_events = 2});
  const auto next = [&] { return text_of(*mailbox.take()); };
  mailbox.put(shared("1"));
  mailbox.put(shared("2"));
  EXPECT_EQ(next(), "1");
  mailbox.put(shared("3"));
  mailbox.put(shared("4"));
  EXPECT_EQ(next(), "lagged(1)");
  EXPECT_EQ(next(), "3");
  mailbox.put(shared("5"));
  mailbox.put(shared("6"));
  mailbox.put(shared("7"));
  EXPECT_EQ(next(), "lagged(2)");
  EXPECT_EQ(next(), "6");
  EXPECT_EQ(next(), "7");
  EXPECT_FALSE(mailbox.take());
}

TEST(Mailbox, BytesAreLimited) {
  const auto big = [](char c) {
    return std::make_shared<const Event>(Event{"big", {}, {}, std::string(400, c)});
  };
  Mailbox mailbox(1, {.max_bytes = 2 * (sizeof(Event) + 3 + 400)});
  mailbox.put(big('1'));
  mailbox.put(big('2'));
  EXPECT_EQ(mailbox.put(big('3')).dropped, 1u);
  EXPECT_EQ(mailbox.take()->lagged, 1u);
  EXPECT_EQ(mailbox.take()->event->payload[0], '2');
  EXPECT_EQ(mailbox.put(big('4')).dropped, 0u);
  // An event that exceeds the limit by itself is dropped, and so are the ones before it.
  EXPECT_EQ(mailbox.put(std::make_shared<const Event>(Event{{}, {}, {}, std::string(2000, 'x')})).dropped,
            3u);
  EXPECT_EQ(mailbox.take()->lagged, 3u);
  EXPECT_FALSE(mailbox.take());
  EXPECT_EQ(mailbox.put(big('5')).dropped, 0u);
  EXPECT_EQ(mailbox.take()->event->payload[0], '5');
}

TEST(Mailbox, WithMaxEventsZeroItOnlyCounts) {
  Mailbox mailbox(1, {.max_events = 0});
  for (int i = 0; i < 5; ++i) mailbox.put(shared("x"));
  EXPECT_EQ(mailbox.take()->lagged, 5u);
  EXPECT_FALSE(mailbox.take());
}

}  // namespace
}  // namespace divan::events
