// The body of POST /_replicate, or a document, and a checkpoint, in two lines: an error, or a replication
// with an id that does not depend on the order of members, and a checkpoint that both sides have. The whole
// is also a row of the store.
#include "divan/replicator/replication.h"

#include "divan/base/json.h"
#include "divan/replicator/checkpoint.h"
#include "divan/replicator/document_rows.h"
#include "divan/replicator/replication_document.h"
#include "fuzz/check.h"

using divan::fuzz::answers;
using divan::fuzz::check;
namespace json = divan::json;
namespace replicator = divan::replicator;

namespace {

// "{}" for text that is not an object.
std::string compact_object(std::string_view text) {
  try {
    auto object = json::compact(text);
    return object.starts_with('{') ? object : "{}";
  } catch (const divan::Error&) { return "{}"; }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto line = text.substr(0, text.find('\n'));
  answers(400, [&] {
    const auto replication = replicator::Replication::parse(json::compact(line));
    const auto id = replication.id("server");
    check(replicator::base_of(id) == replication.base_id("server"));
    check(replication.source.is_remote() == replication.source.database.empty());
  });
  answers(403, [&] {
    divan::docs::IncomingDocument document;
    document.id = "x";
    document.body = compact_object(line);
    replicator::check_document(document, false);
    if (replicator::outcome_of(document.body)) return;
    const auto job = replicator::job_of_document("db", "x", document.body);
    check(job.replication.source.is_remote() && job.replication.target.is_remote());
    check(job.replication.user.name.empty());
    check(replicator::ReplicationJob::parse(job.to_json()).to_json() == job.to_json());
  });
  divan::kv::Findings findings;
  replicator::rows::Check(findings).row(line, text.substr(std::min(line.size() + 1, text.size())));
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
