#include "divan/api/validations.h"

#include <algorithm>

#include "divan/api/database_access.h"
#include "divan/api/function_threads.h"
#include "divan/api/session_routes.h"
#include "divan/base/check.h"
#include "divan/base/json.h"
#include "divan/docs/prefetch.h"

namespace divan::api {
namespace {

// A page of documents that are validated together ends at this many bytes, with those that they replace, or
// at this many documents.
constexpr std::size_t kPageBytes = 4 << 20;
constexpr std::size_t kPageDocuments = 1'000;
// Maximum number of cases in one call of a JavaScript process.
constexpr std::size_t kCasesTogether = 500;
// The documents of a request that come after this many calls that took too long are refused without a call.
constexpr std::size_t kMaxSlowCalls = 3;
constexpr int kMaxRestarts = 10;

// Some of a request's documents.
struct Page {
  Validations::Batch batch{};
  std::vector<std::size_t> indices{};           // of the documents of `batch.cases`
  std::vector<docs::Acceptance> acceptances{};  // of these
  std::size_t end = 0;                          // of the page
};

// Reads the cases of the documents from `begin` on.
Page read_page(const Context& context, const Call& call, kv::Transaction& tx, const std::string& name,
               const std::vector<const docs::IncomingDocument*>& documents, std::size_t begin,
               bool new_edits) {
  Page page;
  std::vector<std::string_view> ids;
  for (std::size_t i = begin; i < std::min(documents.size(), begin + kPageDocuments); ++i)
    ids.push_back(documents[i]->id);
  docs::prefetch_documents(tx, context.catalog, name, ids, true);
  const auto database = context.catalog.open(tx, name);
  page.end = documents.size();
  page.batch.name = name;
  page.batch.database = database.number();
  page.batch.user = call.user().name;
  page.batch.functions = context.validations.functions(tx, database, docs::read_validators(tx, database));
  if (page.batch.functions->programs.empty()) return page;
  page.batch.context = "[" + user_context(name, call.user()) + "," + read_security(tx, database) + "]";
  std::size_t bytes = 0;
  for (std::size_t i = begin; i < documents.size(); ++i) {
    if (i > begin && (bytes >= kPageBytes || i - begin >= kPageDocuments)) {
      page.end = i;
      break;
    }
    const auto found = docs::validation_case(tx, database, *documents[i], new_edits);
    if (!found) continue;
    page.batch.cases.push_back("[" + found->document + "," + found->replaced_document + "]");
    page.indices.push_back(i);
    page.acceptances.push_back(found->acceptance);
    bytes += page.batch.cases.back().size();
  }
  return page;
}

}  // namespace

Validations::Validations(js::Pool& pool, FunctionThreads& threads)
    : pool_(pool), threads_(threads), known_(kMaxKnown) {}

std::string Validations::last(std::string_view database) {
  std::lock_guard lock(mutex_);
  const Known* const known = known_.touch(database);
  return known == nullptr ? "" : known->functions->validators;
}

ValidationFunctionsPtr Validations::functions(kv::Transaction& tx, const docs::Database& database,
                                              const std::string& validators) {
  {
    std::lock_guard lock(mutex_);
    const Known* const known = known_.touch(database.name());
    const bool is_present = known != nullptr && known->database == database.number() &&
                            known->functions->validators == validators;
    if (is_present) return known->functions;
  }
  auto functions = std::make_shared<const functions::ValidationFunctions>(
      functions::read_validation_functions(tx, database, validators));
  std::lock_guard lock(mutex_);
  if (known_bytes_ + functions->bytes > kMaxKnownBytes) {
    known_.clear();
    known_bytes_ = 0;
  }
  Known& known = known_[database.name()];
  if (known.functions) known_bytes_ -= known.functions->bytes;
  known_bytes_ += functions->bytes;
  known = {database.number(), functions};
  return functions;
}

void Validations::add(Batch& batch) {
  const std::int64_t database = batch.database;
  batch.errors.resize(batch.cases.size());
  batch.left.resize(batch.cases.size());
  for (std::size_t i = 0; i < batch.left.size(); ++i) batch.left[i] = i;
  {
    std::lock_guard lock(mutex_);
    auto& batches = waiting_[database].batches;
    batches.push_back(&batch);
    if (batches.size() > 1) return;
  }
  submit(database);
}

void Validations::submit(std::int64_t database) {
  const auto task = [this, database] { run(database); };
  // While the server stops, calls end at once.
  if (!threads_.submit(database, FunctionUse::validation, task)) task();
}

// Calls one function once, for documents of all requests that wait. Requests whose documents are validated
// continue.
void Validations::run(std::int64_t database) {
  const auto batches = waiting(database);
  try {
    call(next_round(batches));
  } catch (const std::exception&) {
    for (Batch* const batch : batches) batch->failure = std::current_exception();
  }
  finish_round(database, batches);
}

// The requests that wait, those of users with the fewest slow calls first.
std::vector<Validations::Batch*> Validations::waiting(std::int64_t database) {
  std::lock_guard lock(mutex_);
  auto& queue = waiting_[database];
  auto batches = queue.batches;
  std::ranges::stable_sort(batches, {}, [&](const Batch* batch) {
    const auto slow = queue.slow_calls.find(batch->user);
    return slow == queue.slow_calls.end() ? 0 : slow->second;
  });
  return batches;
}

// Documents that the same function is to see as the first one: one of each request, then the next of each.
Validations::Round Validations::next_round(std::span<Batch* const> batches) const {
  Round round;
  std::vector<Batch*> together;
  const Batch& first = *batches.front();
  for (Batch* const batch : batches) {
    if (batch->functions == first.functions && batch->program == first.program) together.push_back(batch);
  }
  for (std::size_t i = 0; round.cases.size() < kCasesTogether; ++i) {
    const std::size_t before = round.cases.size();
    for (Batch* const batch : together) {
      if (i >= batch->left.size()) continue;
      round.cases.emplace_back(batch, batch->left[i]);
      round.arguments.push_back({batch->cases[batch->left[i]], batch->context});
    }
    if (round.cases.size() == before) break;
  }
  return round;
}

void Validations::call(const Round& round) {
  const Batch& first = *round.cases.front().first;
  const js::Program& program = first.functions->programs[first.program];
  const auto verdicts = functions::validate(pool_, program, round.arguments, FunctionThreads::limits());
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const auto [batch, index] = round.cases[i];
    batch->errors[index] = verdicts[i].error;
    batch->left.erase(std::ranges::find(batch->left, index));
    if (!verdicts[i].is_slow) continue;
    ++batch->slow_calls;
    std::lock_guard lock(mutex_);
    ++waiting_[batch->database].slow_calls[batch->user];
  }
}

// Returns true if the request is to continue. Otherwise the next function is to be called.
bool Validations::has_ended(Batch& batch) {
  if (batch.failure) return true;
  if (batch.exchange->closed()) {
    batch.failure = std::make_exception_ptr(ClientClosed());
    return true;
  }
  const Known* const known = known_.find(batch.name);
  if (known != nullptr && known->database == batch.database &&
      known->functions->validators != batch.functions->validators) {
    batch.is_outdated = true;
    return true;
  }
  if (batch.slow_calls >= kMaxSlowCalls) {
    for (const std::size_t index : batch.left)
      batch.errors[index] = Error(500, "validation_function_failed",
                                  "The function took too long for other documents of the request.");
    batch.left.clear();
  }
  while (batch.left.empty() && ++batch.program < batch.functions->programs.size()) {
    for (std::size_t i = 0; i < batch.cases.size(); ++i) {
      if (!batch.errors[i]) batch.left.push_back(i);
    }
  }
  return batch.left.empty();
}

void Validations::finish_round(std::int64_t database, std::span<Batch* const> batches) {
  std::vector<Batch*> ended;
  bool is_more = false;
  {
    std::lock_guard lock(mutex_);
    auto& queue = waiting_[database];
    for (Batch* const batch : batches) {
      if (!has_ended(*batch)) continue;
      ended.push_back(batch);
      std::erase(queue.batches, batch);
    }
    is_more = !queue.batches.empty();
    if (!is_more) waiting_.erase(database);
  }
  if (is_more) submit(database);
  for (Batch* const batch : ended) batch->executor->resume(batch->coroutine);
}

Async<Validated> validate_documents(const Context& context, Call& call, const std::string& database,
                                    const std::vector<const docs::IncomingDocument*>& documents,
                                    bool new_edits) {
  Validated validated;
  validated.verdicts.resize(documents.size());
  int restarts = 0;
  for (std::size_t next = 0;;) {
    Page page = co_await call.run(context.store, [&](kv::Transaction& tx) {
      return read_page(context, call, tx, database, documents, next, new_edits);
    });
    Validations::Batch& batch = page.batch;
    const std::string& list = batch.functions->validators;
    // If the functions have changed, the documents before this page are validated again.
    bool is_outdated = next > 0 && list != validated.validators.list;
    if (!is_outdated) {
      validated.validators = {list, batch.database};
      std::size_t bytes = batch.context.size();
      for (const auto& one : batch.cases) bytes += one.size();
      if (!batch.cases.empty()) batch.memory = context.function_threads.reserve(batch.database, bytes);
      co_await context.validations.validate(batch, call);
      is_outdated = batch.is_outdated;
    }
    if (is_outdated) {
      if (++restarts > kMaxRestarts) throw functions_change_too_often();
      co_await call.executor().pause(std::chrono::milliseconds(10 * restarts));
      next = 0;
      continue;
    }
    for (std::size_t i = 0; i < page.indices.size(); ++i) {
      auto& verdict = validated.verdicts[page.indices[i]];
      verdict = {std::move(batch.errors[i]), {}};
      if (!verdict.error) verdict.acceptance = page.acceptances[i];
    }
    next = page.end;
    if (next == documents.size()) co_return validated;
  }
}

Error functions_change_too_often() {
  return {503, "service_unavailable",
          "The functions that validate the documents, or the documents themselves, change too often."};
}

std::string user_context(std::string_view database, const User& user) {
  std::string json;
  json::Writer writer(json);
  writer.begin_object().key("db").string(database).key("name");
  user.name.empty() ? writer.null() : writer.string(user.name);
  writer.key("roles").raw(roles_json(user)).end_object();
  return json;
}

}  // namespace divan::api
