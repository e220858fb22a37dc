#include "divan/http/serializer.h"

#include <gtest/gtest.h>

namespace divan::http {
namespace {

using namespace std::string_literals;

std::string head_of(const Response& response, const HeadFraming& framing) {
  std::string out;
  append_head(out, response, framing);
  return out;
}

TEST(HttpSerializer, AHeadByteForByte) {
  EXPECT_EQ(head_of({201, {{"Content-Type", "application/json"}, {"ETag", "\"1-a\""}}},
                    {Framing::length, 42, "close", "Date: D\r\nServer: S\r\n"}),
            "HTTP/1.1 201 Created\r\nDate: D\r\nServer: S\r\nContent-Type: application/json\r\n"
            "ETag: \"1-a\"\r\nContent-Length: 42\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(head_of({}, {Framing::chunked}), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(head_of({304}, {Framing::none}), "HTTP/1.1 304 Not Modified\r\n\r\n");
  EXPECT_EQ(head_of({599}, {Framing::until_close}), "HTTP/1.1 599 Unknown\r\n\r\n");
}

TEST(HttpSerializer, TheHandlersValuesOfServerFieldsAreIgnored) {
  const Response response{200,
                          {{"content-length", "7"},
                           {"DATE", "x"},
                           {"Server", "x"},
                           {"Connection", "x"},
                           {"Transfer-Encoding", "x"},
                           {"X-Dates", "kept"}}};
  EXPECT_EQ(head_of(response, {Framing::length, 3}),
            "HTTP/1.1 200 OK\r\nX-Dates: kept\r\nContent-Length: 3\r\n\r\n");
}

TEST(HttpSerializer, AValueCannotAddAField) {
  const Response response{200, {{"A\r\nB", "x\r\nEvil: 1\n\0y"s}}};
  EXPECT_EQ(head_of(response, {Framing::none}), "HTTP/1.1 200 OK\r\nA  B: x  Evil: 1  y\r\n\r\n");
}

TEST(HttpSerializer, ChunkSizesAreHexadecimal) {
  std::string out;
  append_chunk_size(out, 0);
  append_chunk_size(out, 255);
  append_chunk_size(out, ~std::uint64_t{0});
  EXPECT_EQ(out, "0\r\nff\r\nffffffffffffffff\r\n");
}

TEST(HttpSerializer, Dates) {
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");  // RFC 9110's example
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(http_date(1709251199), "Thu, 29 Feb 2024 23:59:59 GMT");
}

TEST(HttpSerializer, OwnContentLength) {
  EXPECT_EQ(own_content_length({200, {{"content-length", "12"}}}), 12u);
  EXPECT_EQ(own_content_length({200, {{"Content-Length", "12x"}}}), std::nullopt);
  EXPECT_EQ(own_content_length({200, {{"Content-Length", ""}}}), std::nullopt);
  EXPECT_EQ(own_content_length({}), std::nullopt);
}

}  // namespace
}  // namespace divan::http
