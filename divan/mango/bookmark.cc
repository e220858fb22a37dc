#include "divan/mango/bookmark.h"

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::mango {
namespace {

Bookmark parse(std::string_view json) {
  const auto key = json::member(json, "startkey");
  const auto id = json::member(json, "startkey_docid");
  const auto text = id ? json::string_value(*id) : std::nullopt;
  if (!key || !text) throw bad_request("incomplete");
  return {std::string(*key), *text};
}

}  // namespace

std::string Bookmark::encode() const {
  std::string json;
  json::Writer(json).begin_object().key("startkey_docid").string(id).key("startkey").raw(key).end_object();
  return to_base64(json);
}

Bookmark Bookmark::decode(std::string_view text) {
  try {
    const auto bytes = from_base64(text);
    if (!bytes) throw bad_request("not base64");
    const std::string json = json::compact(*bytes);
    return parse(json);
  } catch (const Error&) {
    throw Error(400, "invalid_bookmark", "Invalid bookmark value: " + json::quoted(text));
  }
}

}  // namespace divan::mango
