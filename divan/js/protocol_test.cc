// Encoding and parsing of the protocol, without a process.
#include "divan/js/protocol.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "divan/base/precompiled_test.h"
#include "divan/js/requests.h"
#include "divan/js/responses.h"
#include "divan/js/sandbox/request.h"

namespace divan::js {
namespace {

using namespace std::string_literals;
using protocol::RequestKind;

// A complete frame without its length, which must be correct.
std::string content(const std::string& frame) {
  EXPECT_EQ(protocol::read_u32_le(frame.data()), frame.size() - 4);
  return frame.substr(4);
}

Limits limits(int invocation_ms, int batch_ms) {
  Limits limits;
  limits.invocation = std::chrono::milliseconds(invocation_ms);
  limits.batch = std::chrono::milliseconds(batch_ms);
  return limits;
}

TEST(JsProtocol, ALoadRequestIsTheseBytes) {
  const std::vector<Function> functions = {{"f", "ab"}, {"", "c"}};
  const auto frame = load_request(7, functions, limits(5000, 60000), "{}");
  EXPECT_EQ(frame,
            "\x2b\0\0\0\x01\x88\x13\0\0\x60\xea\0\0\x07\0\0\0\x02\0\0\0{}\x02\0\0\0"
            "\x01\0\0\0f\x02\0\0\0ab\0\0\0\0\x01\0\0\0c"s);
}

TEST(JsProtocol, RequestsRoundTrip) {
  const std::vector<Function> functions = {{"name", "source"}, {"", ""}};
  const auto load_frame = content(load_request(15, functions, limits(1, 2), "[1]"));
  const auto load = sandbox::parse_request(load_frame);
  ASSERT_TRUE(load);
  EXPECT_EQ(load->kind, RequestKind::load);
  EXPECT_EQ(load->invocation_ms, 1u);
  EXPECT_EQ(load->batch_ms, 2u);
  const auto& loaded = std::get<sandbox::LoadRequest>(load->what);
  EXPECT_EQ(loaded.slot, 15u);
  EXPECT_EQ(loaded.root, "[1]");
  ASSERT_EQ(loaded.functions.size(), 2u);
  EXPECT_EQ(loaded.functions[0].name, "name");
  EXPECT_EQ(loaded.functions[0].text, "source");

  const std::vector<std::string_view> documents = {"{}", "", "[1]"};
  const auto map_frame = content(map_request(0, documents, limits(5, 6)));
  const auto map = sandbox::parse_request(map_frame);
  ASSERT_TRUE(map);
  EXPECT_EQ(std::get<sandbox::MapRequest>(map->what).documents, documents);

  const std::vector<ReduceRow> rows = {{"[1]", "i\"d", "2"}, {"null", "x", "{}"}};
  const std::vector<ReduceGroup> groups = {rows, {}};
  const auto reduce_frame = content(reduce_request(2, false, groups, limits(5, 6)));
  const auto reduce = sandbox::parse_request(reduce_frame);
  ASSERT_TRUE(reduce);
  const auto& reduced = std::get<sandbox::ReduceRequest>(reduce->what);
  EXPECT_FALSE(reduced.rereduce);
  ASSERT_EQ(reduced.groups.size(), 2u);
  EXPECT_EQ(reduced.groups[0].keys, R"([[[1],"i\"d"],[null,"x"]])");
  EXPECT_EQ(reduced.groups[0].values, "[2,{}]");
  EXPECT_EQ(reduced.groups[1].keys, "[]");
  const auto rereduce_frame = content(reduce_request(2, true, groups, limits(5, 6)));
  const auto rereduce = sandbox::parse_request(rereduce_frame);
  ASSERT_TRUE(rereduce);
  EXPECT_TRUE(std::get<sandbox::ReduceRequest>(rereduce->what).rereduce);
  EXPECT_EQ(std::get<sandbox::ReduceRequest>(rereduce->what).groups[0].keys, "null");
}

TEST(JsProtocol, CallsThatFilterShareTheirLastArguments) {
  const std::vector<Arguments> calls = {{"[1]", "[7]"}, {"[2]", "[7]"}, {"[3]", "[8]"}, {"[4]", "[8]"}};
  const auto last_of = [&](ResultKind kind) {
    const auto frame = content(apply_request(3, kind, calls, {}));
    const auto request = sandbox::parse_request(frame);
    std::vector<std::string> last;
    for (const auto& call : std::get<sandbox::ApplyRequest>(request->what).calls)
      last.emplace_back(call.last);
    return last;
  };
  EXPECT_EQ(last_of(ResultKind::truth), (std::vector<std::string>{"[7]", "", "[8]", ""}));
  EXPECT_EQ(last_of(ResultKind::refusal), (std::vector<std::string>{"[7]", "[7]", "[8]", "[8]"}));
}

TEST(JsProtocol, TheFirstCallHasLastArgumentsAndAKnownKindOfResult) {
  const std::vector<Arguments> calls = {{"[1]", "[7]"}};
  auto frame = content(apply_request(3, ResultKind::refusal, calls, {}));
  EXPECT_TRUE(sandbox::parse_request(frame));
  const std::size_t kind_at = 13;  // after the kind of request, two limits and the slot
  ASSERT_EQ(frame[kind_at], 2);
  frame[kind_at] = static_cast<char>(ResultKind::call) + 1;
  EXPECT_FALSE(sandbox::parse_request(frame));
  frame[kind_at] = 2;
  frame.resize(frame.size() - 3);
  frame[frame.size() - 4] = 0;
  EXPECT_FALSE(sandbox::parse_request(frame));
}

TEST(JsProtocol, RequestsOfListsRoundTrip) {
  const auto list_frame = content(list_request(3, "[1]", "[2,3]", limits(5, 6)));
  const auto list = sandbox::parse_request(list_frame);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->kind, RequestKind::list);
  EXPECT_EQ(list->invocation_ms, 5u);
  const auto& listed = std::get<sandbox::ListRequest>(list->what);
  EXPECT_EQ(listed.slot, 3u);
  EXPECT_EQ(listed.arguments, "[1]");
  EXPECT_EQ(listed.rows, "[2,3]");
  auto rows_frame = content(rows_request("[4]", true, limits(5, 6)));
  const auto rows = sandbox::parse_request(rows_frame);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->kind, RequestKind::rows);
  EXPECT_EQ(std::get<sandbox::RowsRequest>(rows->what).rows, "[4]");
  EXPECT_TRUE(std::get<sandbox::RowsRequest>(rows->what).is_last);
  rows_frame[9] = 2;  // after the kind of request and two limits
  EXPECT_FALSE(sandbox::parse_request(rows_frame));
}

// A list's response with this state, whose outcome is a text or, if it is empty, a failure.
std::string list_response(int state, std::string_view output) {
  std::string frame;
  protocol::put_u8(frame, static_cast<std::uint8_t>(RequestKind::list));
  protocol::put_u8(frame, static_cast<std::uint8_t>(state));
  if (output.empty()) {
    protocol::put_failure(frame, {FailureKind::exception, "wrong"});
  } else {
    protocol::put_u8(frame, 0);
    protocol::put_text(frame, output);
  }
  protocol::put_u32(frame, 0);
  protocol::put_u32(frame, 0);
  return frame;
}

TEST(JsProtocol, AListThatGoesOnHasNotFailed) {
  Log log;
  const auto ended = parse_list_response(list_response(0, "{}"), log);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->state, ListState::ended);
  EXPECT_EQ(std::get<std::string>(ended->outcome), "{}");
  const auto failed = parse_list_response(list_response(0, ""), log);
  ASSERT_TRUE(failed);
  EXPECT_EQ(std::get<Failure>(failed->outcome).message, "wrong");
  EXPECT_TRUE(parse_list_response(list_response(1, "{}"), log));
  EXPECT_TRUE(parse_list_response(list_response(2, "{}"), log));
  EXPECT_FALSE(parse_list_response(list_response(3, "{}"), log));
  EXPECT_FALSE(parse_list_response(list_response(1, ""), log));
  const auto frame = list_response(1, "{}");
  for (std::size_t size = 0; size < frame.size(); ++size)
    EXPECT_FALSE(parse_list_response(frame.substr(0, size), log));
  EXPECT_FALSE(parse_list_response(frame + "x", log));
}

TEST(JsProtocol, LimitsAreAtLeastAMillisecond) {
  const std::vector<std::string_view> documents = {"{}"};
  const auto frame = content(map_request(0, documents, limits(0, -5)));
  const auto map = sandbox::parse_request(frame);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->invocation_ms, 1u);
  EXPECT_EQ(map->batch_ms, 1u);
}

TEST(JsProtocol, TruncatedRequestsAreRejected) {
  const std::vector<ReduceRow> rows = {{"1", "a", "2"}};
  const std::vector<ReduceGroup> groups = {rows, rows};
  const std::vector<std::string_view> documents = {"{}", "[]"};
  const std::vector<Function> functions = {{"a", "b"}, {"c", "d"}};
  const std::vector<Arguments> calls = {{"[1]", "[]"}, {"[2]", "[3]"}};
  for (const auto& frame :
       {content(load_request(1, functions, {})), content(map_request(1, documents, {})),
        content(reduce_request(1, false, groups, {})),
        content(apply_request(1, ResultKind::value, calls, {})), content(list_request(1, "[1]", "[2]", {})),
        content(rows_request("[3]", true, {}))}) {
    EXPECT_TRUE(sandbox::parse_request(frame));
    for (std::size_t size = 0; size < frame.size(); ++size)
      EXPECT_FALSE(sandbox::parse_request(frame.substr(0, size)));
    EXPECT_FALSE(sandbox::parse_request(frame + "x"));
  }
}

TEST(JsProtocol, RequestsOfOtherKindsAndSlotsAreRejected) {
  const std::vector<std::string_view> documents = {"{}"};
  auto frame = content(map_request(1, documents, {}));
  EXPECT_TRUE(sandbox::parse_request(frame));
  frame[0] = 9;
  EXPECT_FALSE(sandbox::parse_request(frame));
  EXPECT_FALSE(sandbox::parse_request(content(map_request(protocol::kSlots, documents, {}))));
  EXPECT_FALSE(sandbox::parse_request(content(map_request(protocol::kNoSlot, documents, {}))));
  const std::vector<Function> functions = {{"a", "b"}};
  EXPECT_TRUE(sandbox::parse_request(content(load_request(protocol::kNoSlot, functions, {}))));
  EXPECT_FALSE(sandbox::parse_request(content(load_request(protocol::kSlots, functions, {}))));
}

TEST(JsProtocol, AStuckResponseNamesItsDocument) {
  EXPECT_EQ(parse_stuck_response("\0\x07\0\0\0"s), 7u);
  EXPECT_EQ(parse_stuck_response("\0\x07\0\0"s), std::nullopt);
  EXPECT_EQ(parse_stuck_response("\0\x07\0\0\0\0"s), std::nullopt);
  EXPECT_EQ(parse_stuck_response("\x02\x07\0\0\0"s), std::nullopt);
}

// A response to a map request of two documents for two functions.
std::string map_response() {
  std::string frame;
  protocol::put_u8(frame, 2);
  protocol::put_u32(frame, 2);
  for (const int document : {0, 1}) {
    protocol::put_u8(frame, 0);
    protocol::put_u32(frame, 2);
    for (const auto* text : {"1", "[2]", "\"k\"", ""}) protocol::put_text(frame, text);
    if (document == 0) {
      protocol::put_failure(frame, {FailureKind::exception, "Error: no"});
    } else {
      protocol::put_u8(frame, 0);
      protocol::put_u32(frame, 0);
    }
  }
  protocol::put_u32(frame, 3);
  protocol::put_u32(frame, 1);
  protocol::put_u32(frame, 1);
  protocol::put_text(frame, "a line");
  return frame;
}

TEST(JsProtocol, AMapResponseIsParsed) {
  Log log;
  auto parsed = parse_map_response(map_response(), 2, 2, log);
  ASSERT_TRUE(parsed);
  // The views must stay valid after a move.
  const MapResult result = std::move(*parsed);
  EXPECT_EQ(result.documents(), 2u);
  for (std::size_t document : {0u, 1u}) {
    ASSERT_EQ(result.emitted(document, 0).size(), 2u);
    EXPECT_EQ(result.emitted(document, 0)[0].key, "1");
    EXPECT_EQ(result.emitted(document, 0)[0].value, "[2]");
    EXPECT_EQ(result.emitted(document, 0)[1].key, "\"k\"");
    EXPECT_EQ(result.failure(document, 0), nullptr);
    EXPECT_TRUE(result.emitted(document, 1).empty());
  }
  ASSERT_NE(result.failure(0, 1), nullptr);
  EXPECT_EQ(result.failure(0, 1)->message, "Error: no");
  EXPECT_EQ(result.failure(1, 1), nullptr);
  EXPECT_EQ(log.dropped, 3u);
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_EQ(log.lines[0].function, 1u);
  EXPECT_EQ(log.lines[0].text, "a line");
}

TEST(JsProtocol, ResultsAreJoined) {
  Log log;
  auto all = *parse_map_response(map_response(), 2, 2, log);
  all.append_failed({FailureKind::crashed, "died"});
  all.append(*parse_map_response(map_response(), 2, 2, log));
  ASSERT_EQ(all.documents(), 5u);
  for (std::size_t document : {0u, 1u, 3u, 4u}) {
    ASSERT_EQ(all.emitted(document, 0).size(), 2u);
    EXPECT_EQ(all.emitted(document, 0)[0].value, "[2]");
  }
  for (std::size_t function : {0u, 1u}) {
    ASSERT_NE(all.failure(2, function), nullptr);
    EXPECT_EQ(all.failure(2, function)->kind, FailureKind::crashed);
    EXPECT_TRUE(all.emitted(2, function).empty());
  }
  EXPECT_EQ(all.failure(3, 1)->message, "Error: no");
  EXPECT_EQ(all.failure(4, 1), nullptr);
}

TEST(JsProtocol, TruncatedResponsesAreRejected) {
  const auto map = map_response();
  Log log;
  for (std::size_t size = 0; size < map.size(); ++size) {
    EXPECT_FALSE(parse_map_response(map.substr(0, size), 2, 2, log)) << size;
  }
  EXPECT_FALSE(parse_map_response(map + "x", 2, 2, log));
  EXPECT_FALSE(parse_map_response(map, 1, 2, log));
  EXPECT_FALSE(parse_map_response(map, 2, 1, log));
}

TEST(JsProtocol, InvalidResponsesAreRejected) {
  const auto with = [](std::size_t at, std::uint32_t value) {
    auto frame = map_response();
    protocol::put_u32_at(frame, at, value);
    return frame;
  };
  Log log;
  EXPECT_TRUE(parse_map_response(with(1, 2), 9, 2, log));
  EXPECT_FALSE(
      parse_map_response("\x02"s + std::string(12, '\0'), 2, 2, log));  // at least one document must be done
  EXPECT_FALSE(parse_map_response(with(6, 0xffffffff), 2, 2, log));     // more pairs than bytes
  EXPECT_FALSE(parse_map_response(with(10, 0xfffffff0), 2, 2, log));
  auto frame = map_response();
  frame[0] = 3;
  EXPECT_FALSE(parse_map_response(frame, 2, 2, log));

  const auto failing = [](std::uint8_t kind, const std::string& message) {
    std::string response;
    protocol::put_u8(response, 3);
    protocol::put_u32(response, 1);
    protocol::put_u8(response, kind);
    protocol::put_text(response, message);
    protocol::put_u32(response, 0);
    protocol::put_u32(response, 0);
    Log ignored;
    return parse_reduce_response(response, 1, ignored);
  };
  EXPECT_TRUE(failing(0, "1"));
  EXPECT_TRUE(failing(5, "message"));
  EXPECT_FALSE(failing(6, "message"));  // only the server sets `crashed`
  EXPECT_FALSE(failing(1, std::string(2000, 'x')));
  EXPECT_FALSE(failing(1, "\xff"));
}

TEST(JsProtocol, PairsAreLimited) {
  const auto with_pairs = [](std::size_t pairs) {
    std::string response;
    protocol::put_u8(response, 2);
    protocol::put_u32(response, 1);
    protocol::put_u8(response, 0);
    protocol::put_u32(response, pairs);
    response.append(8 * pairs, '\0');
    protocol::put_u32(response, 0);
    protocol::put_u32(response, 0);
    Log log;
    return parse_map_response(std::move(response), 1, 1, log).has_value();
  };
  EXPECT_TRUE(with_pairs(protocol::kMaxPairs));
  EXPECT_FALSE(with_pairs(protocol::kMaxPairs + 1));
}

TEST(JsProtocol, LogsAreLimited) {
  const auto with_lines = [](std::uint32_t lines, std::uint32_t function) {
    std::string response;
    protocol::put_u8(response, 1);
    protocol::put_u32(response, 1);
    protocol::put_u8(response, 0);
    protocol::put_u32(response, 0);
    protocol::put_u32(response, lines);
    for (std::uint32_t i = 0; i < lines; ++i) {
      protocol::put_u32(response, function);
      protocol::put_text(response, "x");
    }
    Log log;
    return parse_load_response(response, 1, log).has_value();
  };
  EXPECT_TRUE(with_lines(protocol::kMaxLogLines, 0));
  EXPECT_FALSE(with_lines(protocol::kMaxLogLines + 1, 0));
  EXPECT_FALSE(with_lines(1, 1));
}

TEST(JsProtocol, HellosAreChecked) {
  EXPECT_EQ(parse_hello("\x05SJD\x01"s), std::optional(true));
  EXPECT_EQ(parse_hello("\x05SJD\x00"s), std::optional(false));
  EXPECT_EQ(parse_hello("\x09SJD\x01"s), std::nullopt);
  EXPECT_EQ(parse_hello("\x05SJD"s), std::nullopt);
  EXPECT_EQ(parse_hello("\x05SJD\x01x"s), std::nullopt);
}

RC_GTEST_PROP(JsProtocolProperty, AnyBytesAreReadWithoutHarm, (const std::string& bytes)) {
  Log log;
  const auto result = parse_map_response('\x02' + bytes, 3, 2, log);
  if (result) RC_ASSERT(result->documents() <= 3u);
  parse_load_response('\x01' + bytes, 2, log);
  parse_reduce_response('\x03' + bytes, 2, log);
  sandbox::parse_request(bytes);
}

}  // namespace
}  // namespace divan::js
