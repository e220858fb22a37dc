// Documents of which an index lacks rows: a function failed for them, or a limit kept rows out. The index
// keeps one record for each such document, beside its state, until the document changes to one whose rows are
// all there, or is deleted. docs/keyspace.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "divan/base/json.h"
#include "divan/index/index.h"

namespace divan::index {

/// What an index lacks of one document. A value type.
struct LeftOut {
  std::int64_t rows = 0;  // as far as known: not those that a function that failed would have emitted
  std::string reason;     // the first one, for people; write_left_out() cuts it to kMaxReasonBytes

  static constexpr std::size_t kMaxReasonBytes = 300;
  bool operator==(const LeftOut&) const = default;
};

/// What an index lacks in all.
struct LeftOutSummary {
  struct Example {
    std::string id;
    LeftOut left_out;
  };
  std::int64_t documents = 0;
  std::int64_t rows = 0;
  std::vector<Example> examples;  // the first ones by id

  /// As `_info` and `_ken` show it: an object with `documents`, `rows` and `examples`.
  void write(json::Writer& writer) const;
};

/// How many examples `_info` and `_ken` show.
inline constexpr std::size_t kLeftOutExamples = 5;

/// Reads a snapshot.
LeftOutSummary read_left_out(kv::Transaction& tx, const IndexKeys& keys,
                             std::size_t max_examples = kLeftOutExamples);

/// Whether a document has a record.
bool lacks_rows(kv::Transaction& tx, const IndexKeys& keys);

/// The counter of documents that have a record: without any, no document needs to be looked for.
std::string left_out_documents_key(const IndexKeys& keys);

/// The key of a document's record.
std::string left_out_key(const IndexKeys& keys, std::string_view id);

/// Throws an internal error if the record is damaged.
LeftOut decode_left_out(std::string_view value);

/// Writes a document's record in the place of the one it had, and counts.
void write_left_out(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                    const std::optional<LeftOut>& before, const std::optional<LeftOut>& after);

}  // namespace divan::index
