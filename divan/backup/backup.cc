#include "divan/backup/backup.h"

#include "divan/kv/tuple_packer.h"

namespace divan::backup {
namespace {

// Far below the store's limit, which counts more than keys and values.
constexpr std::size_t kTransactionBytes = 4 << 20;

std::string packed(std::string_view text) {
  std::string key;
  kv::tuple::Packer(key).string(text);
  return key;
}

}  // namespace

bool write_backup(kv::Database& store, const Header& header, const ByteSink& sink) {
  const std::string commit_marks = packed("txid");
  Writer writer(header, sink);
  bool going_on = true;
  const kv::Version version = store.dump([&](std::string_view key, std::string_view value) {
    if (!key.starts_with(commit_marks)) going_on = writer.add(key, value);
    return going_on;
  });
  return going_on && writer.finish(version);
}

void RowLoader::add(std::string_view key, std::string_view value) {
  rows_.push_back({std::string(key), std::string(value)});
  bytes_ += key.size() + value.size();
  if (bytes_ >= kTransactionBytes) flush();
}

void RowLoader::flush() {
  // What counts besides keys and values, the engine knows.
  for (std::size_t done = 0; done < rows_.size();) {
    done = store_.run([&](kv::Transaction& tx) {
      std::size_t next = done;
      while (next < rows_.size() && tx.approximate_size() < kTransactionBytes) {
        tx.set(rows_[next].key, rows_[next].value);
        ++next;
      }
      return next;
    });
  }
  rows_.clear();
  bytes_ = 0;
}

void RowLoader::finish(kv::Version version) {
  flush();
  store_.advance_version(version);
}

}  // namespace divan::backup
