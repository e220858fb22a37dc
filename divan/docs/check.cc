#include "divan/docs/check.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/check_validators.h"
#include "divan/docs/contents.h"
#include "divan/docs/leaf_row.h"
#include "divan/docs/partition_setting.h"
#include "divan/docs/purge.h"
#include "divan/docs/validation.h"

namespace divan::docs {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

std::string attachments_digest(std::string_view stamp_bytes, std::uint64_t attachments) {
  std::string digest(stamp_bytes);
  append_varint(digest, attachments);
  return digest;
}

Error wrong(std::string_view what) { return internal_error(std::string(what)); }

template <class Value>
Value required(std::optional<Value> value) {
  if (!value) throw wrong("this is not a key of a database");
  return *std::move(value);
}

}  // namespace

bool Check::row(std::string_view key, std::string_view value) {
  try {
    if (database_row(key, value)) return section_ != static_cast<std::int64_t>(Section::indexes);
    if (const auto upload = read_upload_row(key, value)) {
      uploads_.erase(*upload);
      return true;
    }
    if (auto row = read_catalog_row(key, value)) {
      catalog_.emplace(row->name, *row);
      check_database_name(row->name);
      return true;
    }
    static const std::string next_number = [] {
      std::string packed;
      Packer(packed).string("next_db");
      return packed;
    }();
    if (key != next_number) return false;
    if (value.size() != 8) throw wrong("a counter must have 8 bytes");
    next_number_ = kv::decode_counter(value);
  } catch (const Error& error) { findings_.add(error.reason(), key); }
  return true;
}

bool Check::database_row(std::string_view key, std::string_view value) {
  const auto number = database_number(key);
  if (!number) {
    end_section();
    return false;
  }
  Reader reader(key);
  reader.take_string();
  reader.take_int();
  const std::int64_t section = required(reader.take_int());
  if (*number != number_ || section != section_) {
    end_section();
    number_ = *number;
    tally_ = &tallies_[number_];
    section_ = section;
  }
  const std::string_view rest = reader.rest();
  switch (static_cast<Section>(section)) {
    case Section::config: config_row(rest, value); break;
    case Section::stats: stats_row(rest, value); break;
    case Section::revs: leaf_row(rest, value); break;
    case Section::body: body_row(rest, value); break;
    case Section::changes: change_row(rest, value); break;
    case Section::local: local_row(rest, value); break;
    case Section::attachments: attachment_row(rest, value); break;
    case Section::indexes: break;
    case Section::purges: purge_row(rest, value); break;
    default: throw wrong("unknown section of a database");
  }
  return true;
}

void Check::config_row(std::string_view rest, std::string_view value) {
  if (!kv::has_shape(rest, "s")) throw wrong("the key of a setting must end with its name");
  json::compact(value);
  const auto name = Reader(rest).take_string();
  if (name == kValidators) tally_->may_validate = true;
  if (name == kPartitioned) tally_->is_partitioned = value == "true";
}

void Check::stats_row(std::string_view rest, std::string_view value) {
  auto name = Reader(rest).take_string();
  if (!name || !kv::has_shape(rest, "s") || value.size() != 8) throw wrong("a counter is damaged");
  tally_->counters[*std::move(name)] = kv::decode_counter(value);
}

void Check::check_version(const kv::Versionstamp& stamp) {
  if (kv::is_beyond(stamp, version_))
    throw wrong(fmt::format("its versionstamp is greater than the store's version {}", version_));
}

void Check::leaf_row(std::string_view rest, std::string_view value) {
  Reader reader(rest);
  auto id = required(reader.take_string());
  if (document_ && document_->id != id) end_document();
  Leaf leaf = decode_leaf(reader, value);
  if (!document_) document_ = DocumentRows{std::move(id)};
  if (is_design(document_->id)) tally_->may_validate = true;
  expect_body(leaf.sequence, leaf.chunks, leaf.body_bytes, leaf.attachments);
  for (const OldRevision& old : leaf.old) {
    expect_body(old.sequence, old.chunks, old.body_bytes, old.attachments);
    tally_->old.add(old);
  }
  tally_->bytes += static_cast<std::int64_t>(leaf.body_bytes);
  document_->add(std::move(leaf));
  for (const OldRevision& old : document_->last.old) check_version(old.sequence);
  check_version(document_->last.sequence);
}

void Check::expect_body(const kv::Versionstamp& sequence, std::uint64_t chunks, std::uint64_t bytes,
                        std::uint64_t attachments) {
  if (chunks > 0) tally_->expected_bodies.add(body_digest(sequence.bytes(), chunks, bytes));
  if (attachments > 0) tally_->expected_attachments.add(attachments_digest(sequence.bytes(), attachments));
}

void Check::end_document() {
  if (!document_) return;
  ++(document_->last.deleted ? tally_->deleted : tally_->docs);
  const Change change = document_->change();
  tally_->expected_changes.add(change_digest(change));
  if (const auto digest = conflict_digest(change)) tally_->expected_conflicts.add(*digest);
  document_.reset();
}

// `prefix` identifies the value within its section; `rest` is the remaining key, the chunk's number.
void Check::chunk_row(std::string_view prefix, std::string_view rest, std::string_view value) {
  if (value_ && value_->id() != prefix) end_value();
  if (!value_) value_.emplace(std::string(prefix));
  const auto number = required(Reader(rest).take_int());
  if (!kv::has_shape(rest, "i")) throw wrong("the key of a chunk must end with its number");
  if (!value_->add(number, value)) throw wrong("the previous chunk is missing or incomplete");
}

void Check::body_row(std::string_view rest, std::string_view value) {
  Reader reader(rest);
  const auto stamp = required(reader.take_versionstamp());
  chunk_row(stamp.bytes(), reader.rest(), value);
  check_version(stamp);
}

void Check::end_value() {
  if (!value_) return;
  if (section_ == static_cast<std::int64_t>(Section::body)) {
    const auto chunks = static_cast<std::uint64_t>(value_->chunks());
    // The digest of a damaged body matches no leaf, so that its document is searched for.
    const bool is_valid = is_body(value_->text()) && count_attachments(*value_->text());
    tally_->bodies.add(body_digest(value_->id() + (is_valid ? "" : "damaged"), chunks, value_->bytes()));
  } else if (const auto text = value_->text()) {
    Reader reader(*text);
    const auto revision = reader.take_int();
    if (!revision || *revision < 1 || !is_body(reader.rest())) {
      tally_->locals.add("this local document is not a revision and a JSON object",
                         DatabaseKeys(number_).local(value_->id(), 0));
    }
  }
  value_.reset();
}

void Check::end_content() {
  if (!content_) return;
  const UploadKey upload{number_, content_->id()};
  if (content_->is_upload()) uploads_.insert(upload);
  // The chunks of a compressed upload come after its marker.
  const auto digest = content_->digest();
  if (digest && !uploads_.contains(upload)) tally_->contents.add(*digest);
  content_.reset();
}

bool Check::count_attachments(std::string_view body) {
  try {
    const auto attachments = attachments_of(body);
    if (attachments.empty()) return true;
    tally_->attachments.add(attachments_digest(value_->id(), attachments.size()));
    for (const auto& attachment : attachments) tally_->expected_references.add(attachment.md5);
    return true;
  } catch (const Error&) { return false; }
}

void Check::attachment_row(std::string_view rest, std::string_view value) {
  Reader reader(rest);
  const auto kind = static_cast<ContentRow>(required(reader.take_int()));
  if (kind == ContentRow::chunk || kind == ContentRow::deflated_chunk) {
    const auto id = required(reader.take_bytes());
    if (content_ && (content_->row() != kind || content_->id() != id)) end_content();
    if (!content_) content_.emplace(kind, id);
    return content_->add(reader.rest(), value);
  }
  const auto md5 = required(reader.take_bytes());
  if (!reader.at_end()) throw wrong("the key of a content must end with its MD5");
  if (kind == ContentRow::content) {
    const Content content = decode_content(value);
    tally_->attachment_bytes += static_cast<std::int64_t>(content.length);
    tally_->all_contents.add(md5);
    // An empty one has no chunks.
    if (content.length > 0) tally_->expected_contents.add(content_digest(md5, content));
  } else if (kind == ContentRow::references) {
    const auto count = value.size() == 8 ? kv::decode_counter(value) : 0;
    if (count <= 0) throw wrong("the number of a content's references is damaged");
    tally_->referenced_contents.add(md5);
    tally_->references.add(md5, static_cast<std::uint64_t>(count));
  } else {
    throw wrong("unknown kind of a row of attachments");
  }
}

void Check::purge_row(std::string_view rest, std::string_view value) {
  Reader reader(rest);
  const auto kind = static_cast<PurgeRow>(required(reader.take_int()));
  if (kind == PurgeRow::record) {
    ++tally_->purge_records;
    return check_version(decode_purge_record(reader.rest(), value).sequence);
  }
  if (kind != PurgeRow::document) throw wrong("unknown kind of a row of purges");
  check_version(decode_purged_document(reader.rest(), value).sequence);
}

void Check::change_row(std::string_view rest, std::string_view value) {
  const Change change = decode_change(rest, value);
  tally_->changes.add(change_digest(change));
  if (const auto digest = conflict_digest(change)) tally_->conflicts.add(*digest);
  check_version(change.sequence);
}

void Check::local_row(std::string_view rest, std::string_view value) {
  Reader reader(rest);
  const auto id = required(reader.take_string());
  chunk_row(id, reader.rest(), value);
}

void Check::end_section() {
  end_document();
  end_value();
  end_content();
  section_ = number_ = -1;
}

void Check::finish(kv::RowSource& rows) {
  end_section();
  check_catalog();
  std::set<std::int64_t> known = orphans_;
  for (const auto& [name, row] : catalog_) {
    known.insert(row.number);
    const Tally& tally = tallies_[row.number];
    databases_.push_back({name, tally.docs, tally.deleted, tally.bytes});
    compare(databases_.back(), row.number, tally, rows);
    if (row.is_partitioned != tally.is_partitioned)
      findings_.add(
          fmt::format("Database {}: its record and its settings disagree whether it is partitioned.", name));
    findings_.add(tally.locals);
  }
  for (const auto& [number, id] : uploads_) {
    if (const auto name = name_of(number))
      findings_.add(
          fmt::format("Database {}: upload {} of an attachment would never be removed.", *name, to_hex(id)));
  }
  for (const auto& [number, tally] : tallies_) {
    if (!known.contains(number))
      findings_.add(
          fmt::format("The store has rows of database number {}, which is not in the catalog.", number));
  }
}

std::optional<std::string> Check::name_of(std::int64_t number) const {
  for (const auto& [name, row] : catalog_) {
    if (row.number == number) return name;
  }
  return std::nullopt;
}

void Check::check_catalog() {
  std::map<std::int64_t, std::string> names;
  for (const auto& [name, row] : catalog_) {
    const auto [other, is_new] = names.emplace(row.number, name);
    if (!is_new)
      findings_.add(
          fmt::format("Databases {} and {} have the same number {}.", other->second, name, row.number));
    if (row.number < 0 || row.number >= next_number_)
      findings_.add(fmt::format("Database {} has number {}, which was never assigned.", name, row.number));
  }
}

void Check::compare(const Summary& database, std::int64_t number, const Tally& tally, kv::RowSource& rows) {
  const auto compare_counter = [&](const char* name, std::int64_t counted) {
    const auto it = tally.counters.find(name);
    const std::int64_t stored = it == tally.counters.end() ? 0 : it->second;
    if (stored != counted)
      findings_.add(fmt::format("Database {}: its counter `{}` is {}, but should be {}.", database.name, name,
                                stored, counted));
  };
  compare_counter("docs", tally.docs);
  compare_counter("deleted", tally.deleted);
  compare_counter("bytes", tally.bytes);
  compare_counter("attachment_bytes", tally.attachment_bytes);
  compare_counter(kOldBytes.data(), tally.old.bodies);
  compare_counter(kOldAttachmentBytes.data(), tally.old.attachments);
  compare_counter(kPurgeRecords.data(), tally.purge_records);
  if (tally.attachments != tally.expected_attachments)
    findings_.add(fmt::format("Database {}: the rows of its documents do not say which have attachments.",
                              database.name));
  if (tally.contents != tally.expected_contents)
    findings_.add(fmt::format("Database {}: contents of attachments are missing, damaged, or belong to none.",
                              database.name));
  if (tally.references != tally.expected_references || tally.all_contents != tally.referenced_contents)
    findings_.add(fmt::format("Database {}: the numbers of references to contents of attachments are wrong.",
                              database.name));
  if (tally.may_validate) check_validators(rows, findings_, database.name, number);
  // Changes written by older versions lack the number of leaves: the sums of conflicts then differ although
  // nothing is wrong, and report_inconsistencies() adds no finding.
  if (tally.bodies != tally.expected_bodies || tally.changes != tally.expected_changes ||
      tally.conflicts != tally.expected_conflicts)
    report_inconsistencies(rows, findings_, database.name, number, tally.bodies.count(),
                           tally.changes.count());
}

}  // namespace divan::docs
