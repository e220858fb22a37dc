#include "divan/base/digest.h"

#include <gtest/gtest.h>

#include "divan/base/bytes.h"

namespace divan {
namespace {

// The example of FIPS 180-4.
TEST(Digest, Sha256) {
  EXPECT_EQ(to_hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256("abc", 4)), "ba7816bf");
}

// Test case 2 of RFC 4231.
TEST(Digest, HmacSha256) {
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace divan
