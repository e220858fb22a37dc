// Hints for JavaScript syntax that only old engines supported.
//
// Many design documents were written for SpiderMonkey 1.8.5, which CouchDB shipped for ten years and whose
// extensions (for each, E4X, expression closures ...) no current engine supports. The engine's messages
// ("missing ( after for") do not say so.
#pragma once

#include <cstddef>
#include <string_view>

namespace divan::js::sandbox {

/// Returns a sentence for users, or an empty text. `message` is the engine's ("SyntaxError: ..."). `line` is
/// the source's line (or a part of it) with the error at `offset`; empty if unknown.
std::string_view hint(std::string_view message, std::string_view line, std::size_t offset);

}  // namespace divan::js::sandbox
