// X-Forwarded-For as clients and proxies send it, and lists of trusted proxies: the client is the peer, or an
// IP address of the field; the field of an untrusted peer is ignored.
#include "divan/api/client_address.h"

#include <algorithm>

#include "fuzz/check.h"

namespace {

using divan::api::TrustedProxies;
using divan::fuzz::check;

divan::http::Request request(std::string_view forwarded) {
  divan::http::Request request("GET", "/");
  request.set_peer("127.0.0.1");
  request.add_header("X-Forwarded-For", forwarded);
  return request;
}

bool is_address(const std::string& text) {
  try {
    TrustedProxies{text};
    return text.find_first_of("/, \t") == text.npos && !text.empty();
  } catch (const divan::Error&) { return false; }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const auto forwarded = text.substr(std::min(end + 1, text.size()));
  check(TrustedProxies().client_of(request(forwarded)) == "127.0.0.1");
  divan::fuzz::answers(400, [&] { TrustedProxies(text.substr(0, end)); });
  for (const std::string_view list : {"127.0.0.1", "127.0.0.1,10.0.0.0/8,fd00::/9"}) {
    const auto client = TrustedProxies(list).client_of(request(forwarded));
    check(is_address(client));
    check(client == "127.0.0.1" || forwarded.find(client) != forwarded.npos);
    // The result is the same if the next proxy adds that address to the field.
    const auto added = std::string(forwarded) + ", 127.0.0.1";
    check(TrustedProxies(list).client_of(request(added)) == client);
  }
  return 0;
}
