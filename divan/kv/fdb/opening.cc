#include "divan/kv/fdb/opening.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace divan::kv::fdb {
namespace {

constexpr const char* kUnfinished = "unfinished";
constexpr Duration kProtocolTimeout = std::chrono::seconds(1);

// Returns true if a coordinator of the cluster responds, even if the client does not understand it.
bool responds(const Cluster& cluster) {
  const Api& api = cluster.api();
  if (api.database_get_server_protocol == nullptr) return false;
  const Future future(api, api.database_get_server_protocol(cluster.handle(), 0));
  return future.wait(cluster.clock(), cluster.clock().now() + kProtocolTimeout) && future.error() == 0;
}

// What to check if the cluster does not respond.
std::string questions(const Cluster& cluster, const std::string& file) {
  // Without a file in the settings the client uses FDB_CLUSTER_FILE or its default paths.
  const char* const variable = std::getenv("FDB_CLUSTER_FILE");
  std::ifstream in(!file.empty() ? file : variable != nullptr ? variable : "fdb.cluster");
  if (!in && file.empty() && variable == nullptr) in.open("/etc/foundationdb/fdb.cluster");
  const std::string addresses{std::istreambuf_iterator<char>(in), {}};
  const ClientOptions& options = cluster.client().options();
  if (addresses.find(":tls") != std::string::npos) {
    return "is it running, can it be reached from here, and do it and this process accept each other's "
           "certificates ([fdb] tls_certificate_file, tls_key_file, tls_ca_file, tls_verify_peers)?";
  }
  if (!addresses.empty() && !options.tls_certificate_file.empty()) {
    return "is it running, can it be reached from here, and is it one without TLS? No address there ends in "
           "`:tls`";
  }
  return "is it running, and can it be reached from here?";
}

// What the cluster has in a store's subspace.
struct Contents {
  std::optional<std::string> format;
  bool has_rows = false;
  bool is_free = false;
};

FdbError read_contents(RawTransaction& tx, const Subspace& subspace, Contents& contents) {
  const Cluster& cluster = tx.cluster();
  const Future format = tx.get(subspace.format_key(), false);
  const Future rows = tx.get_range({.begin = subspace.begin(), .end = subspace.very_end(), .limit = 1});
  for (const Future* future : {&format, &rows}) {
    if (const FdbError code = cluster.outcome_of(*future); code != 0) return code;
  }
  contents.format = tx.value_in(format);
  bool more = false;
  contents.has_rows = !tx.rows_in(rows, more).empty();
  return 0;
}

// The number that a format row holds; 0 if it holds none.
int format_in(const std::string& value) {
  int format = 0;
  std::from_chars(value.data(), value.data() + value.size(), format);
  return format;
}

}  // namespace

void check_cluster_file(const std::string& path) {
  if (path.empty()) return;
  std::ifstream in(path);
  std::string line;
  if (!in)
    throw internal_error(fmt::format("FoundationDB's cluster file {}: {}.", path, std::strerror(errno)));
  if (!std::getline(in, line))
    throw internal_error(fmt::format("FoundationDB's cluster file {} is empty.", path));
}

void await_cluster(const Cluster& cluster, const std::string& file, Duration timeout) {
  RawTransaction tx(cluster);
  const auto deadline = cluster.clock().now() + timeout;
  std::string problem;
  for (;;) {
    const Future version = tx.read_version();
    if (!version.wait(cluster.clock(), deadline)) break;
    if (version.error() == 0) return;
    problem = cluster.api().describe(version.error());
    const Future pause = tx.on_error(version.error());
    if (!pause.wait(cluster.clock(), deadline)) break;
    if (pause.error() != 0)
      throw internal_error(
          fmt::format("FoundationDB's cluster{}: {}", file.empty() ? "" : " of " + file, problem));
  }
  if (problem.empty()) {
    problem = responds(cluster)
                  ? "its coordinators can be reached, but it is not available, or of a version that this "
                    "client does not understand"
                  : questions(cluster, file);
  }
  throw internal_error(
      fmt::format("FoundationDB's cluster{} has not answered within {:g} s: {} (client library {})",
                  file.empty() ? "" : " of " + file, seconds(timeout), problem, cluster.client().version()));
}

void check_format(const Cluster& cluster, const Subspace& subspace, Formats formats, bool raises) {
  Contents found;
  run_raw(cluster, [&](RawTransaction& tx) -> FdbError {
    if (const FdbError code = read_contents(tx, subspace, found); code != 0) return code;
    const int there = found.format ? format_in(*found.format) : 0;
    const bool is_raised = raises && there >= formats.oldest && there < formats.newest;
    if (!is_raised && (found.format || found.has_rows)) return 0;
    found.format = std::to_string(formats.newest);
    tx.set(subspace.format_key(), *found.format);
    return 0;
  });
  if (!found.format)
    throw internal_error(
        "There are rows in this cluster where Divan keeps its own, but they are not Divan's.");
  if (*found.format == kUnfinished) {
    throw internal_error(
        "The restore of a backup into this store is not finished. Unless it still runs, restore the backup "
        "again.");
  }
  const int there = format_in(*found.format);
  if (there >= formats.oldest && there <= formats.newest) return;
  throw internal_error(
      fmt::format("The store in this cluster has format {}, which is {} than this version of Divan, which "
                  "knows {} to {}.",
                  there, there > formats.newest ? "newer" : "older", formats.oldest, formats.newest));
}

void begin_store(const Cluster& cluster, const Subspace& subspace) {
  Contents found;
  run_raw(cluster, [&](RawTransaction& tx) -> FdbError {
    if (const FdbError code = read_contents(tx, subspace, found); code != 0) return code;
    found.is_free = found.format ? *found.format == kUnfinished : !found.has_rows;
    if (!found.is_free) return 0;
    tx.clear_range(subspace.begin(), subspace.very_end());
    tx.set(subspace.format_key(), kUnfinished);
    return 0;
  });
  if (!found.is_free)
    throw bad_request("There is a store in this cluster: a backup is restored into an empty one.");
}

void finish_store(const Cluster& cluster, const Subspace& subspace, int format) {
  run_raw(cluster, [&](RawTransaction& tx) -> FdbError {
    tx.set(subspace.format_key(), std::to_string(format));
    return 0;
  });
}

}  // namespace divan::kv::fdb
