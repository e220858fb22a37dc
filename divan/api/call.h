// One request as routes see it.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/api/accounts.h"
#include "divan/api/request_executor.h"
#include "divan/base/error.h"
#include "divan/base/memory_quota.h"
#include "divan/docs/catalog.h"
#include "divan/http/exchange.h"
#include "divan/http/url.h"

namespace divan::api {

/// A 405 that lists the allowed methods in its reason and its Allow field (RFC 9110, 15.5.6).
class MethodNotAllowed : public Error {
 public:
  explicit MethodNotAllowed(const std::string& allowed)
      : Error(405, "method_not_allowed", "Only " + allowed + " allowed"), allowed_(allowed) {}
  const std::string& allowed() const { return allowed_; }

 private:
  std::string allowed_;
};

/// The decoded segments of a request's path, without empty ones (except below _events, _jobs and _workers).
/// Throws bad_request if it is malformed.
std::vector<std::string> decoded_path(const http::Request& request);
/// Splits a document id "_design/x" that is one segment of a path (with an encoded slash) into two segments.
void split_design_id(std::vector<std::string>& path);
/// A path of the server that browsers ask for.
inline constexpr std::string_view kFavicon = "favicon.ico";
/// Returns true if a path with this first segment is one of a database. CouchDB's system databases have names
/// like the server's routes.
bool is_database(std::string_view segment);

/// The segments of a path from `begin` on, with slashes between them: an id.
std::string joined_path(const std::vector<std::string>& path, std::size_t begin);

/// The value of Content-Length; nullopt without one.
std::optional<std::uint64_t> content_length(const http::Request& request);

/// The size up to which a body is parsed quickly, so that an io thread's other connections need not be
/// protected from it.
inline constexpr std::size_t kMaxShortBody = 64 << 10;

/// What a user may do in a database (database_access.h).
enum class DatabaseAccess { none, member, admin };

/// A request with its path and parameters decoded. Not thread-safe, except for the exchange.
class Call {
 public:
  /// `workers` as in RequestExecutor. Throws bad_request for a malformed path or query.
  Call(std::shared_ptr<http::Exchange> exchange, ThreadPool& workers);
  /// A request that replaces that of `call`, with the same exchange and user (rewrite_routes.cc). Its body
  /// must have been moved from there.
  Call(const Call& call, http::Request rewritten);

  /// For the response. The request is request(), which may be a rewritten one.
  const std::shared_ptr<http::Exchange>& exchange() const { return exchange_; }
  const http::Request& request() const { return rewritten_ ? *rewritten_ : exchange_->request(); }
  /// The number of times that the request was rewritten.
  int rewrites() const { return rewrites_; }
  /// Returns true if the request's body is still to be read from the exchange (streamed_body.h).
  bool has_streamed_body() const {
    return exchange_->has_streamed_body() && !rewritten_ && !has_collected_body_;
  }
  /// Moves the body out, as it was sent.
  std::string take_body() { return rewritten_ ? rewritten_->take_body() : exchange_->take_body(); }
  RequestExecutor& executor() { return executor_; }
  /// co_await: runs a transaction, as RequestExecutor::run().
  template <class Fn>
  auto run(kv::Database& store, Fn fn) {
    return executor_.run(store, fn);
  }
  /// HEAD is reported as GET: the HTTP server omits the body. A POST can name another method in
  /// X-HTTP-Method-Override.
  std::string_view method() const { return method_; }
  /// As decoded_path() returns it and, in a database, split_design_id() splits it.
  const std::vector<std::string>& path() const { return path_; }
  /// Turns /{db}/_partition/{partition}/... into /{db}/... with the parameter `partition`. Throws bad_request
  /// if the query names another one.
  void enter_partition();
  std::optional<std::string_view> header(std::string_view name) const { return request().header(name); }
  std::string list_header(std::string_view name) const { return request().list_header(name); }

  /// The last value of a parameter.
  std::optional<std::string> param(std::string_view name) const;
  /// Throws bad_request unless it is true or false.
  bool flag(std::string_view name, bool fallback = false) const;
  /// Throws bad_request unless it is a non-negative integer.
  std::optional<std::uint64_t> count(std::string_view name) const;
  /// A parameter that is a JSON string or plain text ("1-abc" and 1-abc are equivalent).
  std::optional<std::string> text(std::string_view name) const;
  const std::vector<http::QueryParameter>& params() const { return params_; }

  /// The body as compact JSON. Throws bad_request if it is invalid JSON, and 415 if a POST has a different
  /// Content-Type.
  std::string json_body();
  /// The body without its Content-Encoding. The first call uncompresses it, which takes time: it must not run
  /// on an io thread, or before the client is authorised. Throws bad_request if it is malformed, and
  /// too_large (413) if it exceeds the limit set by limit_body(). (Streamed bodies: streamed_body.h.)
  const std::string& body();
  /// The size of the body as it was sent.
  std::size_t body_bytes() const { return request().body().size(); }
  /// Returns true if the body is parsed quickly (kMaxShortBody).
  bool is_short() const {
    return body_bytes() <= kMaxShortBody && !exchange_->has_streamed_body() && !header("Content-Encoding");
  }
  bool has_body() const { return !request().body().empty(); }
  /// Sets a body that was streamed, and the memory that it holds.
  void set_body(std::string body, MemoryQuota<std::string>::Reservation memory) {
    exchange_->set_body(std::move(body));
    body_memory_ = std::move(memory);
    has_collected_body_ = true;
  }
  /// Sets the maximum size of an uncompressed body.
  void limit_body(std::size_t bytes) { max_body_ = bytes; }
  std::size_t max_body() const { return max_body_; }

  const User& user() const { return user_; }
  void set_user(User user) { user_ = std::move(user); }
  /// Returns true if the user is known by a session cookie, which a browser sends with requests of any page.
  bool has_ambient_credentials() const { return has_ambient_credentials_; }
  void set_ambient_credentials() { has_ambient_credentials_ = true; }
  /// Throws unauthorized (401), with CouchDB's words, unless the user is an administrator.
  void require_admin() const {
    if (!user_.admin) throw unauthorized("You are not a server admin.");
  }
  /// Throws unauthorized (401) unless the user is an administrator or has the role. The reason begins with
  /// `what`.
  void require_role(std::string_view role, std::string_view what) const;

  /// The user's access to the database that the path names.
  DatabaseAccess database_access() const { return database_access_; }
  void set_database_access(DatabaseAccess access) { database_access_ = access; }
  /// Throws database_admins_only() unless the user is an admin of the database.
  void require_database_admin() const {
    if (database_access_ != DatabaseAccess::admin) throw database_admins_only();
  }
  /// The error for a user who is no admin of the database: unauthorized (401) without a name, otherwise
  /// forbidden (403), with CouchDB's words.
  Error database_admins_only() const;

  /// Throws MethodNotAllowed unless the method is one of `allowed` ("GET,PUT"); GET includes HEAD.
  void allow(std::string_view allowed) const;

 private:
  void parse_request();

  std::shared_ptr<http::Exchange> exchange_;
  RequestExecutor executor_;
  std::string method_;
  std::vector<std::string> path_;
  std::vector<http::QueryParameter> params_;
  bool has_collected_body_ = false;
  MemoryQuota<std::string>::Reservation body_memory_;
  std::optional<std::string> decoded_body_;
  std::size_t max_body_ = std::numeric_limits<std::size_t>::max();
  User user_;
  bool has_ambient_credentials_ = false;
  std::optional<http::Request> rewritten_;
  int rewrites_ = 0;
  DatabaseAccess database_access_ = DatabaseAccess::none;
};

using CallPtr = std::shared_ptr<Call>;

/// The 304 response to a GET whose If-None-Match names `etag`; otherwise nullopt.
std::optional<http::Response> not_modified(const Call& call, const std::string& etag);

/// Returns true if the client uses TLS: with this server, or as X-Forwarded-Proto or X-Forwarded-Ssl say.
bool is_https(const Call& call);

/// The URI, for a Location field, of a path of this server ("/db/doc", percent-encoded). It is absolute:
/// the host is that of X-Forwarded-Host or Host, the scheme https if is_https(). Without a host it is the
/// path alone.
std::string absolute_uri(const Call& call, std::string_view path);

/// Throws client_closed_request (499), which nobody receives, if the connection is lost.
void check_connected(const http::Exchange& exchange);
/// For long work on a request: calls check_connected().
docs::Checkpoint checkpoint_of(const Call& call);

/// A response with a JSON body, to which a newline is added.
http::Response json_response(int status, std::string json, http::Headers headers = {});
/// {"ok":true}
http::Response ok_response(int status = 200);

}  // namespace divan::api
