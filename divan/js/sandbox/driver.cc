#include "divan/js/sandbox/driver.h"

#include <js/CallAndConstruct.h>
#include <js/Conversions.h>

#include "divan/js/sandbox/engine.h"

namespace divan::js::sandbox {
namespace {

// A script that later changes the built-in functions used here affects only itself. The media types are
// CouchDB's, apart from names of files among them.
constexpr std::string_view kScript = R"js((function (global, exchange, wantsRows, hasOutput) {
  const {apply, has} = Reflect, isArray = Array.isArray;
  const maxWaiting = 1 << 20; // characters of output of a list

  const mediaTypes = Object.create(null);
  global.registerType = function registerType(name, ...types) { mediaTypes[name] = types.map(String); };
  const known = {
    all: '*/*', text: 'text/plain; charset=utf-8', html: 'text/html; charset=utf-8', xhtml: 'application/xhtml+xml',
    xml: 'application/xml text/xml application/x-xml', css: 'text/css', ics: 'text/calendar', csv: 'text/csv',
    js: 'text/javascript application/javascript application/x-javascript', rss: 'application/rss+xml',
    atom: 'application/atom+xml', yaml: 'application/x-yaml text/yaml', multipart_form: 'multipart/form-data',
    url_encoded_form: 'application/x-www-form-urlencoded', json: 'application/json text/x-json'
  };
  for (const name in known) registerType(name, ...known[name].split(/(?<!;) /));

  // Of the running call.
  let provided, type, begun, isSent, chunks, waiting, rows, next, more;
  const begin = (firstRows, moreRows) => {
    [provided, type, begun, isSent, chunks, waiting] = [[], '', {}, false, [], 0];
    [rows, next, more] = [firstRows, 0, moreRows];
  };
  begin(null, false);
  const takeText = () => {
    const text = chunks.join('');
    [chunks, waiting] = [[], 0];
    return text;
  };

  const withType = (headers) => {
    const hasType = Object.keys(headers || {}).some((name) => name.toLowerCase() === 'content-type');
    return hasType || !type || type === '*/*' ? headers : {...headers, 'Content-Type': type};
  };
  const takeOutput = () => {
    const output = {body: takeText()};
    if (begun) {
      const headers = withType(begun.headers);
      output.start = headers ? {...begun, headers} : begun;
      begun = undefined;
    }
    return output;
  };

  global.provides = function provides(name, action) { provided.push([name, action]); };
  // As in CouchDB, it has no effect after output that was sent before a row was read.
  global.start = function start(response) { if (!isSent) begun = response || {}; };
  global.send = function send(chunk) {
    const text = String(chunk);
    chunks.push(text);
    waiting += text.length;
    if (!more || waiting < maxWaiting) return;
    isSent = true;
    exchange(hasOutput, takeOutput());
  };
  global.getRow = function getRow() {
    if (!rows) throw ['error', 'list_error', 'getRow() is for list functions'];
    isSent = isSent || chunks.length > 0;
    while (next >= rows.length && more) {
      rows = exchange(wantsRows, takeOutput());
      next = 0;
      more = !rows.last;
    }
    return next < rows.length ? rows[next++] : null;
  };

  // The ranges of an Accept field (RFC 9110, 12.5.1). Parameters other than q are ignored.
  const rangesOf = (accept) => String(accept).split(',').map((range) => {
    const [media, ...parameters] = range.toLowerCase().split(';').map((part) => part.trim());
    const q = parameters.map((parameter) => /^q\s*=\s*([0-9.]+)$/.exec(parameter)).find((found) => found);
    const [main, sub = '*'] = media.split('/');
    return {main, sub, quality: q && q[1] < 1 ? Number(q[1]) : 1};
  });
  // How good a media type is for the client: [quality, specificity of the range that applies].
  const rate = (mediaType, ranges) => {
    const [main, sub] = mediaType.toLowerCase().split(';')[0].trim().split('/');
    let best = [0, -1];
    for (const range of ranges) {
      const isAny = range.main === '*' || main === '*';
      if (!isAny && range.main !== main) continue;
      if (range.sub !== '*' && sub !== '*' && range.sub !== sub) continue;
      const specificity = isAny ? 0 : range.sub === '*' ? 1 : 2;
      if (specificity > best[1]) best = [range.quality, specificity];
    }
    return best;
  };
  // Sets `type`, and returns the function that provides it.
  const choose = ({query, headers}) => {
    const format = query && query.format, accept = headers && headers.Accept;
    const ranges = rangesOf(String(accept || '').trim() || '*/*');
    let chosen, best = [0, -1];
    for (const [name, action] of provided) {
      if (format && name !== format) continue;
      for (const mediaType of mediaTypes[name] || []) {
        const rated = format ? [1, 3] : rate(mediaType, ranges);
        const isBetter = rated[0] > best[0] || (rated[0] === best[0] && rated[1] > best[1]);
        if (rated[0] > 0 && isBetter) [chosen, type, best] = [action, mediaType, rated];
      }
    }
    if (chosen) return chosen;
    const available = provided.map(([name]) => (mediaTypes[name] || [name]).join(', ')).join(', ');
    throw ['error', 'not_acceptable', 'No content type for ' + (format || accept) + '; expected one of ' + available];
  };

  const textOf = (reason) => typeof reason === 'string' ? reason : JSON.stringify(reason) || String(reason);
  const errorOf = (thrown) => {
    if (isArray(thrown) && (thrown[0] === 'error' || thrown[0] === 'fatal'))
      return {error: [textOf(thrown[1]), textOf(thrown[2])]};
    if (typeof thrown === 'object' && thrown) {
      if (thrown.error && thrown.reason) return {error: [textOf(thrown.error), textOf(thrown.reason)]};
      for (const name of ['forbidden', 'unauthorized', 'not_found'])
        if (has(thrown, name)) return {error: [name, textOf(thrown[name])]};
    }
    throw thrown;
  };

  const asObject = (response) => typeof response === 'string' ? {body: response} : response;
  const addText = (response, text) => {
    const body = text + (response.body === undefined ? '' : response.body);
    return body || !(has(response, 'json') || has(response, 'base64')) ? {...response, body} : response;
  };
  const show = (action, self, args) => {
    begin(null, false);
    try {
      let response = asObject(apply(action, self, args) || {});
      if (typeof response !== 'object' || isArray(response))
        throw ['error', 'render_error', 'undefined response from show function'];
      // CouchDB's shows take the argument of start() for header fields, its lists for a response.
      const isResponse = has(begun, 'headers') || has(begun, 'code');
      const started = isResponse ? begun : {headers: begun};
      if (Object.keys(begun).length > 0)
        response = {...started, ...response, headers: {...started.headers, ...response.headers}};
      if (chunks.length > 0) response = addText(response, takeText());
      if (provided.length > 0) {
        const before = response.body === undefined ? '' : response.body;
        const part = asObject(apply(choose(args[1]), self, []) || {});
        response = {...response, ...part, headers: withType({...response.headers, ...part.headers})};
        response = addText({...response, body: part.body}, before + takeText());
      }
      return {response};
    } catch (thrown) {
      // As in CouchDB: a path with more than five segments names a document.
      if (args[0] === null && args[1].path.length > 5) return {error: ['not_found', 'document not found']};
      return errorOf(thrown);
    }
  };

  const list = (action, self, args, firstRows, moreRows) => {
    begin(firstRows, moreRows);
    try {
      let tail = apply(action, self, args);
      if (provided.length > 0) tail = apply(choose(args[1]), self, []);
      if (tail !== undefined && tail !== null) send(tail);
      return takeOutput();
    } catch (thrown) { return errorOf(thrown); }
  };

  const call = (action, self, args) => {
    try {
      return {value: apply(action, self, args)};
    } catch (thrown) { return errorOf(thrown); }
  };

  return {show, list, call};
}))js";

// exchange(state, output): sends the output of a list, and returns further rows.
bool exchange(JSContext* context, unsigned argc, JS::Value* vp) {
  const auto args = JS::CallArgsFromVp(argc, vp);
  RowPages* const pages = Engine::of(context).row_pages();
  if (pages == nullptr || !args.get(0).isInt32()) {
    JS_ReportErrorASCII(context, "there are no rows");
    return false;
  }
  const auto state = args.get(0).toInt32() == static_cast<int>(ListState::has_output) ? ListState::has_output
                                                                                      : ListState::wants_rows;
  return pages->exchange(state, args.get(1), args.rval());
}

}  // namespace

bool define_driver(JSContext* context, JS::MutableHandleValue driver) {
  JS::RootedObject global(context, JS::CurrentGlobalOrNull(context));
  JS::RootedValue define(context);
  if (!evaluate(context, kOwnFile, kScript, &define)) return false;
  JSFunction* const function = JS_NewFunction(context, exchange, 2, 0, "exchange");
  if (function == nullptr) return false;
  JS::RootedValueArray<4> arguments(context);
  arguments[0].setObject(*global);
  arguments[1].setObject(*JS_GetFunctionObject(function));
  arguments[2].setInt32(static_cast<int>(ListState::wants_rows));
  arguments[3].setInt32(static_cast<int>(ListState::has_output));
  return JS_CallFunctionValue(context, nullptr, define, arguments, driver);
}

}  // namespace divan::js::sandbox
