// Views that stay and change.
#pragma once

#include <chrono>
#include <string_view>

#include "divan/app/table.h"

namespace divan::app {

/// Ctrl-C is a way to end this command: from now on it ends the program with `status` and leaves the terminal
/// as it should be.
void end_on_interrupt(int status);

/// The time between two looks, from --interval: a duration (times.h) of 100 ms at least. Throws bad_request.
std::chrono::milliseconds parse_interval(std::string_view text);

/// Text that is drawn again and again: on a terminal in place of what was drawn before, cut to its size;
/// elsewhere one block after the other, with an empty line between. Not thread-safe.
class LiveView {
 public:
  /// A line above the table (none if it is empty), and the table. Both may have foreign text.
  void draw(std::string_view heading, const std::vector<Row>& table);
  /// A line as it is, for --json.
  static void print_line(std::string_view line);

 private:
  std::size_t drawn_ = 0;  // lines on the terminal
  bool begun_ = false;
};

}  // namespace divan::app
