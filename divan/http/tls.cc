#include "divan/http/tls.h"

#include <fmt/core.h>
#include <openssl/err.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>

#include "divan/base/error.h"
#include "divan/base/log.h"

namespace divan::http {
namespace {

constexpr std::chrono::seconds kCheckInterval{1};

// The reason of OpenSSL's last error, which is removed.
std::string openssl_error() {
  const auto code = ERR_peek_last_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "unknown error" : reason;
}

Error invalid(const std::string& what) {
  return bad_request(fmt::format("TLS: {}: {}.", what, openssl_error()));
}

int version_of(TlsVersion version) { return version == TlsVersion::v1_3 ? TLS1_3_VERSION : TLS1_2_VERSION; }

void load_files(SSL_CTX* context, const TlsOptions& options) {
  // Otherwise OpenSSL asks for the password of a key on the terminal.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate_file.c_str()) != 1)
    throw invalid("cannot read the certificate " + options.certificate_file);
  if (SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    throw invalid("cannot use the key " + options.key_file);
}

}  // namespace

TlsSession::TlsSession(SSL_CTX* context, int socket) : session_(SSL_new(context)) {
  if (!session_ || SSL_set_fd(session_.get(), socket) != 1) throw internal_error("TLS: " + openssl_error());
  SSL_set_accept_state(session_.get());
}

// Must be called right after the call that has returned `code`.
TlsResult TlsSession::outcome(int code) {
  switch (SSL_get_error(session_.get(), code)) {
    case SSL_ERROR_NONE: return TlsResult::done;
    case SSL_ERROR_WANT_READ: return TlsResult::wants_read;
    case SSL_ERROR_WANT_WRITE: return TlsResult::wants_write;
    case SSL_ERROR_ZERO_RETURN: return TlsResult::ended;
    default: ERR_clear_error(); return TlsResult::failed;
  }
}

TlsResult TlsSession::read(std::span<char> buffer, std::size_t& size) {
  ERR_clear_error();
  size = 0;
  return outcome(SSL_read_ex(session_.get(), buffer.data(), buffer.size(), &size));
}

TlsResult TlsSession::write(std::span<const char> bytes, std::size_t& size) {
  ERR_clear_error();
  size = 0;
  return outcome(SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &size));
}

void TlsSession::end_output() {
  if (SSL_is_init_finished(session_.get()) == 1) SSL_shutdown(session_.get());
  ERR_clear_error();
}

TlsContext::TlsContext(TlsOptions options)
    : options_(std::move(options)),
      stamps_(stamps()),
      checked_(std::chrono::steady_clock::now()),
      context_(load()) {}

TlsContext::FileStamp TlsContext::stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_ino};
}

TlsContext::Handle TlsContext::load() const {
  Handle context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) throw internal_error("TLS: " + openssl_error());
  auto* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, version_of(options_.min_version));
  SSL_CTX_set_max_proto_version(raw, version_of(options_.max_version));
  // A client that closes without a notification has ended its side: HTTP has lengths of its own.
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(
      raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // Otherwise one read takes any number of messages that have no data for it, while others wait.
  SSL_CTX_clear_mode(raw, SSL_MODE_AUTO_RETRY);
  if (!options_.ciphers.empty() && SSL_CTX_set_cipher_list(raw, options_.ciphers.c_str()) != 1)
    throw invalid("invalid ciphers " + options_.ciphers);
  load_files(raw, options_);
  return context;
}

TlsContext::Handle TlsContext::current() {
  const auto now = std::chrono::steady_clock::now();
  if (now - checked_ < kCheckInterval) return context_;
  checked_ = now;
  const auto found = stamps();
  if (found == stamps_) return context_;
  try {
    context_ = load();
    log::info("The TLS certificate {} was read again.", options_.certificate_file);
  } catch (const Error& error) {
    log::error("The previous TLS certificate stays in use. {}", error.reason());
  }
  stamps_ = found;
  return context_;
}

std::unique_ptr<TlsSession> TlsContext::accept(int socket) {
  return std::make_unique<TlsSession>(current().get(), socket);
}

}  // namespace divan::http
