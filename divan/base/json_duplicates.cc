#include "divan/base/json_duplicates.h"

#include <algorithm>
#include <map>
#include <vector>

#include "divan/base/json.h"

namespace divan::json {
namespace {

// Finds duplicates without building anything: most texts have none.
class Search {
 public:
  explicit Search(std::string_view text) : text_(text) {}

  bool finds_any() {
    for (std::size_t i = 0; i < text_.size(); ++i) {
      switch (text_[i]) {
        case '{': open_.push_back(names_.size()); break;
        case '}':
          if (ends_with_duplicates(open_.back())) return true;
          names_.resize(open_.back());
          open_.pop_back();
          break;
        case '"': i = read_string(i); break;
        default: break;
      }
    }
    return false;
  }

 private:
  // The string that begins at `begin`; returns where it ends.
  std::size_t read_string(std::size_t begin) {
    std::size_t end = begin + 1;
    bool escaped = false;
    for (; text_[end] != '"'; ++end) {
      if (text_[end] != '\\') continue;
      escaped = true;
      ++end;
    }
    // Nothing but a member's name stands before a colon.
    if (end + 1 < text_.size() && text_[end + 1] == ':')
      names_.push_back({text_.substr(begin + 1, end - begin - 1), escaped});
    return end;
  }

  bool ends_with_duplicates(std::size_t first) {
    constexpr std::size_t kFew = 8;
    const auto begin = names_.begin() + static_cast<std::ptrdiff_t>(first);
    const bool escaped = std::any_of(begin, names_.end(), [](const Name& name) { return name.escaped; });
    if (escaped) {
      std::vector<std::string> names;
      for (auto name = begin; name != names_.end(); ++name) names.push_back(unescape(name->text));
      std::sort(names.begin(), names.end());
      return std::adjacent_find(names.begin(), names.end()) != names.end();
    }
    const auto same = [](const Name& a, const Name& b) { return a.text == b.text; };
    if (names_.size() - first <= kFew) {
      for (auto name = begin; name != names_.end(); ++name) {
        if (std::any_of(name + 1, names_.end(), [&](const Name& other) { return same(*name, other); }))
          return true;
      }
      return false;
    }
    std::sort(begin, names_.end(), [](const Name& a, const Name& b) { return a.text < b.text; });
    return std::adjacent_find(begin, names_.end(), same) != names_.end();
  }

  struct Name {
    std::string_view text;
    bool escaped;
  };

  const std::string_view text_;
  std::vector<Name> names_;        // of the members, so far, of the objects that are open
  std::vector<std::size_t> open_;  // where the names of each of these begin
};

void append_unique(std::string& out, std::string_view value);

void append_unique_members(std::string& out, std::string_view object) {
  struct Member {
    std::string_view raw_name;
    std::string_view value;
  };
  std::vector<Member> members;
  std::map<std::string, std::size_t> last;
  for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
    last[unescape(raw_name)] = members.size();
    members.push_back({raw_name, value});
    return true;
  });
  out += '{';
  bool first = true;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (last[unescape(members[i].raw_name)] != i) continue;
    out += first ? "\"" : ",\"";
    first = false;
    out.append(members[i].raw_name).append("\":");
    append_unique(out, members[i].value);
  }
  out += '}';
}

void append_unique(std::string& out, std::string_view value) {
  if (value.starts_with('{')) return append_unique_members(out, value);
  if (!value.starts_with('[')) {
    out += value;
    return;
  }
  out += '[';
  bool first = true;
  for_each_element(value, [&](std::string_view element) {
    if (!first) out += ',';
    first = false;
    append_unique(out, element);
    return true;
  });
  out += ']';
}

}  // namespace

std::optional<std::string> without_duplicates(std::string_view text) {
  if (!Search(text).finds_any()) return std::nullopt;
  std::string out;
  out.reserve(text.size());
  append_unique(out, text);
  return out;
}

}  // namespace divan::json
