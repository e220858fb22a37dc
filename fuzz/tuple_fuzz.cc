// Arbitrary bytes are rejected, or are a tuple that packs to the same bytes.
#include <cstdlib>

#include "divan/base/error.h"
#include "divan/kv/tuple.h"

namespace {

namespace tuple = divan::kv::tuple;

void unpack_and_pack(std::string_view bytes) {
  tuple::Tuple unpacked;
  try {
    unpacked = tuple::unpack(bytes);
  } catch (const divan::Error& error) {
    if (error.name() != "corrupt_key") std::abort();
    return;
  }
  std::string again;
  tuple::Packer packer(again);
  tuple::append(packer, unpacked);
  if (again != bytes) std::abort();
  if (tuple::to_string(unpacked).empty()) std::abort();
}

// Tries every type in turn: a failed read must not move the reader.
void read(std::string_view bytes) {
  tuple::Reader reader(bytes);
  for (;;) {
    const std::size_t before = reader.rest().size();
    const bool taken = reader.end_nested() || reader.take_null() || reader.take_bytes() ||
                       reader.take_string() || reader.begin_nested() || reader.take_uint() ||
                       reader.take_int() || reader.take_big_integer() || reader.take_float32() ||
                       reader.take_float64() || reader.take_bool().has_value() || reader.take_uuid() ||
                       reader.take_versionstamp();
    if (taken != (reader.rest().size() < before)) std::abort();
    if (!taken) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  unpack_and_pack(bytes);
  read(bytes);
  if (tuple::describe(bytes).empty()) std::abort();
  return 0;
}
