// The server's parsing of responses of a divan-js process, which may be controlled by a script. The first
// byte selects the kind of response and the size of the request.
#include <cstdint>
#include <cstdlib>

#include "divan/base/bytes.h"
#include "divan/js/responses.h"

namespace {

using namespace divan;
using namespace divan::js;

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const Failure& failure) {
  require(failure.kind >= FailureKind::exception && failure.kind < FailureKind::crashed);
  require(is_utf8(failure.message));
}

void check(const Log& log, std::size_t functions) {
  require(log.lines.size() <= protocol::kMaxLogLines);
  for (const auto& line : log.lines) require(line.function < functions && is_utf8(line.text));
}

// Every text must be within the response: the sanitizer checks the accesses.
void check(const MapResult& result, std::size_t response_size) {
  std::size_t size = 0;
  std::size_t sum = 0;
  for (std::size_t document = 0; document < result.documents(); ++document) {
    for (std::size_t function = 0; function < result.functions(); ++function) {
      if (const auto* failure = result.failure(document, function)) {
        check(*failure);
        require(result.emitted(document, function).empty());
      }
      for (const auto& [key, value] : result.emitted(document, function)) {
        for (const char c : key) sum += static_cast<unsigned char>(c);
        for (const char c : value) sum += static_cast<unsigned char>(c);
        size += key.size() + value.size() + 8;
      }
    }
  }
  require(size <= response_size && sum <= 255 * size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view response(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t sent = 1 + (data[0] >> 2) % 8;
  const std::size_t functions = data[0] >> 5;
  Log log;
  switch (data[0] % 4) {
    case 0:
      if (auto result = parse_map_response(std::string(response), sent, functions, log)) {
        require(result->documents() >= 1 && result->documents() <= sent);
        auto twice = std::move(*result);
        Log ignored;
        twice.append(*parse_map_response(std::string(response), sent, functions, ignored));
        check(twice, 2 * response.size());
        check(log, functions);
      }
      break;
    case 1:
      for (const auto& parse : {parse_reduce_response, parse_apply_response}) {
        log = Log();
        const auto outcomes = parse(response, sent, log);
        if (!outcomes) continue;
        require(!outcomes->empty() && outcomes->size() <= sent);
        for (const auto& outcome : *outcomes) {
          if (const auto* failure = std::get_if<Failure>(&outcome)) check(*failure);
        }
        check(log, 1);
      }
      break;
    case 2:
      if (const auto failures = parse_load_response(response, functions, log)) {
        require(failures->size() == functions);
        for (const auto& failure : *failures) {
          if (failure) check(*failure);
        }
        check(log, functions);
      }
      break;
    default:
      parse_hello(response);
      parse_stuck_response(response);
      if (const auto list = parse_list_response(response, log)) {
        if (const auto* failure = std::get_if<Failure>(&list->outcome)) {
          require(list->state == ListState::ended);
          check(*failure);
        }
        check(log, 1);
      }
  }
  return 0;
}
