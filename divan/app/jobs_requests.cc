#include "divan/app/jobs_requests.h"

#include <fmt/format.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/http/url.h"

namespace divan::app {
namespace {

// The server's maximum for one page.
constexpr std::uint64_t kPage = 1000;

void check_name(std::string_view what, std::string_view name) {
  if (!name.empty() && name.front() != '_' && is_utf8(name)) return;
  throw bad_request(fmt::format(
      "Invalid job {1} `{0}`; expected UTF-8, not empty, not beginning with an underscore.", name, what));
}

}  // namespace

std::string type_path(std::string_view type) {
  check_name("type", type);
  return "/_jobs/" + http::percent_encode(type);
}

std::string job_path(std::string_view type, std::string_view id) {
  check_name("id", id);
  return type_path(type) + "/" + http::percent_encode(id);
}

void for_each_job(http::Client& client, const JobRange& range,
                  const std::function<void(std::string_view job)>& visit) {
  std::string list = type_path(range.type) + "/_list?";
  if (!range.state.empty()) list += "state=" + http::percent_encode(range.state) + "&";
  if (range.descending) list += "descending=true&";
  std::string start = range.start_id.empty() ? "" : "&start_id=" + http::percent_encode(range.start_id);
  for (std::uint64_t left = range.limit; left > 0;) {
    const std::string page = json::compact(
        send_request(client, "GET", fmt::format("{}limit={}{}", list, std::min(left, kPage), start)));
    json::for_each_element(required_member(page, "jobs"), [&](std::string_view job) {
      visit(job);
      return --left > 0;
    });
    const auto next = member_text(page, "next");
    if (next.empty()) return;
    start = "&start=" + http::percent_encode(next);
  }
}

}  // namespace divan::app
