#include "divan/http/accept.h"

#include <gmock/gmock.h>

namespace divan::http {
namespace {

TEST(Accept, GzipByNameOrAsAnyCoding) {
  for (const char* accepted : {"gzip", "GZIP", "x-gzip", "br, gzip", "gzip;q=0.001", "*", "br;q=0, *;q=0.1",
                               "identity, gzip ; q=1", "gzip, x-gzip;q=0"})
    EXPECT_TRUE(accepts_gzip(accepted)) << accepted;
  for (const char* accepted :
       {"", "br", "identity", "gzip;q=0", "gzip;q=0.000", "gzip;q=0, *", "*;q=0", "gzipx"})
    EXPECT_FALSE(accepts_gzip(accepted)) << accepted;
}

TEST(Accept, MediaTypesByTheMostSpecificRange) {
  for (const char* accepted :
       {"", "a/b", "A/B;level=1", "a/*", "*/*", "x/y, a/*;q=0.1", "a/*;q=0, a/b", "*/*;q=0, a/*"})
    EXPECT_TRUE(accepts_media_type(accepted, "a/b")) << accepted;
  for (const char* accepted : {"x/y", "a/c", "a/b;q=0", "a/b;q=0.0, */*", "aa/*", "a", "*", "a/*;q=0, */*"})
    EXPECT_FALSE(accepts_media_type(accepted, "a/b")) << accepted;
}

}  // namespace
}  // namespace divan::http
