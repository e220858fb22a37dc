// The keys of documents in the store. docs/keyspace.md describes them independently of the language.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "divan/docs/rev_tree.h"
#include "divan/kv/store.h"
#include "divan/kv/tuple_packer.h"

namespace divan::docs {

using kv::below;

/// The sections of a database's keyspace: the third element of its keys, ("db", number, section, ...).
enum class Section : int {
  config = 0,       // (name) = JSON
  stats = 1,        // (name) = counter
  revs = 2,         // (document id, live 0|1, generation, identifier) = leaf
  body = 3,         // (versionstamp, chunk) = chunk of the body
  changes = 4,      // (versionstamp) = change
  local = 5,        // (document id, chunk) = chunk of a local document
  attachments = 6,  // (ContentRow, ...): the contents of attachments
  indexes = 7,      // (signature, ...): divan/index
  purges = 8,       // (PurgeRow, versionstamp): what was purged
};

/// The kinds of rows in the section of attachments: the next element of their keys.
enum class ContentRow : int {
  content = 0,         // (MD5) = content
  references = 1,      // (MD5) = counter of the attachments with that content
  chunk = 2,           // (id, chunk) = chunk of a content; (id): the marker of an upload
  deflated_chunk = 3,  // (id, chunk) = compressed chunk of a content
};

/// The kinds of rows in the section of purges: the next element of their keys.
enum class PurgeRow : int {
  record = 0,    // (versionstamp) = the purge as it was requested
  document = 1,  // (versionstamp) = a document of which nothing is left
};

/// The name of the counter of these records.
inline constexpr std::string_view kPurgeRecords = "purge_records";
/// The names of the counters of OldSizes.
inline constexpr std::string_view kOldBytes = "old_bytes";
inline constexpr std::string_view kOldAttachmentBytes = "old_attachment_bytes";

/// The keys of one database. Immutable, hence thread-safe.
class DatabaseKeys {
 public:
  explicit DatabaseKeys(std::int64_t number) {
    kv::tuple::Packer packer(prefix_);
    packer.string("db").integer(number);
  }

  const std::string& prefix() const { return prefix_; }
  kv::KeyRange all() const { return below(prefix_); }

  /// The prefix of all keys in a section.
  std::string section(Section section) const {
    std::string key;
    packer(key, section);
    return key;
  }
  /// Sets `key` to the section's prefix, and returns a packer that appends to it.
  kv::tuple::Packer packer(std::string& key, Section section) const {
    key.reserve(prefix_.size() + 48);
    key = prefix_;
    kv::tuple::Packer packer(key);
    packer.integer(static_cast<int>(section));
    return packer;
  }

  std::string config(std::string_view name) const {
    std::string key;
    packer(key, Section::config).string(name);
    return key;
  }
  std::string stat(std::string_view name) const {
    std::string key;
    packer(key, Section::stats).string(name);
    return key;
  }
  std::string leaf(std::string_view id, bool deleted, const Revision& revision) const {
    std::string key;
    packer(key, Section::revs)
        .string(id)
        .integer(deleted ? 0 : 1)
        .integer(revision.generation)
        .bytes(revision.id);
    return key;
  }
  /// All leaves of a document.
  kv::KeyRange leaves(std::string_view id) const {
    std::string key;
    packer(key, Section::revs).string(id);
    return below(key);
  }
  std::string body(const kv::Versionstamp& sequence, std::uint32_t chunk) const {
    std::string key;
    packer(key, Section::body).versionstamp(sequence).integer(chunk);
    return key;
  }
  std::string change(const kv::Versionstamp& sequence) const {
    std::string key;
    packer(key, Section::changes).versionstamp(sequence);
    return key;
  }
  std::string content(std::string_view md5) const { return content_row(ContentRow::content, md5); }
  std::string content_references(std::string_view md5) const {
    return content_row(ContentRow::references, md5);
  }
  /// `row` is ContentRow::chunk or deflated_chunk.
  std::string content_chunk(ContentRow row, std::string_view id, std::uint32_t chunk) const {
    std::string key;
    packer(key, Section::attachments).integer(static_cast<int>(row)).bytes(id).integer(chunk);
    return key;
  }
  /// All chunks of a content, and with ContentRow::chunk its marker.
  kv::KeyRange content_chunks(ContentRow row, std::string_view id) const {
    return below(content_row(row, id));
  }
  /// The marker of an upload.
  std::string upload(std::string_view id) const { return content_row(ContentRow::chunk, id); }
  /// The prefix of the keys of one kind.
  std::string purges(PurgeRow row) const {
    std::string key;
    packer(key, Section::purges).integer(static_cast<int>(row));
    return key;
  }
  std::string purge(PurgeRow row, const kv::Versionstamp& sequence) const {
    std::string key;
    packer(key, Section::purges).integer(static_cast<int>(row)).versionstamp(sequence);
    return key;
  }
  std::string local(std::string_view id, std::uint32_t chunk) const {
    std::string key;
    packer(key, Section::local).string(id).integer(chunk);
    return key;
  }

 private:
  std::string content_row(ContentRow row, std::string_view bytes) const {
    std::string key;
    packer(key, Section::attachments).integer(static_cast<int>(row)).bytes(bytes);
    return key;
  }

  std::string prefix_;
};

}  // namespace divan::docs
