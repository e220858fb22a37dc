#include "divan/http/multipart.h"

#include <gmock/gmock.h>

#include "divan/base/error.h"

namespace divan::http {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Part {
  PartHeaders headers{};
  std::string body{};
  bool is_complete = false;
};

// Reads a body that is fed in pieces of `piece_bytes`.
std::vector<Part> read_parts(std::string_view body, std::string_view boundary, std::size_t piece_bytes) {
  MultipartReader reader(boundary);
  std::vector<Part> parts;
  for (;;) {
    switch (reader.next()) {
      case MultipartReader::Step::needs_input: {
        if (body.empty()) reader.check_complete();
        const auto piece = body.substr(0, piece_bytes);
        reader.feed(piece);
        body.remove_prefix(piece.size());
        break;
      }
      case MultipartReader::Step::part: parts.push_back({reader.headers()}); break;
      case MultipartReader::Step::data: parts.back().body += reader.data(); break;
      case MultipartReader::Step::part_end: parts.back().is_complete = true; break;
      case MultipartReader::Step::end: return parts;
    }
  }
}

// The result must not depend on the pieces.
std::vector<Part> parse_parts(std::string_view body, std::string_view boundary = "b") {
  auto parts = read_parts(body, boundary, 1);
  for (const std::size_t piece : {2, 3, 7, 1 << 20}) {
    const auto others = read_parts(body, boundary, piece);
    EXPECT_EQ(others.size(), parts.size());
    for (std::size_t i = 0; i < parts.size() && i < others.size(); ++i) {
      EXPECT_EQ(others[i].headers.fields, parts[i].headers.fields);
      EXPECT_EQ(others[i].body, parts[i].body);
      EXPECT_TRUE(others[i].is_complete);
    }
  }
  return parts;
}

std::vector<std::string> bodies(std::string_view body, std::string_view boundary = "b") {
  std::vector<std::string> all;
  for (const auto& part : parse_parts(body, boundary)) all.push_back(part.body);
  return all;
}

std::string multipart_refusal(std::string_view body, std::string_view boundary = "b") {
  try {
    read_parts(body, boundary, 3);
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), 400);
    return error.reason();
  }
}

TEST(Multipart, PartsWithTheirHeaders) {
  const auto parts = parse_parts(
      "--b\r\nContent-Type: text/plain\r\nX:y \r\n\r\none\r\n--b\r\n\r\n\r\n--b \t\r\n"
      "Content-Disposition: attachment; filename=\"a \\\"b\\\".txt\"\r\n\r\n\r\ntwo\r\n\r\n--b--\r\nmore",
      "b");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].headers.find("content-TYPE"), "text/plain");
  EXPECT_EQ(parts[0].headers.find("x"), "y");
  EXPECT_EQ(parts[0].headers.find("z"), std::nullopt);
  EXPECT_EQ(parts[0].headers.file_name(), std::nullopt);
  EXPECT_EQ(parts[0].body, "one");
  EXPECT_EQ(parts[1].body, "");
  EXPECT_EQ(parts[2].headers.file_name(), "a \"b\".txt");
  EXPECT_EQ(parts[2].body, "\r\ntwo\r\n");
}

TEST(Multipart, ATextThatBeginsWithTheBoundaryIsNone) {
  EXPECT_THAT(bodies("before\r\n--b\r\n\r\n--bc\r\n--b\r\r\n--b-\r\n--b--"),
              ElementsAre("--bc\r\n--b\r\r\n--b-"));
  EXPECT_THAT(bodies("--bb\r\n\r\n1\r\n--b\r\n\r\n2\r\n--b--"), ElementsAre("2"));
}

TEST(Multipart, MalformedBodiesAreRefused) {
  EXPECT_THAT(multipart_refusal(""), HasSubstr("boundary does not occur"));
  EXPECT_THAT(multipart_refusal("--c\r\n\r\n--c--"), HasSubstr("boundary does not occur"));
  EXPECT_THAT(multipart_refusal("--b\r\n\r\none"), HasSubstr("end is missing"));
  EXPECT_THAT(multipart_refusal("--b\r\n\r\none\r\n--b"), HasSubstr("end is missing"));
  EXPECT_THAT(multipart_refusal("--b\r\n\r\none\r\n--b-"), HasSubstr("end is missing"));
  EXPECT_THAT(multipart_refusal("--b\r\nnothing\r\n\r\none\r\n--b--"), HasSubstr("invalid header"));
  EXPECT_THAT(multipart_refusal("--b\r\n: x\r\n\r\none\r\n--b--"), HasSubstr("invalid header"));
  EXPECT_THAT(multipart_refusal("--b\r\nA: x\r\n--b--"), HasSubstr("end is missing"));
  EXPECT_THAT(multipart_refusal("--b\r\nA: x\r\n--b\r\n"), HasSubstr("invalid header"));
  EXPECT_THAT(multipart_refusal("--b\r\nA:" + std::string(20'000, 'x')), HasSubstr("too long"));
  EXPECT_THAT(multipart_refusal("--b" + std::string(20'000, ' ')), HasSubstr("too long"));
  EXPECT_THAT(multipart_refusal("--b\r\n--b--"), HasSubstr("end is missing"));
  EXPECT_THAT(multipart_refusal("x", ""), HasSubstr("1 to 70"));
  EXPECT_THAT(multipart_refusal("x", std::string(71, 'b')), HasSubstr("1 to 70"));
  std::string fields = "--b\r\n";
  for (int i = 0; i <= 100; ++i) fields += "a:\r\n";
  EXPECT_THAT(multipart_refusal(fields + "\r\n\r\n--b--"), HasSubstr("more than 100 fields"));
  std::string many;
  for (std::size_t i = 0; i <= kMaxParts; ++i) many += "--b\r\n\r\n\r\n";
  EXPECT_THAT(multipart_refusal(many + "--b--"), HasSubstr("more than 10000 parts"));
}

TEST(Multipart, WhatIsWrittenIsReadAgain) {
  std::string out;
  MultipartWriter writer(out, "bound");
  writer.begin_part("application/json");
  out += "{}";
  const std::string name = "ä \"\\\".txt";
  writer.begin_file("image/png", name, 4);
  out += "\r\n--";
  writer.end();
  const auto parts = parse_parts(out, "bound");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].body, "{}");
  EXPECT_EQ(parts[1].headers.find("Content-Type"), "image/png");
  EXPECT_EQ(parts[1].headers.find("Content-Length"), "4");
  EXPECT_EQ(parts[1].headers.file_name(), name);
  EXPECT_EQ(parts[1].body, "\r\n--");
  std::string empty;
  MultipartWriter(empty, "b").end();
  EXPECT_EQ(empty, "--b--");
  std::string hostile;
  MultipartWriter(hostile, "b").begin_file("a", "x\r\nSet-Cookie: y", 1);
  EXPECT_THAT(hostile, HasSubstr("filename=\"x%0D%0ASet-Cookie: y\"\r\n"));
}

TEST(Multipart, ParametersOfFields) {
  const auto boundary = [](std::string_view field) { return field_parameter(field, "boundary"); };
  EXPECT_EQ(boundary("multipart/related; boundary=abc"), "abc");
  EXPECT_EQ(boundary("multipart/related;Boundary=\"a;b\" ; type=x"), "a;b");
  EXPECT_EQ(boundary("multipart/related; type=\"boundary=x\"; boundary = y"), "y");
  EXPECT_EQ(boundary("multipart/related; x; boundary=1"), "1");
  EXPECT_EQ(boundary("multipart/related; boundary=\"open"), "open");
  EXPECT_EQ(boundary("multipart/related; boundary="), "");
  EXPECT_EQ(boundary("multipart/related; boundary"), std::nullopt);
  EXPECT_EQ(boundary("boundary=x"), std::nullopt);
  EXPECT_TRUE(is_media_type(" Multipart/Related ; boundary=x", "multipart/related"));
  EXPECT_FALSE(is_media_type("multipart/relatedx", "multipart/related"));
  EXPECT_FALSE(is_media_type("", "multipart/related"));
}

}  // namespace
}  // namespace divan::http
