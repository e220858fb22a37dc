// Backups of arbitrary bytes. The first byte selects how the input is used: as a file, or as payloads of
// blocks with correct checksums, so that the code after the checksum test is reached, too.
#include <xxhash.h>

#include <vector>

#include "divan/backup/format.h"
#include "fuzz/check.h"

namespace {

using divan::backup::Header;
using divan::backup::Parser;
using divan::fuzz::check;

struct Found {
  std::vector<divan::kv::KeyValue> rows;
  Parser::End end;
  bool whole = false;
};

Found read(std::string_view bytes, std::size_t piece) {
  Found found;
  Parser parser([&](std::string_view key, std::string_view value) {
    check(key.size() <= divan::kv::kMaxKeyBytes && value.size() <= divan::kv::kMaxValueBytes);
    check(found.rows.empty() || found.rows.back().key < key);
    found.rows.push_back({std::string(key), std::string(value)});
  });
  found.whole = divan::fuzz::answers(400, [&] {
    for (std::size_t at = 0; at < bytes.size(); at += std::min(piece, bytes.size() - at)) {
      parser.feed(bytes.substr(at, piece));
    }
    found.end = parser.end();
  });
  return found;
}

// A type, two bytes of length, a payload, and so on.
std::string with_checksums(std::string_view input) {
  std::string file("DIVANBAK");
  divan::append_u32(file, divan::backup::kFormat);
  std::uint64_t sum = XXH64(file.data(), file.size(), 0);
  while (input.size() >= 3) {
    const char type = "HRE"[static_cast<unsigned char>(input[0]) % 3];
    const std::size_t size = std::min<std::size_t>(divan::read_u16(input.substr(1)), input.size() - 3);
    std::string frame(1, type);
    divan::append_u32(frame, static_cast<std::uint32_t>(size));
    sum = XXH64(frame.data(), frame.size(), sum);
    sum = XXH64(input.data() + 3, size, sum);
    divan::append_u64(frame, sum);
    file.append(frame).append(input.substr(3, size));
    input.remove_prefix(3 + size);
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const auto input = divan::fuzz::text_of(data + 1, size - 1);
  const std::string file = data[0] % 2 == 0 ? std::string(input) : with_checksums(input);
  const Found found = read(file, SIZE_MAX);
  // The result does not depend on how the bytes are split.
  const Found pieces = read(file, 7);
  check(pieces.whole == found.whole && pieces.rows.size() == found.rows.size());
  if (!found.whole) return 0;
  check(found.end.rows == found.rows.size());
  // What was parsed can be written and parsed again.
  std::string again;
  divan::backup::Writer writer(Header{}, [&](std::string_view bytes) {
    again += bytes;
    return true;
  });
  for (const auto& row : found.rows) writer.add(row.key, row.value);
  writer.finish(found.end.version);
  const Found second = read(again, SIZE_MAX);
  check(second.whole && second.rows.size() == found.rows.size() && second.end.version == found.end.version);
  for (std::size_t i = 0; i < found.rows.size(); ++i) {
    check(second.rows[i].key == found.rows[i].key && second.rows[i].value == found.rows[i].value);
  }
  return 0;
}
