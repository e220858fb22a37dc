// The order of view rows. CouchDB compares keys as JSON values. Divan encodes each key as bytes whose memcmp
// order is CouchDB's order, so that a range of keys is a range of the store.
//
// CouchDB's order (its documentation, "Views Collation", and couch_ejson_compare.c):
//   null < false < true < numbers < strings < arrays < objects
// Numbers compare by value, strings by ICU's root collator, arrays element by element, objects member by
// member in their original order (the name, then the value); a proper prefix comes first.
//
// The encoding is one byte for the type and then
//   null, false, true    no further bytes
//   number               the nearest double, 8 bytes, with the bits changed so that they sort as unsigned
//                        numbers; -0 is 0. From 2^53 to 2^126 there are 10 bytes more: the difference between
//                        the exact value and that double, plus 2^79
//   string               ICU's sort key, in which only the last byte is zero
//   array                its elements, and a zero
//   object               each member's name (as a string) and value, and a zero
// No encoding is a prefix of another. The rows of one key are therefore those that begin with its encoding,
// whatever follows it in a row's key. A row's key should have the document's id next, since that is CouchDB's
// order of rows with equal keys.
//
// Equality is CouchDB's, too: 1 and 1.0 are one key, and so are strings whose difference the collator ignores
// ("c" and "c" with a zero-width space; an e with an accent in one code point or in two).
//
// Integers are ordered exactly up to 2^126, as CouchDB's unbounded integers are, and as doubles beyond.
// Numbers beyond the range of doubles, which CouchDB rejects, sort before and after all other numbers. All
// occurrences of a duplicate member count (CouchDB keeps the last one).
#pragma once

#include <string>
#include <string_view>

namespace divan::collation {

/// `unicode` is the default order of views. `raw` is the order of a view with options.collation = "raw":
/// numbers < false < null < true < objects < arrays < strings; strings compare by their bytes.
enum class Collation { unicode, raw };

/// Sorts after every encoded key.
inline constexpr std::string_view kAfterAllKeys = "\xff";

/// Appends the encoding of a value in the form of json::compact(). Throws an internal error if the text is
/// not in that form, and bad_request for a string of more than 16 MiB. Thread-safe, as all functions here.
void append_key(std::string& out, std::string_view json, Collation collation = Collation::unicode);

/// The encoding of a value in the form of json::compact(): see append_key().
std::string encode_key(std::string_view json, Collation collation = Collation::unicode);

/// The common prefix of a group's rows when grouping by the first `level` (at least 1) elements of array
/// keys: the encoding up to the end of element `level`, or all of it for a shorter array and for other types.
/// The group's rows are those that begin with it. Throws an internal error if `encoded` is not an encoding.
std::string_view group_prefix(std::string_view encoded, std::size_t level,
                              Collation collation = Collation::unicode);

/// The version of everything that the encoding depends on. An index stores it, and is rebuilt if it has
/// changed.
std::string version(Collation collation = Collation::unicode);

}  // namespace divan::collation
