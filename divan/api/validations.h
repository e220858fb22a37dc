// Validation of documents before they are written, by the functions `validate_doc_update` of their database.
//
// The documents of all requests to a database that wait at a moment are validated in one batch: a call of a
// JavaScript process costs as much as many documents. A request that waits holds no thread. Databases take
// turns (FairThreadPool), so slow functions delay only the writes of their own database.
#pragma once

#include <coroutine>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "divan/api/call.h"
#include "divan/api/context.h"
#include "divan/base/lru_map.h"
#include "divan/docs/validation.h"
#include "divan/docs/writer.h"
#include "divan/functions/validation_functions.h"

namespace divan::api {

using ValidationFunctionsPtr = std::shared_ptr<const functions::ValidationFunctions>;

/// The functions that databases used last, and the queues of documents. Thread-safe.
class Validations {
 public:
  Validations(js::Pool& pool, FairThreadPool& threads) : pool_(pool), threads_(threads), known_(kMaxKnown) {}

  /// The functions that validated the documents of a database of this name last, which need not be its
  /// present ones; null if none are known.
  ValidationFunctionsPtr last(std::string_view database);

  /// The functions of the list, which was read in the transaction.
  ValidationFunctionsPtr functions(kv::Transaction& tx, const docs::Database& database,
                                   const std::string& validators);

  /// Documents of a request. Must outlive the wait.
  struct Batch {
    std::int64_t database = 0;
    ValidationFunctionsPtr functions{};
    std::vector<std::string> cases{};            ///< [document, replaced document]
    std::string context{};                       ///< [user context, security object]
    std::vector<std::optional<Error>> errors{};  ///< the result: one for each case

    std::exception_ptr failure{};
    RequestExecutor* executor = nullptr;
    std::coroutine_handle<> coroutine{};
  };

  /// co_await: validates the documents. Throws what js::Pool throws.
  auto validate(Batch& batch, RequestExecutor& executor) {
    struct Awaiter {
      Validations& validations;
      Batch& batch;
      bool await_ready() const { return batch.cases.empty(); }
      // It may continue, and end, before add() returns.
      void await_suspend(std::coroutine_handle<> coroutine) const {
        batch.coroutine = coroutine;
        validations.add(batch);
      }
      void await_resume() const {
        if (batch.failure) std::rethrow_exception(batch.failure);
      }
    };
    batch.executor = &executor;
    return Awaiter{*this, batch};
  }

 private:
  // The functions of at most this many databases, and of this size, are kept: 64 MiB.
  static constexpr std::size_t kMaxKnown = 256;
  static constexpr std::size_t kMaxKnownBytes = 256 << 10;

  struct Known {
    std::int64_t database = 0;
    ValidationFunctionsPtr functions;
  };

  void add(Batch& batch);
  void run(std::int64_t database);
  void run_together(std::span<Batch* const> batches);

  js::Pool& pool_;
  FairThreadPool& threads_;
  Mutex mutex_{MutexRank::validations, "Validations::mutex_"};  // protects the members below
  LruMap<Known> known_;                                         // by name
  std::map<std::int64_t, std::vector<Batch*>> waiting_;         // by database; each has a task
};

/// The result of validate_documents().
struct Validated {
  std::string validators;                    ///< those that validated the documents
  std::vector<std::optional<Error>> errors;  ///< one for each document
};

/// Validates documents that the call's user writes to a database. Throws not_found without a database.
Async<Validated> validate_documents(const Context& context, Call& call, const std::string& database,
                                    const std::vector<const docs::IncomingDocument*>& documents,
                                    bool new_edits);

/// The object that functions receive as `userCtx`.
std::string user_context(std::string_view database, const User& user);

/// Runs the transactions of a docs::BulkEdit or docs::BulkReplicate in the database of the path. Its
/// documents are validated before.
template <class Bulk>
Async<void> write_all(const Context& context, Call& call, Bulk& bulk, bool new_edits) {
  const std::string& name = call.path()[0];
  bool is_validated = context.validations.last(name) == nullptr;
  for (;;) {
    if (!is_validated) {
      const auto documents = bulk.unwritten();
      auto validated = co_await validate_documents(context, call, name, documents, new_edits);
      bulk.validated(std::move(validated.validators), validated.errors);
      is_validated = true;
    }
    try {
      do {
        co_await call.run(context.store, [&](kv::Transaction& tx) { bulk.write(tx); });
      } while (bulk.committed());
      co_return;
    } catch (const docs::ValidatorsChanged&) { is_validated = false; }
  }
}

}  // namespace divan::api
