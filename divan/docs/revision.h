// Revisions of a document: a generation number and an identifier, "2-7051cbe5c8faecd085a3fa619e6e6337".
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::docs {

/// The highest generation of a replicated revision; edits may exceed it.
inline constexpr std::uint32_t kMaxGeneration = 1u << 31;
/// Maximum size of an identifier in bytes.
inline constexpr std::size_t kMaxRevisionIdBytes = 256;

/// A revision. A value type; ordered as CouchDB orders candidates for the winner: by generation, then by the
/// bytes of the identifier.
struct Revision {
  std::uint32_t generation = 0;
  /// 16 bytes if the identifier is 32 hexadecimal digits (of any case: CouchDB prints them in lower case),
  /// otherwise its text.
  std::string id;

  auto operator<=>(const Revision&) const = default;

  /// "N-id".
  std::string to_string() const;

  /// Parses "N-id"; nullopt if `text` does not have that form. N is from 0 to 2^32 - 1, the identifier at
  /// most 256 bytes of UTF-8. As in CouchDB it may be empty ("1-").
  static std::optional<Revision> parse(std::string_view text);

  /// Converts an identifier's text to the form of `id`.
  static std::string parse_id(std::string_view text);
  static std::string id_to_string(std::string_view id);
};

/// Parses "N-id"; throws bad_request "Invalid rev format".
Revision parse_revision(std::string_view text);

/// The identifier of a new revision: a digest of its content, so that the same edit on two servers yields the
/// same revision. `parent` is nullopt for a first revision. Thread-safe.
std::string revision_id(bool deleted, const std::optional<Revision>& parent, std::string_view body);

}  // namespace divan::docs
