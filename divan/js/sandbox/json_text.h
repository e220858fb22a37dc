// JavaScript values as JSON text, and strings as UTF-8.
#pragma once

#include <jsapi.h>

#include <string>
#include <string_view>

namespace divan::js::sandbox {

/// Reads JSON text in UTF-8. False, with an exception pending, if it is none.
bool parse_json(JSContext* context, std::string_view text, JS::MutableHandleValue value);

/// Appends what JSON.stringify([value]) writes between its brackets: what JSON lacks (undefined, functions,
/// NaN) is null. False, with an exception pending or the script stopped as too large, if the value is
/// circular, its toJSON() throws, or `out` would grow over `max_size` bytes.
bool append_json(JSContext* context, JS::HandleValue value, std::string& out, std::size_t max_size);

/// The same as a text of the protocol.
bool put_json(JSContext* context, JS::HandleValue value, std::string& out, std::size_t max_size);

/// The start of UTF-8 text, at most `max_bytes`, not ending within a character.
std::string_view whole_characters(std::string_view text, std::size_t max_bytes);

/// Appends the start of a string, at most `max_bytes` of UTF-8 in whole characters. False, with an exception
/// pending, when memory is short.
bool append_start(JSContext* context, JS::HandleString string, std::string& out, std::size_t max_bytes);

}  // namespace divan::js::sandbox
