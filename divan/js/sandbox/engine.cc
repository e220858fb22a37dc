#include "divan/js/sandbox/engine.h"

#include <js/CompilationAndEvaluation.h>
#include <js/ContextOptions.h>
#include <js/GCAPI.h>
#include <js/Initialization.h>
#include <js/Interrupt.h>
#include <js/Promise.h>
#include <js/SourceText.h>
#include <js/Stack.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "divan/js/protocol.h"

namespace divan::js::sandbox {
namespace {

// Deep recursion is an error of the script well before the thread's stack (8 MB) is exhausted.
constexpr std::size_t kStackBytes = std::size_t{1} << 20;

// No script runs after a function has returned, so a promise would silently never be resolved.
class NoPromises final : public JS::JobQueue {
 public:
  JSObject* getIncumbentGlobal(JSContext* context) override { return JS::CurrentGlobalOrNull(context); }
  bool enqueuePromiseJob(JSContext* context, JS::HandleObject, JS::HandleObject, JS::HandleObject,
                         JS::HandleObject) override {
    JS_ReportErrorASCII(context, "promises and async functions are not supported");
    return false;
  }
  void runJobs(JSContext*) override {}
  bool empty() const override { return true; }
  // Overrides a function that SpiderMonkey 102 lacks.
  bool isDrainingStopped() const { return false; }

 protected:
  ::js::UniquePtr<SavedJobQueue> saveJobQueue(JSContext*) override { return nullptr; }
};

void require(bool done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "divan-js: cannot start the engine: %s failed\n", what);
  _exit(protocol::kExitSetUp);
}

}  // namespace

bool evaluate(JSContext* context, const char* file, std::string_view text, JS::MutableHandleValue result) {
  JS::CompileOptions options(context);
  options.setFileAndLine(file, 1);
  JS::SourceText<mozilla::Utf8Unit> source;
  return source.init(context, text.data(), text.size(), JS::SourceOwnership::Borrowed) &&
         JS::Evaluate(context, options, source, result);
}

Engine::Engine(std::size_t heap_bytes) {
  // Set before the engine reads it; UTC needs no time zone file.
  setenv("TZ", "UTC", 1);
  require(JS_Init(), "JS_Init");
  context_ = JS_NewContext(static_cast<std::uint32_t>(heap_bytes));
  require(context_ != nullptr, "JS_NewContext");
  JS_SetContextPrivate(context_, this);
  JS_SetNativeStackQuota(context_, kStackBytes);
  JS::ContextOptionsRef(context_).setAsmJS(false).setWasm(false);
  static NoPromises no_promises;
  JS::SetJobQueue(context_, &no_promises);
  require(JS::InitSelfHostedCode(context_), "self-hosted code");
  require(JS_AddInterruptCallback(context_, on_interrupt), "JS_AddInterruptCallback");
  emitted_ = new JS::PersistentRootedVector<JS::Value>(context_);
  watchdog_ = new Watchdog([this] { JS_RequestInterruptCallback(context_); }, STDIN_FILENO);
}

bool Engine::refuse_log_line() {
  if (log_lines_ < protocol::kMaxLogLines) return false;
  ++log_dropped_;
  return true;
}

void Engine::add_log_line(std::string_view line) {
  protocol::put_u32(log_, log_function_);
  protocol::put_text(log_, line);
  ++log_lines_;
}

void Engine::put_log(std::string& response) const {
  protocol::put_u32(response, log_dropped_);
  protocol::put_u32(response, log_lines_);
  response += log_;
}

bool Engine::on_interrupt(JSContext* context) { return !of(context).watchdog_->invocation_expired(); }

}  // namespace divan::js::sandbox
