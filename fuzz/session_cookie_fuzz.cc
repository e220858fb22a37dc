// Cookie fields as clients send them: a session or none, or a 400. No session is valid that was not made.
#include "divan/api/session_cookies.h"

#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using divan::fuzz::check;
  const std::string_view text = divan::fuzz::text_of(data, size);
  const divan::api::SessionCookies cookies("secret");
  constexpr std::int64_t kNow = 1'700'000'000, kTimeout = 600;
  divan::fuzz::answers(400, [&] {
    const auto session = divan::api::parse_session(text);
    if (!session) return;
    check(!session->name.empty());
    check(!cookies.is_valid(*session, "password", kNow, kTimeout));
    const auto made =
        divan::api::parse_session("a=b; AuthSession=" + cookies.make(session->name, kNow, "password"));
    check(made && made->name == session->name && made->created_s == kNow);
    check(cookies.is_valid(*made, "password", kNow, kTimeout));
  });
  return 0;
}
