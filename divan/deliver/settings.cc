#include "divan/deliver/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/deliver/signature.h"
#include "divan/http/message.h"
#include "divan/http_client/url.h"

namespace divan::deliver {
namespace {

namespace bj = boost::json;

constexpr std::string_view kHidden = "***";
constexpr std::size_t kMaxUrlBytes = 2000;
constexpr std::size_t kMaxHeaders = 50;
constexpr std::size_t kMaxHeaderBytes = 8000;
constexpr std::size_t kMaxSecrets = 5;
constexpr std::string_view kMethods[] = {"POST", "PUT", "PATCH"};
// Fields of the connection and of the message, which the server sets (RFC 9110, 9112).
constexpr std::string_view kReservedFields[] = {"connection", "content-length",  "expect",
                                                "host",       "keep-alive",      "proxy-connection",
                                                "te",         "trailer",         "transfer-encoding",
                                                "upgrade",    "accept-encoding", "accept"};

[[noreturn]] void invalid(std::string_view member, const bj::value& value, std::string_view expected) {
  throw bad_request(fmt::format("`deliver.{}` is {}; expected {}.", member, bj::serialize(value), expected));
}

// Does not show the value, which may be secret.
[[noreturn]] void invalid_secret(std::string_view member, std::string_view expected) {
  throw bad_request(fmt::format("Invalid `deliver.{}`; expected {}.", member, expected));
}

std::int64_t take_int(const bj::value& value, std::string_view member, std::int64_t min, std::int64_t max) {
  const auto* number = value.if_int64();
  if (number == nullptr || *number < min || *number > max)
    invalid(member, value, fmt::format("a number from {} to {}", min, max));
  return *number;
}

bool is_reserved(std::string_view name) {
  const auto begins_with = [&](std::string_view prefix) {
    return http::equal_ignoring_case(name.substr(0, prefix.size()), prefix);
  };
  return begins_with("webhook-") || begins_with("divan-") ||
         std::ranges::any_of(kReservedFields,
                             [&](auto field) { return http::equal_ignoring_case(field, name); });
}

// RFC 9110, 5.6.2
bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_field_value(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHeaderBytes && text.front() != ' ' && text.back() != ' ' &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

void take_url(Settings& settings, const bj::value& value) {
  const auto* url = value.if_string();
  if (url == nullptr || url->size() > kMaxUrlBytes)
    invalid_secret("url", fmt::format("a URL of at most {} bytes", kMaxUrlBytes));
  settings.url = std::string_view(*url);
  http_client::Url parts;
  try {
    parts = http_client::parse_url(settings.url);
  } catch (const Error& error) {
    throw bad_request(fmt::format("Invalid `deliver.url`: {}", error.reason()));
  }
  if (parts.has_user)
    throw bad_request("Invalid `deliver.url`: it has a user name; use the header field `Authorization`.");
  settings.host = parts.host;
  settings.origin = parts.origin;
}

void take_headers(Settings& settings, const bj::value& value) {
  const auto* headers = value.if_object();
  if (headers == nullptr || headers->size() > kMaxHeaders)
    invalid_secret("headers", fmt::format("an object of at most {} fields", kMaxHeaders));
  for (const auto& [raw_name, field] : *headers) {
    const std::string_view name = raw_name;
    if (!is_token(name) || name.size() > kMaxHeaderBytes)
      throw bad_request(
          fmt::format("`deliver.headers` has `{}`, which is not the name of a header field.", name));
    if (is_reserved(name))
      throw bad_request(fmt::format("`deliver.headers` has `{}`, which the server sets.", name));
    if (std::ranges::any_of(settings.headers,
                            [&](const auto& other) { return http::equal_ignoring_case(other.first, name); }))
      throw bad_request(fmt::format("`deliver.headers` has `{}` twice.", name));
    if (!field.is_string() || !is_field_value(field.get_string()))
      invalid_secret(
          fmt::format("headers.{}", name),
          fmt::format("1 to {} printable ASCII characters without spaces at the ends", kMaxHeaderBytes));
    settings.headers.emplace_back(name, field.get_string());
  }
}

void take_secrets(Settings& settings, const bj::value& value) {
  const auto take = [&](const bj::value& secret) {
    if (!secret.is_string() || !decode_secret(secret.get_string()))
      invalid_secret("secret",
                     "`whsec_` followed by 24 to 64 random bytes in Base64, or an array of such secrets");
    settings.secrets.emplace_back(secret.get_string());
  };
  const auto* list = value.if_array();
  if (list == nullptr) return take(value);
  if (list->empty() || list->size() > kMaxSecrets)
    invalid_secret("secret", fmt::format("1 to {} secrets", kMaxSecrets));
  for (const auto& secret : *list) take(secret);
}

void take_rate(Settings& settings, const bj::value& value) {
  constexpr std::string_view kExpected = R"({"per_second": N} with a number from 0.001 to 100000)";
  const auto* rate = value.if_object();
  if (rate == nullptr || rate->size() != 1 || !rate->contains("per_second"))
    invalid("rate", value, kExpected);
  const auto& given = rate->at("per_second");
  if (!given.is_number()) invalid("rate", value, kExpected);
  const double per_second = given.to_number<double>();
  if (!(per_second >= 0.001 && per_second <= 100'000)) invalid("rate", value, kExpected);
  settings.per_second = per_second;
}

void take_statuses(Settings& settings, const bj::value& value) {
  constexpr std::string_view kExpected = "an array of statuses from 300 to 599";
  const auto* list = value.if_array();
  if (list == nullptr) invalid("fail_on", value, kExpected);
  for (const auto& status : *list) {
    const auto* number = status.if_int64();
    if (number == nullptr || *number < 300 || *number > 599) invalid("fail_on", value, kExpected);
    settings.fail_on.insert(static_cast<int>(*number));
  }
}

// The fields of a change, with the present values for hidden ones.
void restore_headers(bj::value& changed, const bj::object& present) {
  auto* fields = changed.if_object();
  if (fields == nullptr) return;
  const auto* before = present.if_contains("headers");
  for (auto& [name, value] : *fields) {
    if (!value.is_string() || value.get_string() != kHidden) continue;
    bool found = false;
    if (before != nullptr && before->is_object()) {
      for (const auto& [old_name, old_value] : before->get_object()) {
        if (!http::equal_ignoring_case(old_name, name)) continue;
        value = old_value;
        found = true;
      }
    }
    if (!found)
      throw bad_request(
          fmt::format("`deliver.headers.{}` is `***`, and has no value to keep.", std::string_view(name)));
  }
}

void restore_secrets(bj::value& changed, const bj::object& present) {
  bj::array before;
  if (const auto* secrets = present.if_contains("secret"))
    before = secrets->is_array() ? secrets->get_array() : bj::array{*secrets};
  const auto restore = [&](bj::value& secret, std::size_t i) {
    if (!secret.is_string() || secret.get_string() != kHidden) return;
    if (i >= before.size()) throw bad_request("`deliver.secret` is `***`, and has no value to keep.");
    secret = before[i];
  };
  if (!changed.is_array()) {
    // The whole, if there are several.
    if (changed.is_string() && changed.get_string() == kHidden && before.size() > 1) {
      changed = before;
    } else {
      restore(changed, 0);
    }
    return;
  }
  auto& secrets = changed.get_array();
  // It would not be said which of them is removed.
  if (secrets.size() < before.size() && std::ranges::find(secrets, bj::value(kHidden)) != secrets.end())
    throw bad_request("`deliver.secret` has `***` and fewer secrets than before: write those that remain.");
  for (std::size_t i = 0; i < secrets.size(); ++i) restore(secrets[i], i);
}

bj::object parse_present(std::string_view json) {
  return json.empty() ? bj::object() : json::parse_object(json);
}

}  // namespace

Settings parse_settings(std::string_view json) {
  Settings settings;
  for (const auto& [name, value] : json::parse_object(json)) {
    if (name == "url") {
      take_url(settings, value);
    } else if (name == "method") {
      const auto* method = value.if_string();
      if (method == nullptr || std::ranges::find(kMethods, std::string_view(*method)) == std::end(kMethods))
        invalid(name, value, "POST, PUT or PATCH");
      settings.method = std::string_view(*method);
    } else if (name == "headers") {
      take_headers(settings, value);
    } else if (name == "timeout") {
      settings.timeout = std::chrono::milliseconds(take_int(value, name, 100, 300'000));
    } else if (name == "concurrency") {
      settings.concurrency = static_cast<std::size_t>(take_int(value, name, 1, 1000));
    } else if (name == "rate") {
      take_rate(settings, value);
    } else if (name == "secret") {
      take_secrets(settings, value);
    } else if (name == "fail_on") {
      take_statuses(settings, value);
    } else if (name == "result") {
      if (!value.is_bool()) invalid(name, value, "true or false");
      settings.keeps_result = value.get_bool();
    } else {
      throw bad_request(fmt::format("Unknown member `{}` of `deliver`.", std::string_view(name)));
    }
  }
  if (settings.url.empty()) throw bad_request("`deliver` has no `url`.");
  return settings;
}

std::string change_settings(std::string_view present_json, std::string_view change) {
  const auto present = parse_present(present_json);
  auto result = present;
  for (auto& [name, value] : json::parse_object(change)) {
    if (value.is_null()) {
      result.erase(name);
      continue;
    }
    if (name == "headers") restore_headers(value, present);
    if (name == "secret") restore_secrets(value, present);
    result.insert_or_assign(name, value);
  }
  auto json = bj::serialize(result);
  parse_settings(json);
  return json;
}

std::string shown_settings(std::string_view json) {
  auto settings = parse_present(json);
  if (auto* headers = settings.if_contains("headers"); headers != nullptr && headers->is_object()) {
    for (auto& [name, value] : headers->get_object()) value = kHidden;
  }
  if (auto* secret = settings.if_contains("secret"); secret != nullptr) {
    if (secret->is_array()) {
      for (auto& each : secret->get_array()) each = kHidden;
    } else {
      *secret = kHidden;
    }
  }
  return bj::serialize(settings);
}

std::string shown_host(std::string_view json) {
  return fmt::format(R"({{"host":{}}})", json::quoted(parse_settings(json).host));
}

}  // namespace divan::deliver
