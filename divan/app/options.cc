#include "divan/app/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "divan/api/routes.h"
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/http/field_list.h"

namespace divan::app {
namespace {

using std::chrono::milliseconds;

// Requests that have not ended this long after the server began to stop are aborted.
constexpr milliseconds kStopTimeout{2'000};
constexpr std::int64_t kMaxUpdatesDelay = 60'000;

std::string js_binary(const Config& config) {
  std::string set = config.get("divan", "js_binary", "");
  if (!set.empty()) return set;
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "divan-js").string();
}

js::ReduceLimit reduce_limit(const Config& config) {
  constexpr const char* kSection = "query_server_config";
  js::ReduceLimit limit;
  const std::string mode = config.get(kSection, "reduce_limit", "true");
  if (mode == "false") limit.mode = js::ReduceLimit::Mode::off;
  if (mode == "log") limit.mode = js::ReduceLimit::Mode::log;
  limit.threshold = static_cast<std::size_t>(config.get_int(
      kSection, "reduce_limit_threshold", static_cast<std::int64_t>(limit.threshold), 0, INT64_MAX));
  limit.ratio = config.get_number(kSection, "reduce_limit_ratio", limit.ratio, 0, 1e9);
  return limit;
}

http::TlsOptions tls_options(const Config& config) {
  const auto [min, max] = tls_versions(config);
  http::TlsOptions options{.port = static_cast<std::uint16_t>(config.get_int("ssl", "port", 6984, 0, 65535)),
                           .certificate_file = config.get("ssl", "cert_file", ""),
                           .key_file = config.get("ssl", "key_file", ""),
                           .ciphers = config.get("ssl", "ciphers", ""),
                           .min_version = min,
                           .max_version = max};
  if (options.certificate_file.empty() || options.key_file.empty())
    throw bad_request("[ssl] enable needs cert_file and key_file.");
  return options;
}

}  // namespace

js::PoolOptions pool_options(const Config& config) {
  js::PoolOptions options;
  options.binary = js_binary(config);
  options.processes = static_cast<std::size_t>(config.get_int("divan", "js_processes", 0, 0, INT64_MAX));
  options.memory =
      static_cast<std::size_t>(config.get_int("divan", "js_memory_bytes", 256 << 20, 0, INT64_MAX));
  options.invocation = milliseconds(config.get_int("couchdb", "os_process_timeout", 5000, 1, INT64_MAX));
  options.reduce_limit = reduce_limit(config);
  options.log_lines = static_cast<double>(config.get_int("divan", "js_log_lines", 10, 0, INT64_MAX));
  options.log = [](const js::Function& function, std::string_view line) {
    const auto& owner = function.owner;
    if (owner.design_document.empty()) {
      log::info("Function `{}`, while it is checked, logs: {}", function.name, line);
    } else {
      log::info("Function `{}` of `{}` in `{}` logs: {}", function.name, owner.design_document,
                owner.database, line);
    }
  };
  return options;
}

updates::SequencerOptions updates_options(const Config& config) {
  const auto delay = [&](const char* name) {
    return milliseconds(config.get_int("global_changes", name, 25, 0, kMaxUpdatesDelay));
  };
  return {.event_delay = delay("max_event_delay"),
          .write_delay = delay("max_write_delay"),
          .recording = config.get_bool("global_changes", "update_db", true)};
}

std::pair<http::TlsVersion, http::TlsVersion> tls_versions(const Config& config) {
  const std::string all = config.get("ssl", "tls_versions", "tlsv1.2, tlsv1.3");
  std::string list = all;
  std::erase_if(list, [](char c) { return c == '[' || c == ']' || c == '\''; });
  std::vector<http::TlsVersion> versions;
  for (const auto name : http::split_list(list)) {
    if (name != "tlsv1.2" && name != "tlsv1.3") {
      throw bad_request(fmt::format(
          "Setting [ssl] tls_versions = {} is invalid; expected tlsv1.2, tlsv1.3, or both.", all));
    }
    versions.push_back(name == "tlsv1.3" ? http::TlsVersion::v1_3 : http::TlsVersion::v1_2);
  }
  if (versions.empty())
    throw bad_request("Setting [ssl] tls_versions is empty; expected tlsv1.2, tlsv1.3, or both.");
  const auto [min, max] = std::ranges::minmax(versions);
  return {min, max};
}

http::ServerOptions http_options(const Config& config) {
  http::ServerOptions options;
  options.address = config.get("chttpd", "bind_address", "127.0.0.1");
  options.port = static_cast<std::uint16_t>(config.get_int("chttpd", "port", 5984, 0, 65535));
  options.version = DIVAN_VERSION;
  if (config.get_bool("ssl", "enable", false)) options.tls = tls_options(config);
  const auto max_body =
      static_cast<std::uint64_t>(config.get_int("chttpd", "max_http_request_size", 64 << 20, 0, INT64_MAX));
  options.max_body_bytes = std::min<std::uint64_t>(max_body, api::kMaxShortBody);
  options.streamed_body = api::streamed_bodies(max_body);
  options.max_connections =
      static_cast<std::size_t>(config.get_int("chttpd", "max_connections", 10'000, 1, INT64_MAX));
  options.max_header_bytes =
      static_cast<std::uint32_t>(config.get_int("chttpd", "max_header_size", 64 << 10, 1024, 1 << 20));
  const auto timeout = [&](const char* name, milliseconds& value) {
    value = milliseconds(config.get_int("chttpd", name, value.count(), 1, INT64_MAX));
  };
  timeout("idle_timeout", options.idle_timeout);
  timeout("head_timeout", options.head_timeout);
  timeout("body_timeout", options.body_timeout);
  timeout("send_timeout", options.send_timeout);
  timeout("half_close_timeout", options.half_close_timeout);
  options.stop_timeout = kStopTimeout;
  return options;
}

docs::Compression compression_of(const Config& config) {
  const auto level = config.get_int("attachments", "compression_level", docs::kMaxCompressionLevel, 0,
                                    kMaxCompressionSetting);
  const std::string list =
      config.get("attachments", "compressible_types", std::string(docs::kDefaultCompressibleTypes));
  const auto types = http::split_list(list);
  return {std::min(static_cast<int>(level), docs::kMaxCompressionLevel), {types.begin(), types.end()}};
}

}  // namespace divan::app
