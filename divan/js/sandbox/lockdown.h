// Drops the privileges that a process of untrusted code must not have: files, sockets, processes, unbounded
// memory.
//
// The engine is the first line of defence (a script has no function with access to the system); this is the
// second, for a script that exploits the engine. It has two parts: one before the engine starts, and one
// after it, when its threads run and its files are read.
#pragma once

#include <cstddef>

namespace divan::js::sandbox {

// The sanitizers' run-time libraries need system calls and memory that lock_down() forbids.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// Closes all file descriptors above standard error, leaves the working directory, disables core dumps and
/// makes this process the first victim of the kernel's OOM killer.
void shed_inheritance();

/// Irreversibly sets: no new privileges, at most `data_bytes` of memory, no new file descriptors, standard
/// error to /dev/null, and a system call filter for all threads. The filter is a list of allowed calls
/// (private memory, time, locks, reading requests, writing responses, exiting). Calls that the C library
/// attempts but does not need (opening a time zone file, counting processors) fail with EPERM. Every other
/// call, also with a number of another architecture, kills the process (SIGSYS): only an exploited engine
/// makes it.
///
/// Sanitizer builds have neither the limits nor the filter; with the address sanitizer, a request for more
/// than 100 MB of memory fails. Returns true if the filter is active. Exits with kExitSetUp if a call fails.
bool lock_down(std::size_t data_bytes);

}  // namespace divan::js::sandbox
