#include "divan/api/validations.h"

#include "divan/api/database_access.h"
#include "divan/base/json.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/prefetch.h"

namespace divan::api {
namespace {

// A page of documents that are validated together ends at this many bytes, with those that they replace, or
// at this many documents.
constexpr std::size_t kPageBytes = 4 << 20;
constexpr std::size_t kPageDocuments = 1'000;

// Some of a request's documents.
struct Page {
  Validations::Batch batch{};
  std::vector<std::size_t> indices{};  // of the documents of `batch.cases`
  std::size_t end = 0;                 // of the page
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
  page.batch.database = database.number();
  page.batch.functions = context.validations.functions(tx, database, docs::read_validators(tx, database));
  if (page.batch.functions->programs.empty()) return page;
  page.batch.context =
      "[" + user_context(name, call.user()) + "," +
      docs::read_config(tx, database, docs::kSecurity).value_or(std::string(kDefaultSecurity)) + "]";
  std::size_t bytes = 0;
  for (std::size_t i = begin; i < documents.size(); ++i) {
    if (i > begin && (bytes >= kPageBytes || i - begin >= kPageDocuments)) {
      page.end = i;
      break;
    }
    const auto found = docs::validation_case(tx, database, *documents[i], new_edits);
    if (!found) continue;
    page.batch.cases.push_back("[" + found->document + "," + found->replaced + "]");
    page.indices.push_back(i);
    bytes += page.batch.cases.back().size();
  }
  return page;
}

}  // namespace

ValidationFunctionsPtr Validations::last(std::string_view database) {
  std::lock_guard lock(mutex_);
  const Known* const known = known_.touch(database);
  return known == nullptr ? nullptr : known->functions;
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
  if (functions->programs.empty() || functions->bytes > kMaxKnownBytes) {
    known_.erase(database.name());
  } else {
    known_[database.name()] = {database.number(), functions};
  }
  return functions;
}

void Validations::add(Batch& batch) {
  const std::int64_t database = batch.database;
  {
    std::lock_guard lock(mutex_);
    auto& waiting = waiting_[database];
    waiting.push_back(&batch);
    if (waiting.size() > 1) return;
  }
  if (!threads_.submit(database, [this, database] { run(database); })) run(database);
}

// Validates all that waits, whose coroutines then continue.
void Validations::run(std::int64_t database) {
  std::vector<Batch*> batches;
  {
    std::lock_guard lock(mutex_);
    batches = std::move(waiting_.extract(database).mapped());
  }
  // Those with the same functions together; others exist only while the functions change.
  std::ranges::stable_sort(batches, {}, [](const Batch* batch) { return batch->functions.get(); });
  for (auto begin = batches.begin(); begin != batches.end();) {
    const auto end = std::find_if(
        begin, batches.end(), [&](const Batch* batch) { return batch->functions != (*begin)->functions; });
    run_together({begin, end});
    begin = end;
  }
  for (Batch* const batch : batches) batch->executor->resume(batch->coroutine);
}

void Validations::run_together(std::span<Batch* const> batches) {
  std::vector<js::Arguments> cases;
  for (const Batch* const batch : batches) {
    for (const auto& documents : batch->cases) cases.push_back({documents, batch->context});
  }
  try {
    auto errors = functions::validate(pool_, *batches.front()->functions, cases);
    auto next = errors.begin();
    for (Batch* const batch : batches) {
      for (std::size_t i = 0; i < batch->cases.size(); ++i) batch->errors.push_back(std::move(*next++));
    }
  } catch (const std::exception&) {
    for (Batch* const batch : batches) batch->failure = std::current_exception();
  }
}

Async<Validated> validate_documents(const Context& context, Call& call, const std::string& database,
                                    const std::vector<const docs::IncomingDocument*>& documents,
                                    bool new_edits) {
  Validated validated;
  validated.errors.resize(documents.size());
  for (std::size_t next = 0;;) {
    Page page = co_await call.run(context.store, [&](kv::Transaction& tx) {
      return read_page(context, call, tx, database, documents, next, new_edits);
    });
    const std::string& validators = page.batch.functions->validators;
    // The functions have changed: those before this page are validated again.
    if (next > 0 && validators != validated.validators) {
      next = 0;
      continue;
    }
    validated.validators = validators;
    co_await context.validations.validate(page.batch, call.executor());
    for (std::size_t i = 0; i < page.indices.size(); ++i)
      validated.errors[page.indices[i]] = std::move(page.batch.errors[i]);
    next = page.end;
    if (next == documents.size()) co_return validated;
  }
}

std::string user_context(std::string_view database, const User& user) {
  std::string json;
  json::Writer writer(json);
  writer.begin_object().key("db").string(database).key("name");
  user.name.empty() ? writer.null() : writer.string(user.name);
  writer.key("roles").begin_array();
  if (user.admin) writer.string("_admin");
  for (const auto& role : user.roles) writer.string(role);
  writer.end_array().end_object();
  return json;
}

}  // namespace divan::api
