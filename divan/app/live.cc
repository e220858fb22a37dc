#include "divan/app/live.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "divan/app/times.h"
#include "divan/base/error.h"

namespace divan::app {
namespace {

volatile sig_atomic_t interrupt_status = 0;
volatile sig_atomic_t on_terminal = 0;

// Ctrl-C: the terminal has written "^C" where the next line would begin.
void on_interrupt(int) {
  if (on_terminal != 0) [[maybe_unused]]
    const auto written = ::write(STDOUT_FILENO, "\n", 1);
  ::_exit(interrupt_status);
}

// The first lines of a text, all of which end with a newline.
std::string_view first_lines(std::string_view text, std::size_t count, std::size_t& taken) {
  std::size_t end = 0;
  for (taken = 0; taken < count && end < text.size(); ++taken) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

// Writes the text with one call, so that Ctrl-C does not interrupt it in the middle.
void write_out(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0)
    throw Error(500, "write_failed", "Cannot write to standard output.");
}

}  // namespace

void end_on_interrupt(int status) {
  interrupt_status = status;
  on_terminal = ::isatty(STDOUT_FILENO);
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
}

std::chrono::milliseconds parse_interval(std::string_view text) {
  const auto interval = parse_duration(text);
  if (interval < std::chrono::milliseconds(100))
    throw bad_request("--interval is too short; expected at least 100ms.");
  return interval;
}

void LiveView::draw(std::string_view heading, const std::vector<Row>& table) {
  const auto terminal = terminal_size();
  std::string text;
  if (!heading.empty()) {
    const std::string line = printable(heading);
    text = (terminal ? cut(line, terminal->columns) : line) + "\n";
  }
  text += format_table(table, terminal ? std::optional(terminal->columns) : std::nullopt);
  if (!terminal) {
    write_out((begun_ ? "\n" : "") + text);
    begun_ = true;
    return;
  }
  const std::string up = drawn_ > 0 ? fmt::format("\x1b[{}A", drawn_) : "";
  const auto shown = first_lines(text, terminal->lines - 1, drawn_);
  write_out(up + "\r\x1b[J" + std::string(shown));
}

void LiveView::print_line(std::string_view line) { write_out(std::string(line) + "\n"); }

}  // namespace divan::app
