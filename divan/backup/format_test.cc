#include "divan/backup/format.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <map>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::backup {
namespace {

using Rows = std::map<std::string, std::string>;

const Header kHeader{"1.2.3", "0123456789abcdef0123456789abcdef", 1'700'000'000'000, true};

std::string written(const Rows& rows, kv::Version version = 7) {
  std::string bytes;
  Writer writer(kHeader, [&](std::string_view piece) {
    bytes += piece;
    return true;
  });
  for (const auto& [key, value] : rows) EXPECT_TRUE(writer.add(key, value));
  EXPECT_TRUE(writer.finish(version));
  return bytes;
}

struct Read {
  Rows rows;
  std::optional<Header> header;
  Parser::End end;
};

Read read(std::string_view bytes, std::size_t piece = SIZE_MAX) {
  Read result;
  Parser parser([&](std::string_view key, std::string_view value) { result.rows.emplace(key, value); },
                [&](const Header& header) { result.header = header; });
  for (std::size_t at = 0; at < bytes.size(); at += std::min(piece, bytes.size() - at)) {
    parser.feed(bytes.substr(at, piece));
  }
  result.end = parser.end();
  return result;
}

// Returns the error of parsing `bytes`; empty if there is none.
std::string fault(std::string_view bytes) {
  try {
    read(bytes);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.name(), "bad_backup");
    return error.reason();
  }
}

Rows some_rows() {
  Rows rows = {{"", "of the empty key"}, {std::string("\0\xff", 2), ""}};
  for (int i = 0; i < 3000; ++i) rows[fmt::format("prefix{}", i)] = std::string(i % 100, 'v');
  rows["prefix1-large"] = std::string(kv::kMaxValueBytes, 'l');
  rows[std::string(kv::kMaxKeyBytes, 'p')] = std::string(kv::kMaxValueBytes, 'm');
  return rows;
}

TEST(BackupFormat, RowsRoundTripInPiecesOfAnySize) {
  const Rows rows = some_rows();
  const std::string bytes = written(rows, 1234567890123);
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{13}, std::size_t{4096}, std::size_t{1} << 20, SIZE_MAX}) {
    const Read result = read(bytes, piece);
    EXPECT_EQ(result.rows, rows);
    EXPECT_EQ(result.end.rows, rows.size());
    EXPECT_EQ(result.end.version, 1234567890123);
    ASSERT_TRUE(result.header);
    EXPECT_EQ(result.header->divan_version, kHeader.divan_version);
    EXPECT_EQ(result.header->server_uuid, kHeader.server_uuid);
    EXPECT_EQ(result.header->created_ms, kHeader.created_ms);
    EXPECT_TRUE(result.header->shared);
  }
  EXPECT_TRUE(read(written({})).rows.empty());
}

// The format of docs/storage.md: these bytes must remain readable.
TEST(BackupFormat, Bytes) {
  std::string bytes;
  Writer writer({"1", "u", 5}, [&](std::string_view piece) {
    bytes += piece;
    return true;
  });
  writer.add("ab", "1");
  writer.add("ac", "");
  writer.finish(300);
  EXPECT_EQ(
      to_hex(bytes),
      "444956414e42414b0000000c"
      "480000002455d5413c61c369e07b22646976616e223a2231222c2275756964223a2275222c2263726561746564223a357d"
      "520000000a1d04b0a60e9c5bce00026162013101016300"
      "45000000035a265040ca0e8d2102ac02");
}

TEST(BackupFormat, TruncationAnywhereIsDetected) {
  const std::string bytes = written({{"a", "1"}, {"b", "2"}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(fault(bytes.substr(0, size)), testing::HasSubstr("truncated")) << size;
  }
  EXPECT_EQ(fault(bytes), "");
}

TEST(BackupFormat, AnyFlippedBitIsFound) {
  const std::string bytes = written({{"a", "1"}, {"b", "2"}});
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_NE(fault(damaged), "") << at;
    }
  }
}

// The positions of the blocks of a backup with many rows.
std::vector<std::size_t> blocks_of(std::string_view bytes) {
  std::vector<std::size_t> begins;
  for (std::size_t at = 12; at < bytes.size(); at += 13 + read_u32(bytes.substr(at + 1)))
    begins.push_back(at);
  return begins;
}

TEST(BackupFormat, MissingRepeatedAndForeignBlocksAreFound) {
  const std::string bytes = written(some_rows());
  const auto begins = blocks_of(bytes);
  ASSERT_GT(begins.size(), 4u);
  const auto block = [&](std::size_t i) { return bytes.substr(begins[i], begins[i + 1] - begins[i]); };
  const std::string wrong = "checksum of block";
  EXPECT_THAT(fault(bytes.substr(0, begins[2]) + bytes.substr(begins[3])), testing::HasSubstr(wrong));
  EXPECT_THAT(fault(bytes.substr(0, begins[2]) + block(1) + bytes.substr(begins[2])),
              testing::HasSubstr(wrong));
  EXPECT_THAT(fault(bytes.substr(0, begins[1]) + block(2) + block(1) + bytes.substr(begins[3])),
              testing::HasSubstr(wrong));
  EXPECT_THAT(fault(bytes + "x"), testing::HasSubstr("after its end"));
  EXPECT_THAT(fault(bytes + bytes), testing::HasSubstr("after its end"));
}

TEST(BackupFormat, OtherFilesAndFormatsAreNamed) {
  EXPECT_EQ(fault("PK\3\4 something else"), "The file is not a backup of Divan.");
  EXPECT_EQ(fault("{"), "The file is not a backup of Divan.");
  std::string other = written({});
  for (const int format : {kOldestFormat - 1, kFormat + 1}) {
    other[11] = static_cast<char>(format);
    EXPECT_THAT(fault(other), testing::HasSubstr(fmt::format("backup format {}", format)));
  }
}

// Written by the previous version.
TEST(BackupFormat, FormatThreeIsRead) {
  const Read result = read(*from_hex(
      "444956414e42414b00000003"
      "480000002443b9b22d5d6274187b22646976616e223a2231222c2275756964223a2275222c2263726561746564223a357d"
      "520000000abc9607847ee3619c00026162013101016300"
      "4500000003390d0537f774133e02ac02"));
  EXPECT_EQ(result.rows, (Rows{{"ab", "1"}, {"ac", ""}}));
  EXPECT_EQ(result.end.version, 300);
}

TEST(BackupFormat, RowsMustBeInOrder) {
  std::string bytes;
  Writer writer(kHeader, [&](std::string_view piece) {
    bytes += piece;
    return true;
  });
  // In two blocks, since the writer checks the order within a block.
  writer.add("b", std::string(kv::kMaxValueBytes, 'x'));
  writer.add("a", "");
  writer.finish(1);
  EXPECT_THAT(fault(bytes), testing::HasSubstr("not in order"));
}

TEST(BackupFormat, ASinkThatHasStoppedIsNotCalledAgain) {
  int pieces = 0;
  Writer writer(kHeader, [&](std::string_view) { return ++pieces < 3; });
  bool wants_more = true;
  for (int i = 0; i < 100'000 && wants_more; ++i) wants_more = writer.add(fmt::format("{:08}", i), "value");
  EXPECT_FALSE(wants_more);
  EXPECT_FALSE(writer.finish(1));
  EXPECT_EQ(pieces, 3);
}

}  // namespace
}  // namespace divan::backup
