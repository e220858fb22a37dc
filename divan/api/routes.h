// The groups of routes. A route returns a response, or nullopt if it has taken ownership of the request and
// responds later. Errors are thrown as divan::Error. Routes run on the thread pool, after authentication.
#pragma once

#include "divan/api/call.h"
#include "divan/api/context.h"

namespace divan::api {

/// The role whose members may use jobs and workers like administrators.
inline constexpr std::string_view kJobsRole = "jobs";

/// Returns true if the user may access a type's jobs: those that build indexes are for administrators only.
bool may_use_type(const Context& context, const User& user, std::string_view type);
/// Throws forbidden unless may_use_type().
void check_type(const Context& context, const Call& call, std::string_view type);

using Answer = std::optional<http::Response>;

// Routes of the server: the first segment of the path is empty or begins with an underscore.
Answer welcome(const Context& context, const CallPtr& call);             // /
Answer up(const Context& context, const CallPtr& call);                  // /_up
Answer uuids(const Context& context, const CallPtr& call);               // /_uuids
Answer all_databases(const Context& context, const CallPtr& call);       // /_all_dbs
Answer databases_info(const Context& context, const CallPtr& call);      // /_dbs_info
Answer session(const Context& context, const CallPtr& call);             // /_session
Answer active_tasks(const Context& context, const CallPtr& call);        // /_active_tasks
Answer ken_status(const Context& context, const CallPtr& call);          // /_ken
Answer membership(const Context& context, const CallPtr& call);          // /_membership
Answer node(const Context& context, const CallPtr& call);                // /_node/{name}/...
Answer database_updates(const Context& context, const CallPtr& call);    // /_db_updates
Answer events_of_channels(const Context& context, const CallPtr& call);  // /_events...
Answer jobs(const Context& context, const CallPtr& call);                // /_jobs...
/// POST /_jobs/{type}/_accept, or, without a type, /_jobs/_accept
Answer accept_jobs(const Context& context, const CallPtr& call, const std::optional<std::string>& type);
/// Returns true if `action` is the last segment of a path for workers' reports on their jobs.
bool is_job_report(std::string_view action);
Answer job_report(const Context& context, Call& call, const std::string& type, const std::string& id,
                  const std::string& report);
Answer bulk_job_reports(const Context& context, Call& call, const std::string& type,
                        const std::string& report);
Answer list_jobs(const Context& context, Call& call, const std::string& type);
/// Returns true for _cancel, _resubmit and _remove, with which change_jobs() changes all jobs in a state.
bool is_bulk_change(std::string_view action);
Answer change_jobs(const Context& context, Call& call, const std::string& type, const std::string& action);
Answer job_events(const Context& context, const CallPtr& call);     // /_jobs/_events
Answer wait_for_jobs(const Context& context, const CallPtr& call);  // /_jobs/_wait
Answer workers(const Context& context, const CallPtr& call);        // /_workers...
Answer transact(const Context& context, const CallPtr& call);       // /_transact
Answer backup(const Context& context, const CallPtr& call);         // /_backup
Answer restore(const Context& context, const CallPtr& call);        // /_restore...

// Routes of a database: the path begins with {db}.
Answer database(const Context& context, const CallPtr& call);           // /{db}
Answer bulk_documents(const Context& context, const CallPtr& call);     // /{db}/_bulk_docs
Answer bulk_get(const Context& context, const CallPtr& call);           // /{db}/_bulk_get
Answer all_documents(const Context& context, const CallPtr& call);      // /{db}/_all_docs, /{db}/_design_docs
Answer local_documents(const Context& context, const CallPtr& call);    // /{db}/_local_docs
Answer changes(const Context& context, const CallPtr& call);            // /{db}/_changes
Answer revisions_diff(const Context& context, const CallPtr& call);     // /{db}/_revs_diff
Answer missing_revisions(const Context& context, const CallPtr& call);  // /{db}/_missing_revs
Answer security(const Context& context, const CallPtr& call);           // /{db}/_security
Answer revisions_limit(const Context& context, const CallPtr& call);    // /{db}/_revs_limit
Answer maintenance(const Context& context, const CallPtr& call);        // /{db}/_compact, _view_cleanup, ...

// Routes of a document; `id` does not depend on how the path was encoded.
Answer document(const Context& context, const CallPtr& call, const std::string& id);
Answer local_document(const Context& context, const CallPtr& call, const std::string& id);

// Routes of a design document: /{db}/_design/{name}/...
Answer view(const Context& context, const CallPtr& call);         // _view/{view}
Answer design_info(const Context& context, const CallPtr& call);  // _info

/// Finds the route of a request and runs it.
Answer route(const Context& context, const CallPtr& call);

}  // namespace divan::api
