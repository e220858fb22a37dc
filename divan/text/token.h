// What analyzers return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace divan::text {

/// A term and where it is in the text. A value type.
struct Token {
  std::string term;            ///< valid UTF-8
  std::uint32_t position = 0;  ///< grows from token to token, by more than 1 where words were left out
  std::size_t begin = 0;       ///< of the word in the text, in bytes
  std::size_t end = 0;
};

/// The longest text that analyzers accept, in bytes: libstemmer and ICU count with int.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

/// Receives tokens in the order of the text. The token is valid during the call.
using TokenVisitor = std::function<void(const Token& token)>;

}  // namespace divan::text
