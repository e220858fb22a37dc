#include "divan/docs/changes.h"

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/docs/reader.h"
#include "divan/kv/tuple_packer.h"

namespace divan::docs {
namespace {

// A scan ends after skipping more bytes of unwanted bodies than this, and a new one begins at the next wanted
// body.
constexpr std::size_t kMaxSkippedBytes = 64 << 10;

Error damaged() { return internal_error("A row of the changes in the store is damaged."); }

kv::Versionstamp with_user_version(const kv::Versionstamp& stamp, std::int64_t user_version) {
  if (user_version < 0 || user_version > UINT16_MAX) throw damaged();
  return kv::Versionstamp::complete(stamp.transaction_version(), static_cast<std::uint16_t>(user_version));
}

kv::KeyRange after(const Database& database, const kv::Versionstamp& since) {
  return {database.keys().change(since) + '\0', below(database.keys().section(Section::changes)).end};
}

void visit_range(kv::Transaction& tx, const Database& database, const kv::KeyRange& range, bool reverse,
                 const ChangeVisitor& visit) {
  if (range.begin >= range.end) return;
  const std::size_t prefix = database.keys().section(Section::changes).size();
  tx.scan(range, {.reverse = reverse, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            return visit(decode_change(key.substr(prefix), value));
          });
}

}  // namespace

Change decode_change(std::string_view key_after_section, std::string_view value) {
  Change change;
  kv::tuple::Reader key(key_after_section);
  const auto sequence = key.take_versionstamp();
  kv::tuple::Reader reader(value);
  auto id = reader.take_string();
  const auto deleted = reader.take_bool();
  const auto generation = reader.take_int();
  auto identifier = reader.take_bytes();
  if (!sequence || !id || !deleted || !generation || !identifier) throw damaged();
  change.sequence = *sequence;
  change.id = *std::move(id);
  change.deleted = *deleted;
  if (*generation < 1 || *generation > UINT32_MAX) throw damaged();
  change.winner = {static_cast<std::uint32_t>(*generation), *std::move(identifier)};
  if (const auto user_version = reader.take_int()) {
    change.body_sequence = with_user_version(*sequence, *user_version);
  } else if (const auto elsewhere = reader.take_versionstamp()) {
    change.body_sequence = *elsewhere;
  } else {
    throw damaged();
  }
  const auto chunks = reader.take_int();
  if (!chunks || *chunks < 0 || *chunks > kMaxBodyChunks) throw damaged();
  change.chunks = static_cast<std::uint32_t>(*chunks);
  if (!reader.at_end()) {
    const auto others = reader.take_int();
    if (!others || *others < 0 || *others > UINT32_MAX) throw damaged();
    change.other_leaves = static_cast<std::uint32_t>(*others);
  }
  if (!reader.at_end() || !key.at_end()) throw damaged();
  return change;
}

void prefetch_changes(kv::Prefetch& reads, const Database& database, const kv::Versionstamp& since,
                      std::size_t limit) {
  if (kv::KeyRange range = after(database, since); range.begin < range.end)
    reads.range(std::move(range), limit);
}

void visit_changes(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                   const ChangeVisitor& visit) {
  visit_range(tx, database, after(database, since), false, visit);
}

void visit_changes_backwards(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                             const std::optional<kv::Versionstamp>& before, const ChangeVisitor& visit) {
  kv::KeyRange range = after(database, since);
  if (before) range.end = database.keys().change(*before);
  visit_range(tx, database, range, true, visit);
}

std::int64_t count_changes(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                           std::int64_t limit) {
  std::int64_t count = 0;
  tx.scan(after(database, since), {.isolation = kv::Isolation::snapshot},
          [&](std::string_view, std::string_view) { return ++count < limit; });
  return count;
}

std::vector<std::string> read_bodies(kv::Transaction& tx, const Database& database,
                                     std::span<const Change> changes, std::size_t max_bytes) {
  std::vector<std::string> bodies(changes.size());
  std::size_t scanned_bytes = 0;
  const bool reverse = changes.size() > 1 && changes.back().sequence < changes.front().sequence;
  // A scan reads, in order, the bodies of winners that were written with their document's last change. If
  // many other bodies are between two of them, a new scan begins. Winners whose document's last change was to
  // a losing revision are read one by one.
  std::size_t next = 0;
  const auto is_scanned = [&](const Change& change) {
    return change.chunks > 0 &&
           change.body_sequence.transaction_version() == change.sequence.transaction_version();
  };
  const auto skip_to_scanned = [&] {
    while (next < changes.size() && !is_scanned(changes[next])) ++next;
  };
  skip_to_scanned();
  const std::size_t prefix = database.keys().section(Section::body).size();
  for (bool scan_again = next < changes.size(); scan_again;) {
    scan_again = false;
    kv::KeyRange range = below(database.keys().section(Section::body));
    if (reverse) {
      range.end = database.keys().body(changes[next].body_sequence, changes[next].chunks);
    } else {
      range.begin = database.keys().body(changes[next].body_sequence, 0);
    }
    std::size_t skipped_bytes = 0;
    const kv::RangeOptions options{.reverse = reverse, .isolation = kv::Isolation::snapshot};
    tx.scan(range, options, [&](std::string_view key, std::string_view value) {
      const auto sequence = kv::tuple::Reader(key.substr(prefix)).take_versionstamp();
      if (!sequence) throw damaged();
      const auto is_past = [&](const kv::Versionstamp& wanted) {
        return reverse ? *sequence < wanted : wanted < *sequence;
      };
      while (next < changes.size() && is_past(changes[next].body_sequence)) {
        ++next;
        skip_to_scanned();
      }
      if (next == changes.size()) return false;
      if (changes[next].body_sequence != *sequence) {
        skipped_bytes += value.size();
        scan_again = skipped_bytes > kMaxSkippedBytes;
        return !scan_again;
      }
      if (scanned_bytes >= max_bytes && bodies[next].empty()) return false;
      // In descending order a body's last chunk comes first.
      bodies[next].insert(reverse ? 0 : bodies[next].size(), value);
      scanned_bytes += value.size();
      return true;
    });
  }
  DIVAN_CHECK(next <= changes.size(), "the bodies of {} changes of {} were read", next, changes.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (bytes >= max_bytes) {
      bodies.resize(i);
      break;
    }
    if (!is_scanned(changes[i])) {
      bodies[i] = read_body(tx, database, changes[i].body_sequence, changes[i].chunks);
    } else if (bodies[i].empty()) {
      throw internal_error("A document's body is missing in the store.");
    }
    bytes += bodies[i].size();
  }
  return bodies;
}

void write_change(kv::Transaction& tx, const Database& database, const Change& change,
                  std::optional<std::uint16_t> winner_user_version) {
  DIVAN_CHECK(!change.sequence.is_complete(), "a change is written with the sequence of another commit");
  DIVAN_CHECK(winner_user_version.has_value() != change.body_sequence.is_complete(),
              "the winner's body has either this transaction's sequence or an earlier one");
  DIVAN_CHECK(change.winner.generation > 0, "a winner without a generation");
  DIVAN_CHECK(change.chunks <= kMaxBodyChunks, "a body of {} chunks", change.chunks);
  std::string key;
  auto packer = database.keys().packer(key, Section::changes);
  packer.versionstamp(change.sequence).finish_versionstamped();
  std::string value;
  kv::tuple::Packer row(value);
  row.string(change.id).boolean(change.deleted).integer(change.winner.generation).bytes(change.winner.id);
  if (winner_user_version) {
    row.integer(*winner_user_version);
  } else {
    row.versionstamp(change.body_sequence);
  }
  row.integer(change.chunks);
  if (change.other_leaves) row.integer(*change.other_leaves);
  tx.set_versionstamped_key(key, value);
}

}  // namespace divan::docs
