// Members of a JSON object that may be null.
#pragma once

#include <string>
#include <string_view>

#include "divan/base/json.h"

namespace divan::api {

/// Writes a member: the text, or null if it is empty.
inline void write_text_or_null(json::Writer& writer, std::string_view key, std::string_view text) {
  writer.key(key);
  text.empty() ? writer.null() : writer.string(text);
}

}  // namespace divan::api
