#include "divan/kv/embedded/log_check.h"

#include <boost/crc.hpp>

#include "divan/kv/embedded/snapshot.h"
#include "divan/kv/error.h"

namespace divan::kv::embedded {
namespace {

constexpr std::size_t kBlock = 32'768;
constexpr std::size_t kHeader = 7;  // checksum, length, type

enum class RecordType : unsigned char { zero = 0, full = 1, first = 2, middle = 3, last = 4 };

using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// RocksDB stores checksums of data that may hold checksums in another form.
std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

// A physical record that is whole by its checksum.
struct Record {
  std::size_t at;
  std::size_t end;
  RecordType type;
};

std::optional<Record> record_at(std::string_view log, std::size_t at) {
  const std::size_t block_end = std::min(at / kBlock * kBlock + kBlock, log.size());
  if (at + kHeader > block_end) return std::nullopt;
  const std::size_t length = little_endian(log.substr(at + 4, 2));
  const auto type = static_cast<RecordType>(log[at + 6]);
  const std::size_t end = at + kHeader + length;
  if (end > block_end || type < RecordType::full || type > RecordType::last) return std::nullopt;
  Crc32c crc;
  crc.process_bytes(log.data() + at + 6, 1 + length);
  if (masked(crc.checksum()) != little_endian(log.substr(at, 4))) return std::nullopt;
  return Record{at, end, type};
}

// The first whole record that begins at `at` or behind it. The length of a damaged one may be what is
// damaged, so that the next may begin anywhere.
std::optional<Record> next_record(std::string_view log, std::size_t at) {
  for (; at + kHeader <= log.size(); ++at) {
    if (const auto record = record_at(log, at)) return record;
  }
  return std::nullopt;
}

// Where the record behind one that ends at `end` begins: what is left of a block may be too little for one.
std::size_t begin_behind(std::size_t end) {
  return kBlock - end % kBlock < kHeader ? end + kBlock - end % kBlock : end;
}

}  // namespace

std::optional<std::size_t> find_log_damage(std::string_view log) {
  std::optional<std::size_t> damage;
  bool in_record = false;  // the first part of a record in several was whole, and so was all behind it
  std::size_t at = 0;
  while (const auto record = next_record(log, at)) {
    if (record->at != at) {
      if (!damage) damage = at;
      in_record = false;
    }
    const bool begins = record->type == RecordType::full || record->type == RecordType::first;
    const bool ends = record->type == RecordType::full || (record->type == RecordType::last && in_record);
    if (ends && damage) return damage;
    in_record = begins || (in_record && record->type == RecordType::middle);
    at = begin_behind(record->end);
  }
  return std::nullopt;
}

void check_logs(rocksdb::Env& env, const std::string& directory) {
  std::vector<std::string> names;
  check_status(env.GetChildren(directory, &names));
  for (const auto& name : names) {
    if (!name.ends_with(".log")) continue;
    const std::string file = directory + "/" + name;
    std::string log;
    check_status(rocksdb::ReadFileToString(&env, file, &log));
    if (const auto damage = find_log_damage(log)) {
      throw Error(ErrorCode::io_error,
                  fmt::format("{} is damaged at byte {}, and commits lie behind it.", file, *damage));
    }
  }
}

}  // namespace divan::kv::embedded
