#include "sim/attempt_note.h"

#include <fmt/core.h>

#include "divan/jobs/rows.h"
#include "divan/kv/tuple_packer.h"

namespace divan::sim {

void note(kv::Transaction& tx, const AttemptNote& attempt, const std::string& token) {
  std::string key = note_prefix("attempt");
  kv::tuple::Packer(key).string(token).string(attempt.type).string(attempt.job).string(attempt.lock);
  tx.add(key, 1);
}

// The attempt must have had the job before the commit.
void AttemptInvariants::check(const Commit& commit, const Rows& rows) {
  for_each_note(world_, commit, "attempt", [&](kv::tuple::Reader& reader) {
    reader.take_string();
    const auto type = reader.take_string().value();
    const auto id = reader.take_string().value();
    const auto lock = reader.take_string().value();
    world_.count("writes of attempts: " + type);
    const std::string key = jobs::JobKey("job").string(type).string(id).key();
    std::optional<std::string> row;
    if (const Change* change = commit.find(key)) {
      row = change->before;
    } else if (const auto present = rows.find(key); present != rows.end()) {
      row = present->second;
    }
    const auto job = row ? std::optional(jobs::decode_job(type, id, *row)) : std::nullopt;
    if (!job || job->state != jobs::State::running || job->lock != lock)
      world_.fail(fmt::format("Job {}/{}: {} has written, and does not have the job ({}).", type, id, lock,
                              job ? job->lock : "it is gone"));
  });
}

}  // namespace divan::sim
