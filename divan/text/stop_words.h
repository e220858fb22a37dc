// Words that are left out, since almost every text of a language has them.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace divan::text {

/// A set of words, in the form that they have after case folding. Immutable after it has been filled, then
/// thread-safe.
class StopWords {
 public:
  void add(std::string word);
  bool contains(std::string_view word) const { return word.size() <= longest_ && words_.contains(word); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_set<std::string, Hash, std::equal_to<>> words_;
  std::size_t longest_ = 0;  // bytes
};

/// The words of a list in which a space follows each.
StopWords stop_words(std::string_view list);

}  // namespace divan::text
