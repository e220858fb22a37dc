// The files with which this process speaks TLS to a cluster.
#pragma once

#include "divan/kv/fdb/client_options.h"

namespace divan::kv::fdb {

/// Throws divan::Error 500 that names the setting and its file if it cannot be read, has nothing of that kind
/// in PEM, is encrypted with another password, or if the key is not the certificate's. FoundationDB's client
/// says nothing of most of that: it never connects. What the options leave out may be in its variables,
/// FDB_TLS_CERTIFICATE_FILE and so on; what it finds by itself is not checked.
void check_tls_files(const ClientOptions& options);

}  // namespace divan::kv::fdb
