// What show, list and rewrite functions use: provides(), registerType(), start(), send() and getRow()
// (https://docs.couchdb.org/en/stable/ddocs/ddocs.html#show-functions), and how they are called. In
// JavaScript, since most of it handles values of scripts.
#pragma once

#include <jsapi.h>

#include "divan/js/protocol.h"

namespace divan::js::sandbox {

/// Where a list function that reads its rows in pages sends its output and gets its rows.
class RowPages {
 public:
  virtual ~RowPages() = default;
  /// Sends the output, and returns further rows: an array, whose property `last` is true if there are no
  /// more. Called by the function. Returns false, with an exception pending or the script stopped, on
  /// failure.
  virtual bool exchange(ListState state, JS::HandleValue output, JS::MutableHandleValue rows) = 0;
};

/// Defines the functions in the current realm, and returns the driver: an object whose functions call a
/// function of a design document, with its `this` and an array of arguments:
///   show(function, self, arguments)              {response}
///   list(function, self, arguments, rows, more)  {start, body}; with `more`, RowPages has more rows
///   call(function, self, arguments)              {value}
/// or {error: [name, reason]} if the function throws ["error", name, reason], {error: name, reason},
/// {forbidden: reason}, {unauthorized: reason} or {not_found: reason}. `start` is what start() received, and
/// is in the first output, and in later ones if it was called again before anything was sent.
/// Returns false, with an exception pending or the script stopped, on failure.
bool define_driver(JSContext* context, JS::MutableHandleValue driver);

}  // namespace divan::js::sandbox
