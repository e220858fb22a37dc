// The limit beyond which a reduction is an error because it grows with the number of rows: CouchDB's settings
// reduce_limit, reduce_limit_threshold and reduce_limit_ratio in [query_server_config], and its rule
// (share/server/views.js and couch_query_servers.erl). It applies to each call of a function, whether it
// reduces rows or earlier results.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "divan/js/program.h"

namespace divan::js {

/// A value type.
struct ReduceLimit {
  enum class Mode {
    off,
    log,  // a result beyond the limit is accepted and logged
    on,
  };
  Mode mode = Mode::on;
  /// A result of up to this many bytes is always accepted.
  std::size_t threshold = 5000;
  /// A larger result must be this many times smaller than the input.
  double ratio = 2.0;

  bool exceeded(std::uint64_t bytes_in, std::size_t bytes_out) const {
    return mode != Mode::off && bytes_out > threshold &&
           static_cast<double>(bytes_out) * ratio > static_cast<double>(bytes_in);
  }
};

/// The name of a view's reduce function in CouchDB's errors.
inline std::string reduce_context(const Function& function) {
  return fmt::format("{}/{}/_view/{}", function.owner.database, function.owner.design_document,
                     function.name);
}

/// CouchDB's message for a result beyond the limit.
inline std::string overflow_message(std::uint64_t bytes_in, std::size_t bytes_out, std::string_view context) {
  return fmt::format("Reduce output must shrink more rapidly: input size: {} output size: {} context: {}",
                     bytes_in, bytes_out, context);
}

}  // namespace divan::js
