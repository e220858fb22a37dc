#include "divan/index/views/js_functions.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/json.h"

namespace divan::index::views {
namespace {

// A function that exceeded a limit this often in one batch fails the build.
constexpr std::size_t kMaxStrikes = 3;

}  // namespace

bool is_javascript(std::string_view body) {
  const auto language = json::member(body, "language");
  return !language || json::string_value(*language) == kJavaScript;
}

Origin origin_of(const std::string& design_id, std::string_view body, const docs::Database* database) {
  Origin origin{.owner = {.design_document = design_id}};
  if (database != nullptr) {
    origin.owner.database = database->name();
    origin.owner.number = database->number();
  }
  const std::string_view path[] = {"views", "lib"};
  std::optional<std::string_view> lib = body;
  for (const auto& name : path) {
    if (lib) lib = json::member(*lib, name);
  }
  if (lib) origin.lib = *lib;
  return origin;
}

JsFunctions::JsFunctions(const Origin& origin, const Sources& sources, const std::string& signature,
                         js::Pool& pool, std::shared_ptr<SlowDocuments> slow, const Terms& terms)
    : owner_(origin.owner), pool_(pool), slow_(std::move(slow)), terms_(terms) {
  program_.id = signature;
  program_.root = origin.root();
  for (const auto& [name, source] : sources) program_.functions.push_back({name, source, owner_});
}

void JsFunctions::map(const SourceTexts& texts, const js::Limits& limits, DocumentBatch& batch,
                      const Add& add) const {
  reject_slow(texts, limits);
  std::vector<std::size_t> strikes(program_.functions.size());
  std::size_t done = 0;
  texts.add_documents_before(done, batch);
  while (done < texts.size() && batch.bytes() < kFullBatchBytes) {
    const std::size_t first = done;
    const js::MapResult result = pool_.map(program_, texts.from(first), limits);
    done += result.documents();
    texts.add_documents_before(done, batch);
    for (std::size_t d = 0; d < result.documents(); ++d)
      add_results(result, d, texts, first + d, limits, strikes, batch, add);
    // If some documents are left, time was up or they were too much for one message; what there is can be
    // written meanwhile. But a function with strikes is called for the rest of them in this batch.
    if (std::all_of(strikes.begin(), strikes.end(), [](std::size_t count) { return count == 0; })) break;
  }
}

// Adds what the functions emitted for one document.
void JsFunctions::add_results(const js::MapResult& result, std::size_t in_result, const SourceTexts& texts,
                              std::size_t number, const js::Limits& limits, std::vector<std::size_t>& strikes,
                              DocumentBatch& batch, const Add& add) const {
  const std::size_t index = texts.index(number);
  const docs::Change& change = texts.document(number).change;
  for (std::size_t f = 0; f < result.functions(); ++f) {
    add(index, f, result.emitted(in_result, f));
    const js::Failure* failure = result.failure(in_result, f);
    if (failure == nullptr) continue;
    const js::Function& function = program_.functions[f];
    batch.add_failure(index, fmt::format("{} `{}`: {}", terms_.index, function.name, failure->message));
    const std::string what =
        fmt::format("{} `{}` of `{}` in `{}` failed on document `{}`: {}", terms_.function, function.name,
                    function.owner.design_document, function.owner.database, change.id, failure->message);
    pool_.log_failure(function, what);
    const bool threw =
        failure->kind == js::FailureKind::exception || failure->kind == js::FailureKind::too_large;
    if (slow_ && failure->kind == js::FailureKind::timeout)
      slow_->add({owner_.number, program_.id, f, std::string(change.sequence.bytes())}, invocation(limits),
                 what);
    // One that replication has brought: the design document was not checked.
    if (failure->kind == js::FailureKind::compilation) throw FunctionFailed(what);
    if (!threw && ++strikes[f] >= kMaxStrikes) throw FunctionFailed(what);
  }
}

// The time limit for one invocation of a function.
Duration JsFunctions::invocation(const js::Limits& limits) const {
  return limits.invocation.value_or(pool_.invocation());
}

// Throws if functions are known to have timed out for so many of these documents that the index cannot be
// built, without running them again.
void JsFunctions::reject_slow(const SourceTexts& texts, const js::Limits& limits) const {
  if (!slow_ || slow_->empty()) return;
  const Duration limit = invocation(limits);
  std::vector<std::size_t> strikes(program_.functions.size());
  for (std::size_t number = 0; number < texts.size(); ++number) {
    const std::string sequence(texts.document(number).change.sequence.bytes());
    for (std::size_t f = 0; f < strikes.size(); ++f) {
      const auto what = slow_->find({owner_.number, program_.id, f, sequence}, limit);
      if (what && ++strikes[f] >= kMaxStrikes) throw FunctionFailed(*what);
    }
  }
}

}  // namespace divan::index::views
