#include "divan/api/job_feed.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/base/json.h"

namespace divan::api {
namespace {

// Size of the digest of a row.
constexpr std::size_t kSequenceBytes = 8;

// The state of one job as a feed: a row for each change. A row's sequence is a digest of the row: a feed
// whose `since` has it begins with the first different state.
class JobSource final : public WatchingSource {
 public:
  JobSource(const Context& context, std::string type, std::string id, std::string since)
      : context_(context), type_(std::move(type)), id_(std::move(id)), last_(std::move(since)) {}

  bool read(std::size_t, std::vector<FeedRow>& rows) override {
    if (ended_) return false;
    std::string row;
    context_.store.run([&](kv::Transaction& tx) {
      row.clear();
      const auto job = context_.queue.find(tx, type_, id_, kv::Isolation::snapshot);
      if (!job && last_.empty()) throw not_found("No such job.");
      ended_ = !job || (job->state != jobs::State::pending && job->state != jobs::State::running);
      if (!job) {
        row = fmt::format(R"({{"type":{},"id":{},"state":"not_found"}})", json::quoted(type_),
                          json::quoted(id_));
        return;
      }
      row = jobs::job_json(
          *job, {.data = context_.queue.data(tx, *job), .result = context_.queue.result(tx, *job)});
      watch([&] { return context_.queue.watch(tx, type_, id_); });
    });
    wait();
    std::string seq = to_hex(sha256(row, kSequenceBytes));
    if (seq == last_) return false;
    last_ = seq;
    rows.push_back({std::move(row), std::move(seq)});
    return false;
  }

  std::string last_seq() const override { return last_; }
  bool ended() const override { return ended_; }

 private:
  const Context& context_;
  const std::string type_;
  const std::string id_;
  std::string last_;  // the sequence of the client's last row
  bool ended_ = false;
};

}  // namespace

Async<RouteResult> follow_job(const Context& context, Call& call, const std::string& type,
                              const std::string& id, FeedOptions options) {
  context.store.run([&](kv::Transaction& tx) {
    if (!context.queue.find(tx, type, id)) throw not_found("No such job.");
  });
  return respond_with_feed(context, call,
                           std::make_unique<JobSource>(context, type, id, call.text("since").value_or("")),
                           std::move(options));
}

}  // namespace divan::api
