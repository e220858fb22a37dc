#include "divan/app/table.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace divan::app {
namespace {

// Roughly Unicode's East Asian Width W and F.
constexpr CharacterRange kWide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
                                    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
                                    {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                                    {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd}};
constexpr CharacterRange kCombining[] = {
    {0x0300, 0x036f}, {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};

std::size_t width_of(char32_t code) { return is_in(kCombining, code) ? 0 : is_in(kWide, code) ? 2 : 1; }

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const auto [code, bytes] = first_character(text);
    width += width_of(code);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return width;
}

std::string cut(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  std::size_t end = 0;
  for (std::size_t width = 0; end < text.size();) {
    const auto [code, bytes] = first_character(text.substr(end));
    width += width_of(code);
    if (width + 1 > columns) break;
    end += std::max<std::size_t>(bytes, 1);
  }
  return std::string(text.substr(0, end)) + (columns > 0 ? "…" : "");
}

std::string format_table(const std::vector<Row>& rows, std::optional<std::size_t> columns) {
  std::vector<Row> shown = rows;
  std::vector<std::size_t> widths;
  for (auto& row : shown) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  std::string out;
  for (const auto& row : shown) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += row[i] + std::string(widths[i] - display_width(row[i]) + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    out += (columns ? cut(line, *columns) : line) + "\n";
  }
  return out;
}

std::optional<TerminalSize> terminal_size() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1) return std::nullopt;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return TerminalSize{80, 24};
  return TerminalSize{size.ws_col, size.ws_row};
}

void print_table(const std::vector<Row>& rows) {
  const auto terminal = terminal_size();
  fmt::print("{}", format_table(rows, terminal ? std::optional(terminal->columns) : std::nullopt));
}

}  // namespace divan::app
