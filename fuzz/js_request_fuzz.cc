// divan-js's parsing of requests. A parsed request that is encoded again has the same bytes.
#include <cstdint>
#include <cstdlib>

#include "divan/js/requests.h"
#include "divan/js/sandbox/request.h"

namespace {

using namespace divan;
using namespace divan::js;

std::string written(const sandbox::Request& request) {
  Limits limits;
  limits.invocation = std::chrono::milliseconds(request.invocation_ms);
  limits.batch = std::chrono::milliseconds(request.batch_ms);
  if (const auto* load = std::get_if<sandbox::LoadRequest>(&request.what)) {
    std::vector<Function> functions;
    for (const auto& [name, text] : load->functions)
      functions.push_back({std::string(name), std::string(text)});
    return load_request(load->slot, functions, limits, load->root);
  }
  if (const auto* apply = std::get_if<sandbox::ApplyRequest>(&request.what)) {
    std::vector<Arguments> calls;
    for (const auto& [first, last] : apply->calls) calls.push_back({first, last});
    return apply_request(apply->slot, apply->result, calls, limits);
  }
  if (const auto* list = std::get_if<sandbox::ListRequest>(&request.what))
    return list_request(list->slot, list->arguments, list->rows, limits);
  if (const auto* rows = std::get_if<sandbox::RowsRequest>(&request.what))
    return rows_request(rows->rows, rows->is_last, limits);
  const auto& map = std::get<sandbox::MapRequest>(request.what);
  return map_request(map.slot, map.documents, limits);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view frame(reinterpret_cast<const char*>(data), size);
  const auto request = sandbox::parse_request(frame);
  // The last arguments of a call may be left out, or repeated, if they are equal to those before.
  if (const auto* apply = request ? std::get_if<sandbox::ApplyRequest>(&request->what) : nullptr) {
    if (apply->result == ResultKind::truth) return 0;
    for (const auto& call : apply->calls) {
      if (call.last.empty()) return 0;
    }
  }
  // A limit outside of the server's range is accepted, but would be written as the nearest one in the range.
  // The texts of a reduce request are not rows any more.
  const auto sent = [](std::uint32_t ms) { return ms >= 1 && ms <= 1U << 30; };
  if (!request || request->kind == protocol::RequestKind::reduce) return 0;
  if (!sent(request->invocation_ms) || !sent(request->batch_ms)) return 0;
  if (written(*request).substr(4) != frame) std::abort();
  return 0;
}
