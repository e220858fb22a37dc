// Documents of several databases and jobs, written atomically. docs/jobs.md
#include <fmt/core.h>

#include "divan/api/attachment_receiver.h"
#include "divan/api/body.h"
#include "divan/api/database_access.h"
#include "divan/api/job_options.h"
#include "divan/api/routes.h"
#include "divan/api/user_documents.h"
#include "divan/api/uuids.h"
#include "divan/api/validations.h"
#include "divan/base/json.h"
#include "divan/docs/local.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/writer.h"
#include "divan/jobs/attempts.h"

namespace divan::api {
namespace {

// Maximum number of documents and jobs. More would take most of a transaction's five seconds.
constexpr std::size_t kMaxParts = 10'000;

struct DatabaseDocuments {
  std::string database;
  std::vector<docs::IncomingDocument> documents;
  docs::Validators validators{};                          // that have validated them
  std::map<std::string, docs::Acceptance> acceptances{};  // by id
};

struct JobToAdd {
  std::string type;
  std::string id;
  std::string data;
  jobs::Queue::AddOptions options;
};

struct JobToFinish {
  jobs::Attempt attempt;
  std::optional<std::string> data;
  std::optional<std::string> result;
};

struct JobToRemove {
  std::string type;
  std::string id;
};

struct Request {
  std::vector<DatabaseDocuments> databases;
  std::vector<JobToAdd> add;
  std::vector<JobToFinish> finish;
  std::vector<JobToRemove> remove;
};

// Calls `fn`; the reasons of its errors begin with `what`.
template <class Fn>
auto about(const std::string& what, Fn&& fn) {
  try {
    return fn();
  } catch (const Error& error) { throw Error(error.status(), error.name(), what + ": " + error.reason()); }
}

std::string job_name(std::string_view type, std::string_view id) {
  return fmt::format("Job `{}` of type `{}`", id, type);
}
std::string document_name(std::string_view database, std::string_view id) {
  return fmt::format("Document `{}` of database `{}`", id, database);
}

// Parses a request. A document, or a job in a list, that occurs twice is rejected, since the request is
// ambiguous.
class RequestReader {
 public:
  RequestReader(const Context& context, const Call& call) : context_(context), call_(call) {}

  Request read(const Body& body) {
    if (const auto docs = body.raw("docs")) read_documents(*docs);
    if (const auto jobs = body.raw("jobs")) {
      if (!jobs->starts_with('{'))
        throw bad_request("`jobs` must be an object with `add`, `finish` and `remove`.");
      const Body lists = about("`jobs`", [&] {
        return Body(std::string(*jobs), {"add", "finish", "remove"});
      });
      read_adds(lists);
      read_finishes(lists);
      read_removes(lists);
    }
    if (parts_ > kMaxParts)
      throw Error(413, "transaction_too_large",
                  fmt::format("The transaction has {} documents and jobs; at most {} are allowed.", parts_,
                              kMaxParts));
    if (bytes_ > kv::kMaxTransactionBytes) throw kv::Error(kv::ErrorCode::transaction_too_large);
    return std::move(request_);
  }

 private:
  void count(std::size_t bytes) {
    ++parts_;
    bytes_ += bytes;
  }

  void read_documents(std::string_view docs) {
    std::set<std::string> names;
    const bool is_object = json::for_each_member(docs, [&](std::string_view raw_name, std::string_view list) {
      DatabaseDocuments documents{json::unescape(raw_name), {}, {}, {}};
      if (!names.insert(documents.database).second)
        throw bad_request(fmt::format("Database `{}` occurs twice in `docs`.", documents.database));
      read_documents_of(documents, list);
      request_.databases.push_back(std::move(documents));
      return true;
    });
    if (!is_object) throw bad_request("`docs` must be an object of database names and arrays of documents.");
  }

  void read_documents_of(DatabaseDocuments& to, std::string_view list) {
    std::set<std::string> ids;
    const bool is_array = json::for_each_element(list, [&](std::string_view text) {
      auto& documents = to.documents;
      about(fmt::format("Document {} of database `{}`", documents.size() + 1, to.database),
            [&] { documents.push_back(docs::parse_document(text)); });
      auto& document = documents.back();
      if (document.id.empty()) document.id = context_.uuids.next();
      if (!ids.insert(document.id).second)
        throw bad_request(document_name(to.database, document.id) + " occurs twice.");
      count(document.body.size() + docs::data_bytes(document.attachments));
      return true;
    });
    if (!is_array)
      throw bad_request(fmt::format("Database `{}` in `docs` must be an array of documents.", to.database));
  }

  // Calls `read` with each object of an optional list.
  template <class Read>
  void read_list(const Body& lists, std::string_view name, MemberNames known, Read&& read) {
    if (!lists.raw(name)) return;
    std::set<std::pair<std::string, std::string>> seen;
    std::size_t number = 0;
    for (const Body& job : lists.objects(name, known)) {
      const auto [type, id] =
          about(fmt::format("Element {} of `{}`", ++number, name), [&] { return read(job); });
      check_type(context_, call_, type);
      if (!seen.emplace(type, id).second)
        throw bad_request(fmt::format("{} occurs twice in `{}`.", job_name(type, id), name));
      count(job.raw("data").value_or("").size() + job.raw("result").value_or("").size());
    }
  }

  using Name = std::pair<std::string, std::string>;

  void read_adds(const Body& lists) {
    read_list(lists, "add", kTransactAddMembers, [&](const Body& job) -> Name {
      JobToAdd add;
      add.type = job.required("type");
      const auto id = job.string("id");
      add.id = id ? *id : context_.rng.uuid_at(context_.clock.wall_ms());
      add.data = data_of(job);
      add.options = add_options(job);
      request_.add.push_back(std::move(add));
      return {request_.add.back().type, request_.add.back().id};
    });
  }

  void read_finishes(const Body& lists) {
    static constexpr std::string_view kMembers[] = {"type", "id", "lock", "data", "result"};
    read_list(lists, "finish", kMembers, [&](const Body& job) -> Name {
      jobs::Attempt attempt{job.required("type"), job.required("id"), job.required("lock")};
      const auto text_of = [&](std::string_view name) {
        const auto raw = job.raw(name);
        return raw ? std::optional(std::string(*raw)) : std::nullopt;
      };
      request_.finish.push_back({attempt, text_of("data"), text_of("result")});
      return {attempt.type, attempt.id};
    });
  }

  void read_removes(const Body& lists) {
    static constexpr std::string_view kMembers[] = {"type", "id"};
    read_list(lists, "remove", kMembers, [&](const Body& job) -> Name {
      request_.remove.push_back({job.required("type"), job.required("id")});
      return {request_.remove.back().type, request_.remove.back().id};
    });
  }

  const Context& context_;
  const Call& call_;
  Request request_;
  std::size_t parts_ = 0;
  std::size_t bytes_ = 0;
};

// Appends an element to an unfinished JSON array.
void append(std::string& list, const std::string& element) {
  if (!list.ends_with('[')) list += ",\n";
  list += element;
}

std::string job_result(std::string_view type, std::string_view id) {
  return fmt::format(R"({{"ok":true,"type":{},"id":{}}})", json::quoted(type), json::quoted(id));
}

// Finishes, then removes, then adds, so that a job can be ended and added again in one transaction.
std::string write_jobs(const Context& context, kv::Transaction& tx, const Request& request) {
  std::string out = R"({"finish":[)";
  for (const auto& ended : request.finish) {
    const jobs::Attempt& attempt = ended.attempt;
    about(job_name(attempt.type, attempt.id),
          [&] { jobs::finish(context.queue, tx, attempt, ended.data, std::nullopt, ended.result); });
    append(out, job_result(attempt.type, attempt.id));
  }
  out += R"(],"remove":[)";
  for (const auto& [type, id] : request.remove) {
    about(job_name(type, id), [&, &type = type, &id = id] { context.queue.remove(tx, type, id); });
    append(out, job_result(type, id));
  }
  out += R"(],"add":[)";
  for (const auto& job : request.add) {
    const auto added = about(job_name(job.type, job.id), [&] {
      return context.queue.add(tx, job.type, std::string_view(job.id), job.data, job.options);
    });
    append(out, fmt::format(R"({{"ok":true,"type":{},"id":{},"created":{}}})", json::quoted(job.type),
                            json::quoted(job.id), added.created));
  }
  return out + "]}";
}

std::string write_document(kv::Transaction& tx, docs::Writer& writer, const docs::Database& database,
                           const docs::IncomingDocument& document,
                           const std::map<std::string, docs::Acceptance>& acceptances) {
  if (document.id.starts_with(docs::kLocalPrefix))
    return fmt::format("0-{}", docs::write_local(tx, database, document));
  const auto acceptance = acceptances.find(document.id);
  const auto result = writer.edit(
      document, acceptance == acceptances.end() ? std::nullopt : std::optional(acceptance->second));
  if (result.error) throw *result.error;
  return result.revision.to_string();
}

std::string write_documents(const Context& context, kv::Transaction& tx, const Request& request) {
  std::string out = "{";
  for (const auto& [name, documents, validators, acceptances] : request.databases) {
    if (tx.is_remote()) {
      std::vector<std::string_view> ids;
      for (const auto& document : documents) ids.push_back(document.id);
      docs::prefetch_documents(tx, context.catalog, name, ids, true);
    }
    const auto database = about(fmt::format("Database `{}`", name),
                                [&, &name = name] { return context.catalog.open(tx, name); });
    docs::Writer writer(tx, database, validators);
    if (out.size() > 1) out += ",\n";
    out += json::quoted(name) + ":[";
    for (const auto& document : documents) {
      const auto rev = about(document_name(name, document.id), [&, &acceptances = acceptances] {
        return write_document(tx, writer, database, document, acceptances);
      });
      append(out,
             fmt::format(R"({{"ok":true,"id":{},"rev":{}}})", json::quoted(document.id), json::quoted(rev)));
    }
    out += ']';
    writer.finish();
  }
  return out + "}";
}

// Before functions are compiled and passwords are hashed.
void check_documents_access(const Context& context, const Call& call,
                            const std::vector<DatabaseDocuments>& databases) {
  for (const auto& [name, documents, validators, acceptances] : databases) {
    about(fmt::format("Database `{}`", name), [&, &name = name, &documents = documents] {
      const auto access = context.store.run([&](kv::Transaction& tx) {
        return check_access(context, tx, context.catalog.open(tx, name), call.user());
      });
      if (access == DatabaseAccess::admin) return;
      if (name == docs::kUsersDatabase) throw forbidden("Only its admins may write it in a transaction.");
      if (docs::has_design_documents(documents)) throw call.database_admins_only();
    });
  }
}

// Throws the error of the first document that is refused.
Async<void> validate_documents_of(const Context& context, Call& call, DatabaseDocuments& of) {
  std::vector<const docs::IncomingDocument*> documents;
  for (const auto& document : of.documents) {
    if (!document.id.starts_with(docs::kLocalPrefix)) documents.push_back(&document);
  }
  auto validated = co_await validate_documents(context, call, of.database, documents, true);
  of.acceptances.clear();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto& verdict = validated.verdicts[i];
    about(document_name(of.database, documents[i]->id), [&] {
      if (verdict.error) throw Error(*verdict.error);
    });
    if (verdict.acceptance) of.acceptances.emplace(documents[i]->id, *verdict.acceptance);
  }
  of.validators = std::move(validated.validators);
}

Async<std::string> write(const Context& context, Call& call, Request& request) {
  constexpr int kMaxRepeats = 10;
  bool is_validated = true;
  for (int repeats = 0;; ++repeats) {
    if (repeats > kMaxRepeats) throw functions_change_too_often();
    if (!is_validated) {
      for (auto& documents : request.databases) co_await validate_documents_of(context, call, documents);
      is_validated = true;
    }
    try {
      co_return co_await call.run(context.store, [&](kv::Transaction& tx) {
        // Jobs first, so that a worker that has lost one receives that error even if a document conflicts.
        const std::string jobs = write_jobs(context, tx, request);
        const std::string docs = write_documents(context, tx, request);
        return fmt::format("{{\"ok\":true,\"docs\":{},\n\"jobs\":{}}}", docs, jobs);
      });
    } catch (const docs::NotValidated&) { is_validated = false; }
  }
}

}  // namespace

Async<RouteResult> transact(const Context& context, const CallPtr& call) {
  call->require_role(kJobsRole, "Transactions");
  call->allow("POST");
  Request request = RequestReader(context, *call).read(Body(call->json_body(), {"docs", "jobs"}));
  if (!call->user().admin) check_documents_access(context, *call, request.databases);
  // Before the transaction, since hashing passwords and compiling functions are slow.
  for (auto& [name, documents, validators, acceptances] : request.databases) {
    for (auto& document : documents) {
      about(document_name(name, document.id), [&, &name = name] {
        prepare_document(context, call->user(), name, document);
        if (!document.id.starts_with(docs::kLocalPrefix))
          context.catalog.check_document(document, true, checkpoint_of(*call));
      });
    }
  }
  for (auto& documents : request.databases)
    co_await compress_attachments(context, *call, documents.documents);
  co_return json_response(200, co_await write(context, *call, request));
}

}  // namespace divan::api
