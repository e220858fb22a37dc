// The files of a web interface (the dashboard, or Fauxton), which are served below /_utils/.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace divan::api {

/// A file that is part of the program.
struct EmbeddedFile {
  std::string_view path;  ///< as for StaticFiles::find()
  std::string_view gzip;  ///< its content (RFC 1952)
};

/// A file as it is sent.
struct StaticFile {
  std::string content;
  bool is_gzip = false;       ///< the content is compressed
  std::string type;           ///< for Content-Type
  std::string etag;           ///< of the content, with its quotes
  std::string last_modified;  ///< empty: unknown
};

/// The files of a directory, which are read once, so that no request reads the disk, and what is not among
/// them cannot be requested; or those that are part of the program. Thread-safe.
class StaticFiles {
 public:
  static constexpr std::size_t kMaxFiles = 2000;
  static constexpr std::size_t kMaxBytes = 64 << 20;

  /// Reads the files below `directory`, except hidden ones and symbolic links. Throws bad_request, naming the
  /// directory, if it cannot be read, has no index.html, or has more than kMaxFiles files or kMaxBytes bytes.
  explicit StaticFiles(const std::string& directory);
  explicit StaticFiles(std::span<const EmbeddedFile> files);

  /// Whether they are part of the program. Their names below assets/ contain a hash of their content.
  bool is_embedded() const { return is_embedded_; }

  /// Returns the file with this path below the directory ("js/a.js"); null if there is none.
  const StaticFile* find(std::string_view path) const;

 private:
  bool is_embedded_ = false;
  std::map<std::string, StaticFile, std::less<>> files_;  // by path
};

/// The media type of a file, by its extension.
std::string_view media_type(std::string_view path);

}  // namespace divan::api
