// What to write instead of JavaScript that only old engines understood.
//
// Design documents live long: many were written for SpiderMonkey 1.8.5, with which CouchDB came for ten
// years, and whose extensions (for each, E4X, expression closures ...) no engine takes any more. The engine's
// own words ("missing ( after for") do not lead anybody to that.
#pragma once

#include <cstddef>
#include <string_view>

namespace divan::js::sandbox {

/// A sentence for people, or an empty text if nothing is known. `message`: the engine's ("SyntaxError: ...").
/// `line`: the source's line (or what is near), with the mistake at `offset`; empty if that is not known.
std::string_view hint(std::string_view message, std::string_view line, std::size_t offset);

}  // namespace divan::js::sandbox
