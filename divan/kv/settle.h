// How the outcome of a commit is found if its response is lost.
//
// A client that sent a commit and got no response, or commit_unknown_result, does not know whether the writes
// were made. They may even be made later, after the client has run the transaction again. So on a store that
// may lose responses each commit of writes adds a commit record: a row whose key no other commit uses and
// whose value is the commit's versionstamp. The commit also reads that key. If its response is lost,
// Transaction::commit() settles the outcome with another transaction, which reads the record:
//
// - If the record exists, the commit was made, and the value is its versionstamp.
// - If not, the transaction clears the key. Once that is committed, the lost commit conflicts with it and can
//   never be made: it was refused.
//
// The outcome stays unknown only if the store does not respond to that either, or if the record is so old
// that it may have been cleared. A record costs one row more in a commit, and no round trip. One commit in 64
// clears the records that are too old to be read.
#pragma once

#include <cstdint>
#include <string>

namespace divan::kv {

struct CommitRecord {
  std::int64_t version;  // the read version of its transaction
  std::string key;       // the records' prefix, packed version, packed id
};

}  // namespace divan::kv
