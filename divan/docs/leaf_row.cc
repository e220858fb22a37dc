#include "divan/docs/leaf_row.h"

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/docs/document.h"

namespace divan::docs {
namespace {

// More than all attachments of a document may have.
constexpr std::uint64_t kMaxAttachmentBytes = std::uint64_t{1} << 50;

std::uint64_t take_number(std::string_view& bytes) {
  const auto number = take_varint(bytes);
  if (!number) throw damaged_document();
  return *number;
}

// What the number of attachments of an old revision is multiplied by, to leave space for two flags.
constexpr std::uint64_t kFlags = 4;
constexpr std::uint64_t kIsDeleted = 1;
constexpr std::uint64_t kIsOfSameCommit = 2;  // as the leaf: its row has the user version only

void append_old_revision(std::string& value, const OldRevision& old) {
  const bool is_of_same_commit = !old.sequence.is_complete();
  append_varint(value, old.index);
  append_varint(value, old.attachments * kFlags + (is_of_same_commit ? kIsOfSameCommit : 0) +
                           (old.deleted ? kIsDeleted : 0));
  if (is_of_same_commit) {
    append_varint(value, old.sequence.user_version());
  } else {
    value += old.sequence.bytes();
  }
  append_varint(value, old.body_bytes);
  if (old.attachments > 0) append_varint(value, old.own_attachment_bytes);
}

void check_body_size(std::uint64_t bytes, std::uint64_t attachments) {
  if (bytes > kMaxDocumentBytes || attachments > bytes) throw damaged_document();
}

kv::Versionstamp take_sequence(std::string_view& value) {
  const auto sequence = kv::Versionstamp::from_bytes(value.substr(0, kv::Versionstamp::kSize));
  if (!sequence || !sequence->is_complete()) throw damaged_document();
  value.remove_prefix(kv::Versionstamp::kSize);
  return *sequence;
}

kv::Versionstamp take_user_version(std::string_view& value, const kv::Versionstamp& leaf) {
  const std::uint64_t user_version = take_number(value);
  if (user_version > UINT16_MAX) throw damaged_document();
  return kv::Versionstamp::complete(leaf.transaction_version(), static_cast<std::uint16_t>(user_version));
}

OldRevision take_old_revision(std::string_view& value, const kv::Versionstamp& leaf) {
  OldRevision old;
  const std::uint64_t index = take_number(value);
  const std::uint64_t flagged = take_number(value);
  const std::uint64_t attachments = flagged / kFlags;
  if (index > UINT32_MAX) throw damaged_document();
  old.index = static_cast<std::uint32_t>(index);
  old.deleted = (flagged & kIsDeleted) != 0;
  old.sequence = (flagged & kIsOfSameCommit) != 0 ? take_user_version(value, leaf) : take_sequence(value);
  old.body_bytes = take_number(value);
  check_body_size(old.body_bytes, attachments);
  old.chunks = body_chunks(old.body_bytes);
  old.attachments = static_cast<std::uint32_t>(attachments);
  if (old.attachments > 0) old.own_attachment_bytes = take_number(value);
  if (old.own_attachment_bytes > kMaxAttachmentBytes) throw damaged_document();
  return old;
}

// The old revisions of a leaf, which has read the rest of its row.
std::vector<OldRevision> take_old_revisions(std::string_view& value, std::uint64_t ancestors,
                                            const kv::Versionstamp& leaf) {
  std::vector<OldRevision> revisions;
  const std::uint64_t count = take_number(value);
  if (count == 0 || count > ancestors || count > kMaxOldRevisions) throw damaged_document();
  std::uint32_t before = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    revisions.push_back(take_old_revision(value, leaf));
    const std::uint32_t index = revisions.back().index;
    if (index <= before || index > ancestors) throw damaged_document();
    before = index;
  }
  return revisions;
}

// Added to the number of chunks, which is smaller.
constexpr std::uint64_t kIsNew = 1024;           // the document exists since this leaf
constexpr std::uint64_t kHasExistsSince = 2048;  // since another write, whose sequence follows the numbers
static_assert(kMaxBodyChunks < kIsNew);

// What the row says of Leaf::exists_since. A leaf of the first generation is new unless the row has a
// sequence, as in older versions.
std::uint64_t existence_flag(const Leaf& leaf) {
  if (leaf.exists_since == kv::Versionstamp()) return 0;
  if (leaf.exists_since != leaf.sequence) return kHasExistsSince;
  return leaf.path.generation == 1 ? 0 : kIsNew;
}

}  // namespace

std::string encode_leaf(const Leaf& leaf) {
  // decode_leaf() rejects other rows.
  DIVAN_CHECK(!leaf.path.ids.empty() && leaf.path.ids.size() <= leaf.path.generation,
              "{} revisions up to generation {}", leaf.path.ids.size(), leaf.path.generation);
  DIVAN_CHECK(leaf.body_bytes <= kMaxDocumentBytes && leaf.chunks == body_chunks(leaf.body_bytes),
              "a body of {} bytes in {} chunks", leaf.body_bytes, leaf.chunks);
  std::string value(leaf.sequence.bytes());
  const std::uint64_t existence = existence_flag(leaf);
  append_varint(value, leaf.chunks + existence);
  append_varint(value, leaf.body_bytes);
  if (existence == kHasExistsSince) {
    DIVAN_CHECK(leaf.exists_since.is_complete(), "a leaf would have two sequences of its commit");
    value += leaf.exists_since.bytes();
  }
  append_varint(value, leaf.path.ids.size() - 1);
  for (std::size_t i = 1; i < leaf.path.ids.size(); ++i) {
    append_varint(value, leaf.path.ids[i].size());
    value += leaf.path.ids[i];
  }
  if (leaf.attachments > 0 || !leaf.old.empty()) append_varint(value, leaf.attachments);
  if (leaf.old.empty()) return value;
  append_varint(value, leaf.old.size());
  for (const OldRevision& old : leaf.old) append_old_revision(value, old);
  return value;
}

Leaf decode_leaf(kv::tuple::Reader id_after, std::string_view value) {
  Leaf leaf;
  const auto live = id_after.take_int();
  const auto generation = id_after.take_int();
  auto identifier = id_after.take_bytes();
  if (!live || !generation || !identifier || !id_after.at_end()) throw damaged_document();
  if (*live < 0 || *live > 1 || *generation < 1 || *generation > UINT32_MAX) throw damaged_document();
  leaf.deleted = *live == 0;
  leaf.sequence = take_sequence(value);
  std::uint64_t chunks = take_number(value);
  const std::uint64_t existence = chunks & (kIsNew | kHasExistsSince);
  chunks -= existence;
  leaf.body_bytes = take_number(value);
  check_body_size(leaf.body_bytes, 0);
  if (chunks != body_chunks(leaf.body_bytes)) throw damaged_document();
  leaf.chunks = static_cast<std::uint32_t>(chunks);
  leaf.path.generation = static_cast<std::uint32_t>(*generation);
  if (existence == kHasExistsSince) {
    leaf.exists_since = take_sequence(value);
    if (leaf.exists_since > leaf.sequence) throw damaged_document();
  } else if (existence > kHasExistsSince) {
    throw damaged_document();
  } else if (existence == kIsNew || leaf.path.generation == 1) {
    leaf.exists_since = leaf.sequence;
  }
  const std::uint64_t ancestors = take_number(value);
  if (ancestors > value.size() || ancestors >= leaf.path.generation) throw damaged_document();
  leaf.path.ids.reserve(ancestors + 1);
  leaf.path.ids.push_back(*std::move(identifier));
  for (std::uint64_t i = 0; i < ancestors; ++i) {
    const std::uint64_t size = take_number(value);
    if (size > value.size()) throw damaged_document();
    leaf.path.ids.emplace_back(value.substr(0, size));
    value.remove_prefix(size);
  }
  if (!value.empty()) {
    const std::uint64_t attachments = take_number(value);
    check_body_size(leaf.body_bytes, attachments);
    leaf.attachments = static_cast<std::uint32_t>(attachments);
    if (attachments == 0 || !value.empty()) leaf.old = take_old_revisions(value, ancestors, leaf.sequence);
    if (!value.empty()) throw damaged_document();
  }
  return leaf;
}

}  // namespace divan::docs
