#include "divan/app/settings.h"

#include <fmt/format.h>

#include <functional>

#include "divan/api/accounts.h"
#include "divan/app/store.h"
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/ken/settings.h"
#include "divan/kv/fdb/engine.h"

namespace divan::app {
namespace {

struct Setting {
  const char* section;
  const char* key;
  std::string fallback;
  const char* meaning;
  std::function<void(const Config&)> check = {};
};

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
    throw bad_request(
        fmt::format("Setting [{}] {} = {} is none of {}.", section, key, value, fmt::join(values, ", ")));
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

std::vector<Setting> own_settings() {
  return {
      {"chttpd", "bind_address", "127.0.0.1", "address to listen on"},
      {"chttpd", "port", "5984", "port to listen on; 0: any free one", integer("chttpd", "port", 0, 65535)},
      {"chttpd", "max_http_request_size", "67108864", "largest request body, in bytes",
       integer("chttpd", "max_http_request_size", 1024, 1ll << 32)},
      {"chttpd", "max_header_size", "65536", "largest head of a request, in bytes",
       integer("chttpd", "max_header_size", 1024, 1 << 20)},
      {"chttpd", "max_connections", "10000", "open connections",
       integer("chttpd", "max_connections", 1, 1'000'000)},
      {"chttpd", "request_threads", "64", "requests that are worked on at once",
       integer("chttpd", "request_threads", 1, 4096)},
      {"chttpd", "max_waiting_requests", "10000",
       "requests that wait for a thread; further ones are answered 503",
       integer("chttpd", "max_waiting_requests", 1, 1'000'000)},
      {"chttpd", "idle_timeout", "120000",
       "milliseconds for which a connection may be open between two requests",
       integer("chttpd", "idle_timeout", 100, 86'400'000)},
      {"chttpd", "head_timeout", "30000", "milliseconds in which the head of a request must come",
       integer("chttpd", "head_timeout", 100, 86'400'000)},
      {"chttpd", "body_timeout", "60000", "milliseconds that may pass without a byte of a request's body",
       integer("chttpd", "body_timeout", 100, 86'400'000)},
      {"chttpd", "send_timeout", "60000",
       "milliseconds after which a client that takes nothing of its answer is dropped",
       integer("chttpd", "send_timeout", 100, 86'400'000)},
      {"chttpd", "half_close_timeout", "30000",
       "milliseconds in which a client that has ended its side of the connection must be answered",
       integer("chttpd", "half_close_timeout", 100, 86'400'000)},
      {"chttpd_auth", "iterations", "600000",
       "rounds of the hashes of users' passwords that are written from now on",
       integer("chttpd_auth", "iterations", 1, api::kMaxPasswordIterations)},
      {"chttpd_auth_lockout", "mode", "warn",
       "a name that fails from one address again and again: off, warn (a line in the log), enforce (refused)",
       one_of("chttpd_auth_lockout", "mode", {"warn", "off", "enforce"})},
      {"chttpd_auth_lockout", "threshold", "5", "so many wrong passwords of a name from one address",
       integer("chttpd_auth_lockout", "threshold", 1, api::kMaxLockoutThreshold)},
      {"chttpd_auth_lockout", "max_lifetime", "300000", "for which failures count after the last one, in ms",
       integer("chttpd_auth_lockout", "max_lifetime", 1, api::kMaxLockoutLifetimeMs)},
      {"couchdb", "os_process_timeout", "5000",
       "milliseconds that one call of a JavaScript function may take",
       integer("couchdb", "os_process_timeout", 10, 3'600'000)},
      {"global_changes", "max_event_delay", "25",
       "milliseconds for which updates are gathered under load before /_db_updates shows them",
       integer("global_changes", "max_event_delay", 0, 60'000)},
      {"global_changes", "max_write_delay", "25", "milliseconds that are added to max_event_delay",
       integer("global_changes", "max_write_delay", 0, 60'000)},
      {"global_changes", "show_account", "false",
       "true: rows of /_db_updates say to which account a database belongs",
       one_of("global_changes", "show_account", {"true", "false"})},
      {"global_changes", "account_feeds", "false",
       "true: users who are no administrators may read the rows of their account's databases in /_db_updates",
       one_of("global_changes", "account_feeds", {"true", "false"})},
      {"global_changes", "update_db", "true",
       "false: /_db_updates records nothing, and drops what is not in it yet",
       one_of("global_changes", "update_db", {"true", "false"})},
      {"query_server_config", "reduce_limit", "true",
       "true: a reduction that does not shrink is an error; log: it is said to the log; false: it is good",
       one_of("query_server_config", "reduce_limit", {"true", "log", "false"})},
      {"query_server_config", "reduce_limit_threshold", "5000",
       "bytes up to which a reduction need not shrink",
       integer("query_server_config", "reduce_limit_threshold", 0, 1 << 30)},
      {"query_server_config", "reduce_limit_ratio", "2.0",
       "how many times smaller than what went in a larger reduction must be",
       number("query_server_config", "reduce_limit_ratio", 0, 1'000'000)},
      {"divan", "store", kEmbedded, kStoreMeaning,
       [](const Config& config) { check_store_name(config.get("divan", "store", kEmbedded)); }},
      {"divan", "durability", "full",
       "full: a commit is on disk before it is answered; relaxed: it may be lost in a power cut",
       one_of("divan", "durability", {"full", "relaxed"})},
      {"divan", "store_cache_bytes", "134217728", "memory for blocks of the store",
       integer("divan", "store_cache_bytes", 1 << 20, 1ll << 40)},
      {"divan", "js_processes", "0", "JavaScript processes; 0: as many as cores",
       integer("divan", "js_processes", 0, 1024)},
      {"divan", "js_memory_bytes", "268435456", "memory of one JavaScript process",
       integer("divan", "js_memory_bytes", 128 << 20, 1ll << 36)},
      {"divan", "js_log_lines", "10",
       "lines a second that the functions of a design document may write to the log",
       integer("divan", "js_log_lines", 0, 1'000'000)},
      {"divan", "builders", "4", "indexes that are built at once", integer("divan", "builders", 1, 1024)},
      {"divan", "js_binary", "", "path of divan-js; empty: beside divan"},
      {"fdb", "library", "", "path of FoundationDB's libfdb_c.so; empty: as the system finds it"},
      {"fdb", "name", "divan", "several Divans in one cluster need a name each",
       [](const Config& config) { check_fdb_name(config.get("fdb", "name", "divan")); }},
      {"fdb", "start_timeout", "10000", "milliseconds in which the cluster must answer at the start",
       integer("fdb", "start_timeout", 100, 3'600'000)},
      {"fdb", "answer_timeout", "10000",
       "milliseconds in which the cluster must answer anything; else requests are answered 503",
       integer("fdb", "answer_timeout", 100, 3'600'000)},
      {"fdb", "tag", "", "FoundationDB's tag of all transactions, at most 16 bytes",
       [](const Config& config) { check_fdb_tag(config.get("fdb", "tag", "")); }},
      {"fdb", "trace_directory", "", "where FoundationDB's client writes its trace files; empty: none"},
      {"fdb", "tls_certificate_file", "", "certificates that are shown to the cluster, PEM"},
      {"fdb", "tls_key_file", "", "their key, PEM"},
      {"fdb", "tls_password", "", "of the key"},
      {"fdb", "tls_ca_file", "", "certificates that the cluster's are checked with, PEM"},
      {"fdb", "tls_verify_peers", "", "FoundationDB's conditions for the cluster's certificates"},
      {"log", "level", "info", "debug, info, warning, error or none",
       [](const Config& config) { log::parse_level(config.get("log", "level", "info")); }},
      {"log", "file", "", "file to write the log to; empty: standard error"},
  };
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = [] {
    auto known = own_settings();
    for (const auto& info : ken::setting_infos())
      known.push_back({"ken", info.name, std::to_string(info.fallback), info.meaning,
                       integer("ken", info.name, info.min, info.max)});
    return known;
  }();
  return all;
}

}  // namespace

void set_defaults(Config& config) {
  for (const Setting& setting : settings())
    config.override_with(setting.section, setting.key, setting.fallback);
}

void check_setting(const Config& config, const std::string& section, const std::string& key) {
  for (const Setting& setting : settings()) {
    if (section == setting.section && key == setting.key && setting.check) setting.check(config);
  }
}

void check_all_settings(const Config& config) {
  for (const Setting& setting : settings()) {
    if (setting.check) setting.check(config);
  }
}

std::string describe_settings() {
  std::string out;
  for (const Setting& setting : settings()) {
    out += fmt::format("  [{}] {} = {}\n      {}\n", setting.section, setting.key, setting.fallback,
                       setting.meaning);
  }
  return out;
}

}  // namespace divan::app
