// `divan verify` on rows of arbitrary bytes. Pieces of the input are keys and values in turn; a key's first
// byte says what it begins with, so that every module gets rows.
#include "divan/backup/check.h"
#include "divan/index/views/check.h"
#include "divan/jobs/check.h"
#include "divan/kv/check_testing.h"
#include "divan/kv/tuple_packer.h"
#include "divan/updates/check.h"
#include "divan/workers/check.h"
#include "fuzz/check.h"
#include "fuzz/stored_rows.h"

namespace {

using divan::fuzz::check;
using divan::kv::tuple::Packer;
namespace kv = divan::kv;

// Parts of databases 0 and 1, and the other modules.
std::string beginning(unsigned char which) {
  std::string key;
  Packer packer(key);
  const int part = which % 22;
  if (part < 16) {
    packer.string("db").integer(part / 8).integer(part % 8);
  } else {
    constexpr const char* kRooms[] = {"dbs", "next_db", "jobs", "updates", "workers", "restore"};
    packer.string(kRooms[part - 16]);
  }
  return key;
}

std::size_t findings_of(kv::testing::MapRows& rows, kv::Version version) {
  kv::Findings findings;
  divan::docs::Check databases(version, findings);
  divan::index::views::Check indexes(version, findings,
                                     [&](std::int64_t number) { return databases.name_of(number); });
  divan::jobs::Check jobs(version, findings);
  divan::updates::Check updates(version, findings);
  divan::workers::Check workers(version, findings);
  divan::backup::Check restores(databases, findings);
  kv::testing::run_checks(rows, {&databases, &indexes, &jobs, &updates, &workers, &restores});
  for (const auto& text : findings.kept()) check(!text.empty() && divan::is_utf8(text));
  check(findings.kept().size() <= findings.count());
  return findings.count();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  divan::fuzz::Pieces pieces(divan::fuzz::text_of(data, size));
  kv::testing::MapRows::Map map;
  while (!pieces.at_end()) {
    const auto key = pieces.take();
    const auto value = pieces.take();
    if (key.empty()) continue;
    map[beginning(static_cast<unsigned char>(key[0])) + std::string(key.substr(1))] = value;
  }
  kv::testing::MapRows rows(map);
  // The same rows give the same findings, and at least as many with an older store version.
  const std::size_t found = findings_of(rows, 1 << 20);
  check(found == findings_of(rows, 1 << 20));
  findings_of(rows, 0);
  return 0;
}
