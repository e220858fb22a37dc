// Measures the server's CPU time for a small keep-alive request. A client in the same process sends on all of
// 64 connections and then reads from all; the client's thread is not counted. Sending on the loopback device
// includes the kernel's work of receiving, so the server is charged for the client's side of its responses.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>

#include "divan/base/thread_pool.h"
#include "divan/http/testing.h"

namespace divan::http {
namespace {

constexpr std::size_t kConnections = 64;
constexpr std::string_view kRequest =
    "GET /db/document HTTP/1.1\r\nHost: 127.0.0.1:5984\r\nUser-Agent: bench\r\nAccept: application/json\r\n"
    "Authorization: Basic YWRtaW46c2VjcmV0\r\n\r\n";
constexpr std::string_view kBody =
    "{\"_id\":\"document\",\"_rev\":\"1-967a00dff5e02add41819138abb3284d\",\"n\":1}\n";

double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Response make_response() {
  return {200,
          {{"Content-Type", "application/json"}, {"ETag", "\"1-967a00dff5e02add41819138abb3284d\""}},
          std::string(kBody)};
}

// The CPU time of all threads except the benchmark's own, which is the client.
double server_seconds() { return cpu_seconds(RUSAGE_SELF) - cpu_seconds(RUSAGE_THREAD); }

void drive(benchmark::State& state, const Handler& handler) {
  auto options = testing::options();
  options.threads = static_cast<unsigned>(state.range(0));
  testing::TestServer test(handler, options);
  std::vector<std::unique_ptr<ClientSocket>> sockets;
  for (std::size_t i = 0; i < kConnections; ++i) {
    sockets.push_back(std::make_unique<ClientSocket>("127.0.0.1", test.server.port(), testing::kPatience,
                                                     testing::kPatience));
  }
  char bytes[4096];
  const auto round = [&] {
    for (auto& socket : sockets) socket->send(kRequest);
    for (auto& socket : sockets) {
      std::size_t size = 0;
      while (!std::string_view(bytes, size).ends_with(kBody)) {
        const auto more = socket->receive(std::span(bytes).subspan(size)).value_or(0);
        if (more == 0) return state.SkipWithError("the server has closed a connection");
        size += more;
      }
    }
  };
  round();
  const auto before = server_seconds();
  for (auto _ : state) round();
  const auto requests = static_cast<double>(state.iterations()) * kConnections;
  state.counters["server_us_per_request"] = (server_seconds() - before) * 1e6 / requests;
  state.counters["requests/s"] = benchmark::Counter(requests, benchmark::Counter::kIsRate);
}

void BM_RespondOnTheIoThread(benchmark::State& state) {
  drive(state, [](const std::shared_ptr<Exchange>& exchange) { exchange->respond(make_response()); });
}
BENCHMARK(BM_RespondOnTheIoThread)->Arg(1)->Arg(2)->UseRealTime()->MinTime(3);

void BM_RespondThroughAThreadPool(benchmark::State& state) {
  ThreadPool pool("bench", 2, 10'000);
  drive(state, [&](std::shared_ptr<Exchange> exchange) {
    pool.submit([exchange = std::move(exchange)] { exchange->respond(make_response()); });
  });
}
BENCHMARK(BM_RespondThroughAThreadPool)->Arg(1)->Arg(2)->UseRealTime()->MinTime(3);

// Measures the heap memory of an idle open stream, without the kernel's socket buffers.
void BM_IdleStreams(benchmark::State& state) {
  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> streams;
  auto options = testing::options();
  options.stop_timeout = {};
  testing::TestServer test(
      [&](std::shared_ptr<Exchange> exchange) {
        exchange->start({200, {{"Content-Type", "application/json"}}, "\n"});
        exchange->on_close([] {});
        std::lock_guard lock(mutex);
        streams.push_back(std::move(exchange));
      },
      options);
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<std::unique_ptr<ClientSocket>> sockets;
  sockets.reserve(count);
  streams.reserve(count);
  const auto before = mallinfo2().uordblks;
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i) {
      sockets.push_back(std::make_unique<ClientSocket>("127.0.0.1", test.server.port(), testing::kPatience,
                                                       testing::kPatience));
      sockets.back()->send(kRequest);
      char bytes[1024];
      sockets.back()->receive(bytes);
    }
  }
  state.counters["heap_bytes_per_stream"] =
      static_cast<double>(mallinfo2().uordblks - before) / static_cast<double>(count);
  test.server.stop();
}
BENCHMARK(BM_IdleStreams)->Arg(400)->Iterations(1);

}  // namespace
}  // namespace divan::http
