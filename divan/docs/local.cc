#include "divan/docs/local.h"

#include <algorithm>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/docs/writer.h"
#include "divan/kv/chunks.h"

namespace divan::docs {
namespace {

Error damaged() { return internal_error("A local document's row in the store is damaged."); }

// The first chunk begins with the packed revision number.
void append_chunk(LocalDocument& document, bool first, std::string_view value) {
  if (first) {
    kv::tuple::Reader reader(value);
    const auto revision = reader.take_int();
    if (!revision || *revision < 1 || *revision == INT64_MAX) throw damaged();
    document.revision = *revision;
    value = reader.rest();
  }
  document.body += value;
}

std::string_view without_prefix(std::string_view id) {
  DIVAN_CHECK(id.starts_with(kLocalPrefix), "a document that is not local is stored as a local one");
  return id.substr(kLocalPrefix.size());
}

kv::KeyRange range_of(const Database& database, std::string_view id) {
  std::string key;
  database.keys().packer(key, Section::local).string(without_prefix(id));
  return below(key);
}

kv::KeyRange range_of(const Database& database, const DocumentRange& range) {
  // The first id after all those with the prefix.
  constexpr std::string_view kAfter = "_local0";
  const auto& lower = range.descending ? range.end_id : range.start_id;
  const auto& upper = range.descending ? range.start_id : range.end_id;
  const bool lower_inclusive = !range.descending || range.inclusive_end;
  const bool upper_inclusive = range.descending || range.inclusive_end;
  const auto key_of = [&](const std::string& id, bool after) {
    if (id < kLocalPrefix) return below(database.keys().section(Section::local)).begin;
    if (id >= kAfter) return below(database.keys().section(Section::local)).end;
    const kv::KeyRange rows = range_of(database, id);
    return after ? rows.end : rows.begin;
  };
  kv::KeyRange keys = below(database.keys().section(Section::local));
  if (lower) keys.begin = key_of(*lower, !lower_inclusive);
  if (upper) keys.end = key_of(*upper, upper_inclusive);
  return keys;
}

// A local revision's identifier is the number itself.
bool is_revision(const std::optional<Revision>& given, std::int64_t number) {
  return given && given->generation == 0 && given->id == std::to_string(number);
}

}  // namespace

std::optional<LocalDocument> read_local(kv::Transaction& tx, const Database& database, std::string_view id) {
  std::optional<LocalDocument> document;
  tx.scan(range_of(database, id), {}, [&](std::string_view, std::string_view value) {
    const bool first = !document;
    if (first) document.emplace();
    append_chunk(*document, first, value);
    return true;
  });
  return document;
}

std::int64_t write_local(kv::Transaction& tx, const Database& database, const IncomingDocument& document) {
  const auto present = read_local(tx, database, document.id);
  if (document.deleted && !present) throw not_found();
  if (present ? !is_revision(document.revision, present->revision) : document.revision.has_value())
    throw conflict();
  database.catalog().check_size(document.id, document.body);
  const std::int64_t revision = present ? present->revision + 1 : 1;
  tx.clear_range(range_of(database, document.id));
  if (!document.deleted) {
    std::string value;
    kv::tuple::Packer(value).integer(revision);
    value += document.body;
    kv::for_each_chunk(value, [&](std::uint32_t chunk, std::string_view part) {
      tx.set(database.keys().local(without_prefix(document.id), chunk), part);
    });
  }
  database.catalog().changed(tx, database, events::DatabaseEvent::local_updated, document.id);
  return document.deleted ? 0 : revision;
}

void visit_locals(kv::Transaction& tx, const Database& database, const DocumentRange& range,
                  const LocalVisitor& visit) {
  const kv::KeyRange keys = range_of(database, range);
  if (keys.begin >= keys.end) return;
  const std::string section = database.keys().section(Section::local);
  std::string id;
  std::vector<std::string> chunks;  // of the current document, in the order in which they are read
  bool wants_more = true;
  const auto finish = [&] {
    if (chunks.empty()) return;
    if (range.descending) std::ranges::reverse(chunks);
    LocalDocument document;
    for (std::size_t i = 0; i < chunks.size(); ++i) append_chunk(document, i == 0, chunks[i]);
    chunks.clear();
    wants_more = visit(std::string(kLocalPrefix) + id, document);
  };
  tx.scan(keys, {.reverse = range.descending, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            auto suffix = kv::tuple::Reader(key.substr(section.size())).take_string();
            if (!suffix) throw damaged();
            if (*suffix != id) finish();
            if (!wants_more) return false;
            id = *std::move(suffix);
            chunks.emplace_back(value);
            return true;
          });
  finish();
}

}  // namespace divan::docs
