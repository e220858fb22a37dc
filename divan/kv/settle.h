// How a commit is settled whose response is lost.
//
// A client that sent a commit and got no response, or commit_unknown_result, does not know whether the writes
// were made. Worse, they may be made later, when the client has done the transaction again. So on a store
// that may lose responses each commit of writes leaves a mark: a row whose key no other commit uses and whose
// value is the commit's versionstamp. The commit also has the mark's key among its reads.
// Transaction::commit() settles a lost response with another transaction, which reads the mark:
//
// - If it is there, the commit was made, and the value is its versionstamp.
// - If not, the transaction clears the key. Once that is committed, the lost commit conflicts with it and can
//   never be made: it was refused.
//
// Only if the store does not respond to that either, the outcome stays unknown. A mark costs one row more in
// a commit, and no round trip. One commit in 64 clears the marks that are too old to be read.
#pragma once

#include <cstdint>
#include <string>

namespace divan::kv {

/// The row that a commit leaves.
struct CommitMark {
  std::int64_t version;  // that the transaction read
  std::string key;       // the marks' prefix, packed version, packed id
};

}  // namespace divan::kv
