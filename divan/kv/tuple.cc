#include "divan/kv/tuple.h"

#include <fmt/format.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/kv/tuple_codes.h"

namespace divan::kv {

std::string strinc(std::string_view prefix) {
  const std::size_t last = prefix.find_last_not_of('\xff');
  if (last == std::string_view::npos) throw internal_error("No key comes after all keys with this prefix.");
  std::string next(prefix.substr(0, last + 1));
  ++next.back();
  return next;
}

namespace tuple {
namespace {

struct PackVisitor {
  Packer& packer;
  void operator()(Null) { packer.null(); }
  void operator()(const Bytes& bytes) { packer.bytes(bytes.value); }
  void operator()(const String& text) { packer.string(text.value); }
  void operator()(const Tuple& nested) {
    packer.begin_nested();
    append(packer, nested);
    packer.end_nested();
  }
  void operator()(std::int64_t value) { packer.integer(value); }
  void operator()(std::uint64_t value) { packer.integer(value); }
  void operator()(const BigInteger& value) { packer.big_integer(value); }
  void operator()(float value) { packer.float32(value); }
  void operator()(double value) { packer.float64(value); }
  void operator()(bool value) { packer.boolean(value); }
  void operator()(const Uuid& value) { packer.uuid(value); }
  void operator()(const Versionstamp& value) { packer.versionstamp(value); }
};

/// Reads elements of whatever type comes.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : reader_(bytes), size_(bytes.size()) {}

  Tuple elements() {
    Tuple tuple;
    while (!reader_.at_end()) tuple.push_back(element(0));
    return tuple;
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(500, "corrupt_key",
                fmt::format("Not a packed tuple: {} at byte {}.", what, size_ - reader_.rest().size()));
  }

  template <class T>
  T checked(std::optional<T> value, std::string_view type) const {
    if (!value) refuse(fmt::format("malformed {}", type));
    return std::move(*value);
  }

  Element element(int depth) {
    const auto code = static_cast<unsigned char>(reader_.rest().front());
    switch (code) {
      case kNullCode:
        if (!reader_.take_null()) refuse("malformed null");
        return Null();
      case kBytesCode: return Bytes{checked(reader_.take_bytes(), "byte string")};
      case kStringCode: return String{checked(reader_.take_string(), "text")};
      case kNestedCode: return nested(depth + 1);
      case kFloatCode: return checked(reader_.take_float32(), "float");
      case kDoubleCode: return checked(reader_.take_float64(), "double");
      case kFalseCode:
      case kTrueCode: return checked(reader_.take_bool(), "truth value");
      case kUuidCode: return checked(reader_.take_uuid(), "UUID");
      case kVersionstampCode: return checked(reader_.take_versionstamp(), "versionstamp");
      default:
        if (code < kBigNegativeCode || code > kBigPositiveCode) {
          refuse(fmt::format("unknown type code 0x{:02x}", code));
        }
        return integer();
    }
  }

  Element integer() {
    if (const auto value = reader_.take_int()) return *value;
    if (const auto value = reader_.take_uint()) return *value;
    return checked(reader_.take_big_integer(), "integer");
  }

  Tuple nested(int depth) {
    if (depth > kMaxDepth) refuse("a tuple nested too deep");
    Tuple tuple;
    reader_.begin_nested();
    while (!reader_.end_nested()) {
      if (reader_.at_end()) refuse("a nested tuple without an end");
      tuple.push_back(element(depth));
    }
    return tuple;
  }

  Reader reader_;
  std::size_t size_;
};

void escape(std::string& out, std::string_view text, bool ascii_only) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f || (ascii_only && byte > 0x7f)) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

struct PrintVisitor {
  std::string& out;
  void operator()(Null) { out += "null"; }
  void operator()(const Bytes& bytes) {
    out += 'b';
    escape(out, bytes.value, true);
  }
  void operator()(const String& text) { escape(out, text.value, false); }
  void operator()(const Tuple& nested) { out += to_string(nested); }
  void operator()(std::int64_t value) { out += std::to_string(value); }
  void operator()(std::uint64_t value) { out += std::to_string(value); }
  void operator()(const BigInteger& value) {
    out += fmt::format("{}0x{}", value.negative ? "-" : "", to_hex(value.magnitude));
  }
  void operator()(float value) { out += fmt::format("{}f", value); }
  void operator()(double value) { out += fmt::format("{}", value); }
  void operator()(bool value) { out += value ? "true" : "false"; }
  void operator()(const Uuid& value) {
    std::string hex = to_hex({reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()});
    for (const std::size_t at : {20u, 16u, 12u, 8u}) hex.insert(at, 1, '-');
    out += hex;
  }
  void operator()(const Versionstamp& value) {
    out += value.is_complete() ? fmt::format("versionstamp({})", value.hex())
                               : fmt::format("versionstamp(incomplete, {})", value.user_version());
  }
};

}  // namespace

void append(Packer& packer, const Tuple& tuple) {
  for (const Element& element : tuple) std::visit(PackVisitor{packer}, element);
}

std::string pack(const Tuple& tuple) {
  std::string out;
  Packer packer(out);
  append(packer, tuple);
  if (packer.incomplete_versionstamps() > 0) {
    throw internal_error("A plain key cannot hold an incomplete versionstamp.");
  }
  return out;
}

std::string pack_with_versionstamp(const Tuple& tuple, std::string_view prefix) {
  std::string out(prefix);
  Packer packer(out);
  append(packer, tuple);
  packer.finish_versionstamped();
  return out;
}

Tuple unpack(std::string_view bytes) { return Unpacker(bytes).elements(); }

KeyRange range(const Tuple& tuple) {
  const std::string packed = pack(tuple);
  return {packed + '\0', packed + '\xff'};
}

std::string to_string(const Tuple& tuple) {
  std::string out = "(";
  for (const Element& element : tuple) {
    if (out.size() > 1) out += ", ";
    std::visit(PrintVisitor{out}, element);
  }
  return out + ')';
}

std::string describe(std::string_view key) {
  try {
    return to_string(unpack(key));
  } catch (const Error&) {
    std::string out = "b";
    escape(out, key, true);
    return out;
  }
}

}  // namespace tuple
}  // namespace divan::kv
