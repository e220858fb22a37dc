// Bookmarks: the place of the last result of a page, from which the next page continues.
#pragma once

#include <string>
#include <string_view>

namespace divan::mango {

/// The bookmark of a response without results, as in CouchDB.
inline constexpr std::string_view kNoBookmark = "nil";

/// A row of an index. A value type.
struct Bookmark {
  std::string key;  // JSON
  std::string id;   // of the document

  std::string encode() const;
  /// Throws invalid_bookmark (400).
  static Bookmark decode(std::string_view text);
};

}  // namespace divan::mango
