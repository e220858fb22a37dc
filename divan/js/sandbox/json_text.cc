#include "divan/js/sandbox/json_text.h"

#include <js/Array.h>
#include <js/CallAndConstruct.h>
#include <js/CharacterEncoding.h>
#include <js/Class.h>
#include <js/Conversions.h>
#include <js/ErrorReport.h>
#include <js/GCAPI.h>
#include <js/JSON.h>
#include <js/Object.h>
#include <js/String.h>
#include <js/friend/StackLimits.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "divan/js/protocol.h"
#include "divan/js/sandbox/engine.h"

namespace divan::js::sandbox {
namespace {

// Characters that stand for themselves in a JSON string and are one byte of UTF-8.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (unsigned c = 0x20; c < 0x7f; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

// A fast path for short plain strings, which most keys are: the engine's writer costs several times as much.
// Returns false if `string` needs escapes.
bool append_plain(JSLinearString* string, std::string& out, std::size_t max_size) {
  const std::size_t size = JS::GetLinearStringLength(string);
  if (!JS::LinearStringHasLatin1Chars(string) || out.size() + size > max_size) return false;
  const JS::AutoCheckCannotGC no_gc;
  const JS::Latin1Char* chars = JS::GetLatin1LinearStringChars(no_gc, string);
  for (std::size_t i = 0; i < size; ++i) {
    if (!kPlain[chars[i]]) return false;
  }
  out += '"';
  out.append(reinterpret_cast<const char*>(chars), size);
  out += '"';
  return true;
}

void append_integer(std::int64_t value, std::string& out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

struct Output {
  JSContext* context;
  std::string& text;
  std::size_t max_size;
};

bool append_utf8(const char16_t* chars, std::uint32_t size, void* output) {
  auto& [context, out, max_size] = *static_cast<Output*>(output);
  if (out.size() + size > max_size) return Engine::of(context).stop_as_too_large();
  for (std::uint32_t i = 0; i < size; ++i) {
    char32_t c = chars[i];
    if (c < 0x80) {
      out += static_cast<char>(c);
      continue;
    }
    // JSON.stringify escapes lone surrogates, so all surrogates here are pairs.
    if (c >= 0xd800 && c < 0xe000 && i + 1 < size) c = 0x10000 + ((c & 0x3ff) << 10) + (chars[++i] & 0x3ff);
    if (c < 0x800) {
      out += static_cast<char>(0xc0 | (c >> 6));
    } else {
      if (c < 0x10000) {
        out += static_cast<char>(0xe0 | (c >> 12));
      } else {
        out += static_cast<char>(0xf0 | (c >> 18));
        out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
      }
      out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    }
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
  return true;
}

bool append_stringified(JSContext* context, JS::HandleValue value, std::string& out, std::size_t max_size) {
  Output output{context, out, max_size};
  JS::RootedValue copy(context, value);
  return JS_Stringify(context, &copy, nullptr, JS::NullHandleValue, append_utf8, &output);
}

// What JSON.stringify throws.
enum class Refusal : unsigned { cycle, big_int };

bool refuse(JSContext* context, Refusal refusal) {
  static constexpr JSErrorFormatString kErrors[] = {
      {"", "cyclic object value", 0, JSEXN_TYPEERR},
      {"", "BigInt value can't be serialized in JSON", 0, JSEXN_TYPEERR}};
  const auto find = [](void*, unsigned number) { return &kErrors[number]; };
  JS_ReportErrorNumberASCII(context, find, nullptr, static_cast<unsigned>(refusal));
  return false;
}

// Writes values with long strings in parts. For each string JSON.stringify reserves a multiple of its length:
// twelve times, which SpiderMonkey 128 rounds up to a hundred times and more. Most of it is never used, but
// counts as memory. The steps are those of SerializeJSONProperty and what it uses (ECMA-262, 25.5.2).
class WriterInParts {
 public:
  // Functions that a value calls can write values, too, and each writer would keep what it has written until
  // then.
  static bool is_running() { return is_running_; }

  WriterInParts(JSContext* context, std::string& out, std::size_t max_size)
      : context_(context), out_(out), max_size_(max_size), open_(context) {
    is_running_ = true;
  }
  ~WriterInParts() { is_running_ = false; }
  WriterInParts(const WriterInParts&) = delete;
  WriterInParts& operator=(const WriterInParts&) = delete;

  bool write(JS::HandleValue value) {
    JS::RootedString no_key(context_, JS_GetEmptyString(context_));
    JS::RootedValue converted(context_);
    return convert(value, no_key, &converted) && write_converted(converted);
  }

 private:
  static constexpr std::size_t kPart = std::size_t{1} << 16;

  // Calls toJSON(), and replaces objects that stand for a number or a string.
  bool convert(JS::HandleValue given, JS::HandleString key, JS::MutableHandleValue value) {
    value.set(given);
    if (!value.isObject() && !value.isBigInt()) return true;
    JS::RootedObject object(context_, JS::ToObject(context_, given));
    JS::RootedValue method(context_);
    if (!object || !JS_GetProperty(context_, object, "toJSON", &method)) return false;
    if (method.isObject() && JS::IsCallable(&method.toObject())) {
      JS::RootedValueArray<1> arguments(context_);
      arguments[0].setString(key);
      if (!JS::Call(context_, given, method, arguments, value)) return false;
    }
    return !value.isObject() || unbox(value);
  }

  bool unbox(JS::MutableHandleValue value) {
    JS::RootedObject object(context_, &value.toObject());
    ::js::ESClass kind{};
    if (!JS::GetBuiltinClass(context_, object, &kind)) return false;
    double number = 0;
    switch (kind) {
      case ::js::ESClass::Number:
        if (!JS::ToNumber(context_, value, &number)) return false;
        value.setNumber(number);
        return true;
      case ::js::ESClass::String: {
        JSString* const string = JS::ToString(context_, value);
        if (string != nullptr) value.setString(string);
        return string != nullptr;
      }
      default: return true;
    }
  }

  static bool is_omitted(JS::HandleValue value) {
    return value.isUndefined() || value.isSymbol() || (value.isObject() && JS::IsCallable(&value.toObject()));
  }

  // As AutoCheckRecursionLimit::check(), which takes the address of a variable: the address sanitizer may
  // keep variables elsewhere.
  bool check_stack() {
    const ::js::AutoCheckRecursionLimit limit(context_);
    if (limit.checkWithStackPointerDontReport(context_, __builtin_frame_address(0))) return true;
    ::js::ReportOverRecursed(context_);
    return false;
  }

  bool write_converted(JS::HandleValue value) {
    if (!JS_CheckForInterrupt(context_)) return false;
    if (out_.size() > max_size_) return Engine::of(context_).stop_as_too_large();
    if (value.isString()) {
      JS::RootedString string(context_, value.toString());
      return write_string(string);
    }
    if (value.isBigInt()) return refuse(context_, Refusal::big_int);
    if (is_omitted(value)) {
      out_ += "null";
      return true;
    }
    if (!value.isObject()) return append_json(context_, value, out_, max_size_);
    if (!check_stack()) return false;
    JS::RootedObject object(context_, &value.toObject());
    for (JSObject* const open : open_) {
      if (open == object) return refuse(context_, Refusal::cycle);
    }
    ::js::ESClass kind{};
    if (!JS::GetBuiltinClass(context_, object, &kind)) return false;
    if (kind == ::js::ESClass::Boolean || kind == ::js::ESClass::BigInt)
      return append_stringified(context_, value, out_, max_size_);
    bool is_array = false;
    if (!open_.append(object) || !JS::IsArray(context_, object, &is_array)) return false;
    if (!(is_array ? write_array(object) : write_object(object))) return false;
    open_.popBack();
    return true;
  }

  bool write_array(JS::HandleObject array) {
    std::uint32_t size = 0;
    if (!JS::GetArrayLength(context_, array, &size)) return false;
    out_ += '[';
    JS::RootedValue index(context_), value(context_), converted(context_);
    JS::RootedString key(context_);
    for (std::uint32_t i = 0; i < size; ++i) {
      if (i > 0) out_ += ',';
      index.setNumber(i);
      key = JS::ToString(context_, index);
      if (!key || !JS_GetElement(context_, array, i, &value) || !convert(value, key, &converted) ||
          !write_converted(converted))
        return false;
    }
    out_ += ']';
    return true;
  }

  bool write_object(JS::HandleObject object) {
    JS::Rooted<JS::IdVector> ids(context_, JS::IdVector(context_));
    if (!JS_Enumerate(context_, object, &ids)) return false;
    out_ += '{';
    bool is_first = true;
    JS::RootedId id(context_);
    JS::RootedValue name(context_), value(context_), converted(context_);
    JS::RootedString key(context_);
    for (std::size_t i = 0; i < ids.length(); ++i) {
      id = ids[i];
      if (!JS_IdToValue(context_, id, &name)) return false;
      key = JS::ToString(context_, name);
      if (!key || !JS_GetPropertyById(context_, object, id, &value) || !convert(value, key, &converted))
        return false;
      if (is_omitted(converted)) continue;
      if (!is_first) out_ += ',';
      is_first = false;
      if (!write_string(key)) return false;
      out_ += ':';
      if (!write_converted(converted)) return false;
    }
    out_ += '}';
    return true;
  }

  bool write_string(JS::HandleString string) {
    const std::size_t size = JS_GetStringLength(string);
    out_ += '"';
    for (std::size_t from = 0; from < size;) {
      std::size_t to = std::min(from + kPart, size);
      // No part ends between the two halves of a character.
      char16_t last = 0;
      if (to < size && !JS_GetStringCharAt(context_, string, to - 1, &last)) return false;
      if ((last & 0xfc00) == 0xd800) --to;
      JS::RootedString part(context_, JS_NewDependentString(context_, string, from, to - from));
      if (!part || !write_part(part)) return false;
      from = to;
    }
    out_ += '"';
    return out_.size() <= max_size_ || Engine::of(context_).stop_as_too_large();
  }

  bool write_part(JS::HandleString part) {
    const std::size_t start = out_.size();
    JSLinearString* const linear = JS_EnsureLinearString(context_, part);
    if (linear == nullptr) return false;
    if (!append_plain(linear, out_, max_size_)) {
      JS::RootedValue value(context_, JS::StringValue(part));
      if (!append_stringified(context_, value, out_, max_size_)) return false;
    }
    // Without its quotation marks.
    out_.pop_back();
    out_.erase(start, 1);
    return true;
  }

  static inline bool is_running_ = false;

  JSContext* const context_;
  std::string& out_;
  const std::size_t max_size_;
  JS::RootedObjectVector open_;  // the objects that are being written, the outermost first
};

// The second of a pair: SpiderMonkey 102 has tuples of its own, newer versions those of the standard library.
std::size_t second(const auto& pair) {
  if constexpr (requires { Get<1>(pair); }) {
    return Get<1>(pair);
  } else {
    return get<1>(pair);
  }
}

}  // namespace

bool parse_json(JSContext* context, std::string_view text, JS::MutableHandleValue value) {
  JS::RootedString string(context, JS_NewStringCopyUTF8N(context, JS::UTF8Chars(text.data(), text.size())));
  return string && JS_ParseJSON(context, string, value);
}

bool append_json(JSContext* context, JS::HandleValue value, std::string& out, std::size_t max_size) {
  constexpr double kExact = 9007199254740992;  // integers below this are exact
  if (value.isNullOrUndefined()) {
    out += "null";
  } else if (value.isBoolean()) {
    out += value.toBoolean() ? "true" : "false";
  } else if (value.isInt32()) {
    append_integer(value.toInt32(), out);
  } else if (value.isDouble() && std::abs(value.toDouble()) < kExact &&
             value.toDouble() == std::trunc(value.toDouble())) {
    append_integer(static_cast<std::int64_t>(value.toDouble()), out);
  } else {
    if (value.isString()) {
      JSLinearString* string = JS_EnsureLinearString(context, value.toString());
      if (string == nullptr) return false;
      if (JS::GetLinearStringLength(string) > max_size) return Engine::of(context).stop_as_too_large();
      if (append_plain(string, out, max_size)) return true;
    }
    const std::size_t start = out.size();
    if (!append_stringified(context, value, out, max_size)) {
      if (!JS_IsThrowingOutOfMemory(context) || WriterInParts::is_running()) return false;
      JS_ClearPendingException(context);
      out.resize(start);
      JS_GC(context);
      if (!WriterInParts(context, out, max_size).write(value)) return false;
    }
  }
  return out.size() <= max_size || Engine::of(context).stop_as_too_large();
}

bool put_json(JSContext* context, JS::HandleValue value, std::string& out, std::size_t max_size) {
  const auto length_at = out.size();
  protocol::put_u32(out, 0);
  if (!append_json(context, value, out, max_size)) return false;
  protocol::put_u32_at(out, length_at, static_cast<std::uint32_t>(out.size() - length_at - 4));
  return true;
}

std::string_view whole_characters(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t size = max_bytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size);
}

bool append_start(JSContext* context, JS::HandleString string, std::string& out, std::size_t max_bytes) {
  const auto start = out.size();
  out.resize(start + max_bytes);
  const auto written =
      JS_EncodeStringToUTF8BufferPartial(context, string, mozilla::Span(out.data() + start, max_bytes));
  out.resize(start + (written ? second(*written) : 0));
  return written.isSome();
}

}  // namespace divan::js::sandbox
