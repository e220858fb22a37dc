// The batches of the pool, and the handling of functions that fail, are slow, or end their process.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/js/pool.h"

namespace divan::js {
namespace {

// The most bytes of all results of a call of reduce(); functions that return more fail.
constexpr std::size_t kMaxReductions = protocol::kMaxFrame;

// The size of the rows in CouchDB's form: [[[key,"id"],value],...], or [value,...].
std::uint64_t bytes_of(const ReduceGroup& group, bool rereduce) {
  std::uint64_t bytes = 2;
  for (const auto& row : group)
    bytes += row.value.size() + (rereduce ? 1 : row.key.size() + row.id.size() + 9);
  return bytes;
}

void append(MapResult& all, MapResult more) { all.append(std::move(more)); }
void append(std::vector<Outcome>& all, std::vector<Outcome> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}
std::size_t size_of(const MapResult& result) { return result.documents(); }
std::size_t size_of(const std::vector<Outcome>& result) { return result.size(); }
void append_failed(MapResult& all, const Failure& failure) { all.append_failed(failure); }
void append_failed(std::vector<Outcome>& all, const Failure& failure) { all.emplace_back(failure); }

bool timed_out(const MapResult& result) { return result.timed_out(); }
bool timed_out(const std::vector<Outcome>& result) {
  return std::any_of(result.begin(), result.end(), [](const auto& outcome) {
    const auto* const failure = std::get_if<Failure>(&outcome);
    return failure != nullptr && failure->kind == FailureKind::timeout;
  });
}

std::size_t count_failures(const std::vector<Outcome>& result) {
  return static_cast<std::size_t>(std::count_if(result.begin(), result.end(), [](const auto& outcome) {
    return std::holds_alternative<Failure>(outcome);
  }));
}

}  // namespace

MapResult Pool::map(const Program& program, std::span<const std::string_view> documents,
                    const Limits& some_limits) {
  const Limits limits = with_invocation(some_limits);
  MapResult none(program.functions.size());
  if (documents.empty()) return none;
  documents = documents.first(fitting(documents));
  auto result = do_batch(
      program, documents.size(), std::move(none), limits,
      [&](std::size_t first, std::size_t count, Choice choice, const Limits& within,
          Death& death) -> std::optional<MapResult> {
        const auto some = documents.subspan(first, count);
        std::optional<MapResult> parsed;
        run(
            program, choice, [&](std::uint32_t slot) { return map_request(slot, some, within); },
            [&](std::string response, Log& log) {
              parsed = parse_map_response(std::move(response), some.size(), program.functions.size(), log);
              return parsed.has_value();
            },
            within, death);
        return parsed;
      });
  DIVAN_CHECK(result.documents() > 0 && result.documents() <= documents.size(),
              "{} of {} documents were processed", result.documents(), documents.size());
  std::lock_guard lock(mutex_);
  ++stats_.batches;
  stats_.documents += result.documents();
  stats_.failures += result.failures();
  return result;
}

void Pool::enforce(const ReduceLimit& limit, const Function& function, std::uint64_t bytes_in,
                   Reduction& reduction) {
  const auto* text = std::get_if<std::string>(&reduction);
  if (text == nullptr || !limit.exceeded(bytes_in, text->size())) return;
  auto message = overflow_message(bytes_in, text->size(), reduce_context(function));
  if (limit.mode == ReduceLimit::Mode::log) {
    log_failure(function, "reduce_overflow_error: " + message);
  } else {
    reduction = Failure{FailureKind::reduce_overflow, std::move(message)};
  }
}

std::vector<Reduction> Pool::reduce(const Function& function, bool rereduce,
                                    std::span<const ReduceGroup> groups, const Limits& some_limits) {
  const Limits limits = with_invocation(some_limits);
  // The id does not include the name: the same function in two views is one program.
  const Program program{"reduce " + function.source, {function}};
  const ReduceLimit limit = reduce_limit();
  std::vector<Reduction> all;
  std::size_t size = 0;
  while (all.size() < groups.size()) {
    auto some = reduce_some(program, rereduce, groups.subspan(all.size()), limits);
    DIVAN_CHECK(!some.empty() && some.size() <= groups.size() - all.size(), "{} reductions of {} groups",
                some.size(), groups.size() - all.size());
    for (auto& reduction : some) {
      if (const auto* text = std::get_if<std::string>(&reduction)) size += text->size();
      enforce(limit, function, bytes_of(groups[all.size()], rereduce), reduction);
      if (size > kMaxReductions)
        reduction = Failure{FailureKind::too_large, "the results of the call exceed the size limit"};
      all.push_back(std::move(reduction));
    }
  }
  return all;
}

std::vector<Reduction> Pool::reduce_some(const Program& program, bool rereduce,
                                         std::span<const ReduceGroup> groups, const Limits& limits) {
  groups = groups.first(fitting(groups));
  auto result = call_for_each(
      program, groups.size(), limits,
      [&](std::uint32_t slot, std::size_t first, std::size_t count, const Limits& within) {
        return reduce_request(slot, rereduce, groups.subspan(first, count), within);
      },
      parse_reduce_response);
  std::lock_guard lock(mutex_);
  stats_.groups += result.size();
  return result;
}

std::vector<Outcome> Pool::apply(const Program& program, ResultKind kind, std::span<const Arguments> calls,
                                 const Limits& some_limits) {
  if (calls.empty()) return {};
  calls = calls.first(fitting(calls));
  auto result = call_for_each(
      program, calls.size(), with_invocation(some_limits),
      [&](std::uint32_t slot, std::size_t first, std::size_t count, const Limits& within) {
        return apply_request(slot, kind, calls.subspan(first, count), within);
      },
      parse_apply_response);
  DIVAN_CHECK(!result.empty() && result.size() <= calls.size(), "{} of {} calls were made", result.size(),
              calls.size());
  std::lock_guard lock(mutex_);
  stats_.applied += result.size();
  return result;
}

// Runs the only function of a program for `count` items.
std::vector<Outcome> Pool::call_for_each(const Program& program, std::size_t count, const Limits& limits,
                                         const MakeBatch& request, const ParseBatch& parse) {
  auto result =
      do_batch(program, count, std::vector<Outcome>(), limits,
               [&](std::size_t first, std::size_t size, Choice choice, const Limits& within,
                   Death& death) -> std::optional<std::vector<Outcome>> {
                 std::optional<std::vector<Outcome>> parsed;
                 run(
                     program, choice, [&](std::uint32_t slot) { return request(slot, first, size, within); },
                     [&](const std::string& response, Log& log) {
                       parsed = parse(response, size, log);
                       return parsed.has_value();
                     },
                     within, death);
                 return parsed;
               });
  std::lock_guard lock(mutex_);
  ++stats_.batches;
  stats_.failures += count_failures(result);
  return result;
}

// Processes a batch of `count` items. attempt(first, n, choice, limits, death) processes some of them, or
// returns nullopt and sets `death` if the process died.
template <class Result, class Attempt>
Result Pool::do_batch(const Program& program, std::size_t count, Result none, Limits limits,
                      const Attempt& attempt) {
  if (limits.urgent) {
    if (auto result = try_urgent<Result>(program, count, limits, attempt)) return *std::move(result);
    if (limits.on_slow) limits.on_slow();
    limits.urgent = false;
  }
  return run_isolating_failures(count, std::move(none), limits, attempt);
}

template <class Result, class Attempt>
std::optional<Result> Pool::try_urgent(const Program& program, std::size_t count, const Limits& limits,
                                       const Attempt& attempt) {
  const auto key = program.key();
  if (is_slow(key) || (limits.known_quick && !is_quick(key))) return std::nullopt;
  Limits brief = limits;
  brief.invocation = std::min(*limits.invocation, kUrgentInvocation);
  brief.batch = std::min(limits.batch, kUrgentBatch);
  Death death;
  std::optional<Result> result = attempt(0, count, Choice::any, brief, death);
  const bool is_quick = result && !timed_out(*result);
  note_pace(key, !is_quick);
  if (is_quick) return result;
  // A background call would have the same time limit, so it is not repeated.
  if (result && brief.invocation == limits.invocation) return result;
  return std::nullopt;
}

bool Pool::is_quick(const std::string& program_key) const {
  std::lock_guard lock(mutex_);
  return quick_.contains(program_key, clock_.now());
}

bool Pool::is_slow(const std::string& program_key) const {
  std::lock_guard lock(mutex_);
  return slow_.contains(program_key, clock_.now());
}

void Pool::note_pace(const std::string& program_key, bool is_slow) {
  std::lock_guard lock(mutex_);
  (is_slow ? slow_ : quick_).add(program_key, clock_.now());
  if (is_slow) quick_.erase(program_key);
}

template <class Result, class Attempt>
Result Pool::run_isolating_failures(std::size_t count, Result result, const Limits& limits,
                                    const Attempt& attempt) const {
  Death death;
  const auto try_some = [&](std::size_t first, std::size_t size, Choice choice) {
    auto partial = attempt(first, size, choice, limits, death);
    if (!partial && death.stuck_in && !death.loading && *death.stuck_in >= size)
      death = {.failure = protocol_violation(), .loading = false, .stuck_in = {}};
    return partial;
  };
  for (const auto choice : {Choice::any, Choice::fresh}) {
    if (auto partial = try_some(0, count, choice)) return std::move(*partial);
    if (death.stuck_in) break;
  }
  const bool tried = death.stuck_in ? death.loading : count == 1;
  // The results of the documents before the one that does not end were lost: run them again.
  while (death.stuck_in && !death.loading) {
    DIVAN_CHECK(*death.stuck_in < count, "document {} of {} does not end", *death.stuck_in, count);
    count = *death.stuck_in;
    const Failure failure = std::exchange(death, {}).failure;
    std::optional<Result> partial;
    if (count > 0 && !(partial = try_some(0, count, Choice::any))) continue;
    const std::size_t done = partial ? size_of(*partial) : 0;
    if (partial) append(result, std::move(*partial));
    if (done == count) append_failed(result, failure);
    return result;
  }
  const auto deadline = clock_.now() + limits.batch;
  for (std::size_t i = 0; i < count && (i == 0 || clock_.now() < deadline); ++i) {
    std::optional<Result> partial;
    // Try this twice, too: a process can die for another reason (such as memory pressure), which must not
    // fail a document.
    if (!tried) partial = try_some(i, 1, Choice::any);
    if (!partial && !tried && !death.stuck_in) partial = try_some(i, 1, Choice::fresh);
    if (partial) {
      append(result, std::move(*partial));
    } else if (death.loading) {
      throw Error(500, "os_process_error",
                  fmt::format("Compiling the functions failed: {}.", death.failure.message));
    } else {
      append_failed(result, death.failure);
    }
  }
  return result;
}

}  // namespace divan::js
