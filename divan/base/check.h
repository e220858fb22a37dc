// Checks of invariants: conditions that hold for any request and any content of the disk.
//
// A failed check has found a fault in Divan itself. It ends the process at once, before the store is changed
// because of the fault; the store recovers as after SIGKILL. Do not check input (requests, configuration,
// files, rows of the store, responses of child processes): reject it with an Error, or report it as damaged.
#pragma once

#include <fmt/core.h>

/// Ends the process if `condition` is false. The message is a format string and its arguments, as for
/// fmt::format; the arguments are evaluated only on failure, and copied, so prefer scalars and string views.
/// Enabled in every build.
///
///   DIVAN_CHECK(next > last, "version {} follows {}", next, last);
#define DIVAN_CHECK(condition, ...)                                                             \
  do {                                                                                          \
    if (!(condition)) [[unlikely]] {                                                            \
      ::divan::check_failed(::divan::FailedCheck{__FILE__, __LINE__, #condition}, __VA_ARGS__); \
    }                                                                                           \
  } while (false)

namespace divan {

/// The location and the text of a check.
struct FailedCheck {
  const char* file;
  int line;
  const char* condition;
};

[[noreturn, gnu::cold, gnu::noinline]] void end_process(const FailedCheck& check, fmt::string_view format,
                                                        fmt::format_args args) noexcept;

// Arguments are passed by value: if their addresses were taken, the caller could not keep them in registers.
template <class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void check_failed(FailedCheck check,
                                                         fmt::format_string<const Args&...> format,
                                                         Args... args) noexcept {
  end_process(check, format, fmt::make_format_args(args...));
}

}  // namespace divan
