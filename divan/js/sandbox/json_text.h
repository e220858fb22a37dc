// JavaScript values as JSON text, and strings as UTF-8.
#pragma once

#include <jsapi.h>

#include <string>
#include <string_view>

namespace divan::js::sandbox {

/// Parses JSON text in UTF-8. Returns false, with an exception pending, if the text is invalid.
bool parse_json(JSContext* context, std::string_view text, JS::MutableHandleValue value);

/// Appends the text that JSON.stringify([value]) writes between its brackets: undefined, functions and NaN
/// become null. Returns false, with an exception pending or the script stopped as too large, if the value is
/// circular, its toJSON() throws, or `out` would exceed `max_size` bytes. If JSON.stringify has no memory for
/// the value, its getters and toJSON() are called a second time.
bool append_json(JSContext* context, JS::HandleValue value, std::string& out, std::size_t max_size);

/// Like append_json(), as a text of the protocol.
bool put_json(JSContext* context, JS::HandleValue value, std::string& out, std::size_t max_size);

/// The longest prefix of UTF-8 text of at most `max_bytes` that ends between characters.
std::string_view whole_characters(std::string_view text, std::size_t max_bytes);

/// Appends a prefix of a string, at most `max_bytes` of UTF-8 in complete characters. Returns false, with an
/// exception pending, if memory is exhausted.
bool append_start(JSContext* context, JS::HandleString string, std::string& out, std::size_t max_bytes);

}  // namespace divan::js::sandbox
