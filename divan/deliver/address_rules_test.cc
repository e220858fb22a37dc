#include "divan/deliver/address_rules.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "divan/base/error_testing.h"

namespace divan::deliver {
namespace {

bool may_connect(const AddressRules& rules, const std::string& host, const char* text) {
  sockaddr_in ipv4{};
  if (inet_pton(AF_INET, text, &ipv4.sin_addr) == 1) {
    ipv4.sin_family = AF_INET;
    return rules.may_connect(host, reinterpret_cast<const sockaddr&>(ipv4));
  }
  sockaddr_in6 ipv6{};
  EXPECT_EQ(inet_pton(AF_INET6, text, &ipv6.sin6_addr), 1) << text;
  ipv6.sin6_family = AF_INET6;
  return rules.may_connect(host, reinterpret_cast<const sockaddr&>(ipv6));
}

TEST(AddressRules, PublicAddressesAreAllowed) {
  const AddressRules rules("", "");
  for (const auto* address : {"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
                              "172.15.255.255", "172.32.0.0", "192.167.255.255", "223.255.255.255",
                              "2606:4700::1111", "2a00::1", "::ffff:1.1.1.1", "64:ff9b::101:101"})
    EXPECT_TRUE(may_connect(rules, "h", address)) << address;
}

TEST(AddressRules, OthersAreNot) {
  const AddressRules rules("", "");
  for (const auto* address : {"0.0.0.0",
                              "0.1.2.3",
                              "10.0.0.1",
                              "100.64.0.1",
                              "127.0.0.1",
                              "127.255.255.255",
                              "168.63.129.16",
                              "169.254.169.254",
                              "172.16.0.1",
                              "172.31.255.255",
                              "192.0.0.1",
                              "192.0.2.1",
                              "192.168.1.1",
                              "198.18.0.1",
                              "198.19.0.1",
                              "198.51.100.1",
                              "203.0.113.1",
                              "224.0.0.1",
                              "240.0.0.1",
                              "255.255.255.255",
                              "::",
                              "::1",
                              "fe80::1",
                              "fc00::1",
                              "fd00:ec2::254",
                              "ff02::1",
                              "::ffff:127.0.0.1",
                              "::ffff:10.0.0.1",
                              "::127.0.0.1",
                              "64:ff9b::7f00:1",
                              "64:ff9b:1::1",
                              "2001::1",
                              "2001:db8::1",
                              "2002:7f00:1::",
                              "3fff::1",
                              "100::1"})
    EXPECT_FALSE(may_connect(rules, "h", address)) << address;
}

TEST(AddressRules, NetworksAreAllowedAndDenied) {
  const AddressRules rules(" 10.1.0.0/16,::1 , 127.0.0.1", "1.1.0.0/16, 10.1.2.0/24");
  EXPECT_TRUE(may_connect(rules, "h", "10.1.255.255"));
  EXPECT_FALSE(may_connect(rules, "h", "10.2.0.0"));
  EXPECT_TRUE(may_connect(rules, "h", "::1"));
  EXPECT_FALSE(may_connect(rules, "h", "::2"));
  EXPECT_TRUE(may_connect(rules, "h", "::ffff:127.0.0.1"));
  EXPECT_FALSE(may_connect(rules, "h", "127.0.0.2"));
  EXPECT_FALSE(may_connect(rules, "h", "1.1.1.1"));
  EXPECT_TRUE(may_connect(rules, "h", "1.2.1.1"));
  EXPECT_TRUE(may_connect(rules, "h", "10.1.2.3")) << "allow precedes deny";
}

TEST(AddressRules, HostsAreAllowedWithAllTheirAddressesAndDenied) {
  const AddressRules rules("Hooks.Internal, *.corp", "evil.com, *.evil.com");
  EXPECT_TRUE(may_connect(rules, "hooks.internal", "10.0.0.1"));
  EXPECT_FALSE(may_connect(rules, "x.hooks.internal", "10.0.0.1"));
  EXPECT_TRUE(may_connect(rules, "a.b.corp", "127.0.0.1"));
  EXPECT_FALSE(may_connect(rules, "corp", "127.0.0.1"));
  EXPECT_FALSE(may_connect(rules, "xcorp", "127.0.0.1"));
  EXPECT_FALSE(may_connect(rules, "evil.com", "1.1.1.1"));
  EXPECT_FALSE(may_connect(rules, "a.evil.com", "1.1.1.1"));
  EXPECT_TRUE(may_connect(rules, "notevil.com", "1.1.1.1"));
}

TEST(AddressRules, WithDenyAllOnlyAllowRemains) {
  const AddressRules rules("hooks.com, 2.2.2.0/24", "*");
  EXPECT_TRUE(may_connect(rules, "hooks.com", "1.1.1.1"));
  EXPECT_TRUE(may_connect(rules, "other.com", "2.2.2.2"));
  EXPECT_FALSE(may_connect(rules, "other.com", "1.1.1.1"));
}

TEST(AddressRules, ThroughAProxyTheHostDecides) {
  const AddressRules rules("inner.test, 10.0.0.1", "evil.com");
  EXPECT_TRUE(rules.may_request("example.com"));
  EXPECT_TRUE(rules.may_request("inner.test"));
  EXPECT_TRUE(rules.may_request("10.0.0.1"));
  EXPECT_FALSE(rules.may_request("10.0.0.2"));
  EXPECT_FALSE(rules.may_request("::1"));
  EXPECT_FALSE(rules.may_request("localhost"));
  EXPECT_FALSE(rules.may_request("a.localhost"));
  EXPECT_FALSE(rules.may_request("evil.com"));
  EXPECT_FALSE(AddressRules("10.0.0.0/8", "*").may_request("example.com"));
}

TEST(AddressRules, OtherEntriesAreErrors) {
  for (const auto* entry : {"10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8x", "::1/129", "a b",
                            "http://a", "*a", "a/8", "*.*.a!"})
    EXPECT_NE(error_of([&] { AddressRules(entry, ""); }), "no error") << entry;
  EXPECT_EQ(error_of([] { AddressRules(",, ", "0.0.0.0/0, ::/0"); }), "no error");
}

}  // namespace
}  // namespace divan::deliver
