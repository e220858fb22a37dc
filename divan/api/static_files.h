// The files of a web interface (Fauxton), which are served below /_utils/.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace divan::api {

/// A file as it is sent.
struct StaticFile {
  std::string content;
  std::string type;  ///< for Content-Type
  std::string etag;  ///< with its quotes
  std::string last_modified;
};

/// All files of a directory, which are read once, so that no request reads the disk, and what is not among
/// them cannot be requested. Thread-safe.
class StaticFiles {
 public:
  static constexpr std::size_t kMaxFiles = 2000;
  static constexpr std::size_t kMaxBytes = 64 << 20;

  /// Reads the files below `directory`, except hidden ones and symbolic links. Throws bad_request, naming the
  /// directory, if it cannot be read, has no index.html, or has more than kMaxFiles files or kMaxBytes bytes.
  explicit StaticFiles(const std::string& directory);

  /// Returns the file with this path below the directory ("js/a.js"); null if there is none.
  const StaticFile* find(std::string_view path) const;

 private:
  std::map<std::string, StaticFile, std::less<>> files_;  // by path
};

/// The media type of a file, by its extension.
std::string_view media_type(std::string_view path);

}  // namespace divan::api
