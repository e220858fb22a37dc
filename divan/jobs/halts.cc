#include "divan/jobs/halts.h"

#include "divan/base/log.h"
#include "divan/jobs/rows.h"
#include "divan/kv/tuple.h"

namespace divan::jobs {
namespace {

JobKey halts_of(std::string_view role, std::string_view worker) {
  return JobKey("halt").string(role).string(worker);
}

// The rows below the counter.
kv::KeyRange rows_of(const JobKey& halts) { return {halts.key() + '\0', halts.range().end}; }

}  // namespace

void add_halt(QueueCore& queue, kv::Transaction& tx, const Job& job, std::string_view reason) {
  if (job.worker_id.empty() || !queue.registry().is_held(tx, job.worker_role, job.worker_id)) return;
  const JobKey halts = halts_of(job.worker_role, job.worker_id);
  std::string value;
  kv::tuple::Packer(value).string(job.lock).string(reason);
  tx.set(JobKey(halts).integer(job.epoch).string(job.type).string(job.id).key(), value);
  tx.add(halts.key(), 1);
}

Halt decode_halt(std::string_view key, std::string_view value) {
  kv::tuple::Reader name(key), rest(value);
  const auto epoch = name.take_int();
  auto type = epoch ? name.take_string() : std::nullopt;
  auto id = type ? name.take_string() : std::nullopt;
  auto lock = rest.take_string();
  auto reason = lock ? rest.take_string() : std::nullopt;
  if (!id || !reason || !name.at_end() || !rest.at_end())
    throw internal_error("A row of ended attempts in the store is damaged.");
  return {{*std::move(type), *std::move(id), *std::move(lock)}, *epoch, *std::move(reason)};
}

std::vector<Halt> take_halts(kv::Transaction& tx, std::string_view role, std::string_view worker) {
  std::vector<Halt> taken;
  bool any = false;
  const JobKey halts = halts_of(role, worker);
  tx.scan(rows_of(halts), {}, [&](std::string_view key, std::string_view value) {
    any = true;
    try {
      taken.push_back(decode_halt(key.substr(halts.key().size()), value));
    } catch (const Error& error) { log::error("{} (At {})", error.reason(), kv::tuple::describe(key)); }
    return true;
  });
  if (any) tx.clear_range(rows_of(halts));
  return taken;
}

std::shared_ptr<kv::Watch> watch_halts(kv::Transaction& tx, std::string_view role, std::string_view worker) {
  return tx.try_watch(halts_of(role, worker).key());
}

void clear_halts(kv::Transaction& tx, std::string_view role, std::string_view worker) {
  const JobKey halts = halts_of(role, worker);
  tx.clear(halts.key());
  tx.clear_range(rows_of(halts));
}

}  // namespace divan::jobs
