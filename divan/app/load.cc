#include "divan/app/load.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cstdio>
#include <deque>
#include <fstream>
#include <iostream>
#include <span>
#include <thread>
#include <utility>

#include "divan/app/progress.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/mutex.h"
#include "divan/http/url.h"

namespace divan::app {
namespace {

// Maximum size of a request, below what servers accept.
constexpr std::size_t kMaxRequestBytes = 8 << 20;
constexpr std::size_t kMaxErrorsShown = 10;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

struct Line {
  std::uint64_t number = 0;  // from 1
  std::string document;
};

struct Batch {
  std::vector<Line> lines;
  std::size_t bytes = 0;         // of its documents
  std::uint64_t bytes_read = 0;  // of the file, at the end of this batch
};

using Lines = std::span<const Line>;

// Returns true if a request was rejected for its content, and nothing was written.
bool is_rejected_for_content(int status) { return status == 400 || status == 413; }

// Batches between the reader and the senders; bounded, to limit memory. Thread-safe. Uses a condition
// variable instead of a Notifier, since several threads wait.
class BatchQueue {
 public:
  explicit BatchQueue(std::size_t limit) : limit_(limit) {}

  bool push(Batch batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return batches_.size() < limit_ || closed_; });
    if (closed_) return false;
    batches_.push_back(std::move(batch));
    changed_.notify_all();
    return true;
  }
  std::optional<Batch> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !batches_.empty() || closed_; });
    if (batches_.empty()) return std::nullopt;
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    changed_.notify_all();
    return batch;
  }
  // Ends the queue; with `drop`, discards the waiting batches.
  void close(bool drop) {
    std::lock_guard lock(mutex_);
    closed_ = true;
    if (drop) batches_.clear();
    changed_.notify_all();
  }

 private:
  const std::size_t limit_;
  Mutex mutex_{MutexRank::load_queue, "BatchQueue::mutex_"};  // protects the members below
  ConditionVariable changed_;
  std::deque<Batch> batches_;
  bool closed_ = false;
};

class Loader {
 public:
  explicit Loader(const LoadOptions& options)
      : options_(options),
        target_("/" + http::percent_encode(options.database) + "/_bulk_docs"),
        queue_(2 * options.connections),
        progress_("Loading", "documents", clock_) {}

  int run() {
    create_database();
    std::vector<std::thread> senders;
    for (std::size_t i = 0; i < options_.connections; ++i) senders.emplace_back([this] { send(); });
    std::string failure;
    try {
      read();
    } catch (const Error& error) { failure = error.reason(); } catch (const std::exception& error) {
      failure = error.what();
    }
    queue_.close(!failure.empty());
    for (auto& sender : senders) sender.join();
    if (!options_.quiet) progress_.finish(written_);
    if (!failure.empty()) fail(failure);
    if (failed_ > 0) fmt::print(stderr, "{} documents were not written.\n", failed_);
    return failed_ == 0 && errors_shown_ == 0 ? 0 : 1;
  }

 private:
  void create_database() {
    http::Client client = connect(options_.connection);
    try {
      send_request(client, "PUT", "/" + http::percent_encode(options_.database));
    } catch (const Error& error) {
      if (error.name() != "file_exists") throw;
    }
  }

  void read() {
    std::ifstream file;
    if (options_.file != "-") {
      file.open(options_.file);
      if (!file) throw bad_request(fmt::format("Cannot read {}.", options_.file));
      struct stat status {};
      if (::stat(options_.file.c_str(), &status) == 0) size_ = static_cast<std::uint64_t>(status.st_size);
    }
    std::istream& in = options_.file == "-" ? std::cin : file;
    Batch batch;
    std::uint64_t bytes = 0, number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      bytes += line.size() + 1;
      if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      try {
        line = json::compact(line);
      } catch (const Error& error) {
        reject(number, error.reason());
        continue;
      }
      batch.bytes += line.size();
      batch.lines.push_back({number, std::move(line)});
      batch.bytes_read = bytes;
      if (batch.lines.size() < options_.batch && batch.bytes < kMaxRequestBytes) continue;
      if (!queue_.push(std::exchange(batch, {}))) return;
    }
    if (!batch.lines.empty()) queue_.push(std::move(batch));
  }

  void send() {
    try {
      http::Client client = connect(options_.connection);
      while (const auto batch = queue_.pop()) {
        send(client, batch->lines);
        show_progress(batch->bytes_read);
      }
    } catch (const std::exception& error) {
      fail(error.what());
      queue_.close(true);
    }
  }

  // If lines are rejected together, sends them in halves, so that only the offending ones are left out.
  void send(http::Client& client, Lines lines) {
    std::string body = "{\"docs\":[";
    for (const auto& line : lines) (body += line.document) += ',';
    body.back() = ']';
    body += '}';
    const auto response = client.request("POST", target_, body, {{"Content-Type", "application/json"}});
    if (!is_rejected_for_content(response.status)) {
      check_response(response);
      return count_written(lines, response.body);
    }
    if (lines.size() > 1) {
      send(client, lines.first(lines.size() / 2));
      return send(client, lines.subspan(lines.size() / 2));
    }
    try {
      check_response(response);
    } catch (const Error& error) { reject(lines.front().number, error.what()); }
  }

  void count_written(Lines lines, const std::string& response) {
    std::size_t failed = 0;
    if (response.find("\"error\"") != std::string::npos) {
      std::size_t number = 0;
      json::for_each_element(json::compact(response), [&](std::string_view result) {
        if (number < lines.size() && json::member(result, "error")) {
          ++failed;
          reject(lines[number].number, result);
        }
        ++number;
        return true;
      });
    }
    std::lock_guard lock(mutex_);
    written_ += static_cast<std::int64_t>(lines.size() - failed);
  }

  void show_progress(std::uint64_t bytes_read) {
    std::lock_guard lock(mutex_);
    bytes_done_ = std::max(bytes_done_, bytes_read);
    if (options_.quiet) return;
    progress_.show(size_ == 0 ? -1.0 : static_cast<double>(bytes_done_) / static_cast<double>(size_),
                   written_);
  }

  void reject(std::uint64_t line, std::string_view reason) {
    fail(fmt::format("{}, line {}: {}", options_.file == "-" ? "standard input" : options_.file, line,
                     reason));
    std::lock_guard lock(mutex_);
    ++failed_;
  }

  void fail(std::string_view what) {
    std::lock_guard lock(mutex_);
    if (errors_shown_++ < kMaxErrorsShown) fmt::print(stderr, "divan load: {}\n", what);
  }

  const LoadOptions options_;
  const std::string target_;
  SystemClock clock_;
  BatchQueue queue_;
  Mutex mutex_{MutexRank::load_progress, "Loader::mutex_"};  // protects the members below
  Progress progress_;
  std::uint64_t size_ = 0;
  std::uint64_t bytes_done_ = 0;
  std::int64_t written_ = 0;
  std::size_t failed_ = 0;
  std::size_t errors_shown_ = 0;
};

}  // namespace

int load(const LoadOptions& options) { return Loader(options).run(); }

}  // namespace divan::app
