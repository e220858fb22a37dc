// Copies what the target lacks, batch by batch, with checkpoints
// (https://docs.couchdb.org/en/stable/replication/protocol.html).
#pragma once

#include "divan/base/clock.h"
#include "divan/base/rng.h"
#include "divan/replicator/checkpoint.h"
#include "divan/replicator/peer.h"

namespace divan::replicator {

/// One session of a replication. Not thread-safe; calls block, and throw what the peers throw. After an error
/// it must not be used any more: a new session goes on from the last checkpoint.
class Transfer {
 public:
  /// All arguments must outlive it. `id`: Replication::base_id().
  Transfer(Peer& source, Peer& target, const Replication& replication, std::string id, const Clock& clock,
           Rng& rng);

  /// Creates the target if the replication says so, and finds the sequence to begin with.
  void begin();

  /// Copies the next batch; returns false if there were no further changes. Writes a checkpoint if it is due.
  bool step();

  /// Writes a checkpoint unless the last one has this sequence.
  void write_checkpoint();

  const Session& session() const { return session_; }
  /// The sequence up to which everything is in the target.
  const std::string& sequence() const { return session_.end_last_seq; }
  const std::string& checkpointed_sequence() const { return checkpointed_; }
  /// When step() writes the next checkpoint.
  MonotonicTime checkpoint_due() const { return checkpoint_at_; }

  /// The response to POST /_replicate, a JSON object.
  std::string result_json() const;
  /// How far it is, a JSON object.
  std::string progress_json() const;
  /// The same, with `start_time`, for the document of a completed replication.
  std::string stats_json() const;

 private:
  struct Side {
    Peer& peer;
    std::optional<std::string> revision{};  // of its checkpoint
    std::optional<Checkpoint> found{};
  };
  void mark_target();
  void copy(std::span<const MissingRevisions> missing);
  void read_checkpoint(Side& side) const;
  void write_checkpoint(Side& side, std::string_view body) const;
  std::string now() const;

  Side source_;
  Side target_;
  const Replication& replication_;
  const std::string id_;
  const Clock& clock_;

  Session session_;
  std::vector<std::string> earlier_;  // sessions
  std::string checkpointed_;
  MonotonicTime checkpoint_at_{};
  std::optional<std::int64_t> pending_;
  std::size_t batch_;  // changes
};

}  // namespace divan::replicator
