#include "divan/js/sandbox/global.h"

#include <js/RealmOptions.h>

#include "divan/js/protocol.h"
#include "divan/js/sandbox/json_text.h"

namespace divan::js::sandbox {
namespace {

constexpr JSClass kGlobalClass = {
    "global", JSCLASS_GLOBAL_FLAGS, &JS::DefaultGlobalClassOps, nullptr, nullptr, nullptr};

// For an argument that is not an array sum() uses for-in, as CouchDB's does.
constexpr std::string_view kPrelude = R"js((function (global) {
  const stringify = JSON.stringify, array = Array.isArray, emit = global.emit;
  global.st_index = function st_index(geometry) { emit(geometry, null); };
  global.index = function index(name, value, options) {
    if (typeof name !== 'string') throw new TypeError('name must be a string not ' + typeof name);
    if (name[0] === '_') throw new RangeError('name must not start with an underscore');
    const type = typeof value;
    if (type !== 'string' && type !== 'number' && type !== 'boolean')
      throw new TypeError('value must be a string, a number or boolean not ' + type);
    if (options && typeof options !== 'object')
      throw new TypeError('options must be an object not ' + typeof options);
    const { store, index, facet, boost } = options || {};
    // Without toJSON(), which the functions of a design document may have added to prototypes.
    const given = { __proto__: null, store, index, facet, boost };
    emit({ __proto__: null, name, value, options: given }, null);
  };
  global.job = function job(type, id, data, options) {
    if (typeof type !== 'string') throw new TypeError('type must be a string not ' + typeof type);
    if (id !== undefined && id !== null && typeof id !== 'string')
      throw new TypeError('id must be a string not ' + typeof id);
    if (options && typeof options !== 'object')
      throw new TypeError('options must be an object not ' + typeof options);
    const { priority, delay } = options || {};
    if (id === null) id = undefined;
    if (data === null) data = undefined;
    emit({ __proto__: null, type, id, data, priority, delay }, null);
  };
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

bool emit(JSContext* context, unsigned argc, JS::Value* vp) {
  const auto args = JS::CallArgsFromVp(argc, vp);
  auto& engine = Engine::of(context);
  args.rval().setUndefined();
  if (!engine.emitting()) return true;
  auto& emitted = engine.emitted();
  if (emitted.length() >= 2 * protocol::kMaxEmits) return engine.stop_as_too_large();
  if (emitted.append(args.get(0)) && emitted.append(args.get(1))) return true;
  JS_ReportOutOfMemory(context);
  return false;
}

bool log(JSContext* context, unsigned argc, JS::Value* vp) {
  const auto args = JS::CallArgsFromVp(argc, vp);
  auto& engine = Engine::of(context);
  args.rval().setUndefined();
  if (engine.refuse_log_line()) return true;
  std::string line;
  if (args.get(0).isString()) {
    JS::RootedString text(context, args.get(0).toString());
    if (!append_start(context, text, line, protocol::kMaxMessage)) return false;
  } else if (!append_json(context, args.get(0), line, protocol::kMaxOutput)) {
    return false;
  }
  engine.add_log_line(whole_characters(line, protocol::kMaxMessage));
  return true;
}

}  // namespace

JSObject* new_global(Engine& engine) {
  JSContext* const context = engine.context();
  JS::RealmOptions options;
  JS::RootedObject global(
      context, JS_NewGlobalObject(context, &kGlobalClass, nullptr, JS::FireOnNewGlobalHook, options));
  if (!global) return nullptr;
  JSAutoRealm realm(context, global);
  if (!JS_DefineFunction(context, global, "emit", emit, 2, JSPROP_ENUMERATE)) return nullptr;
  if (!JS_DefineFunction(context, global, "log", log, 1, JSPROP_ENUMERATE)) return nullptr;
  JS::RootedValue ignored(context);
  if (!evaluate(context, kOwnFile, kPrelude, &ignored)) return nullptr;
  return global;
}

}  // namespace divan::js::sandbox
