// A period of arbitrary bytes is refused, or is positive and at most 100 years. Settings of a database that
// are accepted have a limit that is such a period, none, or the default.
#include "divan/base/json.h"
#include "divan/purge/ttl.h"
#include "fuzz/check.h"

using divan::fuzz::answers;
using divan::fuzz::check;
using divan::purge::parse_period;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  const auto period = parse_period(text);
  check(!period || (period->count() > 0 && period->count() <= 100ll * 365 * 86'400));
  answers(400, [&] {
    const std::string settings = divan::json::compact(text);
    divan::purge::check_auto_purge(settings);
    const auto ttl = divan::purge::deleted_document_ttl(settings, "7_s");
    check(!ttl || ttl->count() > 0);
  });
  return 0;
}
