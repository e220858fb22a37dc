// Responses of another server in a replication: an error, or only documents that were requested.
#include "divan/base/json.h"
#include "divan/replicator/responses.h"
#include "fuzz/check.h"

using divan::fuzz::check;
namespace json = divan::json;
namespace replicator = divan::replicator;

namespace {

// Returns false after an error that a response may cause.
bool succeeds(const std::function<void()>& call) {
  try {
    call();
    return true;
  } catch (const divan::Error& error) {
    check(error.status() == 502 || error.status() == 503 || error.status() == 412);
    check(divan::is_utf8(error.name()) && divan::is_utf8(error.what()));
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string text;
  try {
    text = json::compact(divan::fuzz::text_of(bytes, size));
  } catch (const divan::Error&) { return 0; }

  constexpr std::size_t limit = 3;
  succeeds([&] {
    const auto page = replicator::parse_changes(text, limit);
    check(page.is_last || page.documents.size() >= limit || (page.pending && *page.pending != 0));
  });
  const auto revision = *divan::docs::Revision::parse("1-a");
  const std::vector<replicator::ChangedDocument> changed{{"a", {revision}}, {"b", {revision}}};
  succeeds([&] {
    for (const auto& missing : replicator::parse_missing(text, changed)) {
      check(missing.id == "a" || missing.id == "b");
      for (const auto& one : missing.revisions) check(one == revision);
    }
  });
  const std::vector<replicator::MissingRevisions> wanted{{"a", {revision}, {revision}}};
  std::size_t accepted = 0;
  const auto accept = [&](const replicator::MissingRevisions& of, std::string_view document) {
    check(of.id == "a");
    ++accepted;
    for (const auto& content : replicator::lacking_contents(document, of.ancestors)) {
      check(content.length <= INT64_MAX);
    }
  };
  std::size_t failures = 0;
  if (succeeds([&] { failures = replicator::parse_bulk_get(text, wanted, accept); }))
    check(accepted + failures > 0);
  accepted = failures = 0;
  if (succeeds([&] { failures = replicator::parse_open_revs(text, wanted.front(), accept); }))
    check(accepted + failures > 0);
  succeeds([&] { check(replicator::parse_bulk_docs(text, limit) <= limit); });
  succeeds([&] { replicator::sequence_in(text, "last_seq"); });
  return 0;
}
