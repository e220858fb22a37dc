// Interprets the input as a sequence of operations on two documents: replicated revisions, whose paths may be
// short, wrong or repeated, edits, deletions, purges, compactions, changes of limits. Afterwards `divan
// verify` must find nothing, and each stored revision must have its own body.
#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/attachment.h"
#include "divan/docs/check.h"
#include "divan/docs/compaction.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/purge.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/kv/check_testing.h"
#include "divan/kv/reference/reference.h"
#include "fuzz/check.h"

namespace {

namespace docs = divan::docs;
namespace kv = divan::kv;
using divan::fuzz::check;

constexpr std::uint32_t kMaxGeneration = 5;

class Program {
 public:
  explicit Program(std::string_view code) : code_(code) {
    store_.run([&](kv::Transaction& tx) { catalog_.create(tx, "db"); });
  }

  void run() {
    while (!code_.empty()) step();
    check_all();
    bool is_last = false;
    while (!is_last) store_.run([&](kv::Transaction& tx) { is_last = docs::compact(tx, open(tx)).is_last; });
    check_all();
    const auto info = store_.run([&](kv::Transaction& tx) { return docs::read_info(tx, open(tx)); });
    check(info.old.bodies == 0 && info.old.attachments == 0 && info.file_bytes() == info.active_bytes());
  }

 private:
  docs::Database open(kv::Transaction& tx) { return catalog_.open(tx, "db"); }

  std::uint32_t take(std::uint32_t bound) {
    if (code_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(code_.front());
    code_.remove_prefix(1);
    return byte % bound;
  }
  std::string take_id() { return take(2) == 0 ? "a" : "b"; }

  void step() {
    switch (take(8)) {
      case 0: return edit(false);
      case 1: return edit(true);
      case 2: return purge();
      case 3: store_.run([&](kv::Transaction& tx) { docs::compact(tx, open(tx), {.changes = 1}); }); return;
      case 4: return catalog_.set_max_old_revisions(take(4));
      case 5: {
        const auto limit = std::to_string(1 + take(5));
        store_.run([&](kv::Transaction& tx) { docs::write_config(tx, open(tx), docs::kRevsLimit, limit); });
        return;
      }
      default: return replicate();
    }
  }

  std::string take_attachments() {
    switch (take(4)) {
      case 0: return R"(,"_attachments":{"x":{"data":"eHh4eHh4eHh4eHh4eHh4eHh4eHh4"}})";
      case 1: return R"(,"_attachments":{"x":{"data":"eXk="},"y":{"data":"eA=="}})";
      case 2: return R"(,"_attachments":{"x":{"stub":true}})";
      default: return "";
    }
  }

  static docs::IncomingDocument parse(std::string_view text) {
    auto document = docs::parse_document(text);
    for (auto& attachment : document.attachments) docs::compress(attachment, 1);
    return document;
  }

  // A document whose body contains its revision.
  static std::string with_body(std::string_view id, std::string_view rev, std::string_view more) {
    return fmt::format(R"({{"_id":"{}","own":"{}"{}}})", id, rev, more);
  }

  void replicate() {
    std::vector<docs::IncomingDocument> documents;
    const std::string id = take_id();
    for (std::uint32_t count = 1 + take(4); count > 0; --count) {
      const std::uint32_t generation = 1 + take(kMaxGeneration);
      std::string ids;
      std::string first;
      for (std::uint32_t length = 1 + take(generation); length > 0; --length) {
        const char identifier = static_cast<char>('a' + take(3));
        if (ids.empty()) first = identifier;
        ids += fmt::format(R"({}"{}")", ids.empty() ? "" : ",", identifier);
      }
      const std::string more = fmt::format(R"(,"_revisions":{{"start":{},"ids":[{}]}}{}{})", generation, ids,
                                           take(4) == 0 ? R"(,"_deleted":true)" : "", take_attachments());
      documents.push_back(parse(with_body(id, fmt::format("{}-{}", generation, first), more)));
    }
    docs::bulk_replicate(store_, catalog_, "db", std::move(documents));
  }

  docs::RevTree tree(std::string_view id) {
    return store_.run([&](kv::Transaction& tx) { return docs::read_tree(tx, open(tx), id); });
  }

  void edit(bool deleted) {
    const std::string id = take_id();
    const auto leaves = tree(id);
    std::string rev;
    if (!leaves.empty() && !leaves.front().deleted)
      rev = leaves[take(static_cast<std::uint32_t>(leaves.size()))].revision().to_string();
    const std::string more = fmt::format("{}{}{}", rev.empty() ? "" : fmt::format(R"(,"_rev":"{}")", rev),
                                         deleted ? R"(,"_deleted":true)" : "", take_attachments());
    std::vector documents{parse(with_body(id, "edit", more))};
    docs::bulk_edit(store_, catalog_, "db", documents, rng_);
  }

  void purge() {
    const std::string id = take_id();
    std::vector<docs::PurgeRequest> requests{{id, {}}};
    for (const auto& leaf : tree(id)) {
      if (take(2) == 0) requests.front().revisions.push_back(leaf.revision());
    }
    const auto database = store_.run([&](kv::Transaction& tx) { return open(tx); });
    docs::purge(store_, database, requests);
  }

  void check_all() {
    kv::testing::MapRows rows(store_);
    kv::Findings findings;
    docs::Check verify(INT64_MAX, findings);
    check(kv::testing::run_checks(rows, {&verify}) == 0);
    check(findings.count() == 0);
    for (const char* id : {"a", "b"}) {
      for (const auto& leaf : tree(id)) {
        check_body(id, leaf);
        for (const auto& old : leaf.old) check_body(id, leaf.ancestor(old));
      }
    }
  }

  void check_body(std::string_view id, const docs::Leaf& revision) {
    store_.run([&](kv::Transaction& tx) {
      const auto found = docs::find_document(tx, open(tx), id, revision.revision());
      check(found.revision().revision() == revision.revision());
      check(docs::attachments_of(found.body).size() == revision.attachments);
      const auto own = divan::json::string_value(divan::json::member(found.body, "own").value_or(""));
      check(own && (*own == "edit" || *own == revision.revision().to_string()));
      docs::with_attachment_form(tx, open(tx), found.body, docs::AttachmentForm::data);
    });
  }

  std::string_view code_;
  divan::SystemClock clock_;
  divan::SeededRng rng_{1};
  divan::events::Bus bus_;
  kv::reference::ReferenceDatabase store_{clock_, rng_};
  docs::Catalog catalog_{bus_, clock_};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  constexpr std::size_t kMaxBytes = 300;
  if (size > kMaxBytes) return 0;
  Program(divan::fuzz::text_of(data, size)).run();
  return 0;
}
