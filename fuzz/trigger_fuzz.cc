// The triggers of a design document and a document, in two lines; or what a function has emitted: an error,
// or jobs that the queue accepts.
#include "divan/base/json.h"
#include "divan/index/triggers/definition.h"
#include "divan/jobs/types.h"
#include "fuzz/check.h"

using divan::fuzz::answers;
using divan::fuzz::check;
using namespace divan::index::triggers;
namespace json = divan::json;

namespace {

void use(const TriggeredJob& job) {
  divan::jobs::check_name("type", job.type);
  if (job.id) divan::jobs::check_name("id", *job.id);
  check(json::is_compact(job.data) && job.data.front() == '{' && job.delay >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto text = divan::fuzz::text_of(data, size);
  const auto line = text.find('\n');
  if (line == std::string_view::npos) {
    if (json::is_compact(text)) answers(400, [&] { use(parse_job(text)); });
    return 0;
  }
  std::string body, document;
  if (!answers(400, [&] { body = "{\"triggers\":" + json::compact(text.substr(0, line)) + "}"; })) return 0;
  if (!answers(400, [&] { document = json::compact(text.substr(line + 1)); })) return 0;
  std::vector<Definition> definitions;
  answers(400, [&] { definitions = parse_definitions("_design/d", body); });
  for (const auto& definition : definitions) {
    if (definition.job) answers(400, [&] { use(definition.job->fill(document)); });
  }
  return 0;
}
