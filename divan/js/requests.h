// Builds requests as complete frames (protocol.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "divan/js/program.h"
#include "divan/js/protocol.h"

namespace divan::js {

inline constexpr Duration kDefaultInvocation = std::chrono::seconds(5);

// If Limits::invocation is nullopt, kDefaultInvocation is sent.

/// Throws bad_request if the sources are too long for a frame or there are more than protocol::kMaxFunctions.
std::string load_request(std::uint32_t slot, std::span<const Function> functions, const Limits& limits,
                         std::string_view root = {});

/// Returns how many of the first documents fit into one request. Throws too_large (413) if the first one does
/// not fit.
std::size_t fitting(std::span<const std::string_view> documents);
/// The same for groups.
std::size_t fitting(std::span<const ReduceGroup> groups);
/// The same for calls.
std::size_t fitting(std::span<const Arguments> calls);

/// The documents must fit (see fitting()).
std::string map_request(std::uint32_t slot, std::span<const std::string_view> documents,
                        const Limits& limits);

/// The groups must fit (see fitting()).
std::string reduce_request(std::uint32_t slot, bool rereduce, std::span<const ReduceGroup> groups,
                           const Limits& limits);

/// The calls must fit (see fitting()), and have last arguments. With ResultKind::truth, calls whose last
/// arguments are equal to those before them share the objects, as they do in CouchDB's filters.
std::string apply_request(std::uint32_t slot, ResultKind result, std::span<const Arguments> calls,
                          const Limits& limits);

/// `arguments` and `rows` are JSON arrays. Throws too_large (413) if they do not fit into a frame.
std::string list_request(std::uint32_t slot, std::string_view arguments, std::string_view rows,
                         const Limits& limits);
/// `rows` is a JSON array. Throws too_large (413) if it does not fit into a frame.
std::string rows_request(std::string_view rows, bool is_last, const Limits& limits);

}  // namespace divan::js
