#include "divan/base/json_duplicates.h"

#include <algorithm>
#include <map>
#include <vector>

#include "divan/base/check.h"
#include "divan/base/json.h"

namespace divan::json {
namespace {

// Finds the members that a later one replaces, in one pass over the text and without building a tree: most
// texts have none.
class Search {
 public:
  // A part of the text: a member and the comma after it.
  struct Range {
    std::size_t begin;
    std::size_t end;
  };

  explicit Search(std::string_view text) : text_(text) {}

  // The replaced members, ordered by their beginnings. A replaced member may contain others.
  std::vector<Range> replaced() {
    for (std::size_t i = 0; i < text_.size(); ++i) {
      switch (text_[i]) {
        case '{': open_.push_back(names_.size()); break;
        case '}':
          DIVAN_CHECK(!open_.empty(), "the object that ends at byte {} has no beginning", i);
          end_object(open_.back());
          names_.resize(open_.back());
          open_.pop_back();
          break;
        case '"': i = read_string(i); break;
        default: break;
      }
    }
    std::sort(replaced_.begin(), replaced_.end(), [](Range a, Range b) { return a.begin < b.begin; });
    return std::move(replaced_);
  }

 private:
  struct Name {
    std::string_view text;  // as written, without its quotes
    bool escaped;
  };

  // The string that begins at `begin`; returns where it ends.
  std::size_t read_string(std::size_t begin) {
    std::size_t end = begin + 1;
    bool escaped = false;
    for (; text_[end] != '"'; ++end) {
      if (text_[end] != '\\') continue;
      escaped = true;
      ++end;
    }
    // Only a member's name is followed by a colon.
    if (end + 1 < text_.size() && text_[end + 1] == ':')
      names_.push_back({text_.substr(begin + 1, end - begin - 1), escaped});
    return end;
  }

  // Called at the end of an object; `names_` from `first` on are its members.
  void end_object(std::size_t first) {
    if (!has_duplicates(first)) return;
    std::map<std::string, std::size_t> last;
    for (std::size_t i = names_.size(); i-- > first;) {
      if (!last.emplace(unescape(names_[i].text), i).second)
        replaced_.push_back({quote_before(names_[i]), quote_before(names_[i + 1])});
    }
  }

  bool has_duplicates(std::size_t first) {
    constexpr std::size_t kFew = 8;
    const auto begin = names_.begin() + static_cast<std::ptrdiff_t>(first);
    if (std::any_of(begin, names_.end(), [](const Name& name) { return name.escaped; })) {
      std::vector<std::string> names;
      for (auto name = begin; name != names_.end(); ++name) names.push_back(unescape(name->text));
      std::sort(names.begin(), names.end());
      return std::adjacent_find(names.begin(), names.end()) != names.end();
    }
    if (names_.size() - first <= kFew) {
      for (auto name = begin; name != names_.end(); ++name) {
        if (std::any_of(name + 1, names_.end(), [&](const Name& other) { return name->text == other.text; }))
          return true;
      }
      return false;
    }
    sorted_.clear();
    for (auto name = begin; name != names_.end(); ++name) sorted_.push_back(name->text);
    std::sort(sorted_.begin(), sorted_.end());
    return std::adjacent_find(sorted_.begin(), sorted_.end()) != sorted_.end();
  }

  std::size_t quote_before(const Name& name) const {
    return static_cast<std::size_t>(name.text.data() - text_.data()) - 1;
  }

  const std::string_view text_;
  std::vector<Name> names_;               // of the members of all open objects
  std::vector<std::size_t> open_;         // the index of the first name of each open object
  std::vector<std::string_view> sorted_;  // names of one object
  std::vector<Range> replaced_;
};

}  // namespace

std::optional<std::string> without_duplicates(std::string_view text) {
  const auto replaced = Search(text).replaced();
  if (replaced.empty()) return std::nullopt;
  std::string out;
  out.reserve(text.size());
  std::size_t done = 0;
  for (const auto& range : replaced) {
    if (range.begin < done) continue;  // within a member that is left out
    DIVAN_CHECK(range.end >= range.begin && range.end <= text.size(), "a member from byte {} to {} of {}",
                range.begin, range.end, text.size());
    out.append(text, done, range.begin - done);
    done = range.end;
  }
  return out.append(text, done);
}

}  // namespace divan::json
