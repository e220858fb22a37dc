#include "divan/docs/check_consistency.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/leaf_row.h"

namespace divan::docs {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

constexpr std::size_t kMaxNamed = 20;

// Reads the leaves of a database, and the body and the change of each.
class ConsistencyCheck {
 public:
  ConsistencyCheck(kv::RowSource& rows, kv::Findings& findings, const std::string& database,
                   std::int64_t number)
      : rows_(rows), findings_(findings), database_(database), keys_(number) {}

  void run(std::uint64_t bodies, std::uint64_t changes) {
    const std::string revs = keys_.section(Section::revs);
    rows_.scan(below(revs), [&](std::string_view key, std::string_view value) {
      try {
        Reader reader(key.substr(revs.size()));
        auto id = reader.take_string();
        if (id) check_leaf(*std::move(id), decode_leaf(reader, value));
      } catch (const Error&) {}  // the damaged row is a finding already
      return named_ < kMaxNamed;
    });
    check_change();
    if (named_ >= kMaxNamed) return;
    if (bodies > bodies_owned_) name(fmt::format("{} bodies belong to no document.", bodies - bodies_owned_));
    if (changes > changes_owned_)
      name(fmt::format("{} rows of the changes belong to no document.", changes - changes_owned_));
  }

 private:
  void check_leaf(std::string id, Leaf leaf) {
    if (document_ && document_->id != id) check_change();
    if (!document_) document_ = DocumentRows{std::move(id)};
    document_->add(std::move(leaf));
    const Leaf& added = document_->last;
    if (added.chunks > 0) check_body(added);
    for (const OldRevision& old : added.old) {
      if (old.chunks > 0) check_body(added.ancestor(old));
    }
  }

  void check_body(const Leaf& leaf) {
    std::string prefix;
    keys_.packer(prefix, Section::body).versionstamp(leaf.sequence);
    kv::ChunkedValue body(prefix);
    rows_.scan(below(prefix), [&](std::string_view key, std::string_view value) {
      body.add(Reader(key.substr(prefix.size())).take_int().value_or(-1), value);
      return true;
    });
    if (body.chunks() > 0) ++bodies_owned_;
    const char* what = nullptr;
    if (body.chunks() != leaf.chunks || body.bytes() != leaf.body_bytes) {
      what = body.chunks() == 0 ? "missing" : "incomplete";
    } else if (!is_body(body.text())) {
      what = "not a JSON object";
    }
    if (what == nullptr) return;
    name(fmt::format("the body of document {}, revision {}, is {}.", document_->id,
                     leaf.revision().to_string(), what));
  }

  void check_change() {
    if (!document_) return;
    const Change wanted = document_->change();
    document_.reset();
    const auto row = rows_.get(keys_.change(wanted.sequence));
    if (row) ++changes_owned_;
    std::string stamp;
    Packer(stamp).versionstamp(wanted.sequence);
    try {
      if (row) {
        const Change found = decode_change(stamp, *row);
        if (change_digest(found) == change_digest(wanted)) return compare_leaves(found, wanted);
      }
    } catch (const Error&) {}  // the damaged row is a finding already
    name(fmt::format("document {} has {} in the changes.", wanted.id, row ? "a wrong row" : "no row"));
  }

  void compare_leaves(const Change& found, const Change& wanted) {
    if (!found.other_leaves || found.other_leaves == wanted.other_leaves) return;
    name(fmt::format("document {} has {} leaves besides its winner, but {} in the changes.", wanted.id,
                     *wanted.other_leaves, *found.other_leaves));
  }

  void name(const std::string& what) {
    findings_.add(fmt::format("Database {}: {}", database_, what));
    ++named_;
  }

  kv::RowSource& rows_;
  kv::Findings& findings_;
  const std::string& database_;
  const DatabaseKeys keys_;
  std::optional<DocumentRows> document_;
  std::uint64_t bodies_owned_ = 0;
  std::uint64_t changes_owned_ = 0;
  std::size_t named_ = 0;
};

}  // namespace

Change DocumentRows::change() const {
  Change change;
  change.sequence = sequence;
  change.id = id;
  change.winner = last.revision();
  change.deleted = last.deleted;
  change.body_sequence = last.sequence;
  change.chunks = last.chunks;
  change.other_leaves = leaves - 1;
  return change;
}

bool is_body(std::optional<std::string_view> text) {
  return text && text->starts_with('{') && json::is_compact(*text);
}

std::string body_digest(std::string_view stamp_bytes, std::uint64_t chunks, std::uint64_t bytes) {
  std::string digest(stamp_bytes);
  append_varint(digest, chunks);
  append_varint(digest, bytes);
  return digest;
}

std::string change_digest(const Change& change) {
  std::string digest(change.sequence.bytes());
  Packer(digest)
      .string(change.id)
      .boolean(change.deleted)
      .integer(change.winner.generation)
      .bytes(change.winner.id)
      .versionstamp(change.body_sequence)
      .integer(change.chunks);
  return digest;
}

std::optional<std::string> conflict_digest(const Change& change) {
  if (change.other_leaves.value_or(0) == 0) return std::nullopt;
  std::string digest = change_digest(change);
  Packer(digest).integer(*change.other_leaves);
  return digest;
}

void report_inconsistencies(kv::RowSource& rows, kv::Findings& findings, const std::string& database,
                            std::int64_t number, std::uint64_t bodies, std::uint64_t changes) {
  ConsistencyCheck(rows, findings, database, number).run(bodies, changes);
}

}  // namespace divan::docs
