#include "divan/app/admins.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "divan/base/error.h"

namespace divan::app {
namespace {

constexpr const char* kDefaultAdmin = "admin";

// Writes a small secret file, synced and readable by its owner only.
void write_secret(const std::string& path, const std::string& line) {
  const std::string text = line + "\n";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written = fd >= 0 &&
                       ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!written) throw internal_error(fmt::format("Cannot write {}: {}", path, std::strerror(error)));
}

void add_admin(api::Accounts& accounts, const std::string& credentials) {
  const std::size_t colon = credentials.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == credentials.size()) {
    throw bad_request("Invalid administrator; expected NAME:PASSWORD.");
  }
  accounts.add_admin(credentials.substr(0, colon), credentials.substr(colon + 1));
}

}  // namespace

std::string admin_file(const std::string& data_dir) { return data_dir + "/admin"; }

std::optional<std::string> read_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || line.empty()) return std::nullopt;
  return line;
}

std::string choose_admins(api::Accounts& accounts, const Config& config, Rng& rng,
                          const std::string& data_dir, const std::string& admin) {
  const auto sections = config.all();
  const auto admins = sections.find("admins");
  if (admins != sections.end()) {
    for (const auto& [name, password] : admins->second) accounts.add_admin(name, password);
  }
  if (!admin.empty()) add_admin(accounts, admin);
  if (admins != sections.end() || !admin.empty()) return {};
  // A password is always required: anonymous clients are never administrators.
  const std::string file = admin_file(data_dir);
  const auto credentials = read_line(file);
  const std::string known = credentials.value_or(fmt::format("{}:{}", kDefaultAdmin, rng.uuid()));
  if (!credentials) write_secret(file, known);
  add_admin(accounts, known);
  return credentials ? std::string() : file;
}

}  // namespace divan::app
