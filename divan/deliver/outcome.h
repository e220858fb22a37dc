// What the response to a delivery means for the job and its receiver. docs/delivery.md
#pragma once

#include <optional>
#include <string>

#include "divan/base/clock.h"
#include "divan/deliver/settings.h"
#include "divan/http_client/async_client.h"

namespace divan::deliver {

struct Outcome {
  enum class Kind {
    finish,
    detach,  // the receiver ends the job later
    fail,    // the attempt, which is repeated
    fail_permanently,
    release,  // the job is due again after `pause`; this is not counted as a failure
  };
  Kind kind = Kind::fail;
  std::string error{};                  ///< of failures; at most about 500 bytes
  std::string progress{};               ///< JSON, of finish and detach
  std::optional<std::string> result{};  ///< JSON, of finish
  Duration pause{};                     ///< of release
  bool is_receiver_down = false;        ///< a failure of the receiver, not of this job
};

/// The limits of a response's body, in bytes: of one that becomes the job's result, and of others, of which
/// the beginning is shown.
inline constexpr std::size_t kMaxResultBytes = 1'000'000;
inline constexpr std::size_t kMaxShownBytes = 65'536;

/// `host`: that responds, for the error.
Outcome outcome_of(const http_client::AsyncClient::Result& result, const Settings& settings,
                   const std::string& host);

/// True for statuses that ask to repeat the same request at another URL (RFC 9110, 15.4).
bool is_redirect(int status);

}  // namespace divan::deliver
