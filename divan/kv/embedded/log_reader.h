// Reads the records of RocksDB's logs.
//
// The write-ahead log and the manifest have one format ("Write Ahead Log File Format" in RocksDB's
// documentation): blocks of 32 KiB of parts, each with a checksum, a length and a type; a record that does
// not fit into the rest of a block continues in the next.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace divan::kv::embedded {

struct LogRecord {
  std::size_t at;    // where it begins in the file
  std::string head;  // its first bytes, up to kLogRecordHead
};

inline constexpr std::size_t kLogRecordHead = 256;

/// Accepts any bytes as a log. Not thread-safe. The log must outlive it.
class LogReader {
 public:
  explicit LogReader(std::string_view log, std::size_t at = 0) : log_(log), at_(at) {}

  /// The next record; nullopt at the end of the log, or if the record is damaged or incomplete.
  std::optional<LogRecord> next();

  /// The end of the records that have been read.
  std::size_t at() const { return at_; }
  bool at_end() const { return at_ >= log_.size(); }

  /// Returns true if a complete record begins anywhere after at(). Only records whose head `is_likely` count:
  /// bytes that look like a record may be a part of one that a client has written.
  bool goes_on(const std::function<bool(std::string_view head)>& is_likely) const;

 private:
  std::string_view log_;
  std::size_t at_;
};

}  // namespace divan::kv::embedded
