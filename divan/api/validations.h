// Validation of documents before they are written, by the functions `validate_doc_update` of their database.
//
// The documents of all requests to a database that wait at a moment are validated in one batch: a call of a
// JavaScript process costs as much as many documents. A request that waits holds no thread. After each call
// databases take turns (function_threads.h), and within a database requests do: those of users whose
// documents took long come last.
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
#include "divan/api/function_threads.h"
#include "divan/base/lru_map.h"
#include "divan/docs/validation.h"
#include "divan/docs/writer.h"
#include "divan/functions/validation_functions.h"

namespace divan::api {

using ValidationFunctionsPtr = std::shared_ptr<const functions::ValidationFunctions>;

/// The functions that databases used last, and the queues of documents. Thread-safe.
class Validations {
 public:
  Validations(js::Pool& pool, FunctionThreads& threads);

  /// The list of the functions that validated the documents of a database of this name last, which need not
  /// be its present ones; empty if none are known.
  std::string last(std::string_view database);

  /// The functions of the list, which was read in the transaction.
  ValidationFunctionsPtr functions(kv::Transaction& tx, const docs::Database& database,
                                   const std::string& validators);

  /// Documents of a request. Must outlive the wait.
  struct Batch {
    std::string name{};  ///< the database's
    std::int64_t database = 0;
    ValidationFunctionsPtr functions{};
    std::vector<std::string> cases{};  ///< [document, replaced document]
    std::string context{};             ///< [user context, security object]
    std::string user{};
    std::vector<std::optional<Error>> errors{};  ///< the result: one for each case
    bool is_outdated = false;                    ///< result: the functions have changed meanwhile
    FunctionThreads::Reservation memory{};

    // The state of the wait.
    std::size_t program = 0;          // the function that is to be called next
    std::vector<std::size_t> left{};  // the cases with which it is to be called
    std::size_t slow_calls = 0;
    std::exception_ptr failure{};
    const http::Exchange* exchange = nullptr;
    RequestExecutor* executor = nullptr;
    std::coroutine_handle<> coroutine{};
  };

  /// co_await: validates the documents. Throws what js::Pool throws, and client_closed_request (499) if the
  /// client is gone.
  auto validate(Batch& batch, Call& call) {
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
    batch.exchange = call.exchange().get();
    batch.executor = &call.executor();
    return Awaiter{*this, batch};
  }

 private:
  // The functions of at most this many databases are kept, and of this size together.
  static constexpr std::size_t kMaxKnown = 256;
  static constexpr std::size_t kMaxKnownBytes = 64 << 20;

  struct Known {
    std::int64_t database = 0;
    ValidationFunctionsPtr functions;
  };
  // The requests that wait in a database. There is a task if there are any.
  struct Queue {
    std::vector<Batch*> batches;
    std::map<std::string, std::size_t> slow_calls;  // by user
  };
  // A call of a function, with the cases of several requests.
  struct Round {
    std::vector<std::pair<Batch*, std::size_t>> cases;
    std::vector<js::Arguments> arguments;
  };

  void add(Batch& batch);
  void submit(std::int64_t database);
  void run(std::int64_t database);
  std::vector<Batch*> waiting(std::int64_t database);
  Round next_round(std::span<Batch* const> batches) const;
  void call(const Round& round);
  void finish_round(std::int64_t database, std::span<Batch* const> batches);
  bool has_ended(Batch& batch);

  js::Pool& pool_;
  FunctionThreads& threads_;
  Mutex mutex_{MutexRank::validations, "Validations::mutex_"};  // protects the members below
  LruMap<Known> known_;                                         // by name
  std::size_t known_bytes_ = 0;
  std::map<std::int64_t, Queue> waiting_;  // by database
};

/// The result of validate_documents().
struct Validated {
  docs::Validators validators;
  std::vector<docs::Verdict> verdicts;  ///< one for each document
};

/// Validates documents that the call's user writes to a database. Throws not_found without a database, and
/// service_unavailable (503) if too much waits, or the functions change all the time.
Async<Validated> validate_documents(const Context& context, Call& call, const std::string& database,
                                    const std::vector<const docs::IncomingDocument*>& documents,
                                    bool new_edits);

/// The error for writes that had to be validated again too often.
Error functions_change_too_often();

/// The object that functions receive as `userCtx`.
std::string user_context(std::string_view database, const User& user);

/// Runs the transactions of a docs::BulkEdit or docs::BulkReplicate in the database of the path. Its
/// documents are validated before.
template <class Bulk>
Async<void> write_all(const Context& context, Call& call, Bulk& bulk, bool new_edits) {
  constexpr int kMaxRepeats = 10;
  const std::string& name = call.path()[0];
  std::string list;  // of the functions that have validated documents
  bool is_validated = context.validations.last(name).empty();
  bool all = true;  // otherwise only the next document is to be validated
  std::size_t left_before = SIZE_MAX;
  for (int repeats = 0;;) {
    if (!is_validated) {
      const auto documents = bulk.unwritten(all);
      auto validated = co_await validate_documents(context, call, name, documents, new_edits);
      const bool is_other_list = std::exchange(list, validated.validators.list) != validated.validators.list;
      if (is_other_list && !std::exchange(all, true)) continue;
      bulk.validated(std::move(validated.validators), validated.verdicts);
      is_validated = true;
    }
    try {
      do {
        co_await call.run(context.store, [&](kv::Transaction& tx) { bulk.write(tx); });
      } while (bulk.committed());
      co_return;
    } catch (const docs::NotValidated& error) {
      is_validated = false;
      all = error.list_changed;
    }
    const std::size_t left = bulk.unwritten(true).size();
    repeats = std::exchange(left_before, left) == left ? repeats + 1 : 0;
    if (repeats > kMaxRepeats) throw functions_change_too_often();
  }
}

}  // namespace divan::api
