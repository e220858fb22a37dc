// The body of POST /_replicate and a checkpoint, in two lines: an error, or a replication with an id that
// does not depend on the order of members, and a checkpoint that both sides have.
#include "divan/replicator/replication.h"

#include "divan/base/json.h"
#include "divan/replicator/checkpoint.h"
#include "fuzz/check.h"

using divan::fuzz::answers;
using divan::fuzz::check;
namespace json = divan::json;
namespace replicator = divan::replicator;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto line = text.substr(0, text.find('\n'));
  answers(400, [&] {
    const auto replication = replicator::Replication::parse(json::compact(line));
    const auto id = replication.id("server");
    check(replicator::base_of(id) == replication.base_id("server"));
    check(replication.source.is_remote() == replication.source.database.empty());
  });
  if (line.size() == text.size()) return 0;
  answers(400, [&] {
    const std::string second = json::compact(text.substr(line.size() + 1));
    const auto checkpoint = replicator::Checkpoint::parse(second);
    if (!checkpoint) return;
    check(replicator::common_sequence(checkpoint, checkpoint) == checkpoint->source_last_seq);
    check(checkpoint->history.size() <= replicator::kMaxHistory);
    const auto body = replicator::checkpoint_body({.id = "x"}, checkpoint->history);
    check(replicator::Checkpoint::parse(body)->session_id == "x");
  });
  return 0;
}
