// What a replication is: its source and target, and its options.
// https://docs.couchdb.org/en/stable/replication/replicator.html
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace divan::replicator {

/// A database of this server, or one that is reached by HTTP.
struct Endpoint {
  std::string database{};  ///< the name of a local one
  std::string url{};       ///< of a remote one, without credentials and without a slash at its end
  std::string user{};      ///< for Basic authentication; empty: none
  std::string password{};
  std::vector<std::pair<std::string, std::string>> headers{};  ///< of every request
  std::string proxy{};                                         ///< a URL; empty: none

  bool is_remote() const { return !url.empty(); }
  /// As shown: a name, or the URL with a slash at its end; no credentials.
  std::string shown() const;
  /// The proxy without credentials; empty: none.
  std::string shown_proxy() const;
};

/// The user on whose behalf a replication reads and writes local databases.
struct ReplicationUser {
  std::string name{};
  std::string roles = "[]";  ///< JSON
};

/// The documents that are replicated: all, or those of one of these.
struct ReplicationFilter {
  std::vector<std::string> doc_ids{};
  std::optional<std::string> selector{};  ///< JSON
  std::string filter{};                   ///< "design/name", of the source
  std::string query_params = "{}";        ///< JSON, of the filter

  bool has_doc_ids = false;  ///< `doc_ids` is given, perhaps empty
};

/// A value type.
struct Replication {
  Endpoint source{};
  Endpoint target{};
  bool continuous = false;
  bool create_target = false;
  std::string create_target_params = "{}";  ///< JSON, of the request that creates it
  ReplicationFilter filter{};
  std::optional<std::string> since_seq{};
  bool use_checkpoints = true;
  std::chrono::milliseconds checkpoint_interval{30'000};
  bool winning_revs_only = false;
  ReplicationUser user{};
  /// The replicator database that it comes from, unless its users are the server's administrators. Part of
  /// the id: users of one realm do not share replications with those of another.
  std::string realm{};

  /// Parses the body of POST /_replicate or a document of a replicator database, in json::compact()'s form.
  /// Throws bad_request.
  static Replication parse(std::string_view json);

  /// Identifies what is replicated, whoever asks for it: the name of the checkpoints. Depends on the server's
  /// UUID, both databases and the filter.
  std::string base_id(std::string_view server_uuid) const;
  /// base_id() with "+continuous" and "+create_target".
  std::string id(std::string_view server_uuid) const;
};

/// The id of a replication without its suffixes.
std::string_view base_of(std::string_view id);

}  // namespace divan::replicator
