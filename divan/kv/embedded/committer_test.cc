// Groups of commits, compared with the same commits one after the other.
#include "divan/kv/embedded/committer.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <map>

#include "divan/base/rng.h"
#include "divan/kv/embedded/rocksdb_options.h"
#include "divan/kv/embedded/snapshot.h"
#include "divan/kv/stamping.h"

namespace divan::kv::embedded {
namespace {

using Rows = std::map<std::string, std::string>;
using Requests = std::vector<std::shared_ptr<CommitRequest>>;

Rows rows(const Snapshot& snapshot) {
  Rows rows;
  const rocksdb::Slice lower, upper("\xff");
  const auto it = snapshot.iterate(&lower, &upper);
  for (it->SeekToFirst(); it->Valid(); it->Next()) rows[it->key().ToString()] = it->value().ToString();
  check_status(it->status());
  return rows;
}

// What a commit does to the rows.
void apply_commit(const CommitRequest& commit, Rows& rows) {
  const WriteMap& writes = commit.writes;
  const std::string stamp = versionstamp_bytes(commit.version, commit.order);
  for (const auto& [begin, end] : writes.cleared())
    rows.erase(rows.lower_bound(begin), rows.lower_bound(end));
  for (const auto& [key, point] : writes.points()) {
    std::optional<std::string> value;
    if (point.kind == PointWrite::Kind::set) value = point.value;
    if (point.kind == PointWrite::Kind::stamped_value)
      value = stamped(point.value, point.stamp_offset, stamp);
    if (const auto row = rows.find(key); point.kind == PointWrite::Kind::atomic && row != rows.end())
      value = row->second;
    for (const auto& operation : point.operations)
      value = apply_atomic(operation.op, value, operation.operand);
    if (value) rows[key] = *value;
    if (!value) rows.erase(key);
  }
  for (const auto& write : writes.stamped_keys()) {
    const std::string key = stamped(write.key, write.stamp_offset, stamp);
    const bool is_cleared =
        std::ranges::any_of(write.cleared, [&](const KeyRange& range) { return range.contains(key); });
    if (!is_cleared) rows[key] = write.value;
  }
}

class CommitGroups : public testing::TestWithParam<std::uint64_t> {
 protected:
  CommitGroups() {
    options_.env = env_.get();
    options_.directory = "/store";
    if (GetParam() % 2 == 0) options_.write_buffer_bytes = 64 << 10;  // several tables
    open();
  }
  void open() {
    committer_.reset();
    db_.reset();
    rocksdb::DB* db = nullptr;
    check_status(rocksdb::DB::Open(rocksdb_options(options_), options_.directory, &db));
    db_.reset(db);
    committer_ = std::make_unique<Committer>(*db_, clock_, CommitterOptions{false, 10, 128 << 20, 1});
  }

  std::string key() {
    std::string key = "k" + std::to_string(rng_.below(GetParam() % 3 == 0 ? 2'000 : 40));
    if (rng_.below(200) == 0) key.append(rng_.below(9'000), 'x');
    return key;
  }
  std::string number() { return static_cast<char>(rng_.below(4)) + std::string(7, '\0'); }

  void write_something(WriteMap& writes, Version read) {
    static constexpr AtomicOp kOps[] = {AtomicOp::add, AtomicOp::max, AtomicOp::min, AtomicOp::byte_max,
                                        AtomicOp::compare_and_clear};
    const std::string one = key(), other = key();
    switch (rng_.below(10)) {
      case 0: writes.clear(one); break;
      case 1: writes.clear_range(one, one + "5"); break;
      case 2:
        if (rng_.below(8) == 0) writes.clear_range(std::min(one, other), std::max(one, other));
        break;
      case 3:
      case 4: writes.atomic(kOps[rng_.below(std::size(kOps))], one, number()); break;
      case 5: writes.set_stamped_value(one, std::string(12, '\0'), 0); break;
      case 6: writes.add_stamped_key("k" + std::string(10, '\0') + one, 1, "stamped", read); break;
      case 7: writes.set(one, std::string(rng_.below(6'000), 'v')); break;
      default: writes.set(one, number()); break;
    }
  }

  std::shared_ptr<CommitRequest> request(Version read, std::counting_semaphore<>& done) {
    auto request = std::make_shared<CommitRequest>();
    request->read_version = read;
    for (auto writes = rng_.below(rng_.below(10) == 0 ? 200 : 8); writes > 0; --writes)
      write_something(request->writes, read);
    if (rng_.below(6) == 0) request->read_conflicts.push_back({key(), "kz"});
    request->done = [&done] { done.release(); };
    return request;
  }

  SeededRng rng_{GetParam()};
  SystemClock clock_;
  std::unique_ptr<rocksdb::Env> env_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<Committer> committer_;
};

TEST_P(CommitGroups, EqualSingleCommits) {
  Requests commits;
  std::vector<std::shared_ptr<const Snapshot>> snapshots;
  for (int burst = 0; burst < 60; ++burst) {
    std::counting_semaphore<> done{0};
    const Version read = committer_->latest()->version();
    Requests requests;
    for (auto count = 1 + rng_.below(40); count > 0; --count) requests.push_back(request(read, done));
    for (const auto& request : requests) committer_->start(request);
    for (std::size_t i = 0; i < requests.size(); ++i) done.acquire();
    std::ranges::copy_if(requests, std::back_inserter(commits), [](const auto& one) { return !one->error; });
    snapshots.push_back(committer_->latest());
  }
  std::ranges::sort(commits, {}, [](const auto& one) { return std::pair(one->version, one->order); });
  EXPECT_TRUE(std::ranges::any_of(commits, [](const auto& one) { return one->order > 0; }));
  Rows expected;
  auto commit = commits.begin();
  for (const auto& snapshot : snapshots) {
    for (; commit != commits.end() && (*commit)->version <= snapshot->version(); ++commit)
      apply_commit(**commit, expected);
    ASSERT_EQ(rows(*snapshot), expected);
  }
  EXPECT_EQ(commit, commits.end());
  snapshots.clear();
  open();
  EXPECT_EQ(rows(*committer_->latest()), expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CommitGroups, testing::Range<std::uint64_t>(1, 13));

}  // namespace
}  // namespace divan::kv::embedded
