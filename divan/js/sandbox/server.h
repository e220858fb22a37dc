// Answers requests.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "divan/js/sandbox/engine.h"
#include "divan/js/sandbox/program.h"
#include "divan/js/sandbox/request.h"

namespace divan::js::sandbox {

/// Keeps the loaded programs and runs what is asked of them. Single-threaded.
class Server {
 public:
  explicit Server(Engine& engine) : engine_(engine) {}

  /// Appends the answer to a frame's content to `answer`. Ends the process with kExitProtocol if the request
  /// is malformed or names a slot that holds no fitting program.
  void handle(std::string_view frame, std::string& answer);

 private:
  void load(const LoadRequest& request, std::string& answer);
  void map(const MapRequest& request, std::string& answer);
  void reduce(const ReduceRequest& request, std::string& answer);
  Program& program(std::uint32_t slot);

  Engine& engine_;
  std::array<std::unique_ptr<Program>, protocol::kSlots> programs_;
};

}  // namespace divan::js::sandbox
