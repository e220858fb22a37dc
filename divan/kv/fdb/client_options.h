// Options of FoundationDB's client.
#pragma once

#include <string>

namespace divan::kv::fdb {

/// Options of the process's client. An empty one stands for FoundationDB's default, which its environment
/// variables set.
struct ClientOptions {
  std::string library;          // path of libfdb_c.so; empty: found by its name
  std::string trace_directory;  // the client's own trace files; empty: none
  std::string tls_certificate_file;
  std::string tls_key_file;
  std::string tls_password;
  std::string tls_ca_file;
  std::string tls_verify_peers;

  bool operator==(const ClientOptions&) const = default;
};

}  // namespace divan::kv::fdb
