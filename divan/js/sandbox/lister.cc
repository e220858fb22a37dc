#include "divan/js/sandbox/lister.h"

#include <js/GCAPI.h>
#include <js/PropertyAndElement.h>
#include <unistd.h>

#include "divan/js/sandbox/channel.h"
#include "divan/js/sandbox/json_text.h"

namespace divan::js::sandbox {
namespace {

// Bytes of rows and output after which garbage is collected. The engine does not do so when the process's
// memory is exhausted, and most of the garbage is in strings, which are outside of its heap.
constexpr std::size_t kCollectAfter = std::size_t{16} << 20;

void put_state(std::string& response, ListState state) {
  protocol::put_u8(response, static_cast<std::uint8_t>(state));
}

void begin_response(std::string& response, ListState state) {
  begin_frame(response);
  protocol::put_u8(response, static_cast<std::uint8_t>(protocol::RequestKind::list));
  put_state(response, state);
}

}  // namespace

void Lister::list(const ListRequest& request) {
  put_state(response_, ListState::ended);
  engine_.log_for(0);
  std::optional<Failure> failure;
  if (const auto* compilation = program_.failure(0)) {
    failure = *compilation;
  } else {
    engine_.watchdog().begin_invocation();
    std::string out;
    if (run(request, out)) {
      protocol::put_u8(response_, 0);
      response_ += out;
    } else {
      failure = take_failure(engine_);
    }
    engine_.watchdog().end_invocation();
  }
  if (failure) protocol::put_failure(response_, *failure);
}

bool Lister::run(const ListRequest& request, std::string& out) {
  JSContext* context = engine_.context();
  JS::RootedValue arguments(context), rows(context), result(context);
  return parse_json(context, request.arguments, &arguments) && parse_json(context, request.rows, &rows) &&
         program_.drive("list", arguments, rows, true, &result) &&
         put_json(context, result, out, protocol::kMaxOutput);
}

bool Lister::exchange(ListState state, JS::HandleValue output, JS::MutableHandleValue rows) {
  std::string out;
  if (!put_json(engine_.context(), output, out, protocol::kMaxOutput)) return false;
  Watchdog& watchdog = engine_.watchdog();
  watchdog.end_invocation();
  watchdog.end_batch();
  begin_response(response_, state);
  protocol::put_u8(response_, 0);
  response_ += out;
  engine_.put_log(response_);
  write_frame(response_);
  garbage_ += out.size();
  return receive_rows(rows);
}

bool Lister::receive_rows(JS::MutableHandleValue rows) {
  JSContext* context = engine_.context();
  std::string content;
  read_frame(content);
  const auto request = parse_request(content);
  if (!request || request->kind != protocol::RequestKind::rows) _exit(protocol::kExitProtocol);
  begin_response(response_, ListState::ended);
  engine_.begin_log();
  engine_.log_for(0);
  engine_.watchdog().begin_batch(request->invocation_ms, request->batch_ms);
  engine_.watchdog().begin_invocation();
  garbage_ += content.size();
  if (garbage_ > kCollectAfter) {
    garbage_ = 0;
    JS_GC(context);
  }
  const auto& received = std::get<RowsRequest>(request->what);
  if (!parse_json(context, received.rows, rows)) return false;
  if (!rows.isObject()) _exit(protocol::kExitProtocol);
  JS::RootedObject array(context, &rows.toObject());
  JS::RootedValue last(context, JS::BooleanValue(received.is_last));
  return JS_SetProperty(context, array, "last", last);
}

}  // namespace divan::js::sandbox
