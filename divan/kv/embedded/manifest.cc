#include "divan/kv/embedded/manifest.h"

#include <fmt/core.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_reader.h>

#include <set>

#include "divan/base/bytes.h"
#include "divan/base/log.h"
#include "divan/kv/embedded/committer.h"
#include "divan/kv/embedded/log_reader.h"

namespace divan::kv::embedded {
namespace {

constexpr std::string_view kManifestName = "MANIFEST-";
// RocksDB takes such a file for a leftover of its own and removes it.
constexpr std::string_view kTemporaryName = "/000000.dbtmp";

// Of a RocksDB version edit, the fields that come before those of files.
void read_edit(std::string_view edit, Manifest& manifest) {
  enum Tag { comparator = 1, log = 2, next_file = 3, last_sequence = 4, previous_log = 9, log_to_keep = 10 };
  constexpr std::uint64_t kMaxColumnFamily = 203, kIgnorable = 1 << 13;
  while (const auto tag = take_varint(edit)) {
    const bool has_bytes = *tag == comparator || (*tag & kIgnorable) != 0;
    const bool has_number = *tag == log || *tag == next_file || *tag == last_sequence ||
                            *tag == previous_log || *tag == log_to_keep || *tag == kMaxColumnFamily;
    if (!has_bytes && !has_number) return;
    const auto number = take_varint(edit);
    if (!number) return;
    if (has_bytes) edit.remove_prefix(std::min<std::uint64_t>(*number, edit.size()));
    if (*tag == log) manifest.first_log = std::max(manifest.first_log, *number);
    if (*tag == last_sequence) manifest.last_sequence = std::max(manifest.last_sequence, *number);
  }
}

// Leaves either the old contents or the new, even after a power cut.
void replace_file(rocksdb::Env& env, const std::string& directory, const std::string& file,
                  std::string_view contents) {
  const std::string written = directory + std::string(kTemporaryName);
  check_status(rocksdb::WriteStringToFile(&env, slice(contents), written, /*should_sync=*/true));
  check_status(env.RenameFile(written, file));
  std::unique_ptr<rocksdb::Directory> renamed;
  check_status(env.NewDirectory(directory, &renamed));
  check_status(renamed->Fsync());
}

// Throws if a table that the store does not know holds later commits than the store.
void check_unknown_tables(const rocksdb::Options& options, const std::string& directory) {
  rocksdb::DB* opened = nullptr;
  check_status(rocksdb::DB::OpenForReadOnly(options, directory, &opened));
  const std::unique_ptr<rocksdb::DB> db(opened);
  std::string version;
  if (const auto status = db->Get(rocksdb::ReadOptions(), slice(kVersionKey), &version); !status.IsNotFound())
    check_status(status);
  std::vector<rocksdb::LiveFileMetaData> live;
  db->GetLiveFilesMetaData(&live);
  std::set<std::string> known;
  for (const auto& file : live) known.insert(file.name.substr(1));

  std::vector<std::string> files;
  check_status(options.env->GetChildren(directory, &files));
  for (const auto& file : files) {
    if (!file.ends_with(".sst") || known.contains(file)) continue;
    const std::string table = directory + "/" + file;
    rocksdb::SstFileReader reader(options);
    if (!reader.Open(table).ok()) continue;  // not written to its end, and so in no manifest
    const std::unique_ptr<rocksdb::Iterator> row(reader.NewIterator(rocksdb::ReadOptions()));
    row->Seek(slice(kVersionKey));
    // Versions are big-endian.
    if (row->Valid() && view(row->key()) == kVersionKey && view(row->value()) > version)
      throw Error(ErrorCode::io_error, fmt::format("{} has later commits than the store.", table));
  }
}

}  // namespace

Error damaged_file(const std::string& file, std::size_t at, std::string_view what_lies_behind) {
  return Error(ErrorCode::io_error,
               fmt::format("{} is damaged at byte {}, and {} lie behind it.", file, at, what_lies_behind));
}

std::string read_file(rocksdb::Env& env, const std::string& file) {
  std::string contents;
  check_status(rocksdb::ReadFileToString(&env, file, &contents));
  return contents;
}

std::optional<std::string> manifest_file(rocksdb::Env& env, const std::string& directory) {
  const std::string current = directory + "/CURRENT";
  if (!env.FileExists(current).ok()) return std::nullopt;
  const std::string name = read_file(env, current);
  if (!name.starts_with(kManifestName) || name.back() != '\n')
    throw Error(ErrorCode::io_error, fmt::format("{} is damaged.", current));
  return directory + "/" + name.substr(0, name.size() - 1);
}

Manifest read_manifest(const std::string& file, std::string_view contents) {
  Manifest manifest;
  LogReader reader(contents);
  while (const auto record = reader.next()) read_edit(record->head, manifest);
  if (!reader.at_end() && reader.goes_on([](std::string_view) { return true; }))
    throw damaged_file(file, reader.at(), "records");
  manifest.size = std::min(reader.at(), contents.size());
  return manifest;
}

void repair_manifest(const rocksdb::Options& options, const std::string& directory, bool durable) {
  const auto file = manifest_file(*options.env, directory);
  if (!file) return;
  const std::string contents = read_file(*options.env, *file);
  const Manifest manifest = read_manifest(*file, contents);
  if (manifest.size == contents.size()) return;
  replace_file(*options.env, directory, *file, std::string_view(contents).substr(0, manifest.size));
  try {
    if (durable) check_unknown_tables(options, directory);
  } catch (const Error& error) {
    replace_file(*options.env, directory, *file, contents);
    throw Error(ErrorCode::io_error,
                fmt::format("{} is damaged at byte {}. {}", *file, manifest.size, error.reason()));
  }
  log::warning("The power failed while {} was written: its incomplete last record was removed.", *file);
}

}  // namespace divan::kv::embedded
