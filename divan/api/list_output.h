// What a list function that reads its rows in pages sends to the client.
//
// The function does not wait for the client: it would hold its process meanwhile. Output that the client has
// not read is held in memory; if that is too much, the list ends, and the connection is cut. When the
// function has ended, the rest is sent as fast as the client reads.
#pragma once

#include <deque>
#include <string>

#include "divan/api/function_threads.h"
#include "divan/api/page_stream.h"

namespace divan::api {

/// The response that the output of a list begins, without a body. If the output does not begin one, an empty
/// one, with the fields that protect the server's origin: the function may have removed its head.
http::Response list_head(std::string_view output);
/// The text of the output.
std::string list_body(std::string_view output);

/// Not thread-safe.
class ListOutput {
 public:
  /// `database` is the number of the database for which the memory counts.
  ListOutput(const Context& context, Call& call, std::int64_t database)
      : call_(call), memory_(context.function_threads.reserve(database, 0)), head_(list_head("{}")) {}

  /// Adds the output of a step (js::ResultKind::list), and sends what the connection takes at once. Throws
  /// list_error (500) if the client reads too slowly, and as response_of().
  void add(const std::string& output);
  /// Adds the last output, and returns what has not been sent. To be called once.
  std::unique_ptr<PageSource> finish(const std::string& output);
  /// The head of the response.
  http::Response take_head() { return std::move(head_); }

 private:
  void append(const std::string& output);
  void send();

  Call& call_;
  FunctionThreads::Reservation memory_;
  std::size_t reserved_ = 0;
  http::Response head_;
  std::deque<std::string> held_;
  std::size_t held_bytes_ = 0;
};

}  // namespace divan::api
