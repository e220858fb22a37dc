// `$text`, which selectors cannot test by themselves: whether a document has words is known to indexes.
#pragma once

#include <functional>

namespace divan::selector {

struct Condition;

/// Whether a selector may have `$text`.
enum class TextOperator {
  refused,
  allowed,
};

/// Returns true if the document that is being tested matches a `$text`.
using TextTest = std::function<bool(const Condition& text)>;

}  // namespace divan::selector
