#include "divan/jobs/damaged.h"

#include "divan/base/log.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/worker_batch.h"

namespace divan::jobs {
namespace {

using kv::tuple::Reader;

// The most entries that are read in one transaction.
constexpr std::size_t kReadAtOnce = 10'000;

// An index of a type whose keys have other elements before the job's id: integers, or (`v`) a versionstamp.
struct Index {
  std::string_view kind;
  std::string_view shape;
};
constexpr Index kIndexes[] = {
    {"pend", "iii"}, {"act", "iv"}, {"deadline", "ii"}, {"end", "ii"}, {"fin", "i"}};

// The rows of a job that were found without its header.
struct Remains {
  std::vector<std::string> entries;
  std::optional<State> state{};
};

class Search {
 public:
  Search(Queue& queue, kv::Database& store, std::string_view type, std::string_view id)
      : queue_(queue), store_(store), type_(type), id_(id) {}

  Remains run() {
    for (const auto& index : kIndexes) read_index(index);
    read_workers();
    // Names of ended jobs stay in batches.
    if (!found_.state) read_batches();
    return std::move(found_);
  }

 private:
  void read_index(const Index& index) {
    const JobKey prefix = JobKey(index.kind).string(type_);
    read(prefix.range(), [&](std::string_view key) {
      Reader reader(key.substr(prefix.key().size()));
      std::optional<std::int64_t> first;
      for (const char element : index.shape) {
        const auto number = element == 'i' ? reader.take_int() : std::nullopt;
        if (!number && (element == 'i' || !reader.take_versionstamp())) return;
        if (!first) first = number;
      }
      if (reader.take_string() != id_ || !reader.at_end()) return;
      found_.entries.emplace_back(key);
      if (index.kind == "pend") found_.state = State::pending;
      if (index.kind == "act" || index.kind == "deadline") found_.state = State::running;
      if (index.kind == "end" && *first >= 0 && *first < std::ssize(kStates))
        found_.state = static_cast<State>(*first);
    });
  }

  // The keys of worker jobs' entries begin with the names of the workers.
  void read_workers() {
    const JobKey prefix("by_worker");
    read(prefix.range(), [&](std::string_view key) {
      Reader reader(key.substr(prefix.key().size()));
      if (!reader.take_string() || !reader.take_string() || reader.take_string() != type_ ||
          reader.take_string() != id_ || !reader.at_end())
        return;
      found_.entries.emplace_back(key);
      found_.state = State::running;
    });
  }

  // The batch keeps the job's name and its count, so that it is not used again: another of the worker's jobs
  // may be the one that is counted.
  void read_batches() {
    store_.run([&](kv::Transaction& tx) {
      visit_batches(queue_, tx, JobKey("batch").range(), kv::Isolation::snapshot, [&](const auto& batch) {
        for (const auto& [type, id] : batch.jobs) {
          if (type == type_ && id == id_) found_.state = State::running;
        }
      });
    });
  }

  template <class Visit>
  void read(kv::KeyRange range, const Visit& visit) {
    for (bool more = true; more;) {
      std::vector<std::string> keys;
      store_.run([&](kv::Transaction& tx) {
        keys.clear();
        tx.scan(range, {.limit = kReadAtOnce, .isolation = kv::Isolation::snapshot},
                [&](std::string_view key, std::string_view) {
                  keys.emplace_back(key);
                  return true;
                });
      });
      for (const auto& key : keys) visit(std::string_view(key));
      more = keys.size() >= kReadAtOnce;
      if (more) range.begin = keys.back() + '\0';
    }
  }

  Queue& queue_;
  kv::Database& store_;
  const std::string_view type_, id_;
  Remains found_;
};

// Reads the state from a damaged header; nullopt if the state is damaged, too.
std::optional<State> state_in(std::string_view header) {
  Reader reader(header);
  const auto state = reader.take_int() ? reader.take_int() : std::nullopt;
  if (!state || *state < 0 || *state >= std::ssize(kStates)) return std::nullopt;
  return static_cast<State>(*state);
}

// The header of a job if it is damaged, else nullopt.
std::optional<std::string> damaged_header(kv::Transaction& tx, const std::string& key, std::string_view type,
                                          std::string_view id) {
  auto header = tx.get(key);
  if (!header || is_of_newer_layout(*header)) return std::nullopt;
  try {
    decode_job(type, id, *header);
    return std::nullopt;
  } catch (const Error&) { return header; }
}

}  // namespace

bool remove_damaged(Queue& queue, kv::Database& store, std::string_view type, std::string_view id) {
  const std::string key = JobKey("job").string(type).string(id).key();
  const auto header = store.run([&](kv::Transaction& tx) { return damaged_header(tx, key, type, id); });
  if (!header) return false;
  // A job whose header is damaged is not changed, so these entries stay valid.
  const Remains remains = Search(queue, store, type, id).run();
  const auto state = remains.state ? remains.state : state_in(*header);
  const bool removed = store.run([&](kv::Transaction& tx) {
    if (tx.get(key) != header) return false;
    tx.clear(key);
    for (const auto& entry : remains.entries) tx.clear(entry);
    for (const std::string_view kind : {"data", "next", "result", "hist"})
      tx.clear_range(JobKey(kind).string(type).string(id).range());
    if (state) tx.add(count_key(type, *state), -1);
    Job job;
    job.type = type;
    job.id = id;
    queue.removed(tx, job);
    return true;
  });
  if (removed)
    log::warning("Job {}/{}, whose header was damaged, was removed with {} entries.", type, id,
                 remains.entries.size());
  return removed;
}

}  // namespace divan::jobs
