// The order of view rows. CouchDB compares keys as JSON values; here each key is encoded as bytes whose
// memcmp order is CouchDB's order, so that a range of keys is a range of the store.
//
// CouchDB's order (its documentation, "Views Collation", and couch_ejson_compare.c):
//   null < false < true < numbers < strings < arrays < objects
// Numbers compare by value, strings by ICU's root collator, arrays element by element, objects member by
// member in the order in which they are written (the name, then the value); what ends first comes first.
//
// The encoding is one byte for the type and then
//   null, false, true    nothing
//   number               the nearest double, 8 bytes, with the bits changed so that they sort as unsigned
//                        numbers; -0 is 0. From 2^53 to 2^126 there are 10 bytes more: the difference between
//                        the exact value and that double, plus 2^79
//   string               ICU's sort key, which has no zero byte but the last
//   array                its elements, and a zero
//   object               each member's name (as a string) and value, and a zero
// No encoding is a prefix of another. So the rows of one key are those that begin with its encoding, whatever
// follows it in a row's key; a row's key should put the document's id there, since that is CouchDB's order of
// rows with equal keys.
//
// What equal means is CouchDB's, too: 1 and 1.0 are one key, and so are strings that the collator ignores the
// difference of ("c" and "c" with a zero-width space; an e with an accent in one code point or in two).
//
// Integers order exactly up to 2^126, as CouchDB's unbounded integers do, and as doubles beyond. Numbers
// beyond the range of doubles, which CouchDB does not take, come first and last of the numbers. A repeated
// member counts as often as it is written (CouchDB keeps the last).
#pragma once

#include <string>
#include <string_view>

namespace divan::index::views {

/// Which order: `unicode` is the default of views. `raw` is what a view with options.collation = "raw" has:
/// numbers < false < null < true < objects < arrays < strings, the latter by their bytes.
enum class Collation { unicode, raw };

/// Comes after every encoded key.
inline constexpr std::string_view kAfterAllKeys = "\xff";

/// Appends the encoding of a value in the form of json::compact(). Throws an internal error for text that is
/// not in that form, and bad_request for a string of more than 16 MiB. Thread-safe, as all functions here.
void append_key(std::string& out, std::string_view json, Collation collation = Collation::unicode);

/// The encoding of a value in the form of json::compact(): see append_key().
std::string encode_key(std::string_view json, Collation collation = Collation::unicode);

/// The first bytes after all rows with this key: the end of a range whose endkey is included. (The encoding
/// itself is the end of one whose endkey is not, and the beginning of one from this key on.)
std::string after_key(std::string_view encoded);

/// What the rows of a group have in common when grouping by the first `level` (at least 1) elements of array
/// keys: the encoding up to the end of element `level`, or all of it for a shorter array and for what is no
/// array. The group's rows are those that begin with it. Throws an internal error if `encoded` is not an
/// encoding.
std::string_view group_prefix(std::string_view encoded, std::size_t level,
                              Collation collation = Collation::unicode);

/// Names everything that the encoding depends on. An index keeps it, and is built anew when it has changed.
std::string collation_version(Collation collation = Collation::unicode);

}  // namespace divan::index::views
