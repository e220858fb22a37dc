// Rows of a full-text index of arbitrary bytes: they are read, or found to be damaged. The first byte selects
// the kind of row. What is read can be written again.
#include "divan/index/search/live_documents.h"
#include "fuzz/check.h"

namespace {

using divan::fuzz::check;
using namespace divan::index::search;

void read_entries(Column column, std::string_view value) {
  EntryReader reader(column, 1, value);
  EntryWriter writer;
  for (Entry entry; reader.next(entry);) {
    switch (column) {
      case Column::terms: {
        const auto occurrences = decode_occurrences(entry.payload);
        check(decode_positions(occurrences).size() == occurrences.frequency);
        break;
      }
      case Column::numbers: decode_numbers(entry.payload); break;
      default: decode_strings(entry.payload);
    }
    writer.add(entry.number, entry.payload);
  }
  EntryReader again(column, 1, writer.value());
  for (Entry entry; again.next(entry);) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto input = divan::fuzz::text_of(data, size);
  if (input.empty()) return 0;
  const auto value = input.substr(1);
  divan::fuzz::answers(500, [&] {
    switch (input[0] % 9) {
      case 0:
        check(IndexState::decode(IndexState::decode(value).encode()).encode() ==
              IndexState::decode(value).encode());
        return;
      case 1: check(StoredDocument::decode(value).encode() == value); return;
      case 2: decode_number(value); return;
      case 3: {
        const auto numbers = NumberSet::decode(value).numbers();
        check(NumberSet::decode(NumberSet::decode(value).encode()).numbers() == numbers);
        return;
      }
      case 4: parse_row_key(value); return;
      default: read_entries(Column{input[0] % 9 - 5}, value);
    }
  });
  return 0;
}
