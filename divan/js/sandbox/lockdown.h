// Giving up what a process of strangers' code must not have: files, sockets, processes, unbounded memory.
//
// The engine is the first wall (a script has no function that reaches outside); this is the second, for a
// script that breaks the engine. It is in two parts: what is done before the engine starts, and what can only
// be done after it, when its threads run and its files are read.
#pragma once

#include <cstddef>

namespace divan::js::sandbox {

// The sanitizers' run-time libraries need system calls and memory that lock_down() takes away.
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

/// Closes all file descriptors above standard error, leaves the working directory, forbids core dumps and
/// offers this process to the kernel first when memory runs out.
void shed_inheritance();

/// For good: no new privileges, at most `data_bytes` of memory, no new file descriptors, standard error to
/// nowhere, and a system call filter over all threads: a list of what is allowed (memory of its own, time,
/// locks, reading requests, writing answers, ending). What the C library does by itself now and then and can
/// do without (opening a time zone file, counting processors) is refused with EPERM. Everything else kills
/// the process (SIGSYS), also by the numbers of another architecture: only a broken engine asks for it, and
/// should not get to ask twice.
///
/// Built with a sanitizer it leaves out the memory limit and the filter. Returns true if the filter is
/// active. Ends the process with kExitSetUp if the kernel refuses.
bool lock_down(std::size_t data_bytes);

}  // namespace divan::js::sandbox
