#include "divan/text/stop_words.h"

#include <algorithm>

namespace divan::text {

void StopWords::add(std::string word) {
  longest_ = std::max(longest_, word.size());
  words_.insert(std::move(word));
}

StopWords stop_words(std::string_view list) {
  StopWords result;
  for (std::size_t end = list.find(' '); end != std::string_view::npos; end = list.find(' ')) {
    result.add(std::string(list.substr(0, end)));
    list.remove_prefix(end + 1);
  }
  return result;
}

}  // namespace divan::text
