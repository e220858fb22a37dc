#include "divan/docs/revision.h"

#include <openssl/evp.h>

#include <charconv>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::docs {
namespace {

constexpr std::size_t kDigestBytes = 16;

// MD5, as in CouchDB: for identity, not for security. Creating a context costs more than the digest of a
// small document.
class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new()), md5_(EVP_MD_fetch(nullptr, "MD5", nullptr)) {
    if (context_ == nullptr || md5_ == nullptr) throw internal_error("OpenSSL does not provide MD5.");
  }
  ~Digest() {
    EVP_MD_CTX_free(context_);
    EVP_MD_free(md5_);
  }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void start() { EVP_DigestInit_ex(context_, md5_, nullptr); }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }
  std::string finish() {
    std::string digest(kDigestBytes, '\0');
    EVP_DigestFinal_ex(context_, reinterpret_cast<unsigned char*>(digest.data()), nullptr);
    return digest;
  }

 private:
  EVP_MD_CTX* context_;
  EVP_MD* md5_;
};

}  // namespace

std::string Revision::parse_id(std::string_view text) {
  if (text.size() == 2 * kDigestBytes) {
    if (auto bytes = from_hex(text)) return *std::move(bytes);
  }
  return std::string(text);
}

std::string Revision::id_to_string(std::string_view id) {
  return id.size() == kDigestBytes ? to_hex(id) : std::string(id);
}

std::string Revision::to_string() const { return std::to_string(generation) + "-" + id_to_string(id); }

std::optional<Revision> Revision::parse(std::string_view text) {
  Revision revision;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, revision.generation);
  if (error != std::errc() || rest == end || *rest != '-') return std::nullopt;
  const std::string_view id(rest + 1, static_cast<std::size_t>(end - rest - 1));
  if (id.size() > kMaxRevisionIdBytes || !is_utf8(id)) return std::nullopt;
  revision.id = parse_id(id);
  return revision;
}

Revision parse_revision(std::string_view text) {
  auto revision = Revision::parse(text);
  if (!revision) throw bad_request("Invalid rev format");
  return *std::move(revision);
}

std::string revision_id(bool deleted, const std::optional<Revision>& parent, std::string_view body) {
  thread_local Digest digest;
  digest.start();
  digest.add(deleted ? "d" : "l");
  digest.add(parent ? parent->to_string() : std::string("-"));
  digest.add(" ");
  digest.add(body);
  return digest.finish();
}

}  // namespace divan::docs
