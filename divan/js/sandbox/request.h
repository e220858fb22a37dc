// The server's requests, as views into their bytes (../protocol.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "divan/js/protocol.h"

namespace divan::js::sandbox {

struct LoadRequest {
  struct Source {
    std::string_view name;
    std::string_view text;
  };
  std::uint32_t slot = 0;  // below kSlots, or kNoSlot
  std::string_view root;   // JSON; empty: no require()
  std::vector<Source> functions;
};

struct MapRequest {
  std::uint32_t slot = 0;  // below kSlots
  std::vector<std::string_view> documents;
};

struct ReduceRequest {
  struct Group {
    std::string_view keys;
    std::string_view values;
  };
  std::uint32_t slot = 0;  // below kSlots
  bool rereduce = false;
  std::vector<Group> groups;
};

struct ApplyRequest {
  struct Call {
    std::string_view first;
    std::string_view last;
  };
  std::uint32_t slot = 0;  // below kSlots
  ResultKind result{};
  std::vector<Call> calls;
};

struct ListRequest {
  std::uint32_t slot = 0;      // below kSlots
  std::string_view arguments;  // JSON array
  std::string_view rows;       // JSON array: the first rows
};

struct RowsRequest {
  bool is_last = false;
  std::string_view rows;  // JSON array
};

/// A value type; valid for the lifetime of the bytes that it was parsed from.
struct Request {
  protocol::RequestKind kind = protocol::RequestKind::load;
  std::uint32_t invocation_ms = 0;  // longest run of one function
  std::uint32_t batch_ms = 0;       // time after which no further document is started
  std::variant<LoadRequest, MapRequest, ReduceRequest, ApplyRequest, ListRequest, RowsRequest> what;
};

namespace detail {

inline std::uint32_t parse_slot(protocol::Reader& in, bool may_be_none) {
  const auto slot = in.u32();
  if (slot >= protocol::kSlots && !(may_be_none && slot == protocol::kNoSlot)) in.fail();
  return slot;
}

inline LoadRequest parse_load(protocol::Reader& in) {
  LoadRequest load;
  load.slot = parse_slot(in, true);
  load.root = in.text();
  const auto count = in.count(8);
  if (count > protocol::kMaxFunctions) in.fail();
  for (std::uint32_t i = 0; i < count && !in.failed(); ++i) {
    const auto name = in.text();
    load.functions.push_back({name, in.text()});
  }
  return load;
}

inline MapRequest parse_map(protocol::Reader& in) {
  MapRequest map;
  map.slot = parse_slot(in, false);
  const auto count = in.count(4);
  map.documents.reserve(count);
  for (std::uint32_t i = 0; i < count && !in.failed(); ++i) map.documents.push_back(in.text());
  return map;
}

inline ReduceRequest parse_reduce(protocol::Reader& in) {
  ReduceRequest reduce;
  reduce.slot = parse_slot(in, false);
  reduce.rereduce = in.u8() != 0;
  const auto count = in.count(8);
  reduce.groups.reserve(count);
  for (std::uint32_t i = 0; i < count && !in.failed(); ++i) {
    const auto keys = in.text();
    reduce.groups.push_back({keys, in.text()});
  }
  return reduce;
}

inline ApplyRequest parse_apply(protocol::Reader& in) {
  ApplyRequest apply;
  apply.slot = parse_slot(in, false);
  const auto result = in.u8();
  if (result > static_cast<std::uint8_t>(ResultKind::call)) in.fail();
  apply.result = static_cast<ResultKind>(result);
  const auto count = in.count(8);
  apply.calls.reserve(count);
  for (std::uint32_t i = 0; i < count && !in.failed(); ++i) {
    const auto first = in.text();
    apply.calls.push_back({first, in.text()});
  }
  // The first call has no call before.
  if (!apply.calls.empty() && apply.calls.front().last.empty()) in.fail();
  return apply;
}

inline ListRequest parse_list(protocol::Reader& in) {
  ListRequest list;
  list.slot = parse_slot(in, false);
  list.arguments = in.text();
  list.rows = in.text();
  return list;
}

inline RowsRequest parse_rows(protocol::Reader& in) {
  RowsRequest rows;
  const auto last = in.u8();
  if (last > 1) in.fail();
  rows.is_last = last == 1;
  rows.rows = in.text();
  return rows;
}

}  // namespace detail

/// Parses a frame without its length; nullopt if it is malformed.
inline std::optional<Request> parse_request(std::string_view frame) {
  protocol::Reader in(frame);
  Request request;
  request.kind = static_cast<protocol::RequestKind>(in.u8());
  request.invocation_ms = in.u32();
  request.batch_ms = in.u32();
  switch (request.kind) {
    case protocol::RequestKind::load: request.what = detail::parse_load(in); break;
    case protocol::RequestKind::map: request.what = detail::parse_map(in); break;
    case protocol::RequestKind::reduce: request.what = detail::parse_reduce(in); break;
    case protocol::RequestKind::apply: request.what = detail::parse_apply(in); break;
    case protocol::RequestKind::list: request.what = detail::parse_list(in); break;
    case protocol::RequestKind::rows: request.what = detail::parse_rows(in); break;
    default: return std::nullopt;
  }
  if (!in.finished()) return std::nullopt;
  return request;
}

}  // namespace divan::js::sandbox
