// Revisions of a document: a generation number and an identifier, "2-7051cbe5c8faecd085a3fa619e6e6337".
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::docs {

/// The highest generation of a replicated revision; edits may go on behind it.
inline constexpr std::uint32_t kMaxGeneration = 1u << 31;
/// The longest identifier, in bytes.
inline constexpr std::size_t kMaxRevisionIdBytes = 256;

/// A revision. A value type; ordered as CouchDB orders candidates for the winner: by generation, then by the
/// bytes of the identifier.
struct Revision {
  std::uint32_t generation = 0;
  /// 16 bytes where the identifier is 32 hexadecimal digits (whatever their case: CouchDB prints them in
  /// lower case), else its text.
  std::string id;

  auto operator<=>(const Revision&) const = default;

  /// "N-id".
  std::string to_string() const;

  /// Reads "N-id"; nothing if it is not of that form. N is 0 to 2^32 - 1, the identifier at most 256 bytes
  /// of UTF-8. As in CouchDB it may be empty ("1-").
  static std::optional<Revision> parse(std::string_view text);

  /// An identifier's text in the form of `id`.
  static std::string parse_id(std::string_view text);
  static std::string id_to_string(std::string_view id);
};

/// Reads "N-id" or throws bad_request "Invalid rev format".
Revision parse_revision(std::string_view text);

/// The identifier of a new revision: a digest of what it contains, so that the same edit made in two places
/// gives the same revision. `parent` is empty for a first revision. Thread-safe.
std::string revision_id(bool deleted, const std::optional<Revision>& parent, std::string_view body);

}  // namespace divan::docs
