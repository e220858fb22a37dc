// Serves requests.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "divan/js/sandbox/engine.h"
#include "divan/js/sandbox/program.h"
#include "divan/js/sandbox/request.h"

namespace divan::js::sandbox {

/// Keeps the loaded programs and executes requests. Not thread-safe.
class Server {
 public:
  explicit Server(Engine& engine) : engine_(engine) {}

  /// Appends the response to the request `frame` to `response`, which is a frame that was begun. (For a list,
  /// several frames may be written and read before.) Exits with kExitProtocol if the request is malformed,
  /// not expected, or names a slot without a suitable program.
  void handle(std::string_view frame, std::string& response);

 private:
  void load(const LoadRequest& request, std::string& response);
  void map(const MapRequest& request, std::string& response);
  void reduce(const ReduceRequest& request, std::string& response);
  void apply(const ApplyRequest& request, std::string& response);
  void list(const ListRequest& request, std::string& response);
  Program& program(std::uint32_t slot);
  Program& program_of_one(std::uint32_t slot);

  Engine& engine_;
  std::array<std::unique_ptr<Program>, protocol::kSlots> programs_;
};

}  // namespace divan::js::sandbox
