#include "divan/docs/leaf_row.h"

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/docs/document.h"

namespace divan::docs {
namespace {

std::uint64_t take_number(std::string_view& bytes) {
  const auto number = take_varint(bytes);
  if (!number) throw damaged_document();
  return *number;
}

}  // namespace

std::string encode_leaf(const Leaf& leaf) {
  // decode_leaf() rejects other rows.
  DIVAN_CHECK(!leaf.path.ids.empty() && leaf.path.ids.size() <= leaf.path.generation,
              "{} revisions up to generation {}", leaf.path.ids.size(), leaf.path.generation);
  DIVAN_CHECK(leaf.body_bytes <= kMaxDocumentBytes && leaf.chunks == body_chunks(leaf.body_bytes),
              "a body of {} bytes in {} chunks", leaf.body_bytes, leaf.chunks);
  std::string value(leaf.sequence.bytes());
  append_varint(value, leaf.chunks);
  append_varint(value, leaf.body_bytes);
  append_varint(value, leaf.path.ids.size() - 1);
  for (std::size_t i = 1; i < leaf.path.ids.size(); ++i) {
    append_varint(value, leaf.path.ids[i].size());
    value += leaf.path.ids[i];
  }
  if (leaf.attachments > 0) append_varint(value, leaf.attachments);
  return value;
}

Leaf decode_leaf(kv::tuple::Reader id_after, std::string_view value) {
  Leaf leaf;
  const auto live = id_after.take_int();
  const auto generation = id_after.take_int();
  auto identifier = id_after.take_bytes();
  const auto sequence = kv::Versionstamp::from_bytes(value.substr(0, kv::Versionstamp::kSize));
  if (!live || !generation || !identifier || !sequence || !sequence->is_complete() || !id_after.at_end())
    throw damaged_document();
  if (*live < 0 || *live > 1 || *generation < 1 || *generation > UINT32_MAX) throw damaged_document();
  leaf.deleted = *live == 0;
  leaf.sequence = *sequence;
  value.remove_prefix(kv::Versionstamp::kSize);
  const std::uint64_t chunks = take_number(value);
  leaf.body_bytes = take_number(value);
  if (leaf.body_bytes > kMaxDocumentBytes || chunks != body_chunks(leaf.body_bytes)) throw damaged_document();
  leaf.chunks = static_cast<std::uint32_t>(chunks);
  leaf.path.generation = static_cast<std::uint32_t>(*generation);
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
    if (attachments == 0 || attachments > leaf.body_bytes || !value.empty()) throw damaged_document();
    leaf.attachments = static_cast<std::uint32_t>(attachments);
  }
  return leaf;
}

}  // namespace divan::docs
