// Requests in the form of protocol.h, as whole frames.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "divan/js/program.h"
#include "divan/js/protocol.h"

namespace divan::js {

inline constexpr Duration kDefaultInvocation = std::chrono::seconds(5);

// Limits without a time for an invocation are written with kDefaultInvocation.

/// Throws bad_request if the sources are too long for a frame or there are more than protocol::kMaxFunctions.
std::string load_request(std::uint32_t slot, std::span<const Function> functions, const Limits& limits,
                         std::string_view lib = {});

/// How many of the documents, from the first on, fit into one request. Throws internal_error if not one does.
std::size_t fitting(std::span<const std::string_view> documents);
/// Likewise for groups.
std::size_t fitting(std::span<const ReduceGroup> groups);

/// The documents fit.
std::string map_request(std::uint32_t slot, std::span<const std::string_view> documents,
                        const Limits& limits);

/// The groups fit.
std::string reduce_request(std::uint32_t slot, bool rereduce, std::span<const ReduceGroup> groups,
                           const Limits& limits);

}  // namespace divan::js
