#include "divan/kv/embedded/log_check.h"

#include <fmt/core.h>

#include <charconv>
#include <map>

#include "divan/kv/embedded/log_reader.h"
#include "divan/kv/embedded/manifest.h"
#include "divan/kv/embedded/snapshot.h"
#include "divan/kv/error.h"

namespace divan::kv::embedded {
namespace {

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// How a RocksDB write batch begins.
struct BatchHead {
  std::uint64_t sequence;  // of its first key
  std::uint64_t count;
};

std::optional<BatchHead> batch_head(std::string_view record) {
  if (record.size() < 12) return std::nullopt;
  return BatchHead{little_endian(record.substr(0, 8)), little_endian(record.substr(8, 4))};
}

// By number.
std::map<std::uint64_t, std::string> log_files(rocksdb::Env& env, const std::string& directory) {
  std::vector<std::string> files;
  check_status(env.GetChildren(directory, &files));
  std::map<std::uint64_t, std::string> logs;
  for (const auto& file : files) {
    std::uint64_t number = 0;
    if (!file.ends_with(".log")) continue;
    std::from_chars(file.data(), file.data() + file.size(), number);
    logs[number] = directory + "/" + file;
  }
  return logs;
}

}  // namespace

void LogChain::add(const std::string& file, std::string_view log) {
  LogReader reader(log);
  while (const auto record = reader.next()) {
    const auto batch = batch_head(record->head);
    if (!batch) continue;
    if (batch->sequence > next_.value_or(last_sequence_ + 1)) {
      throw Error(ErrorCode::io_error,
                  fmt::format("Commits that come before byte {} of {} are missing.", record->at, file));
    }
    next_ = std::max(next_.value_or(0), batch->sequence + batch->count);
  }
  if (reader.at_end()) return;
  const std::uint64_t next = next_.value_or(0);
  // A key takes a byte at the least.
  const std::uint64_t most = next_.value_or(last_sequence_ + 1) + log.size();
  const bool goes_on = reader.goes_on([&](std::string_view head) {
    const auto batch = batch_head(head);
    return batch && batch->sequence > next && batch->sequence <= most;
  });
  if (goes_on) throw damaged_file(file, reader.at(), "commits");
}

void check_logs(rocksdb::Env& env, const std::string& directory) {
  const auto file = manifest_file(env, directory);
  if (!file) return;
  const Manifest manifest = read_manifest(*file, read_file(env, *file));
  auto logs = log_files(env, directory);
  logs.erase(logs.begin(), logs.lower_bound(manifest.first_log));
  // A log is created, and its directory synced, before the manifest drops the logs before it.
  if (logs.empty() && manifest.first_log > 0) {
    throw Error(ErrorCode::io_error,
                fmt::format("{}/{:06}.log is missing, or a later one.", directory, manifest.first_log));
  }
  LogChain chain(manifest.last_sequence);
  for (const auto& [number, log] : logs) chain.add(log, read_file(env, log));
}

}  // namespace divan::kv::embedded
