#include "divan/app/jobs_requests.h"

#include <fmt/format.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/http/url.h"

namespace divan::app {
namespace {

// Most that the server lists at once.
constexpr std::uint64_t kPage = 1000;

void check_name(std::string_view what, std::string_view name) {
  if (!name.empty() && name.front() != '_' && is_utf8(name)) return;
  throw bad_request(
      fmt::format("`{}`: a job's {} is UTF-8, not empty and does not begin with an underscore.", name, what));
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
  const std::string list = type_path(range.type) + "/_list?" +
                           (range.state.empty() ? "" : "state=" + http::percent_encode(range.state) + "&");
  std::string start = range.start_id;
  std::optional<std::string> last;
  for (std::uint64_t left = range.limit; left > 0;) {
    // A page begins with the last job of the one before, if that is still there.
    const std::uint64_t wanted = std::min(left, kPage - 1) + (last ? 1 : 0);
    const std::string page = json::compact(
        ask(client, "GET", fmt::format("{}limit={}&start_id={}", list, wanted, http::percent_encode(start))));
    const std::uint64_t before = left;
    json::for_each_element(required_member(page, "jobs"), [&](std::string_view job) {
      const std::string id = member_text(job, "id");
      if (id == last || left == 0) return true;
      visit(job);
      last = id;
      --left;
      return true;
    });
    // Not when a page is short: that is no promise that nothing follows.
    if (left == before) return;
    start = *last;
  }
}

}  // namespace divan::app
