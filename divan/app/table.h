// Tables and other text for people. What is shown comes from others (an id, an error's text), and must not
// play with the terminal that it is shown on.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::app {

/// The text with what a terminal would act on as JSON's escapes: control characters (line ends, too) as "\n"
/// or "\u001b", and those that turn the direction of writing; bytes that are no UTF-8 as "\xff".
std::string printable(std::string_view text);

/// How many columns a terminal takes for printable text: East Asian characters and emoji take two, combining
/// ones none.
std::size_t display_width(std::string_view text);

/// As much of printable text as fits into so many columns; a cut is seen by the "…" at its end.
std::string cut(std::string_view text, std::size_t columns);

using Row = std::vector<std::string>;

/// Columns as wide as their widest cell, a line for each row, cells made printable. With `columns`, lines are
/// cut to so many.
std::string format_table(const std::vector<Row>& rows, std::optional<std::size_t> columns = std::nullopt);

/// Size of the terminal that standard output is; nothing if it is none.
struct TerminalSize {
  std::size_t columns;
  std::size_t lines;
};
std::optional<TerminalSize> terminal_size();

/// Prints a table on standard output, cut to the terminal if it is one.
void print_table(const std::vector<Row>& rows);

}  // namespace divan::app
