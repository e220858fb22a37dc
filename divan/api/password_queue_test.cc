// The order in which passwords are checked if clients guess.
#include "divan/api/password_queue.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

namespace divan::api {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

struct PasswordQueueTest : testing::Test {
  ManualClock clock;
  PasswordQueueLimits limits;
  std::optional<PasswordQueue> made;
  std::vector<std::string> refused;  // "429 password"

  PasswordQueue& queue() {
    if (!made) made.emplace(clock, limits);
    return *made;
  }

  PasswordCheck check(const std::string& address, const std::string& name, const std::string& password) {
    return {.key = name + ":" + password,
            .address = address_key(address),
            .name = name_key(name),
            .password = password};
  }

  void take(const std::vector<PasswordQueue::Refusal>& refusals) {
    for (const auto& refusal : refusals) refusal.waiter.done(&refusal.error);
  }

  void add(const std::string& address, const std::string& name, const std::string& password,
           std::size_t bytes = 0, std::function<bool()> disconnected = {}) {
    take(queue().add(check(address, name, password),
                     {bytes, std::move(disconnected), [this, password](const Error* error) {
                        refused.push_back(fmt::format("{} {}", error->status(), password));
                      }}));
  }

  // Runs the next check; passwords that begin with "right" are right. Returns its password.
  std::string serve() {
    const auto next = queue().next();
    if (!next) return "";
    std::ignore = queue().finish(*next, next->password.starts_with("right"));
    return next->password;
  }

  std::vector<std::string> serve_all() {
    std::vector<std::string> served;
    for (auto password = serve(); !password.empty(); password = serve()) served.push_back(password);
    return served;
  }

  void fail(const std::string& address, const std::string& name, int times) {
    for (int i = 0; i < times; ++i) {
      add(address, name, fmt::format("guess {} {} {}", address, name, i));
      serve();
    }
  }
};

TEST_F(PasswordQueueTest, IdenticalChecksAreMerged) {
  for (int i = 0; i < 20; ++i) add("10.0.0.1", "ann", "right");
  EXPECT_EQ(queue().waiting(), 1u);
  const auto next = queue().next();
  ASSERT_TRUE(next);
  add("10.0.0.2", "ann", "right");  // joins the running one
  EXPECT_FALSE(queue().next());
  EXPECT_THAT(queue().finish(*next, true), SizeIs(21));
  EXPECT_FALSE(queue().next());
  EXPECT_EQ(queue().waiting(), 0u);
}

TEST_F(PasswordQueueTest, NewAddressesAreServedAlternately) {
  for (int i = 0; i < 4; ++i) add("10.0.0.1", fmt::format("user{}", i), fmt::format("right {}", i));
  EXPECT_EQ(serve(), "right 0");
  add("10.0.0.2", "ann", "right a");
  add("10.0.0.2", "bob", "right b");
  EXPECT_THAT(serve_all(), ElementsAre("right a", "right 1", "right b", "right 2", "right 3"));
}

TEST_F(PasswordQueueTest, NamesOfOneAddressAreServedAlternately) {
  for (const std::string name : {"ann", "bob"}) add("10.0.0.1", name, "right " + name);
  ASSERT_THAT(serve_all(), ElementsAre("right ann", "right bob"));
  for (const std::string password : {"right ann 1", "right ann 2"}) add("10.0.0.1", "ann", password);
  add("10.0.0.1", "bob", "right bob 1");
  EXPECT_THAT(serve_all(), ElementsAre("right ann 1", "right bob 1", "right ann 2"));
}

TEST_F(PasswordQueueTest, GuessersAreServedLast) {
  fail("10.0.0.66", "ann", 3);
  fail("10.0.0.67", "ann", 1);
  for (int i = 0; i < 5; ++i) add("10.0.0.66", "ann", fmt::format("guess {}", i));
  add("10.0.0.67", "ann", "less");
  add("10.0.0.1", "bob", "right b");
  add("10.0.0.2", "ann", "right a");  // the guessed name, from another address
  const auto served = serve_all();
  EXPECT_THAT(served, ElementsAre("right b", "right a", "less", "guess 0", "guess 1", "guess 2", "guess 3",
                                  "guess 4"));
}

// The failures of an address come from its own clients, those of a name possibly from others.
TEST_F(PasswordQueueTest, FailuresOfAnAddressTakePrecedenceOverThoseOfAName) {
  for (int i = 0; i < 10; ++i) fail(fmt::format("10.1.0.{}", i), "ann", 1);
  fail("10.0.0.66", "zoe", 1);
  add("10.0.0.66", "bob", "guess");
  add("10.0.0.1", "ann", "right");
  EXPECT_EQ(serve(), "right");
}

TEST_F(PasswordQueueTest, TheOwnerOfANameGuessedFromManyAddressesIsServed) {
  for (int i = 0; i < 100; ++i) fail(fmt::format("10.1.0.{}", i), "ann", 1);
  for (int i = 0; i < 100; ++i) add(fmt::format("10.1.0.{}", i), "ann", fmt::format("guess {}", i));
  add("10.0.0.1", "ann", "right");
  EXPECT_EQ(serve(), "right");
}

// Every guess comes from a new address: the owner's is known, and other names are not affected.
TEST_F(PasswordQueueTest, ANameGuessedFromFreshAddresses) {
  add("10.0.0.1", "ann", "right before");
  serve();
  for (int i = 0; i < 50; ++i) fail(fmt::format("10.1.0.{}", i), "ann", 1);
  for (int i = 0; i < 50; ++i) add(fmt::format("10.2.0.{}", i), "ann", fmt::format("guess {}", i));
  add("10.0.0.1", "ann", "right");
  add("10.0.0.9", "bob", "right b");
  EXPECT_EQ(serve(), "right b");
  EXPECT_EQ(serve(), "right");
}

// For example a reverse proxy or a NAT: one address for all.
TEST_F(PasswordQueueTest, GoodUsersWhoShareTheAddressOfAGuesser) {
  fail("10.0.0.1", "ann", 50);
  for (int i = 0; i < 40; ++i) add("10.0.0.1", "ann", fmt::format("guess {}", i));
  add("10.0.0.1", "bob", "right b");
  add("10.0.0.1", "ann", "right a");
  EXPECT_EQ(serve(), "right b");
  // The owner of the guessed name cannot be distinguished from the guesses, and is served in its turn.
  std::vector<std::string> served = serve_all();
  EXPECT_EQ(served.size(), 41u);
  EXPECT_EQ(served.back(), "right a");
  EXPECT_THAT(refused, IsEmpty());
}

TEST_F(PasswordQueueTest, AGuesserOfManyNamesAlternatesWithGoodUsersOfItsAddress) {
  for (int i = 0; i < 30; ++i) fail("10.0.0.1", fmt::format("name{}", i), 1);
  for (int i = 0; i < 30; ++i) add("10.0.0.1", fmt::format("name{}", i), "guess");
  add("10.0.0.1", "ann", "right");
  EXPECT_EQ(serve(), "right");
}

TEST_F(PasswordQueueTest, FailuresExpire) {
  fail("10.0.0.1", "ann", 3);
  clock.advance(limits.lifetime - seconds(1));
  fail("10.0.0.2", "bob", 1);
  add("10.0.0.1", "ann", "old");
  add("10.0.0.2", "bob", "new");
  clock.advance(seconds(1));
  EXPECT_THAT(serve_all(), ElementsAre("old", "new"));
}

TEST_F(PasswordQueueTest, AddressesOfOneNetworkAreMerged) {
  EXPECT_EQ(address_key("2001:db8:1:2::1"), address_key("2001:db8:1:2:3:4:5:6"));
  EXPECT_NE(address_key("2001:db8:1:2::1"), address_key("2001:db8:1:3::1"));
  EXPECT_EQ(address_key("::ffff:10.0.0.1"), address_key("10.0.0.1"));
  EXPECT_NE(address_key("10.0.0.1"), address_key("10.0.0.2"));
  fail("2001:db8::1", "ann", 2);
  add("2001:db8::2", "bob", "guess");
  add("2001:db9::1", "cid", "right");
  EXPECT_EQ(serve(), "right");
}

TEST_F(PasswordQueueTest, ASuspectLeavesAThreadToOthers) {
  fail("10.0.0.66", "ann", static_cast<int>(limits.suspect_failures));
  add("10.0.0.66", "ann", "guess a");
  add("10.0.0.66", "bob", "guess b");
  const auto first = queue().next();
  ASSERT_TRUE(first);
  EXPECT_FALSE(queue().next());
  add("10.0.0.1", "cid", "right");
  EXPECT_EQ(serve(), "right");
  std::ignore = queue().finish(*first, false);
  EXPECT_EQ(serve(), first->password == "guess a" ? "guess b" : "guess a");
}

TEST_F(PasswordQueueTest, IfTooManyWaitTheLastByTheRulesIsRefused) {
  limits.checks = 10;
  fail("10.0.0.66", "ann", 1);
  for (int i = 0; i < 10; ++i) add("10.0.0.66", "ann", fmt::format("guess {}", i));
  EXPECT_THAT(refused, IsEmpty());
  add("10.0.0.66", "ann", "guess 10");
  EXPECT_THAT(refused, ElementsAre("429 guess 10"));
  refused.clear();
  for (int i = 0; i < 10; ++i) add("10.0.0.1", fmt::format("user{}", i), fmt::format("right {}", i));
  EXPECT_THAT(refused,
              ElementsAre("429 guess 9", "429 guess 8", "429 guess 7", "429 guess 6", "429 guess 5",
                          "429 guess 4", "429 guess 3", "429 guess 2", "429 guess 1", "429 guess 0"));
  refused.clear();
  add("10.0.0.2", "user10", "right 10");
  EXPECT_THAT(refused, ElementsAre("503 right 10"));
  EXPECT_EQ(queue().waiting(), 10u);
}

TEST_F(PasswordQueueTest, TheMemoryOfWaitingRequestsIsBounded) {
  limits.bytes = 100;
  add("10.0.0.1", "ann", "right a", 150);  // may exceed the limit if it is the only one
  EXPECT_THAT(refused, IsEmpty());
  add("10.0.0.1", "ann", "right a", 1);
  EXPECT_THAT(refused, ElementsAre("503 right a"));
  EXPECT_EQ(serve(), "right a");
  EXPECT_EQ(queue().bytes(), 0u);
  refused.clear();
  add("10.0.0.1", "ann", "right a", 60);
  add("10.0.0.2", "bob", "right b", 40);
  add("10.0.0.3", "cid", "right c", 1);
  EXPECT_THAT(refused, ElementsAre("503 right c"));
  EXPECT_EQ(queue().bytes(), 100u);
}

TEST_F(PasswordQueueTest, AWaitTimesOut) {
  add("10.0.0.1", "ann", "right a");
  clock.advance(seconds(1));
  add("10.0.0.2", "bob", "right b");
  const auto running = queue().next();
  clock.advance(limits.wait - seconds(1));
  take(queue().expire());
  EXPECT_THAT(refused, IsEmpty());  // the running one continues
  clock.advance(seconds(1));
  take(queue().expire());
  EXPECT_THAT(refused, ElementsAre("503 right b"));
  EXPECT_THAT(queue().finish(*running, true), SizeIs(1));
}

TEST_F(PasswordQueueTest, DisconnectedClientsAreNotServed) {
  bool disconnected = false;
  add("10.0.0.1", "ann", "right a", 10, [&] { return disconnected; });
  add("10.0.0.1", "ann", "right a", 10);
  add("10.0.0.1", "bob", "right b", 10, [&] { return disconnected; });
  disconnected = true;
  take(queue().expire());
  EXPECT_EQ(queue().waiting(), 1u);
  EXPECT_EQ(queue().bytes(), 10u);
  const auto next = queue().next();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->password, "right a");
  EXPECT_THAT(queue().finish(*next, true), SizeIs(1));
  EXPECT_THAT(refused, IsEmpty());
}

TEST_F(PasswordQueueTest, AnIdenticalCheckIsRankedByItsBestAddress) {
  fail("10.0.0.66", "zoe", 1);
  add("10.0.0.66", "ann", "right a");
  add("10.0.0.1", "bob", "right b");
  add("10.0.0.2", "ann", "right a");
  EXPECT_EQ(serve(), "right a");
}

TEST_F(PasswordQueueTest, TablesAreBounded) {
  limits.remembered = 10;
  limits.checks = 10;
  for (int i = 0; i < 1000; ++i) fail(fmt::format("10.0.{}.{}", i / 250, i % 250), std::to_string(i), 1);
  for (int i = 0; i < 1000; ++i)
    add(fmt::format("10.1.{}.{}", i / 250, i % 250), std::to_string(i), fmt::format("right {}", i));
  EXPECT_EQ(queue().waiting(), 10u);
  EXPECT_THAT(serve_all(), SizeIs(10));
}

}  // namespace
}  // namespace divan::api
