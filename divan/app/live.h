// Output that is updated continuously.
#pragma once

#include <chrono>
#include <string_view>

#include "divan/app/table.h"

namespace divan::app {

/// Makes Ctrl-C a regular way to end this command: it ends the program with `status`, on a terminal after a
/// newline.
void end_on_interrupt(int status);

/// Parses --interval, the time between two polls: a duration (times.h) of at least 100 ms. Throws
/// bad_request.
std::chrono::milliseconds parse_interval(std::string_view text);

/// Text that is redrawn: on a terminal it replaces the previous text, truncated to the terminal's size;
/// otherwise the blocks are separated by empty lines. Not thread-safe.
class LiveView {
 public:
  /// Draws a line above the table (unless it is empty), and the table. Both may contain untrusted text.
  void draw(std::string_view heading, const std::vector<Row>& table);
  /// Prints a line unchanged, for --json.
  static void print_line(std::string_view line);

 private:
  std::size_t drawn_ = 0;  // lines on the terminal
  bool begun_ = false;
};

}  // namespace divan::app
