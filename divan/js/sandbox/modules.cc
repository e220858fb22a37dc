#include "divan/js/sandbox/modules.h"

#include <js/CallAndConstruct.h>
#include <js/Conversions.h>

#include <string>

#include "divan/js/sandbox/engine.h"
#include "divan/js/sandbox/json_text.h"

namespace divan::js::sandbox {
namespace {

// Errors are thrown in CouchDB's form: ["error", name, reason]. A script that later changes the built-in
// functions used here affects only itself.
constexpr std::string_view kScript = R"js((function (global, value, compile) {
  const root = {value, id: ''};
  const modules = Object.create(null);
  let unfinished = [];
  const wrong = (reason) => ['error', 'invalid_require_path', reason];

  const above = (place) => {
    if (place && place.above) return place.above;
    throw wrong('Object has no parent ' + JSON.stringify(place && place.value));
  };
  const below = (place, name) => {
    const has = Object.prototype.hasOwnProperty.call(Object(place.value), name);
    if (!has || typeof place.value === 'string')
      throw wrong('Object has no property "' + name + '". ' + JSON.stringify(place.value));
    return {value: place.value[name], above: place, id: place.id ? place.id + '/' + name : name};
  };

  const find = (path, from) => {
    const names = String(path).split('/');
    const relative = names[0] === '.' || names[0] === '..';
    let place = relative ? above(from) : root;
    for (const name of names) {
      if (name === '..') place = above(place);
      else if (name !== '.') place = below(place, name);
    }
    return place;
  };

  const run = (module, place, path) => {
    try {
      const body = compile(place.value, 'module ' + place.id);
      body.call(global, module, module.exports, (name) => load(name, place));
    } catch (error) {
      delete modules[place.id];
      unfinished = unfinished.filter((id) => id !== place.id);
      if (Array.isArray(error)) throw error;
      const where = error && error.lineNumber ? ' (line ' + error.lineNumber + ' of ' + error.fileName + ')' : '';
      throw ['error', 'compilation_error', "Module require('" + path + "') raised error " + error + where];
    }
  };

  const load = (path, from) => {
    const place = find(path, from);
    if (typeof place.value !== 'string')
      throw wrong('Must require a JavaScript string, not: ' + typeof place.value);
    let module = modules[place.id];
    if (!module) {
      module = modules[place.id] = {id: place.id, exports: {}};
      unfinished.push(place.id);
      run(module, place, path);
      unfinished.pop();
    }
    return module.exports;
  };

  // Modules of functions that were stopped at their time limit are incomplete: load them again.
  global.require = function require(path) {
    for (const id of unfinished) delete modules[id];
    unfinished = [];
    return load(path);
  };
}))js";

bool append_text(JSContext* context, JS::HandleValue value, std::string& out) {
  JS::RootedString string(context, JS::ToString(context, value));
  if (!string) return false;
  const JS::UniqueChars bytes = JS_EncodeStringToUTF8(context, string);
  if (!bytes) return false;
  out += bytes.get();
  return true;
}

// compile(source, name): the module as a function of module, exports and require.
bool compile(JSContext* context, unsigned argc, JS::Value* vp) {
  const auto args = JS::CallArgsFromVp(argc, vp);
  std::string text = "(function (module, exports, require) {";
  std::string name;
  if (!append_text(context, args.get(0), text) || !append_text(context, args.get(1), name)) return false;
  text += "\n})";
  return evaluate(context, name.c_str(), text, args.rval());
}

}  // namespace

bool define_require(JSContext* context, std::string_view json, JS::MutableHandleValue root) {
  JS::RootedObject global(context, JS::CurrentGlobalOrNull(context));
  JS::RootedValue define(context);
  if (!evaluate(context, kOwnFile, kScript, &define)) return false;
  JS::RootedValueArray<3> arguments(context);
  arguments[0].setObject(*global);
  if (!parse_json(context, json, root)) return false;
  if (root.isObject()) {
    JS::RootedObject object(context, &root.toObject());
    if (!JS_DeepFreezeObject(context, object)) return false;
  }
  arguments[1].set(root);
  JSFunction* const function = JS_NewFunction(context, compile, 2, 0, "compile");
  if (function == nullptr) return false;
  arguments[2].setObject(*JS_GetFunctionObject(function));
  JS::RootedValue ignored(context);
  return JS_CallFunctionValue(context, nullptr, define, arguments, &ignored);
}

}  // namespace divan::js::sandbox
