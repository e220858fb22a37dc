#include <gtest/gtest.h>

#include "divan/http/testing.h"

namespace divan::http {
namespace {

constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

// Counts what it sees.
struct Seen {
  std::mutex mutex;
  std::vector<int> statuses;
  int ended = 0;
};

class CountingObserver final : public ExchangeObserver {
 public:
  explicit CountingObserver(Seen& seen) : seen_(seen) {}
  ~CountingObserver() override {
    std::lock_guard lock(seen_.mutex);
    ++seen_.ended;
  }
  void responding(int status) override {
    std::lock_guard lock(seen_.mutex);
    seen_.statuses.push_back(status);
  }

 private:
  Seen& seen_;
};

// The statuses that an observer sees if `handler` handles a request.
std::vector<int> statuses_of(const std::function<void(Exchange&)>& handler) {
  Seen seen;
  testing::TestServer test([&](const std::shared_ptr<Exchange>& exchange) {
    exchange->set_observer(std::make_unique<CountingObserver>(seen));
    handler(*exchange);
  });
  testing::RawClient client(test.server);
  EXPECT_TRUE(client.send(kRequest));
  EXPECT_TRUE(testing::eventually([&] {
    std::lock_guard lock(seen.mutex);
    return seen.ended == 1;
  }));
  test.server.stop();
  return seen.statuses;
}

TEST(ExchangeObserver, SeesOneStatusAndTheEnd) {
  using Statuses = std::vector<int>;
  EXPECT_EQ(statuses_of([](Exchange& exchange) { exchange.respond({.status = 201}); }), Statuses{201});
  EXPECT_EQ(statuses_of([](Exchange& exchange) { exchange.fail(not_found("missing")); }), Statuses{404});
  EXPECT_EQ(statuses_of([](Exchange& exchange) {
              exchange.start({.status = 202});
              exchange.end();
            }),
            Statuses{202});
  EXPECT_EQ(statuses_of([](Exchange& exchange) {
              exchange.respond({.status = 200});
              exchange.respond({.status = 409});
            }),
            Statuses{200});
  EXPECT_EQ(statuses_of([](Exchange&) {}), Statuses{500});
  EXPECT_EQ(statuses_of([](Exchange&) { throw bad_request("no"); }), Statuses{400});
}

}  // namespace
}  // namespace divan::http
