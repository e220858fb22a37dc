#include "divan/kv/fdb/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "divan/base/error.h"

namespace divan::kv::fdb {
namespace {

constexpr std::size_t kMaxFileBytes = 1'000'000;

template <class T, void (*free)(T*)>
struct Free {
  void operator()(T* object) const { free(object); }
};
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO, BIO_free_all>>;

struct Password {
  std::string name;  // of what says it
  std::string text;
  bool is_asked_for = false;
};

int give_password(char* into, int size, int, void* parameter) {
  Password& password = *static_cast<Password*>(parameter);
  password.is_asked_for = true;
  if (password.text.size() > static_cast<std::size_t>(size)) return -1;
  return static_cast<int>(password.text.copy(into, password.text.size()));
}

// A setting's value, or, if it is empty, that of the environment variable that FoundationDB's client uses
// then.
struct Value {
  std::string name;
  std::string text;
};

Value value(const char* setting, const std::string& text, const char* variable) {
  const char* const other = std::getenv(variable);
  if (text.empty() && other != nullptr) return {variable, other};
  return {fmt::format("[fdb] {}", setting), text};
}

Error refusal(const Value& file, const std::string& why) {
  ERR_clear_error();
  return internal_error(fmt::format("{}: {} {}.", file.name, file.text, why));
}

std::string bytes_of(const Value& file) {
  std::error_code error;
  if (std::filesystem::exists(file.text, error) && !std::filesystem::is_regular_file(file.text, error))
    throw refusal(file, "is no file");
  std::ifstream in(file.text, std::ios::binary);
  if (!in) throw refusal(file, std::string("cannot be read: ") + std::strerror(errno));
  std::string bytes(kMaxFileBytes + 1, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  if (bytes.size() > kMaxFileBytes) throw refusal(file, "is too large");
  return bytes;
}

Memory memory(const std::string& bytes) {
  return Memory(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

// The first one.
Certificate certificate_in(const Value& file) {
  const std::string bytes = bytes_of(file);
  const Memory in = memory(bytes);
  Certificate first(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  if (!first) throw refusal(file, "has no certificate in PEM");
  while (Certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr))) {}
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
    throw refusal(file, "has a damaged certificate");
  ERR_clear_error();
  return first;
}

Key key_in(const Value& file, Password password) {
  const std::string bytes = bytes_of(file);
  Key key(PEM_read_bio_PrivateKey(memory(bytes).get(), nullptr, &give_password, &password));
  if (key) return key;
  if (!password.is_asked_for) throw refusal(file, "has no key in PEM");
  throw refusal(file, password.text.empty() ? "is encrypted, and there is no [fdb] tls_password"
                                            : "is encrypted, and " + password.name + " is not its password");
}

}  // namespace

void check_tls_files(const ClientOptions& options) {
  const Value certificate_file =
      value("tls_certificate_file", options.tls_certificate_file, "FDB_TLS_CERTIFICATE_FILE");
  const Value key_file = value("tls_key_file", options.tls_key_file, "FDB_TLS_KEY_FILE");
  const Value ca_file = value("tls_ca_file", options.tls_ca_file, "FDB_TLS_CA_FILE");
  Certificate certificate;
  Key key;
  if (!certificate_file.text.empty()) certificate = certificate_in(certificate_file);
  if (!key_file.text.empty()) {
    const Value password = value("tls_password", options.tls_password, "FDB_TLS_PASSWORD");
    key = key_in(key_file, {password.name, password.text});
  }
  if (!ca_file.text.empty()) certificate_in(ca_file);
  if (certificate && key && X509_check_private_key(certificate.get(), key.get()) != 1)
    throw refusal(key_file, "is not the key of the first certificate in " + certificate_file.text);
}

}  // namespace divan::kv::fdb
