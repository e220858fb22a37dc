#include "divan/index/builds.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/index/failures.h"

namespace divan::index {

std::string BuildRequest::to_json() const {
  std::string out;
  json::Writer(out)
      .begin_object()
      .key("db")
      .string(database)
      .key("db_number")
      .number(database_number)
      .key("ddoc")
      .string(design_document)
      .key("signature")
      .string(to_hex(signature))
      .end_object();
  return out;
}

BuildRequest BuildRequest::parse(std::string_view text) {
  const auto object = json::parse_object(text);
  const auto* database = object.if_contains("db");
  const auto* number = object.if_contains("db_number");
  const auto* design = object.if_contains("ddoc");
  const auto* signature = object.if_contains("signature");
  if (!database || !database->is_string() || !number || !number->is_int64() || !design ||
      !design->is_string() || !signature || !signature->is_string()) {
    throw bad_request("Invalid data of an index build.");
  }
  const auto bytes = from_hex(std::string_view(signature->get_string()));
  if (!bytes) throw bad_request("The signature of an index must be hexadecimal.");
  return {std::string(database->get_string()), number->get_int64(), std::string(design->get_string()),
          *bytes};
}

std::string build_id(const docs::Database& database, std::string_view signature) {
  return fmt::format("{}:{}:{}", to_hex(signature), database.number(), database.name());
}

std::string_view database_of_build(std::string_view id) { return id.substr(id.rfind(':') + 1); }

void request_build(jobs::Queue& queue, kv::Transaction& tx, const docs::Database& database,
                   const Index& index, std::int64_t priority, JobClaimer* claimer) {
  const std::string id = build_id(database, index.signature());
  // A running build ends only when there are no further changes (Builder::finish). Those that this request is
  // for are already committed, so the build need not run again.
  const auto present = queue.find(tx, index.kind(), id);
  if (present && present->state == jobs::State::running) return;
  if (present && present->state == jobs::State::pending && present->priority <= priority) return;
  const BuildRequest request{database.name(), database.number(), index.design_document(), index.signature()};
  queue.add(tx, index.kind(), id, request.to_json(), {.priority = priority});
  if (claimer != nullptr) claimer->try_claim(tx, index.kind());
}

void fail_build(jobs::Queue& queue, kv::Transaction& tx, const IndexKeys& keys, const jobs::Attempt& attempt,
                std::string_view why, bool by_function, bool advanced) {
  jobs::fail(queue, tx, attempt, why);
  BuildFailures failures;
  if (!advanced) failures = read_failures(tx, keys).value_or(BuildFailures());
  write_failures(tx, keys, {failures.count + 1, queue.clock().wall_ms(), by_function, std::string(why)});
}

void declare_builds(jobs::Queue& queue, kv::Database& store, const Kinds& kinds) {
  jobs::TypeSettings settings;
  settings.max_attempts = 1;
  // A build resumes where it was, and may take many restarts of the server.
  settings.max_lost.reset();
  settings.retention = std::chrono::hours(1);
  for (const auto& kind : kinds) queue.set_own_type(std::string(kind->name()), settings);
  store.run([&](kv::Transaction& tx) {
    for (const auto& kind : kinds) queue.set_type(tx, kind->name(), settings);
  });
}

}  // namespace divan::index
