#include "divan/kv/fdb/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "divan/base/error.h"

namespace divan::kv::fdb {
namespace {

template <class T, void (*free)(T*)>
struct Free {
  void operator()(T* object) const { free(object); }
};
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO, BIO_free_all>>;

struct Password {
  std::string text;
  bool is_asked_for = false;
};

int give_password(char* into, int size, int, void* parameter) {
  Password& password = *static_cast<Password*>(parameter);
  password.is_asked_for = true;
  if (password.text.size() > static_cast<std::size_t>(size)) return -1;
  std::memcpy(into, password.text.data(), password.text.size());
  return static_cast<int>(password.text.size());
}

Error refusal(const char* setting, const std::string& file, const std::string& why) {
  ERR_clear_error();
  return internal_error(fmt::format("[fdb] {}: {} {}.", setting, file, why));
}

std::string bytes_of(const char* setting, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw refusal(setting, file, std::string("cannot be read: ") + std::strerror(errno));
  std::ostringstream bytes;
  bytes << in.rdbuf();  // nothing if it is a directory
  return bytes.str();
}

Memory memory(const std::string& bytes) {
  return Memory(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

Certificate certificate_in(const char* setting, const std::string& file) {
  const std::string bytes = bytes_of(setting, file);
  Certificate certificate(PEM_read_bio_X509(memory(bytes).get(), nullptr, nullptr, nullptr));
  if (!certificate) throw refusal(setting, file, "has no certificate in PEM");
  return certificate;
}

Key key_in(const char* setting, const std::string& file, Password password) {
  const std::string bytes = bytes_of(setting, file);
  Key key(PEM_read_bio_PrivateKey(memory(bytes).get(), nullptr, &give_password, &password));
  if (key) return key;
  if (!password.is_asked_for) throw refusal(setting, file, "has no key in PEM");
  throw refusal(setting, file,
                password.text.empty() ? "is encrypted, and there is no [fdb] tls_password"
                                      : "is encrypted, and [fdb] tls_password is not its password");
}

// As FoundationDB's client finds it.
std::string password_of(const ClientOptions& options) {
  const char* const other = std::getenv("FDB_TLS_PASSWORD");
  return options.tls_password.empty() && other != nullptr ? other : options.tls_password;
}

}  // namespace

void check_tls_files(const ClientOptions& options) {
  Certificate certificate;
  Key key;
  if (!options.tls_certificate_file.empty())
    certificate = certificate_in("tls_certificate_file", options.tls_certificate_file);
  if (!options.tls_key_file.empty())
    key = key_in("tls_key_file", options.tls_key_file, {.text = password_of(options)});
  if (!options.tls_ca_file.empty()) certificate_in("tls_ca_file", options.tls_ca_file);
  if (certificate && key && X509_check_private_key(certificate.get(), key.get()) != 1) {
    throw refusal("tls_key_file", options.tls_key_file,
                  "is not the key of the first certificate in " + options.tls_certificate_file);
  }
}

}  // namespace divan::kv::fdb
