#include "divan/index/views/reducer.h"

#include "divan/base/json.h"

namespace divan::index::views {
namespace {

std::string error_object(std::string_view name, std::string_view reason, std::string_view caused_by) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("error").string(name).key("reason").string(reason);
  if (!caused_by.empty()) writer.key("caused_by").raw(caused_by);
  writer.end_object();
  return out;
}

std::string text_of(std::string_view object, std::string_view member) {
  const auto token = json::member(object, member);
  return token ? json::string_value(*token).value_or(std::string(*token)) : std::string();
}

}  // namespace

const SumLimit& SumLimit::default_limit() {
  static const SumLimit limit;
  return limit;
}

const SumLimit& SumLimit::unlimited() {
  static const SumLimit limit{.limit = {.mode = js::ReduceLimit::Mode::off}, .context = {}, .log = {}};
  return limit;
}

ReduceError::ReduceError(const std::string& name, const std::string& reason, std::string_view caused_by)
    : Error(500, name, reason), row_value_(error_object(name, reason, caused_by)) {}

ReduceError ReduceError::of_partial(std::string_view row_value) {
  ReduceError error(text_of(row_value, "error"), text_of(row_value, "reason"));
  error.row_value_ = row_value;
  return error;
}

}  // namespace divan::index::views
