// Documents whose rows are missing from an index, because a function failed or a limit was exceeded. The
// index has one record for each such document, beside its state, until the document is deleted or changed so
// that all of its rows are in the index. docs/keyspace.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "divan/base/json.h"
#include "divan/index/index.h"

namespace divan::index {

/// The missing rows of one document. A value type.
struct LeftOut {
  std::int64_t rows = 0;  // as far as known: without those that a failed function would have emitted
  std::string reason;     // the first one; write_left_out() truncates it to kMaxReasonBytes

  static constexpr std::size_t kMaxReasonBytes = 300;
  bool operator==(const LeftOut&) const = default;
};

/// The missing rows of an index.
struct LeftOutSummary {
  struct Example {
    std::string id;
    LeftOut left_out;
  };
  std::int64_t documents = 0;
  std::int64_t rows = 0;
  std::vector<Example> examples;  // the first ones by id

  /// Writes an object with `documents`, `rows` and `examples`, as in `_info` and `_ken`.
  void write(json::Writer& writer) const;
};

/// Number of examples in `_info` and `_ken`.
inline constexpr std::size_t kLeftOutExamples = 5;

/// Reads a snapshot.
LeftOutSummary read_left_out(kv::Transaction& tx, const IndexKeys& keys,
                             std::size_t max_examples = kLeftOutExamples);

/// Returns true if any document has a record.
bool lacks_rows(kv::Transaction& tx, const IndexKeys& keys);

/// The key of the counter of documents with a record: if it is zero, records need not be read.
std::string left_out_documents_key(const IndexKeys& keys);

/// The key of a document's record.
std::string left_out_key(const IndexKeys& keys, std::string_view id);

/// Throws an internal error if the record is damaged.
LeftOut decode_left_out(std::string_view value);

/// Replaces a document's record, and updates the counters.
void write_left_out(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                    const std::optional<LeftOut>& before, const std::optional<LeftOut>& after);

}  // namespace divan::index
