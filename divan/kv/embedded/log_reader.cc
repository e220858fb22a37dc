#include "divan/kv/embedded/log_reader.h"

#include <boost/crc.hpp>

namespace divan::kv::embedded {
namespace {

constexpr std::size_t kBlock = 32'768;
constexpr std::size_t kHeader = 7;  // checksum, length, type

enum class PartType : unsigned char { full = 1, first = 2, middle = 3, last = 4 };

using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// RocksDB stores checksums of data that may hold checksums in another form.
std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

struct Part {
  PartType type;
  std::string_view payload;
  std::uint32_t checksum;
};

// What its header says, before the checksum is verified.
std::optional<Part> part_at(std::string_view log, std::size_t at) {
  const std::size_t block_end = std::min(at / kBlock * kBlock + kBlock, log.size());
  if (at + kHeader > block_end) return std::nullopt;
  const std::size_t length = little_endian(log.substr(at + 4, 2));
  const auto type = static_cast<PartType>(log[at + 6]);
  if (at + kHeader + length > block_end || type < PartType::full || type > PartType::last)
    return std::nullopt;
  return Part{type, log.substr(at + kHeader, length), little_endian(log.substr(at, 4))};
}

bool is_whole(const Part& part) {
  Crc32c crc;
  crc.process_byte(static_cast<unsigned char>(part.type));
  crc.process_bytes(part.payload.data(), part.payload.size());
  return masked(crc.checksum()) == part.checksum;
}

// What is left of a block may be too little for a header.
std::size_t behind(std::size_t end) {
  const std::size_t left = kBlock - end % kBlock;
  return left < kHeader ? end + left : end;
}

}  // namespace

std::optional<LogRecord> LogReader::next() {
  std::optional<LogRecord> record;
  for (std::size_t at = at_;;) {
    const auto part = part_at(log_, at);
    if (!part || !is_whole(*part)) return std::nullopt;
    const bool begins = part->type == PartType::full || part->type == PartType::first;
    if (begins == record.has_value()) return std::nullopt;
    if (begins) record = {at, {}};
    record->head += part->payload.substr(0, kLogRecordHead - record->head.size());
    at = behind(at + kHeader + part->payload.size());
    if (part->type == PartType::full || part->type == PartType::last) {
      at_ = at;
      return record;
    }
  }
}

bool LogReader::goes_on(const std::function<bool(std::string_view)>& is_likely) const {
  // The damage may be in a length, so that the next record may begin anywhere.
  for (std::size_t at = at_ + 1; at + kHeader <= log_.size(); ++at) {
    const auto part = part_at(log_, at);
    if (!part || (part->type != PartType::full && part->type != PartType::first)) continue;
    if (is_likely(part->payload.substr(0, kLogRecordHead)) && LogReader(log_, at).next()) return true;
  }
  return false;
}

}  // namespace divan::kv::embedded
