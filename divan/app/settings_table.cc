// The tables of all settings.
#include "divan/app/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "divan/api/accounts.h"
#include "divan/api/client_address.h"
#include "divan/api/cors.h"
#include "divan/api/password_rules.h"
#include "divan/api/purge_limits.h"
#include "divan/api/session_cookies.h"
#include "divan/api/uuids.h"
#include "divan/app/options.h"
#include "divan/app/store.h"
#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/compaction/compactor.h"
#include "divan/deliver/deliverer.h"
#include "divan/docs/document.h"
#include "divan/ken/settings.h"
#include "divan/kv/fdb/engine.h"
#include "divan/mango/plan.h"
#include "divan/purge/auto_purge.h"
#include "divan/purge/ttl.h"
#include "divan/replicator/replicator.h"

namespace divan::app {
namespace {

std::function<void(const Config&)> integer(const char* section, const char* key, std::int64_t min,
                                           std::int64_t max) {
  return [=](const Config& config) { config.get_int(section, key, min, min, max); };
}

std::function<void(const Config&)> number(const char* section, const char* key, double min, double max) {
  return [=](const Config& config) { config.get_number(section, key, min, min, max); };
}

std::function<void(const Config&)> one_of(const char* section, const char* key,
                                          std::vector<std::string> values) {
  return [=, values = std::move(values)](const Config& config) {
    const std::string value = config.get(section, key, values.front());
    if (std::find(values.begin(), values.end(), value) != values.end()) return;
    throw bad_request(fmt::format("Setting [{}] {} = {} is invalid; expected one of {}.", section, key, value,
                                  fmt::join(values, ", ")));
  };
}

void check_fdb_name(const std::string& name) {
  if (!name.empty() && name.size() <= kv::fdb::kMaxNameBytes) return;
  throw bad_request(fmt::format("Setting [fdb] name must have 1 to {} bytes.", kv::fdb::kMaxNameBytes));
}

void check_fdb_tag(const std::string& tag) {
  if (tag.size() > kv::fdb::kMaxTagBytes)
    throw bad_request(fmt::format("Setting [fdb] tag must have at most {} bytes.", kv::fdb::kMaxTagBytes));
}

void check_period(const Config& config, const char* section, const char* key, bool may_be_infinite) {
  const auto value = config.get(section, key);
  if (!value || purge::parse_period(*value)) return;
  if (may_be_infinite && (value->empty() || *value == purge::kInfinity)) return;
  throw bad_request(fmt::format(
      "Setting [{}] {} = {} is invalid; expected a number and a unit, such as 12_hours or 3_days.", section,
      key, *value));
}

void check_id_suffix(const std::string& suffix) {
  const bool is_printable = std::ranges::none_of(suffix, [](unsigned char c) { return c < ' ' || c == 127; });
  if (is_utf8(suffix) && is_printable && suffix.size() <= 100) return;
  throw bad_request("Setting [uuids] utc_id_suffix must be printable UTF-8, of at most 100 bytes.");
}

void check_attachment_size(const Config& config) {
  if (config.get("couchdb", "max_attachment_size") == "infinity") return;
  config.get_int("couchdb", "max_attachment_size", 1, 1, 1ll << 40);
}

// For Setting::live.
constexpr bool kLive = true;
constexpr bool kAtStart = false;

std::vector<Setting> own_settings() {
  return {
      {"chttpd", "bind_address", "127.0.0.1", "", kAtStart, "address to listen on"},
      {"chttpd", "port", "5984", "", kAtStart, "port to listen on; 0: any free one",
       integer("chttpd", "port", 0, 65535)},
      {"chttpd", "max_http_request_size", "67108864", "bytes", kAtStart,
       "maximum size of an uncompressed request body, in bytes",
       integer("chttpd", "max_http_request_size", 1024, 1ll << 32)},
      {"chttpd", "max_header_size", "65536", "bytes", kAtStart,
       "maximum size of a request's start line and headers, in bytes",
       integer("chttpd", "max_header_size", 1024, 1 << 20)},
      {"chttpd", "max_connections", "10000", "", kAtStart, "maximum number of open connections",
       integer("chttpd", "max_connections", 1, 1'000'000)},
      {"chttpd", "request_threads", "64", "", kAtStart, "number of threads that process requests",
       integer("chttpd", "request_threads", 1, 4096)},
      {"chttpd", "max_waiting_requests", "10000", "", kAtStart,
       "maximum number of requests waiting for a thread; further ones fail with 503",
       integer("chttpd", "max_waiting_requests", 1, 1'000'000)},
      {"chttpd", "idle_timeout", "120000", "ms", kAtStart,
       "milliseconds that a connection may be idle between two requests",
       integer("chttpd", "idle_timeout", 100, 86'400'000)},
      {"chttpd", "head_timeout", "30000", "ms", kAtStart,
       "milliseconds from a request's first byte until its headers must be complete",
       integer("chttpd", "head_timeout", 100, 86'400'000)},
      {"chttpd", "body_timeout", "60000", "ms", kAtStart,
       "milliseconds that may pass without a byte of a request's body",
       integer("chttpd", "body_timeout", 100, 86'400'000)},
      {"chttpd", "send_timeout", "60000", "ms", kAtStart,
       "milliseconds until a client that does not read its response is disconnected",
       integer("chttpd", "send_timeout", 100, 86'400'000)},
      {"chttpd", "half_close_timeout", "30000", "ms", kAtStart,
       "milliseconds without output until a client that has closed its side of the connection is "
       "disconnected",
       integer("chttpd", "half_close_timeout", 100, 86'400'000)},
      {"chttpd", "trusted_proxies", "", "", kAtStart,
       "reverse proxies whose X-Forwarded-For is trusted: addresses and networks, separated by commas",
       [](const Config& config) { api::TrustedProxies(config.get("chttpd", "trusted_proxies", "")); }},
      {"chttpd", "require_valid_user", "false", "", kLive,
       "true: requests without a user are refused, except a login",
       one_of("chttpd", "require_valid_user", {"true", "false"})},
      {"chttpd", "require_valid_user_except_for_up", "false", "", kLive, "the same, except for /_up",
       one_of("chttpd", "require_valid_user_except_for_up", {"true", "false"})},
      {"chttpd", "admin_only_all_dbs", "true", "", kLive,
       "false: anyone may list the databases with _all_dbs and _dbs_info",
       one_of("chttpd", "admin_only_all_dbs", {"true", "false"})},
      {"chttpd", "enable_cors", "", "", kLive,
       "true: pages of other origins may use this server, as the section [cors] says; empty: as [httpd] "
       "enable_cors",
       one_of("chttpd", "enable_cors", {"", "true", "false"})},
      {"chttpd", "secure_rewrites", "", "", kLive,
       "true: rewritten requests stay in their database, apart from a GET that a function rewrites; empty: "
       "as "
       "[httpd] secure_rewrites",
       one_of("chttpd", "secure_rewrites", {"", "true", "false"})},
      {"chttpd", "rewrite_limit", "100", "", kLive, "maximum number of times that a request is rewritten",
       integer("chttpd", "rewrite_limit", 0, 1000)},
      {"httpd", "enable_cors", "false", "", kLive, "older name of [chttpd] enable_cors",
       one_of("httpd", "enable_cors", {"true", "false"})},
      {"httpd", "secure_rewrites", "true", "", kLive, "older name of [chttpd] secure_rewrites",
       one_of("httpd", "secure_rewrites", {"true", "false"})},
      {"cors", "origins", "", "", kLive,
       "origins whose pages may use this server, separated by commas (https://app.example); *: all"},
      {"cors", "credentials", "false", "", kLive, "true: their requests may have credentials",
       one_of("cors", "credentials", {"true", "false"})},
      {"cors", "methods", api::kCorsMethods, "", kLive, "methods of their requests"},
      {"cors", "headers", api::kCorsHeaders, "", kLive, "header fields of their requests"},
      {"cors", "exposed_headers", api::kCorsExposedHeaders, "", kLive,
       "header fields of responses that they may read, besides those that are always visible"},
      {"cors", "max_age", "600", "s", kLive, "seconds for which a browser may remember what it may send",
       integer("cors", "max_age", -1, 86'400)},
      {"csp", "utils_enable", "true", "", kLive, "true: pages of /_utils have a Content-Security-Policy",
       one_of("csp", "utils_enable", {"true", "false"})},
      {"csp", "utils_header_value", "", "", kLive, "this policy; empty: what the pages need"},
      {"ssl", "enable", "false", "", kAtStart, "true: also listens on [ssl] port, with TLS",
       one_of("ssl", "enable", {"true", "false"})},
      {"ssl", "port", "6984", "", kAtStart, "this port; 0: any free one", integer("ssl", "port", 0, 65535)},
      {"ssl", "cert_file", "", "", kAtStart,
       "the certificate and the intermediate certificates, PEM; read again when it changes"},
      {"ssl", "key_file", "", "", kAtStart, "its key, PEM; read again when it changes"},
      {"ssl", "ciphers", "", "", kAtStart,
       "ciphers of TLS 1.2, as OpenSSL names them; empty: OpenSSL's default"},
      {"ssl", "tls_versions", "tlsv1.2, tlsv1.3", "", kAtStart, "versions of TLS: tlsv1.2, tlsv1.3, or both",
       [](const Config& config) { tls_versions(config); }},
      {"chttpd_auth", "iterations", "600000", "", kLive, "iterations of new password hashes of users",
       integer("chttpd_auth", "iterations", 1, api::kMaxPasswordIterations)},
      {"chttpd_auth", "min_iterations", "1", "", kLive, "users whose hash has fewer iterations cannot log in",
       integer("chttpd_auth", "min_iterations", 1, api::kMaxPasswordIterations)},
      {"chttpd_auth", "max_iterations", std::to_string(api::kMaxPasswordIterations), "", kLive,
       "users whose hash has more iterations cannot log in",
       integer("chttpd_auth", "max_iterations", 1, api::kMaxPasswordIterations)},
      {"chttpd_auth", "password_regexp", "", "", kLive,
       "regular expressions that new passwords of users must match, each perhaps with a reason: [\".{10,}\", "
       "{\"[0-9]\", \"It needs a digit.\"}]; empty: none",
       [](const Config& config) { api::PasswordRules::of(config); }},
      {"chttpd_auth", "upgrade_hash_on_auth", "true", "", kLive,
       "true: weaker password hashes of users are replaced when they log in",
       one_of("chttpd_auth", "upgrade_hash_on_auth", {"true", "false"})},
      {"chttpd_auth", "timeout", "600", "s", kLive, "seconds for which a session lasts without a request",
       integer("chttpd_auth", "timeout", 1, 10 * 366 * 86'400)},
      {"chttpd_auth", "allow_persistent_cookies", "true", "", kLive,
       "false: browsers forget a session when they are closed",
       one_of("chttpd_auth", "allow_persistent_cookies", {"true", "false"})},
      {"chttpd_auth", "cookie_domain", "", "", kLive,
       "domain to whose hosts browsers send the session; empty: only to this one",
       [](const Config& config) {
         api::check_cookie_domain(config.get("chttpd_auth", "cookie_domain", ""));
       }},
      {"chttpd_auth", "same_site", "", "", kLive,
       "SameSite of the session's cookie: none, lax, strict, or empty: the browser's default",
       one_of("chttpd_auth", "same_site", {"", "none", "lax", "strict"})},
      {"chttpd_auth", "proxy_use_secret", "false", "", kAtStart,
       "true: a reverse proxy that knows `secret` authenticates users with X-Auth-CouchDB-UserName",
       one_of("chttpd_auth", "proxy_use_secret", {"true", "false"})},
      {"chttpd_auth", "secret", "", "", kAtStart, "secret of this reverse proxy"},
      {"jwt_auth", "required_claims", "exp", "", kAtStart,
       "claims that a JSON Web Token must have: exp, nbf, iat, typ, kid, {iss, \"ISSUER\"}; keys are in the "
       "section [jwt_keys]"},
      {"jwt_auth", "roles_claim_path", "", "", kAtStart,
       "path of the claim with the user's roles, with dots; \\. is a dot in a name"},
      {"jwt_auth", "roles_claim_name", "_couchdb.roles", "", kAtStart,
       "name of this claim, if there is no path"},
      {"chttpd_auth_lockout", "mode", "warn", "", kLive,
       "repeated failures of a name from one address: off, warn (a line in the log), enforce (403)",
       one_of("chttpd_auth_lockout", "mode", {"warn", "off", "enforce"})},
      {"chttpd_auth_lockout", "threshold", "5", "", kLive,
       "number of wrong passwords of a name from one address",
       integer("chttpd_auth_lockout", "threshold", 1, api::kMaxLockoutThreshold)},
      {"chttpd_auth_lockout", "max_lifetime", "300000", "ms", kLive,
       "milliseconds after the last failure until failures expire",
       integer("chttpd_auth_lockout", "max_lifetime", 1, api::kMaxLockoutLifetimeMs)},
      {"couchdb", "default_security", "admin_only", "", kLive,
       "who may use new databases until their security objects are changed: admin_only, everyone",
       one_of("couchdb", "default_security", {"admin_only", "everyone"})},
      {"couchdb", "maintenance_mode", "false", "", kLive,
       "true or nolb: /_up is answered 404, so that load balancers use other nodes",
       one_of("couchdb", "maintenance_mode", {"true", "false", "nolb"})},
      {"couchdb", "users_db_security_editable", "false", "", kLive,
       "true: the security object of _users may be changed, so that users can write their own documents",
       one_of("couchdb", "users_db_security_editable", {"true", "false"})},
      {"couchdb", "max_old_revisions", std::to_string(docs::kDefaultMaxOldRevisions), "", kLive,
       "number of replaced revisions of a document whose bodies are stored until a compaction",
       integer("couchdb", "max_old_revisions", 0, docs::kMaxOldRevisions)},
      {"couchdb", "max_document_size", std::to_string(docs::kMaxDocumentBytes), "bytes", kLive,
       "maximum size of a document, in bytes of JSON",
       integer("couchdb", "max_document_size", 1, docs::kMaxDocumentBytes)},
      {"couchdb", "max_attachment_size", std::to_string(docs::kDefaultMaxAttachmentBytes), "bytes", kLive,
       "maximum size of an attachment, in bytes without compression; infinity: no limit",
       check_attachment_size},
      {"couchdb", "os_process_timeout", "5000", "ms", kLive,
       "maximum milliseconds of one call of a JavaScript function",
       integer("couchdb", "os_process_timeout", 10, 3'600'000)},
      {"purge", "max_revisions_number", std::string(purge::kInfinity), "", kLive,
       "maximum number of revisions in one request for a purge; infinity: no limit",
       [](const Config& config) { api::max_purged_revisions(config); }},
      {purge::kAutoPurgeSection, purge::kDefaultTtl, "", "", kLive,
       "time until a deleted document is purged, for databases that do not set it: 3_days, 1_month; empty or "
       "infinity: never",
       [](const Config& config) {
         check_period(config, purge::kAutoPurgeSection, purge::kDefaultTtl, true);
       }},
      {purge::kAutoPurgeSection, purge::kRepeat, purge::kDefaultRepeat, "", kLive,
       "time between two searches for such documents",
       [](const Config& config) { check_period(config, purge::kAutoPurgeSection, purge::kRepeat, false); }},
      {replicator::kSection, replicator::kMaxJobs, std::to_string(replicator::kDefaultMaxJobs), "", kLive,
       "number of replications that work at a time; those that wait for changes do not count",
       integer(replicator::kSection, replicator::kMaxJobs, 1, replicator::kMostMaxJobs)},
      {replicator::kSection, "connection_timeout", "30000", "ms", kLive,
       "timeout for connecting to another server, and for the time without a byte sent or received; for new "
       "attempts",
       replicator::remote_options},
      {replicator::kSection, "retries_per_request", "5", "", kLive,
       "maximum number of retries of a request to another server; for new attempts",
       replicator::remote_options},
      {replicator::kSection, "verify_ssl_certificates", "true", "", kLive,
       "false: the certificates of other servers are not verified", replicator::remote_options},
      {replicator::kSection, "ssl_trusted_certificates_file", "", "", kLive,
       "file with the certificates, in PEM, of the authorities that are trusted; empty: the system's"},
      {replicator::kSection, "cert_file", "", "", kLive, "file with the certificate of this client, in PEM"},
      {replicator::kSection, "key_file", "", "", kLive, "file with its key"},
      {replicator::kSection, "password", "", "", kLive, "the password of that key"},
      {deliver::kSection, "allow", "", "", kLive,
       "host names, addresses and networks to which jobs may be delivered even if they are not public, or "
       "denied",
       deliver::address_rules},
      {deliver::kSection, "deny", "", "", kLive,
       "host names, addresses and networks to which no jobs are delivered; *: all that are not allowed",
       deliver::address_rules},
      {deliver::kSection, deliver::kMaxRequests, std::to_string(deliver::kDefaultMaxRequests), "", kLive,
       "maximum number of requests at a time that deliver jobs",
       integer(deliver::kSection, deliver::kMaxRequests, 1, deliver::kMostRequests)},
      {deliver::kSection, deliver::kMaxRequestsPerHost, std::to_string(deliver::kDefaultMaxRequestsPerHost),
       "", kLive, "the same to one host",
       integer(deliver::kSection, deliver::kMaxRequestsPerHost, 1, deliver::kMostRequests)},
      {deliver::kSection, "proxy", "", "", kLive,
       "URL of a proxy through which jobs are delivered: http, https, socks5 or socks5h", deliver::proxy_of},
      {deliver::kSection, "ssl_trusted_certificates_file", "", "", kLive,
       "file with the certificates, in PEM, of the authorities that are trusted; empty: the system's"},
      {compaction::kSection, compaction::kMinPriority, fmt::format("{:.1f}", compaction::kDefaultMinPriority),
       "", kLive, "a database is compacted if it takes this many times the space that it needs",
       number(compaction::kSection, compaction::kMinPriority, 1, 1'000'000)},
      {compaction::kSection, compaction::kMinSize, std::to_string(compaction::kDefaultMinSize), "bytes",
       kLive, "bytes below which a database is only compacted on request",
       integer(compaction::kSection, compaction::kMinSize, 0, INT64_MAX)},
      {"attachments", "compression_level", std::to_string(docs::kMaxCompressionLevel), "", kLive,
       "zlib's level for contents of attachments: 1 (fastest) to 6 (smallest), higher levels count as 6; 0: "
       "no "
       "compression",
       integer("attachments", "compression_level", 0, kMaxCompressionSetting)},
      {"attachments", "compressible_types", std::string(docs::kDefaultCompressibleTypes), "", kLive,
       "types of the contents that are compressed, separated by commas; *: any text"},
      {"uuids", "algorithm", api::kUuidAlgorithms[0], "", kLive,
       "how ids are generated: uuid_v7, uuid_v4, random, sequential, utc_random, utc_id",
       one_of("uuids", "algorithm", {std::begin(api::kUuidAlgorithms), std::end(api::kUuidAlgorithms)})},
      {"uuids", "utc_id_suffix", "", "", kLive, "end of the ids of the algorithm utc_id",
       [](const Config& config) { check_id_suffix(config.get("uuids", "utc_id_suffix", "")); }},
      {"uuids", "max_count", std::to_string(api::kMaxUuids), "", kLive,
       "maximum number of ids in one response of _uuids", integer("uuids", "max_count", 0, 1'000'000)},
      {"mango", "default_limit", std::to_string(mango::kDefaultLimit), "", kLive,
       "number of results of a _find without `limit`", integer("mango", "default_limit", 0, INT64_MAX)},
      {"mango", "index_scan_warning_threshold", std::to_string(mango::kScanWarningThreshold), "", kLive,
       "documents examined for each result above which _find warns; 0: never",
       integer("mango", "index_scan_warning_threshold", 0, INT64_MAX)},
      {"global_changes", "max_event_delay", "25", "ms", kLive,
       "milliseconds for which updates are batched under load before /_db_updates shows them",
       integer("global_changes", "max_event_delay", 0, 60'000)},
      {"global_changes", "max_write_delay", "25", "ms", kLive,
       "milliseconds that are added to max_event_delay",
       integer("global_changes", "max_write_delay", 0, 60'000)},
      {"global_changes", "show_account", "false", "", kLive,
       "true: rows of /_db_updates name the account of the database",
       one_of("global_changes", "show_account", {"true", "false"})},
      {"global_changes", "account_feeds", "false", "", kLive,
       "true: users may read the rows of their account's databases in /_db_updates",
       one_of("global_changes", "account_feeds", {"true", "false"})},
      {"global_changes", "update_db", "true", "", kLive,
       "false: /_db_updates records nothing, and drops updates that are not recorded yet",
       one_of("global_changes", "update_db", {"true", "false"})},
      {"query_server_config", "reduce_limit", "true", "", kLive,
       "true: a reduction that does not shrink is an error; log: it is logged; false: it is allowed",
       one_of("query_server_config", "reduce_limit", {"true", "log", "false"})},
      {"query_server_config", "reduce_limit_threshold", "5000", "bytes", kLive,
       "bytes up to which a reduction need not shrink",
       integer("query_server_config", "reduce_limit_threshold", 0, 1 << 30)},
      {"query_server_config", "reduce_limit_ratio", "2.0", "", kLive,
       "factor by which larger reductions must be smaller than their input",
       number("query_server_config", "reduce_limit_ratio", 0, 1'000'000)},
      {"divan", "store", kEmbedded, "", kAtStart, kStoreDescription,
       [](const Config& config) { check_store_name(config.get("divan", "store", kEmbedded)); }},
      {"divan", "durability", "full", "", kAtStart,
       "full: a commit is on disk before the response; relaxed: it may be lost in a power failure",
       one_of("divan", "durability", {"full", "relaxed"})},
      {"divan", "store_cache_bytes", "134217728", "bytes", kAtStart, "memory for the store's block cache",
       integer("divan", "store_cache_bytes", 1 << 20, 1ll << 40)},
      {"divan", "js_processes", "0", "", kLive, "number of JavaScript processes; 0: the number of cores",
       integer("divan", "js_processes", 0, 1024)},
      {"divan", "js_memory_bytes", "268435456", "bytes", kLive, "maximum memory of a JavaScript process",
       integer("divan", "js_memory_bytes", 128 << 20, 1ll << 36)},
      {"divan", "js_log_lines", "10", "", kLive,
       "lines per second that the functions of a design document may log",
       integer("divan", "js_log_lines", 0, 1'000'000)},
      {"divan", "builders", "4", "", kAtStart, "maximum number of concurrent index builds",
       integer("divan", "builders", 1, 1024)},
      {"divan", "fauxton", "", "", kAtStart,
       "folder of Fauxton's files, which are served at /_utils; empty: the dashboard"},
      {"divan", "js_binary", "", "", kAtStart, "path of divan-js; empty: next to divan"},
      {"fdb", "library", "", "", kAtStart, "path of FoundationDB's libfdb_c.so; empty: the system's"},
      {"fdb", "name", "divan", "", kAtStart,
       "name of this Divan; several in one cluster need different names",
       [](const Config& config) { check_fdb_name(config.get("fdb", "name", "divan")); }},
      {"fdb", "start_timeout", "10000", "ms", kAtStart,
       "milliseconds in which the cluster must respond at the start",
       integer("fdb", "start_timeout", 100, 3'600'000)},
      {"fdb", "answer_timeout", "10000", "ms", kAtStart,
       "milliseconds in which the cluster must respond; otherwise requests fail with 503",
       integer("fdb", "answer_timeout", 100, 3'600'000)},
      {"fdb", "tag", "", "", kAtStart, "FoundationDB's tag of all transactions, at most 16 bytes",
       [](const Config& config) { check_fdb_tag(config.get("fdb", "tag", "")); }},
      {"fdb", "trace_directory", "", "", kAtStart,
       "directory of the FoundationDB client's trace files; empty: none"},
      {"fdb", "tls_certificate_file", "", "", kAtStart,
       "certificates that are presented to the cluster, PEM"},
      {"fdb", "tls_key_file", "", "", kAtStart, "their key, PEM"},
      {"fdb", "tls_password", "", "", kAtStart, "password of the key"},
      {"fdb", "tls_ca_file", "", "", kAtStart, "certificates with which the cluster's are verified, PEM"},
      {"fdb", "tls_verify_peers", "", "", kAtStart,
       "FoundationDB's verification string for the cluster's certificates"},
      {"log", "level", "info", "", kLive, "debug, info, warning, error or none",
       [](const Config& config) { log::parse_level(config.get("log", "level", "info")); }},
      {"log", "file", "", "", kAtStart, "file to write the log to; empty: standard error"},
  };
}

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = [] {
    auto known = own_settings();
    for (const auto& info : ken::setting_infos()) {
      const std::string_view name = info.name;
      const char* unit = name == "delay" || name == "prune_interval" ? "ms" : "";
      known.push_back({"ken", info.name, std::to_string(info.fallback), unit, kLive, info.description,
                       integer("ken", info.name, info.min, info.max)});
    }
    return known;
  }();
  return all;
}

const std::vector<AnyKeySection>& any_key_sections() {
  static const std::vector<AnyKeySection> all = {
      {"ken.ignore", "DATABASE", "true", kLive, "databases whose indexes are not built in the background",
       "archive = true"},
      {"jwt_keys", "TYPE:ID", "KEY", kAtStart,
       "keys of JSON Web Tokens: hmac with the secret in base64; rsa, ec or eddsa with the public key in "
       "PEM, in one line, with \\n for its ends of lines. ID is the `kid` of the tokens, or _default for "
       "those without",
       "hmac:_default = c2VjcmV0"},
      {"admins", "NAME", "PASSWORD", kAtStart,
       "administrators of the server, with the password or CouchDB's hash of it. Without any, and without "
       "--admin, the server generates one and writes it to DATA-DIR/admin",
       "ann = a long password"},
  };
  return all;
}

}  // namespace divan::app
