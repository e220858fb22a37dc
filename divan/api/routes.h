// The groups of routes. Errors are thrown as divan::Error, or kv::Error by the store. Routes run after
// authentication: coroutines wherever the request is (request_executor.h), others on a worker thread.
#pragma once

#include "divan/api/call.h"
#include "divan/api/context.h"
#include "divan/docs/writer.h"
#include "divan/http/parser.h"

namespace divan::api {

/// Returns true if the user may access a type's jobs: those that build indexes are for administrators only.
bool may_use_type(const Context& context, const User& user, std::string_view type);
/// Throws forbidden unless may_use_type().
void check_type(const Context& context, const Call& call, std::string_view type);

/// What a route returns: the response, or nullopt if it has responded itself.
using RouteResult = std::optional<http::Response>;
/// For a route that is not a coroutine. A feed's coroutines are kept as long as its connection, so what is
/// before them is in plain functions.
inline Async<RouteResult> returned(RouteResult result) { co_return result; }

// Routes of the server: the first segment of the path is empty or begins with an underscore.
RouteResult welcome(const Context& context, const CallPtr& call);               // /
RouteResult up(const Context& context, const CallPtr& call);                    // /_up
RouteResult uuids(const Context& context, const CallPtr& call);                 // /_uuids
RouteResult all_databases(const Context& context, const CallPtr& call);         // /_all_dbs
RouteResult databases_info(const Context& context, const CallPtr& call);        // /_dbs_info
RouteResult session(const Context& context, const CallPtr& call);               // /_session
Async<RouteResult> replicate(const Context& context, const CallPtr& call);      // /_replicate
Async<RouteResult> scheduler(const Context& context, const CallPtr& call);      // /_scheduler...
RouteResult active_tasks(const Context& context, const CallPtr& call);          // /_active_tasks
RouteResult ken_status(const Context& context, const CallPtr& call);            // /_ken
RouteResult deliveries(const Context& context, const CallPtr& call);            // /_deliver
RouteResult membership(const Context& context, const CallPtr& call);            // /_membership
RouteResult node(const Context& context, const CallPtr& call);                  // /_node/{name}/...
RouteResult reload_query_servers(const Context& context, const CallPtr& call);  // /_reload_query_servers
RouteResult reshard(const Context& context, const CallPtr& call);               // /_reshard...
RouteResult cluster_setup(const Context& context, const CallPtr& call);         // /_cluster_setup
RouteResult utils(const Context& context, const CallPtr& call);                 // /_utils...
RouteResult favicon(const Context& context, const CallPtr& call);               // /favicon.ico
RouteResult openapi(const Context& context, const CallPtr& call);
Async<RouteResult> database_updates(const Context& context, const CallPtr& call);    // /_db_updates
Async<RouteResult> events_of_channels(const Context& context, const CallPtr& call);  // /_events...
Async<RouteResult> jobs(const Context& context, const CallPtr& call);                // /_jobs...
/// POST /_jobs/{type}/_accept, or, without a type, /_jobs/_accept
Async<RouteResult> accept_jobs(const Context& context, const CallPtr& call, std::optional<std::string> type);
/// Returns true if `action` is the last segment of a path for workers' reports on their jobs.
bool is_job_report(std::string_view action);
Async<RouteResult> job_report(const Context& context, Call& call, const std::string& type,
                              const std::string& id, const std::string& report);
Async<RouteResult> bulk_job_reports(const Context& context, Call& call, const std::string& type,
                                    const std::string& report);
RouteResult list_jobs(const Context& context, Call& call, const std::string& type);
/// Returns true for _cancel, _resubmit and _remove, with which change_jobs() changes all jobs in a state.
bool is_bulk_change(std::string_view action);
RouteResult change_jobs(const Context& context, Call& call, const std::string& type,
                        const std::string& action);
Async<RouteResult> job_events(const Context& context, Call& call);              // /_jobs/_events
Async<RouteResult> wait_for_jobs(const Context& context, const CallPtr& call);  // /_jobs/_wait
Async<RouteResult> workers(const Context& context, const CallPtr& call);        // /_workers...
Async<RouteResult> transact(const Context& context, const CallPtr& call);       // /_transact
RouteResult search_analyze(const Context& context, const CallPtr& call);        // /_search_analyze
RouteResult backup(const Context& context, const CallPtr& call);                // /_backup
RouteResult restore(const Context& context, const CallPtr& call);               // /_restore...

// Routes of a database: the path begins with {db}.
RouteResult database(const Context& context, const CallPtr& call);         // /{db}, except POST
Async<RouteResult> bulk_documents(const Context& context, Call& call);     // /{db}/_bulk_docs
Async<RouteResult> bulk_get(const Context& context, const CallPtr& call);  // /{db}/_bulk_get
Async<RouteResult> all_documents(const Context& context,
                                 const CallPtr& call);  // /{db}/_all_docs, _design_docs
Async<RouteResult> local_documents(const Context& context, const CallPtr& call);  // /{db}/_local_docs
Async<RouteResult> changes(const Context& context, const CallPtr& call);          // /{db}/_changes
Async<RouteResult> find(const Context& context, const CallPtr& call);             // /{db}/_find
RouteResult explain(const Context& context, const CallPtr& call);                 // /{db}/_explain
Async<RouteResult> indexes(const Context& context, const CallPtr& call);          // /{db}/_index...
RouteResult revisions_diff(const Context& context, const CallPtr& call);          // /{db}/_revs_diff
RouteResult missing_revisions(const Context& context, const CallPtr& call);       // /{db}/_missing_revs
RouteResult security(const Context& context, const CallPtr& call);                // /{db}/_security
RouteResult revisions_limit(const Context& context, const CallPtr& call);         // /{db}/_revs_limit
RouteResult purge_documents(const Context& context, const CallPtr& call);         // /{db}/_purge
RouteResult purge_records(const Context& context, const CallPtr& call);           // /{db}/_purged_infos
RouteResult purge_records_limit(const Context& context, const CallPtr& call);     // /{db}/_purged_infos_limit
RouteResult auto_purge(const Context& context, const CallPtr& call);              // /{db}/_auto_purge
RouteResult partition_info(const Context& context, const CallPtr& call);  // /{db}/_partition/{partition}
RouteResult maintenance(const Context& context, const CallPtr& call);     // /{db}/_compact, ...
RouteResult shards(const Context& context, const CallPtr& call);          // /{db}/_shards...
RouteResult sync_shards(const Context& context, const CallPtr& call);     // /{db}/_sync_shards

/// http::ServerOptions::streamed_body: bodies with attachments, which their routes read (streamed_body.h) and
/// limit, and others of more than kMaxShortBody, of which `max_bytes` is the maximum size. These are read
/// when it is known that the user may send them.
http::StreamedBody streamed_bodies(std::uint64_t max_bytes);

// Routes of a document; `id` does not depend on how the path was encoded.
Async<RouteResult> document(const Context& context, Call& call, std::string id);
Async<RouteResult> local_document(const Context& context, Call& call, std::string id);
/// /{db}/{document}/{name}
Async<RouteResult> attachment(const Context& context, Call& call, std::string id, std::string name);
/// POST /{db}
Async<RouteResult> create_document(const Context& context, Call& call);

/// The revision that a request replaces: in the query, or in If-Match. Throws bad_request unless these are
/// equal to each other and to the document's own.
std::optional<docs::Revision> named_revision(const Call& call,
                                             const std::optional<docs::Revision>& in_document);
/// Throws the error of a document that will be refused whatever its attachments contain.
void check_before_upload(const Context& context, const Call& call, docs::IncomingDocument document);
/// Edits a document in the database of the path, and returns the response with this status.
Async<http::Response> write_document(const Context& context, Call& call, docs::IncomingDocument document,
                                     int status, http::Headers headers = {});

// Writes of many documents to the database of the path. `documents` is moved from or changed.
Async<std::vector<docs::WriteResult>> bulk_edit(const Context& context, Call& call,
                                                std::vector<docs::IncomingDocument>& documents);
Async<std::vector<docs::WriteResult>> bulk_replicate(const Context& context, Call& call,
                                                     std::vector<docs::IncomingDocument>& documents);

// Routes of a design document: /{db}/_design/{name}/...
Async<RouteResult> view(const Context& context, const CallPtr& call);    // _view/{view}
Async<RouteResult> update(const Context& context, const CallPtr& call);  // _update/{function}/{document}
Async<RouteResult> show(const Context& context, const CallPtr& call);    // _show/{function}/{document}
/// _list/{function}/{view}, _list/{function}/{design document}/{view}
Async<RouteResult> list(const Context& context, const CallPtr& call);
Async<RouteResult> rewrite(const Context& context, const CallPtr& call);    // _rewrite/{path}
RouteResult design_info(const Context& context, const CallPtr& call);       // _info
Async<RouteResult> geo(const Context& context, const CallPtr& call);        // _geo/{index}
RouteResult geo_info(const Context& context, const CallPtr& call);          // _geo_info/{index}
Async<RouteResult> search(const Context& context, const CallPtr& call);     // _search/{index}
RouteResult trigger_info(const Context& context, const CallPtr& call);      // _trigger/{name}
RouteResult search_info(const Context& context, const CallPtr& call);       // _search_info/{index}
RouteResult search_disk_size(const Context& context, const CallPtr& call);  // _search_disk_size/{index}

/// Finds the route of a request and runs it.
Async<RouteResult> route(const Context& context, const CallPtr& call);

}  // namespace divan::api
