// Checks of what must hold whatever a client sends and whatever the disk holds.
//
// A check that fails has found a fault in Divan itself. It ends the process at once, before anything that
// follows from the fault is written: the store recovers from that as from SIGKILL. A check is no place for
// what comes from outside (requests, configuration, files, rows of the store, answers of child processes):
// that is refused with an Error, or reported as damaged.
#pragma once

#include <fmt/core.h>

/// Ends the process if `condition` is false, with a message that can be reported: a format string and its
/// arguments as for fmt::format, which are evaluated only then. In every build; never throws. Scalars and
/// string views are good arguments: they are copied.
///
///   DIVAN_CHECK(next > last, "version {} follows {}", next, last);
#define DIVAN_CHECK(condition, ...)                                                             \
  do {                                                                                          \
    if (!(condition)) [[unlikely]] {                                                            \
      ::divan::check_failed(::divan::FailedCheck{__FILE__, __LINE__, #condition}, __VA_ARGS__); \
    }                                                                                           \
  } while (false)

namespace divan {

/// Where a check stands and what it says.
struct FailedCheck {
  const char* file;
  int line;
  const char* condition;
};

[[noreturn, gnu::cold, gnu::noinline]] void end_process(const FailedCheck& check, fmt::string_view format,
                                                        fmt::format_args args) noexcept;

// By value: a variable whose address is taken for the message would have to stay in memory everywhere.
template <class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void check_failed(FailedCheck check,
                                                         fmt::format_string<const Args&...> format,
                                                         Args... args) noexcept {
  end_process(check, format, fmt::make_format_args(args...));
}

}  // namespace divan
