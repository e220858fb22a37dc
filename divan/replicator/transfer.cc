#include "divan/replicator/transfer.h"

#include <algorithm>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/http/serializer.h"

namespace divan::replicator {
namespace {

// Changes in a batch: the first, so that few changes are fast, and the largest.
constexpr std::size_t kFirstBatch = 100;
constexpr std::size_t kMaxShownSequence = 1'000;
constexpr std::size_t kLargestBatch = 2'000;

}  // namespace

Transfer::Transfer(Peer& source, Peer& target, const Replication& replication, std::string id,
                   const Clock& clock, Rng& rng)
    : source_{source},
      target_{target},
      replication_(replication),
      id_(std::move(id)),
      clock_(clock),
      batch_(kFirstBatch) {
  session_.id = rng.uuid();
}

std::string Transfer::now() const { return http::http_date(clock_.wall_ms() / 1000); }

void Transfer::read_checkpoint(Side& side) const {
  const auto stored = side.peer.read_checkpoint(id_);
  if (!stored) return;
  side.revision = stored->revision;
  side.found = Checkpoint::parse(stored->body);
}

void Transfer::begin() {
  session_.start_time = session_.end_time = now();
  source_.peer.update_sequence();
  if (replication_.create_target) target_.peer.create(replication_.create_target_params);
  target_.peer.update_sequence();
  std::string begin = "0";
  if (replication_.use_checkpoints) {
    read_checkpoint(source_);
    read_checkpoint(target_);
    const auto common = common_sequence(source_.found, target_.found);
    if (common) {
      begin = *common;
      earlier_ = source_.found->history;
    }
  }
  if (replication_.since_seq) begin = *replication_.since_seq;
  session_.start_last_seq = session_.end_last_seq = checkpointed_ = begin;
  checkpoint_at_ = clock_.now() + replication_.checkpoint_interval;
}

bool Transfer::step() {
  const auto page = source_.peer.changes(sequence(), batch_, replication_);
  for (const auto& document : page.documents)
    session_.missing_checked += static_cast<std::int64_t>(document.revisions.size());
  if (!page.documents.empty()) {
    auto missing = target_.peer.missing(page.documents);
    for (const auto& document : missing)
      session_.missing_found += static_cast<std::int64_t>(document.revisions.size());
    const Session before = session_;
    try {
      copy(missing);
    } catch (const Error& error) {
      if (error.status() != 412) throw;
      // A revision of the target whose attachments are not sent was replaced meanwhile: send all.
      session_ = before;
      for (auto& document : missing) document.ancestors.clear();
      copy(missing);
    }
  }
  if (!page.is_last && page.last_sequence == sequence())
    throw Error(502, "bad_response", "The source's sequence does not advance.");
  session_.end_last_seq = page.last_sequence;
  pending_ = page.is_last ? 0 : page.pending;
  batch_ = std::min(kLargestBatch, 2 * batch_);
  if (clock_.now() >= checkpoint_at_) write_checkpoint();
  return !page.is_last;
}

// The next checkpoint expects the revision of this one: so it is noticed when the target is deleted and
// created again before there is any other.
void Transfer::mark_target() {
  if (replication_.use_checkpoints && !target_.revision)
    write_checkpoint(target_, checkpoint_body(session_, earlier_));
}

void Transfer::copy(std::span<const MissingRevisions> missing) {
  if (!missing.empty()) mark_target();
  std::optional<MissingRevisions> begun;  // the first one, if a part of it was read
  while (!missing.empty()) {
    const auto read = source_.peer.read(begun ? std::span<const MissingRevisions>(&*begun, 1) : missing);
    auto refused = read.documents.empty() ? 0 : target_.peer.write(read.documents);
    for (const auto& document : read.large) {
      if (!target_.peer.write_large(document, source_.peer)) ++refused;
    }
    const auto count = read.documents.size() + read.large.size();
    session_.docs_read += static_cast<std::int64_t>(count);
    session_.docs_written += static_cast<std::int64_t>(count - refused);
    session_.doc_write_failures += static_cast<std::int64_t>(refused + read.failures);
    missing = missing.subspan(read.taken);
    begun.reset();
    if (!read.rest.empty()) begun = {missing.front().id, read.rest, missing.front().ancestors};
  }
}

// Both sides have the same body. If the second write does not take place, the next session goes on from the
// last sequence that both have.
void Transfer::write_checkpoint() {
  checkpoint_at_ = clock_.now() + replication_.checkpoint_interval;
  session_.end_time = now();
  if (!replication_.use_checkpoints || checkpointed_ == sequence()) return;
  const auto body = checkpoint_body(session_, earlier_);
  for (Side* side : {&source_, &target_}) write_checkpoint(*side, body);
  checkpointed_ = sequence();
}

// A conflict: the response to an earlier write was lost, or another program has written.
void Transfer::write_checkpoint(Side& side, std::string_view body) const {
  try {
    side.revision = side.peer.write_checkpoint(id_, side.revision, body);
  } catch (const Error& error) {
    if (error.status() != 409) throw;
    const auto stored = side.peer.read_checkpoint(id_);
    if (!stored)
      throw Error(503, "checkpoint_lost",
                  "A database was deleted or created again: what it lacks is unknown.");
    side.revision = side.peer.write_checkpoint(id_, stored->revision, body);
  }
}

std::string Transfer::result_json() const {
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("ok").boolean(true);
  if (session_.start_last_seq == session_.end_last_seq) writer.key("no_changes").boolean(true);
  writer.key("session_id").string(session_.id).key("source_last_seq").string(session_.end_last_seq);
  writer.key("replication_id_version").number(kIdVersion).key("history").begin_array().raw(session_.json());
  for (std::size_t i = 0; i < earlier_.size() && i + 1 < kMaxHistory; ++i) writer.raw(earlier_[i]);
  writer.end_array().end_object();
  return out;
}

std::string Transfer::stats_json() const {
  std::string stats = progress_json();
  stats.back() = ',';
  return stats + "\"start_time\":" + json::quoted(session_.start_time) + "}";
}

std::string Transfer::progress_json() const {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  writer.key("revisions_checked").number(session_.missing_checked);
  writer.key("missing_revisions_found").number(session_.missing_found);
  writer.key("docs_read").number(session_.docs_read).key("docs_written").number(session_.docs_written);
  writer.key("doc_write_failures").number(session_.doc_write_failures).key("changes_pending");
  pending_ ? writer.number(*pending_) : writer.null();
  // Those of other servers may be long.
  const auto shown = [](std::string_view sequence) { return shown_text(sequence, kMaxShownSequence); };
  writer.key("source_seq").string(shown(session_.end_last_seq));
  writer.key("through_seq").string(shown(session_.end_last_seq));
  writer.key("checkpointed_source_seq").string(shown(checkpointed_));
  writer.key("updated_on").number(clock_.wall_ms() / 1000).end_object();
  return out;
}

}  // namespace divan::replicator
