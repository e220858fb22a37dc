// What replications do: _scheduler/jobs and _scheduler/docs
// (https://docs.couchdb.org/en/stable/api/server/common.html#scheduler-jobs).
#include <fmt/core.h>

#include <algorithm>

#include "divan/api/nullable.h"
#include "divan/api/page_stream.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/jobs/history.h"
#include "divan/jobs/listing.h"
#include "divan/replicator/document_rows.h"
#include "divan/replicator/replication_document.h"

namespace divan::api {
namespace {

using jobs::State;
using replicator::kJobType;
using replicator::ReplicationJob;
using replicator::utc_time;

constexpr std::uint64_t kDefaultLimit = 100;
constexpr std::uint64_t kMaxLimit = 10'000;
// Documents that are read in a transaction.
constexpr std::size_t kPageDocuments = 200;
constexpr std::string_view kDatabase = "_replicator";
constexpr std::string_view kStates[] = {"initializing", "error",     "pending", "running",
                                        "crashing",     "completed", "failed"};

std::string_view state_of(const jobs::Job& job) {
  switch (job.state) {
    case State::running: return "running";
    case State::pending: return job.failures > 0 ? "crashing" : "pending";
    case State::finished: return "completed";
    default: return "failed";
  }
}

std::string error_info(std::string_view reason) {
  std::string out;
  json::Writer(out).begin_object().key("error").string(reason).end_object();
  return out;
}

// The latest first, as CouchDB has it.
void append_history(json::Writer& writer, kv::Transaction& tx, const jobs::Job& job) {
  const auto event = [&](std::int64_t ms, std::string_view type, const std::string& reason = {}) {
    writer.begin_object().key("timestamp").string(utc_time(ms)).key("type").string(type);
    if (!reason.empty()) writer.key("reason").string(reason);
    writer.end_object();
  };
  auto attempts = jobs::attempts_of(tx, job);
  std::ranges::reverse(attempts);
  writer.begin_array();
  for (const auto& attempt : attempts) {
    const bool is_crash = attempt.outcome == jobs::Outcome::failed || attempt.outcome == jobs::Outcome::lost;
    if (attempt.ended_at) event(*attempt.ended_at, is_crash ? "crashed" : "stopped", attempt.error);
    event(attempt.started_at, "started");
  }
  event(job.added_at, "added");
  writer.end_array();
}

void append_job(json::Writer& writer, const Context& context, kv::Transaction& tx, const jobs::Job& job) {
  const auto request = ReplicationJob::parse_or_null(context.queue.data(tx, job));
  if (!request) return;  // a client has added this job, with other data
  writer.begin_object();
  write_text_or_null(writer, "database", request->database);
  writer.key("id").string(job.id);
  write_text_or_null(writer, "pid", job.state == State::running ? job.id : "");
  writer.key("source").string(request->replication.source.shown());
  writer.key("target").string(request->replication.target.shown());
  write_text_or_null(writer, "user", request->replication.user.name);
  write_text_or_null(writer, "doc_id", request->document);
  write_text_or_null(writer, "node", job.worker_id);
  writer.key("state").string(state_of(job)).key("error_count").number(job.failures);
  writer.key("start_time").string(utc_time(job.added_at));
  writer.key("info").raw(job.progress.empty() ? "null" : job.progress);
  write_text_or_null(writer, "last_error", job.last_error);
  writer.key("history");
  append_history(writer, tx, job);
  writer.end_object();
}

RouteResult list_jobs(const Context& context, const Call& call) {
  const auto limit = std::min(call.count("limit").value_or(kDefaultLimit), kMaxLimit);
  const auto skip = call.count("skip").value_or(0);
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    const auto counts = context.queue.counts(tx, kJobType);
    const auto count = [&](State state) {
      const auto found = counts.find(state);
      return found == counts.end() ? 0 : static_cast<std::uint64_t>(found->second);
    };
    const auto total = count(State::running) + count(State::pending);
    const auto offset = std::min(skip, total);
    std::vector<jobs::Job> shown;
    for (const auto state : {State::running, State::pending}) {
      const auto wanted = std::min(offset, total) + limit - shown.size();
      if (wanted == 0) break;
      auto listed = jobs::list_jobs(context.queue, tx, kJobType,
                                    {.state = state, .limit = static_cast<std::size_t>(wanted)});
      std::ranges::move(listed.jobs, std::back_inserter(shown));
    }
    json::Writer writer(out);
    writer.begin_object().key("total_rows").number(static_cast<std::int64_t>(total));
    writer.key("offset").number(static_cast<std::int64_t>(offset)).key("jobs").begin_array();
    for (auto i = static_cast<std::size_t>(offset); i < shown.size() && i < offset + limit; ++i)
      append_job(writer, context, tx, shown[i]);
    writer.end_array().end_object();
  });
  return json_response(200, std::move(out));
}

RouteResult show_job(const Context& context, const std::string& id) {
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    const auto job = context.queue.find(tx, kJobType, id);
    if (!job || jobs::has_ended(job->state)) throw not_found("missing");
    json::Writer writer(out);
    append_job(writer, context, tx, *job);
  });
  return json_response(200, std::move(out));
}

// What a document has come to.
struct DocumentState {
  std::string_view state = "initializing";
  std::string id{};  // of the replication; empty: unknown
  std::string node{};
  std::string info = "null";  // JSON
  std::int64_t error_count = 0;
  std::string start_time{};  // empty: unknown
  std::string last_updated{};
};

// The statistics without `start_time`, which is shown beside them.
void read_stats(std::string_view stats, DocumentState& into) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  const bool is_object = json::for_each_member(stats, [&](std::string_view raw_name, std::string_view value) {
    const auto name = json::unescape(raw_name);
    if (name == "start_time") {
      into.start_time = json::string_value(value).value_or("");
    } else {
      writer.key(name).raw(value);
    }
    return true;
  });
  writer.end_object();
  into.info = is_object ? out : "{}";
}

DocumentState state_of_outcome(std::string_view outcome, std::string_view body) {
  const auto text = [&](std::string_view name) {
    return json::string_value(json::member(body, name).value_or("")).value_or("");
  };
  DocumentState state{.state = outcome == "completed" ? "completed" : "failed",
                      .id = text("_replication_id"),
                      .last_updated = text("_replication_state_time")};
  if (outcome == "completed") {
    read_stats(json::member(body, "_replication_stats").value_or(""), state);
  } else {
    state.info = error_info(text("_replication_state_reason"));
    state.error_count = 1;
    state.start_time = state.last_updated;
  }
  return state;
}

DocumentState read_state(const Context& context, kv::Transaction& tx, const docs::Database& database,
                         const std::string& id, std::string_view body) {
  if (const auto outcome = replicator::outcome_of(body)) return state_of_outcome(*outcome, body);
  const auto job_id = tx.get(replicator::rows::requested(database.name(), id), kv::Isolation::snapshot);
  const auto job = job_id ? context.queue.find(tx, kJobType, *job_id, kv::Isolation::snapshot) : std::nullopt;
  const auto request = job ? ReplicationJob::parse_or_null(context.queue.data(tx, *job)) : std::nullopt;
  // The document has changed since, and will be processed soon.
  if (!request || request->json != replicator::without_outcome(body)) return {};
  const auto attempts = jobs::attempts_of(tx, *job);
  const auto updated =
      attempts.empty() ? job->added_at : attempts.back().ended_at.value_or(attempts.back().started_at);
  DocumentState state{.state = state_of(*job),
                      .id = job->id,
                      .node = job->worker_id,
                      .info = job->progress.empty() ? "null" : job->progress,
                      .error_count = job->failures,
                      .start_time = utc_time(job->added_at),
                      .last_updated = utc_time(updated)};
  if (state.state == "crashing" || state.state == "failed") state.info = error_info(job->last_error);
  return state;
}

// Without credentials; null if the document is invalid, since a password may be anywhere in it.
void append_endpoint(json::Writer& writer, std::string_view key, const std::optional<ReplicationJob>& request,
                     const replicator::Endpoint replicator::Replication::*endpoint) {
  const auto shown = request ? request->replication.*endpoint : replicator::Endpoint();
  write_text_or_null(writer, key, shown.shown());
  write_text_or_null(writer, std::string(key) + "_proxy", shown.shown_proxy());
}

void append_document(json::Writer& writer, const docs::Database& database, const std::string& id,
                     std::string_view body, const DocumentState& state) {
  std::optional<ReplicationJob> request;
  try {
    request = replicator::job_of_document(database.name(), id, body);
  } catch (const Error&) { request.reset(); }
  writer.begin_object().key("database").string(database.name()).key("doc_id").string(id);
  write_text_or_null(writer, "id", state.id);
  write_text_or_null(writer, "node", state.node);
  append_endpoint(writer, "source", request, &replicator::Replication::source);
  append_endpoint(writer, "target", request, &replicator::Replication::target);
  writer.key("state").string(state.state).key("info").raw(state.info);
  writer.key("error_count").number(state.error_count);
  write_text_or_null(writer, "start_time", state.start_time);
  write_text_or_null(writer, "last_updated", state.last_updated);
  writer.end_object();
}

std::vector<std::string> wanted_states(const Call& call) {
  std::vector<std::string> states;
  const auto text = call.param("states").value_or("");
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    states.push_back(text.substr(begin, end - begin));
    begin = end + 1;
    if (std::ranges::find(kStates, states.back()) == std::end(kStates))
      throw bad_request(fmt::format("`states` has the unknown state `{}`.", states.back()));
  }
  return states;
}

// The documents of a replicator database in the order of ids. Each page is read in one transaction.
class DocumentPages : public PageSource {
 public:
  DocumentPages(const Context& context, const Call& call, std::string database)
      : context_(context),
        name_(std::move(database)),
        states_(wanted_states(call)),
        skip_(call.count("skip").value_or(0)),
        left_(call.count("limit").value_or(UINT64_MAX)) {
    range_.descending = call.flag("descending");
  }

  bool next(std::string& out) override {
    const auto tx = context_.store.begin();
    const auto database = context_.catalog.open(*tx, name_);
    if (is_first_) {
      out += fmt::format(R"({{"total_rows":{},"offset":{},"docs":[)",
                         docs::read_info(*tx, database).doc_count, skip_);
      is_first_ = false;
    }
    std::size_t read = 0;
    bool is_more = false;
    std::vector<std::pair<std::string, docs::Leaf>> page;
    if (left_ > 0) {
      docs::visit_documents(*tx, database, range_, [&](const std::string& id, const docs::Leaf& winner) {
        if (last_ && id == *last_) return true;
        page.emplace_back(id, winner);
        is_more = ++read == kPageDocuments;
        return !is_more;
      });
    }
    for (const auto& [id, winner] : page) append(*tx, database, id, winner, out);
    if (!page.empty()) { range_.start_id = last_ = page.back().first; }
    if (is_more && left_ > 0) return true;
    out += "]}\n";
    return false;
  }

 private:
  void append(kv::Transaction& tx, const docs::Database& database, const std::string& id,
              const docs::Leaf& winner, std::string& out) {
    if (docs::is_design(id) || left_ == 0) return;
    const auto body = docs::read_body(tx, database, winner);
    const auto state = read_state(context_, tx, database, id, body);
    if (!states_.empty() && std::ranges::find(states_, state.state) == states_.end()) return;
    if (skip_ > 0) {
      --skip_;
      return;
    }
    --left_;
    if (!std::exchange(is_first_row_, false)) out += ",\n";
    json::Writer writer(out);
    append_document(writer, database, id, body, state);
  }

  const Context& context_;
  const std::string name_;
  const std::vector<std::string> states_;
  std::uint64_t skip_;
  std::uint64_t left_;
  docs::DocumentRange range_;
  std::optional<std::string> last_;  // the id of the last document that was read
  bool is_first_ = true;
  bool is_first_row_ = true;
};

RouteResult show_document(const Context& context, const std::string& name, const std::string& id) {
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    const auto database = context.catalog.open(tx, name);
    const auto found = docs::find_document(tx, database, id, {});
    json::Writer writer(out);
    append_document(writer, database, id, found.body, read_state(context, tx, database, id, found.body));
  });
  return json_response(200, std::move(out));
}

// `path` is what follows _scheduler/docs. The slashes in a database's name need not be escaped, since
// "_replicator" is not a document's id.
Async<RouteResult> documents(const Context& context, const CallPtr& call, std::span<const std::string> path) {
  const auto list = [&](std::string name) {
    return stream_pages(context, *call, std::make_unique<DocumentPages>(context, *call, std::move(name)));
  };
  if (path.empty()) co_return co_await list(std::string(kDatabase));
  std::string name;
  for (std::size_t i = 0; i < path.size(); ++i) {
    name += (i > 0 ? "/" : "") + path[i];
    if (!replicator::is_replicator_database(name)) continue;
    const auto rest = path.subspan(i + 1);
    if (rest.empty()) co_return co_await list(std::move(name));
    if (rest.size() == 1) co_return show_document(context, name, rest[0]);
    break;
  }
  throw bad_request("Invalid path");
}

}  // namespace

Async<RouteResult> scheduler(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto& path = call->path();
  if (path.size() == 2 && path[1] == "jobs") co_return list_jobs(context, *call);
  if (path.size() == 3 && path[1] == "jobs") co_return show_job(context, path[2]);
  if (path.size() >= 2 && path[1] == "docs")
    co_return co_await documents(context, call, std::span(path).subspan(2));
  throw not_found("missing");
}

}  // namespace divan::api
