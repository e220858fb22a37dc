#include "divan/api/static_files.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "divan/base/error.h"
#include "divan/http/etag.h"
#include "divan/http/serializer.h"

namespace divan::api {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".css", "text/css; charset=utf-8"},
    {".eot", "application/vnd.ms-fontobject"},
    {".gif", "image/gif"},
    {".html", "text/html; charset=utf-8"},
    {".ico", "image/vnd.microsoft.icon"},
    {".jpg", "image/jpeg"},
    {".js", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".png", "image/png"},
    {".svg", "image/svg+xml"},
    {".ttf", "font/ttf"},
    {".txt", "text/plain; charset=utf-8"},
    {".woff", "font/woff"},
    {".woff2", "font/woff2"},
};

std::int64_t modified_s(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mtime : 0;
}

StaticFile read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  // An empty file has nothing to insert, which would count as a failure.
  if (in.peek() != std::ifstream::traits_type::eof()) content << in.rdbuf();
  if (!in.is_open() || in.bad() || content.fail())
    throw bad_request(fmt::format("Cannot read {}.", path.string()));
  StaticFile file{.content = std::move(content).str(),
                  .type = std::string(media_type(path.string())),
                  .last_modified = http::http_date(modified_s(path))};
  file.etag = http::etag_of(file.content);
  return file;
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

}  // namespace

std::string_view media_type(std::string_view path) {
  for (const auto& [extension, type] : kTypes) {
    if (path.ends_with(extension)) return type;
  }
  return "application/octet-stream";
}

StaticFiles::StaticFiles(const std::string& directory) {
  std::size_t bytes = 0;
  try {
    for (auto it = fs::recursive_directory_iterator(directory); it != fs::recursive_directory_iterator();
         ++it) {
      if (it->is_directory() && is_hidden(*it)) it.disable_recursion_pending();
      if (it->is_symlink() || !it->is_regular_file() || is_hidden(*it)) continue;
      bytes += it->file_size();
      if (files_.size() == kMaxFiles || bytes > kMaxBytes) {
        throw bad_request(
            fmt::format("{} has more than {} files or {} bytes: it is not that of a web interface.",
                        directory, kMaxFiles, kMaxBytes));
      }
      files_.emplace(it->path().lexically_relative(directory).string(), read_file(*it));
    }
  } catch (const fs::filesystem_error& error) {
    throw bad_request(fmt::format("Cannot read {}: {}", directory, error.code().message()));
  }
  if (!files_.contains("index.html")) throw bad_request(fmt::format("{} has no index.html.", directory));
}

StaticFiles::StaticFiles(std::span<const EmbeddedFile> files) : is_embedded_(true) {
  for (const auto& [path, gzip] : files) {
    StaticFile file{.content = std::string(gzip), .is_gzip = true, .type = std::string(media_type(path))};
    file.etag = http::etag_of(file.content);
    files_.emplace(path, std::move(file));
  }
}

const StaticFile* StaticFiles::find(std::string_view path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

}  // namespace divan::api
