#include "divan/api/client_address.h"

#include <gtest/gtest.h>

#include "divan/base/error.h"

namespace divan::api {
namespace {

std::string client_of(std::string_view trusted, const std::string& peer,
                      const std::vector<std::string>& forwarded) {
  http::Request request("GET", "/");
  request.set_peer(peer);
  for (const auto& value : forwarded) request.add_header("x-forwarded-for", value);
  return TrustedProxies(trusted).client_of(request);
}

TEST(ClientAddressTest, OnlyListedProxiesAreTrusted) {
  EXPECT_EQ(client_of("", "127.0.0.1", {"1.2.3.4"}), "127.0.0.1");
  EXPECT_EQ(client_of(" ", "127.0.0.1", {"1.2.3.4"}), "127.0.0.1");
  EXPECT_EQ(client_of("127.0.0.2", "127.0.0.1", {"1.2.3.4"}), "127.0.0.1");
  EXPECT_EQ(client_of("127.0.0.1", "127.0.0.1", {"1.2.3.4"}), "1.2.3.4");
  EXPECT_EQ(client_of("127.0.0.1", "127.0.0.1", {}), "127.0.0.1");
}

TEST(ClientAddressTest, TheClientIsTheLastAddressThatIsNotAProxy) {
  const char* const trusted = "10.0.0.0/8,127.0.0.1";
  EXPECT_EQ(client_of(trusted, "127.0.0.1", {"6.6.6.6, 1.2.3.4"}), "1.2.3.4");
  EXPECT_EQ(client_of(trusted, "127.0.0.1", {"6.6.6.6,1.2.3.4 , 10.1.1.1,\t10.2.2.2"}), "1.2.3.4");
  // The client's own field, and the one that the proxy added.
  EXPECT_EQ(client_of(trusted, "127.0.0.1", {"6.6.6.6", "1.2.3.4", "10.1.1.1"}), "1.2.3.4");
  EXPECT_EQ(client_of(trusted, "127.0.0.1", {"10.1.1.1, 10.2.2.2"}), "10.1.1.1");
}

TEST(ClientAddressTest, AMalformedAddressIsReplacedByTheProxysAddress) {
  for (const char* const malformed :
       {"unknown", "", "1.2.3.4, ", "1.2.3.4, 1.2.3", "1.2.3.4:80", "1.2.3.4 5"})
    EXPECT_EQ(client_of("127.0.0.1", "127.0.0.1", {malformed}), "127.0.0.1") << malformed;
  EXPECT_EQ(client_of("127.0.0.1", "127.0.0.1", {std::string("1.2.3.4\0", 8)}), "127.0.0.1");
  EXPECT_EQ(client_of("127.0.0.1,10.0.0.1", "127.0.0.1", {"6.6.6.6, x, 10.0.0.1"}), "10.0.0.1");
}

TEST(ClientAddressTest, NetworksOfBothAddressFamilies) {
  EXPECT_EQ(client_of("172.16.0.0/12", "172.31.255.255", {"1.2.3.4"}), "1.2.3.4");
  EXPECT_EQ(client_of("172.16.0.0/12", "172.32.0.0", {"1.2.3.4"}), "172.32.0.0");
  EXPECT_EQ(client_of("0.0.0.0/0", "9.9.9.9", {"::5"}), "::5");
  EXPECT_EQ(client_of("10.0.0.1/32", "::ffff:10.0.0.1", {"1.2.3.4"}), "1.2.3.4");
  EXPECT_EQ(client_of("fd00::/9", "fd7f::1", {"2001:db8::1"}), "2001:db8::1");
  EXPECT_EQ(client_of("fd00::/9", "fd80::1", {"2001:db8::1"}), "fd80::1");
  EXPECT_EQ(client_of("::/0", "1.2.3.4", {"5.6.7.8"}), "5.6.7.8");
}

TEST(ClientAddressTest, MalformedLists) {
  for (const char* const list : {"localhost", "10.0.0.0/33", "fd00::/129", "10.0.0.0/", "10.0.0.0/-1",
                                 "10.0.0.0/8x", "10.0.0.0/8,", ",", "1.2.3", "10.0.0.0/8 127.0.0.1"})
    EXPECT_THROW(TrustedProxies{list}, Error) << list;
}

}  // namespace
}  // namespace divan::api
