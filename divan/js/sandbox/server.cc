#include "divan/js/sandbox/server.h"

#include <unistd.h>

#include "divan/js/sandbox/applier.h"
#include "divan/js/sandbox/lister.h"
#include "divan/js/sandbox/mapper.h"
#include "divan/js/sandbox/reducer.h"

namespace divan::js::sandbox {
namespace {

// Appends the number of items processed, and the outcomes that `run` appends for each of them until it
// returns false.
template <class Items, class Run>
void append_done(const Items& items, std::string& response, Watchdog& watchdog, const Run& run) {
  const auto done_at = response.size();
  protocol::put_u32(response, 0);
  std::uint32_t done = 0;
  for (const auto& item : items) {
    watchdog.begin_item(done);
    if (!run(item)) break;
    ++done;
  }
  protocol::put_u32_at(response, done_at, done);
}

}  // namespace

void Server::handle(std::string_view frame, std::string& response) {
  const auto request = parse_request(frame);
  if (!request) _exit(protocol::kExitProtocol);
  protocol::put_u8(response, static_cast<std::uint8_t>(request->kind));
  engine_.begin_log();
  engine_.watchdog().begin_batch(request->invocation_ms, request->batch_ms);
  switch (request->kind) {
    case protocol::RequestKind::load: load(std::get<LoadRequest>(request->what), response); break;
    case protocol::RequestKind::map: map(std::get<MapRequest>(request->what), response); break;
    case protocol::RequestKind::reduce: reduce(std::get<ReduceRequest>(request->what), response); break;
    case protocol::RequestKind::apply: apply(std::get<ApplyRequest>(request->what), response); break;
    case protocol::RequestKind::list: list(std::get<ListRequest>(request->what), response); break;
    case protocol::RequestKind::rows: _exit(protocol::kExitProtocol);  // no list waits for them
  }
  engine_.watchdog().end_batch();
  engine_.put_log(response);
}

Program& Server::program(std::uint32_t slot) {
  if (!programs_[slot]) _exit(protocol::kExitProtocol);
  return *programs_[slot];
}

Program& Server::program_of_one(std::uint32_t slot) {
  Program& program = this->program(slot);
  if (program.size() != 1) _exit(protocol::kExitProtocol);
  return program;
}

void Server::load(const LoadRequest& request, std::string& response) {
  if (request.slot != protocol::kNoSlot) programs_[request.slot].reset();
  auto loaded = std::make_unique<Program>(engine_, request);
  protocol::put_u32(response, loaded->size());
  for (std::size_t i = 0; i < loaded->size(); ++i) {
    if (const auto* failure = loaded->failure(i)) {
      protocol::put_failure(response, *failure);
    } else {
      protocol::put_u8(response, 0);
    }
  }
  if (request.slot != protocol::kNoSlot) programs_[request.slot] = std::move(loaded);
}

void Server::map(const MapRequest& request, std::string& response) {
  Program& program = this->program(request.slot);
  JSAutoRealm realm(engine_.context(), program.global());
  Mapper mapper(engine_, program, response);
  append_done(request.documents, response, engine_.watchdog(),
              [&](std::string_view document) { return mapper.map(document); });
}

void Server::reduce(const ReduceRequest& request, std::string& response) {
  Program& program = program_of_one(request.slot);
  JSAutoRealm realm(engine_.context(), program.global());
  Reducer reducer(engine_, program, request.rereduce, response);
  append_done(request.groups, response, engine_.watchdog(),
              [&](const auto& group) { return reducer.reduce(group); });
}

void Server::apply(const ApplyRequest& request, std::string& response) {
  Program& program = program_of_one(request.slot);
  JSAutoRealm realm(engine_.context(), program.global());
  Applier applier(engine_, program, request.result, response);
  append_done(request.calls, response, engine_.watchdog(),
              [&](const auto& call) { return applier.apply(call); });
}

void Server::list(const ListRequest& request, std::string& response) {
  Program& program = program_of_one(request.slot);
  JSAutoRealm realm(engine_.context(), program.global());
  Lister lister(engine_, program, response);
  lister.list(request);
}

}  // namespace divan::js::sandbox
