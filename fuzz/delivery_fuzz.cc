// Settings of delivery, in two lines, of which the second changes the first; or a list of addresses and
// hosts; or, after a digit, the body of a response.
#include "divan/base/json.h"
#include "divan/deliver/address_rules.h"
#include "divan/deliver/outcome.h"
#include "divan/deliver/settings.h"
#include "fuzz/check.h"

using divan::fuzz::answers;
using divan::fuzz::check;
using namespace divan::deliver;
namespace json = divan::json;

namespace {

void use_settings(std::string_view first, std::string_view second) {
  std::string stored;
  if (!answers(400, [&] { stored = change_settings("", json::compact(first)); })) return;
  check(change_settings(stored, shown_settings(stored)) == stored);
  shown_host(stored);
  answers(400, [&] { parse_settings(change_settings(stored, json::compact(second))); });
}

void use_response(std::string_view body) {
  Settings settings;
  settings.keeps_result = body.size() % 2 == 0;
  for (const int status : {200, 500}) {
    divan::http_client::AsyncClient::Result result;
    result.response.status = status;
    result.response.body = body;
    const auto outcome = outcome_of(result, settings, "host");
    check(outcome.error.size() < 2000 && (!outcome.result || json::is_compact(*outcome.result)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto text = divan::fuzz::text_of(data, size);
  if (!text.empty() && text.front() >= '0' && text.front() <= '9') use_response(text.substr(1));
  const auto line = text.find('\n');
  if (line != std::string_view::npos) {
    use_settings(text.substr(0, line), text.substr(line + 1));
  } else {
    answers(400, [&] { AddressRules(text, text).may_request(std::string(text)); });
  }
  return 0;
}
