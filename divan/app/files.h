// Files as the commands read and write them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace divan::app {

/// A file that appears under its name when it is complete and on the disk; until then it has ".part-" and six
/// characters of its own behind its name. Without a commit() nothing stays, unless the process is killed. "-"
/// is standard output. Not thread-safe.
class NewFile {
 public:
  /// Throws bad_request naming the file if it is there already or cannot be made.
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// They throw internal_error naming the file.
  void write(std::string_view bytes);
  void commit();

 private:
  const std::string path_;
  std::string part_;  // empty: standard output
  int fd_ = -1;
};

/// Gives a file ("-": standard input) to `visit` piece by piece, with the fraction of it (0 to 1; negative:
/// not known) that is behind the piece. Throws bad_request naming the file if it cannot be read.
void read_file(const std::string& path,
               const std::function<void(std::string_view piece, double fraction)>& visit);

/// Writes a directory's entries to the disk. Throws internal_error naming it.
void sync_directory(const std::string& path);

}  // namespace divan::app
