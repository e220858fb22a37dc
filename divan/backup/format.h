// The file format of backups: all rows of a store as of one version, as a stream that can be written and read
// with little memory, and in which any damage is found. docs/storage.md describes it to the byte.
//
// A file is a head, and blocks: the header, blocks of rows in the order of their keys, and the end. Each
// block has a checksum that begins with that of the block before it. So the end's stands for everything: a
// block that is damaged, missing, moved or from another file is found, and so is a file that was cut short.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "divan/kv/store.h"

namespace divan::backup {

/// The format that this version writes, and the oldest that it reads. Raised with the format of the rows,
/// since the file says nothing else about what its rows mean.
inline constexpr int kFormat = 4;
inline constexpr int kOldestFormat = 3;

/// The highest version that a backup may say: beyond any store's, and far from where versions end.
inline constexpr kv::Version kMaxVersion = kv::Version{1} << 60;

/// The highest version that a running server lets itself be raised to, so that it can go on from there.
inline constexpr kv::Version kMaxRaisedVersion = kMaxVersion / 2;

/// What a backup says of itself.
struct Header {
  std::string divan_version;
  std::string server_uuid;
  std::int64_t created_ms = 0;  // since 1970
  bool shared = false;          // of a store on a cluster, which counts its versions by itself
};

/// Takes the next bytes of a backup; returns false to stop.
using ByteSink = std::function<bool(std::string_view bytes)>;

/// Writes a backup. Once the sink does not want to go on, it gets nothing more. Not thread-safe.
class Writer {
 public:
  Writer(const Header& header, ByteSink sink);

  /// The next row; keys come in their order. Returns true if the sink wants more.
  bool add(std::string_view key, std::string_view value);
  /// The end. `version` is that of the store, so that none of the rows has a later versionstamp.
  bool finish(kv::Version version);

 private:
  void write_block(char type, std::string_view payload);
  void flush_rows();

  ByteSink sink_;
  bool going_on_ = true;
  std::uint64_t checksum_ = 0;
  std::uint64_t rows_ = 0;
  std::string payload_;   // of the block of rows that is being filled
  std::string last_key_;  // in it
  std::string block_;
};

/// Reads a backup from pieces of any size. Every row that it gives out was checked, but only end() says that
/// nothing is missing. Not thread-safe.
class Parser {
 public:
  using HeaderVisitor = std::function<void(const Header&)>;
  using RowVisitor = std::function<void(std::string_view key, std::string_view value)>;

  /// Views are valid during the call.
  explicit Parser(RowVisitor on_row, HeaderVisitor on_header = {})
      : on_row_(std::move(on_row)), on_header_(std::move(on_header)) {}

  /// Throws Error 400 "bad_backup": it is no backup, of a newer format, or damaged.
  void feed(std::string_view bytes);

  struct End {
    std::uint64_t rows = 0;
    kv::Version version = 0;
  };
  /// What stands at the end. Throws Error 400 "bad_backup" if it has not come: the backup is cut short.
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
  std::string pending_;  // the beginning of a block that is not complete
  End end_;
};

}  // namespace divan::backup
