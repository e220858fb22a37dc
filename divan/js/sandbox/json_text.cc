#include "divan/js/sandbox/json_text.h"

#include <js/CharacterEncoding.h>
#include <js/GCAPI.h>
#include <js/JSON.h>
#include <js/String.h>

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
    Output output{context, out, max_size};
    JS::RootedValue copy(context, value);
    if (!JS_Stringify(context, &copy, nullptr, JS::NullHandleValue, append_utf8, &output)) return false;
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
