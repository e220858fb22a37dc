#include "divan/deliver/signature.h"

#include <gtest/gtest.h>

#include <vector>

namespace divan::deliver {
namespace {

// The secret, id, time and body of the examples of Standard Webhooks; the signature was computed with
// Python's hmac module.
TEST(Signature, OfAnExample) {
  const std::vector<std::string> secrets{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
  EXPECT_EQ(sign(secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(Signature, OneForEachSecret) {
  const std::vector<std::string> secrets{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                                         "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
  const auto both = sign(secrets, "id", 1, "{}");
  EXPECT_EQ(both,
            sign({secrets.data(), 1}, "id", 1, "{}") + " " + sign({secrets.data() + 1, 1}, "id", 1, "{}"));
}

TEST(Signature, SecretsHave24To64Bytes) {
  const auto secret = [](std::size_t bytes) {
    return "whsec_" + std::string(bytes / 3 * 4, 'A') +
           (bytes % 3 == 0   ? ""
            : bytes % 3 == 1 ? "AA=="
                             : "AAA=");
  };
  EXPECT_FALSE(decode_secret(secret(23)));
  EXPECT_TRUE(decode_secret(secret(24)));
  EXPECT_TRUE(decode_secret(secret(64)));
  EXPECT_FALSE(decode_secret(secret(65)));
  EXPECT_FALSE(decode_secret(secret(24).substr(6)));
  EXPECT_FALSE(decode_secret("whsec_not Base64 at all, not even nearly"));
}

}  // namespace
}  // namespace divan::deliver
