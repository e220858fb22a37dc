#include "divan/js/sandbox/engine.h"

#include <js/CompilationAndEvaluation.h>
#include <js/ContextOptions.h>
#include <js/GCAPI.h>
#include <js/Initialization.h>
#include <js/Interrupt.h>
#include <js/Promise.h>
#include <js/RealmOptions.h>
#include <js/SourceText.h>
#include <js/Stack.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "divan/js/protocol.h"
#include "divan/js/sandbox/json_text.h"

namespace divan::js::sandbox {
namespace {

constexpr JSClass kGlobalClass = {
    "global", JSCLASS_GLOBAL_FLAGS, &JS::DefaultGlobalClassOps, nullptr, nullptr, nullptr};

// Deep recursion is an error of the script well before the thread's stack (8 MB) is exhausted.
constexpr std::size_t kStackBytes = std::size_t{1} << 20;

// For an argument that is not an array sum() uses for-in, as CouchDB's does.
constexpr std::string_view kPrelude = R"js((function (global) {
  const stringify = JSON.stringify, array = Array.isArray;
  global.toJSON = function toJSON(value) { return stringify(value); };
  global.isArray = function isArray(value) { return array(value); };
  global.sum = function sum(values) {
    let total = 0;
    if (array(values)) {
      for (let i = 0; i < values.length; i++) total += values[i];
    } else {
      for (const name in values) total += values[name];
    }
    return total;
  };
})(this))js";

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

JSObject* Engine::new_global() {
  JS::RealmOptions options;
  JS::RootedObject global(
      context_, JS_NewGlobalObject(context_, &kGlobalClass, nullptr, JS::FireOnNewGlobalHook, options));
  if (!global) return nullptr;
  JSAutoRealm realm(context_, global);
  if (!JS_DefineFunction(context_, global, "emit", emit, 2, JSPROP_ENUMERATE)) return nullptr;
  if (!JS_DefineFunction(context_, global, "log", log, 1, JSPROP_ENUMERATE)) return nullptr;
  JS::RootedValue ignored(context_);
  if (!evaluate(context_, kOwnFile, kPrelude, &ignored)) return nullptr;
  return global;
}

void Engine::put_log(std::string& answer) const {
  protocol::put_u32(answer, log_dropped_);
  protocol::put_u32(answer, log_lines_);
  answer += log_;
}

bool Engine::emit(JSContext* context, unsigned argc, JS::Value* vp) {
  const auto args = JS::CallArgsFromVp(argc, vp);
  auto& self = of(context);
  args.rval().setUndefined();
  if (!self.emitting_) return true;
  if (self.emitted_->length() >= 2 * protocol::kMaxEmits) return self.stop_as_too_large();
  if (self.emitted_->append(args.get(0)) && self.emitted_->append(args.get(1))) return true;
  JS_ReportOutOfMemory(context);
  return false;
}

bool Engine::log(JSContext* context, unsigned argc, JS::Value* vp) {
  const auto args = JS::CallArgsFromVp(argc, vp);
  auto& self = of(context);
  args.rval().setUndefined();
  if (self.log_lines_ == protocol::kMaxLogLines) {
    ++self.log_dropped_;
    return true;
  }
  std::string line;
  if (args.get(0).isString()) {
    JS::RootedString text(context, args.get(0).toString());
    if (!append_start(context, text, line, protocol::kMaxMessage)) return false;
  } else if (!append_json(context, args.get(0), line, protocol::kMaxOutput)) {
    return false;
  }
  protocol::put_u32(self.log_, self.log_function_);
  protocol::put_text(self.log_, whole_characters(line, protocol::kMaxMessage));
  ++self.log_lines_;
  return true;
}

bool Engine::on_interrupt(JSContext* context) { return !of(context).watchdog_->invocation_expired(); }

}  // namespace divan::js::sandbox
