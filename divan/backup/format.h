// The file format of backups: all rows of a store as of one version, as a stream that can be written and read
// with little memory, and in which any damage is detected. docs/storage.md specifies it.
//
// A file is a head and blocks: the header, blocks of rows in key order, and the end. The checksum of each
// block is seeded with that of the previous one, so the end's checksum covers the whole file: a block that is
// damaged, missing, moved or from another file is detected, and so is a truncated file.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "divan/kv/store.h"

namespace divan::backup {

/// The format that this version writes, and the oldest that it reads. Must be increased with the format of
/// the rows, since the file does not record that separately.
inline constexpr int kFormat = 12;
inline constexpr int kOldestFormat = 3;

/// The highest valid version of a backup: above any store's, and far below the limit of versions.
inline constexpr kv::Version kMaxVersion = kv::Version{1} << 60;

/// The highest version that a running server can be raised to, so that it can continue from there.
inline constexpr kv::Version kMaxRaisedVersion = kMaxVersion / 2;

/// The header of a backup.
struct Header {
  std::string divan_version;
  std::string server_uuid;
  std::int64_t created_ms = 0;  // since 1970
  bool shared = false;          // of a store on a cluster, whose versions do not depend on the clock
};

/// Receives the next bytes of a backup; returns false to stop.
using ByteSink = std::function<bool(std::string_view bytes)>;

/// Writes a backup. The sink is not called again after it has returned false. Not thread-safe.
class Writer {
 public:
  Writer(const Header& header, ByteSink sink);

  /// Adds the next row; keys must be in order. Returns false if the sink has stopped.
  bool add(std::string_view key, std::string_view value);
  /// Writes the end. `version` is the store's, so that no row has a later versionstamp.
  bool finish(kv::Version version);

 private:
  void write_block(char type, std::string_view payload);
  void flush_rows();

  ByteSink sink_;
  bool wants_more_ = true;  // the sink
  std::uint64_t checksum_ = 0;
  std::uint64_t rows_ = 0;
  std::string payload_;   // of the current block of rows
  std::string last_key_;  // in it
  std::string block_;
};

/// Parses a backup from pieces of any size. Each row is checked before it is passed on, but only end()
/// verifies that the backup is complete. Not thread-safe.
class Parser {
 public:
  using HeaderVisitor = std::function<void(const Header&)>;
  using RowVisitor = std::function<void(std::string_view key, std::string_view value)>;

  /// Views are valid during the call.
  explicit Parser(RowVisitor on_row, HeaderVisitor on_header = {})
      : on_row_(std::move(on_row)), on_header_(std::move(on_header)) {}

  /// Throws Error 400 "bad_backup" if the input is not a backup, of a newer format, or damaged.
  void feed(std::string_view bytes);

  struct End {
    std::uint64_t rows = 0;
    kv::Version version = 0;
  };
  /// The end of the backup. Throws Error 400 "bad_backup" if it has not been read: the backup is truncated.
  End end() const;

  /// Rows so far.
  std::uint64_t rows() const { return rows_; }

 private:
  void check_head(std::string_view head);
  std::size_t next_block(std::string_view bytes);
  void read_block(char type, std::string_view payload);
  void read_header(std::string_view payload);
  void read_rows(std::string_view payload);
  void read_end(std::string_view payload);

  enum class Expected { head, header, rows, nothing };

  RowVisitor on_row_;
  HeaderVisitor on_header_;
  Expected expected_ = Expected::head;
  std::uint64_t checksum_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t blocks_ = 0;
  std::string key_;      // of the last row
  std::string pending_;  // the beginning of an incomplete block
  End end_;
};

}  // namespace divan::backup
