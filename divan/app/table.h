// Tables and other formatted output. The text may come from untrusted clients (an id, an error message), and
// must not control the terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/printable.h"

namespace divan::app {

/// The number of terminal columns of printable text: East Asian characters and emoji take two, combining ones
/// none.
std::size_t display_width(std::string_view text);

/// Truncates printable text to a number of columns; truncated text ends with "…".
std::string cut(std::string_view text, std::size_t columns);

using Row = std::vector<std::string>;

/// Formats a table with columns as wide as their widest cell, and a line for each row; makes cells printable.
/// With `columns`, lines are truncated to that width.
std::string format_table(const std::vector<Row>& rows, std::optional<std::size_t> columns = std::nullopt);

/// The size of the terminal on standard output; nullopt if it is not a terminal.
struct TerminalSize {
  std::size_t columns;
  std::size_t lines;
};
std::optional<TerminalSize> terminal_size();

/// Prints a table on standard output, truncated to the terminal's width if it is a terminal.
void print_table(const std::vector<Row>& rows);

}  // namespace divan::app
