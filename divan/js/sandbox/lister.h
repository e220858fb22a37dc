// Calls a list function that reads its rows in pages: more of them than a message should have.
//
// While the function runs, getRow() sends what it has sent so far to the server, and waits for the next rows.
// Each of these steps has the time limit of a call.
#pragma once

#include <string>

#include "divan/js/sandbox/driver.h"
#include "divan/js/sandbox/engine.h"
#include "divan/js/sandbox/outcomes.h"
#include "divan/js/sandbox/request.h"

namespace divan::js::sandbox {

/// Created per request. Not thread-safe.
class Lister final : public RowPages {
 public:
  /// `response` is a frame that has the kind of the request. `program` must have one function.
  Lister(Engine& engine, Program& program, std::string& response)
      : engine_(engine), program_(program), response_(response) {
    engine_.set_row_pages(this);
  }
  ~Lister() override { engine_.set_row_pages(nullptr); }
  Lister(const Lister&) = delete;
  Lister& operator=(const Lister&) = delete;

  /// Calls the function, and completes the last response, apart from the log.
  void list(const ListRequest& request);

  bool exchange(ListState state, JS::HandleValue output, JS::MutableHandleValue rows) override;

 private:
  bool run(const ListRequest& request, std::string& out);
  bool receive_rows(JS::MutableHandleValue rows);

  Engine& engine_;
  Program& program_;
  std::string& response_;
  std::size_t garbage_ = 0;  // bytes since the last collection
};

}  // namespace divan::js::sandbox
