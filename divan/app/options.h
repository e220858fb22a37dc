// The options of a server's parts, from its settings.
#pragma once

#include <utility>

#include "divan/base/config.h"
#include "divan/docs/compression.h"
#include "divan/http/server_options.h"
#include "divan/js/pool.h"
#include "divan/updates/sequencer.h"

namespace divan::app {

js::PoolOptions pool_options(const Config& config);
updates::SequencerOptions updates_options(const Config& config);
http::ServerOptions http_options(const Config& config);
/// The lowest and highest version of [ssl] tls_versions: a list, also in CouchDB's form ['tlsv1.2',
/// 'tlsv1.3']. Throws bad_request if it is invalid.
std::pair<http::TlsVersion, http::TlsVersion> tls_versions(const Config& config);
/// The range of [attachments] compression_level: zlib's. Levels above docs::kMaxCompressionLevel count as
/// that.
inline constexpr int kMaxCompressionSetting = 9;
/// Which contents of attachments are compressed. Throws bad_request if a setting is invalid.
docs::Compression compression_of(const Config& config);

}  // namespace divan::app
