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

}  // namespace
}  // namespace divan
