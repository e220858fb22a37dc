#include "divan/index/views/reduce_nodes.h"

#include <climits>

#include "divan/base/bytes.h"
#include "divan/base/check.h"

namespace divan::index::views {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

constexpr int kNodesPart = 4;
// Upper bound of Partial::bytes: avoids an overflow of sums.
constexpr std::uint64_t kMaxBytesBelow = std::uint64_t{1} << 56;

Error damaged() { return internal_error("A reduce node of a view in the store is damaged."); }

// One pass through a range. It goes backwards, since the key of a reduce node is its beginning: the node can
// be used if that is in the range.
class RangeWalk {
 public:
  RangeWalk(kv::Transaction& tx, const IndexKeys& keys, int view, const FanOut& fan_out, bool nodes,
            RowRange& range, const RangeSink& sink)
      : tx_(tx),
        keys_(keys),
        view_(view),
        node_keys_(keys, view),
        fan_out_(fan_out),
        prefix_(all_rows(keys, view).begin.size()),
        highest_(nodes ? INT_MAX : 0),
        range_(range),
        sink_(sink) {}

  void run() {
    int level = 0;
    for (;;) {
      climb_to_ = level;
      switch (level == 0 ? visit_rows_backwards() : visit_nodes_backwards(level)) {
        case End::stopped: return;
        case End::higher: level = climb_to_; break;
        case End::lower: --level; break;
        case End::begin:
          if (level == 0) {
            range_.end = range_.begin;
            return;
          }
          // The rest of the range is smaller than a reduce node of this level.
          highest_ = --level;
      }
    }
  }

 private:
  // Why the walk leaves a level.
  enum class End {
    begin,    // the range has no further entry of this level
    higher,   // a reduce node of the level climb_to_ begins here
    lower,    // the next entry has no value
    stopped,  // the sink returned false
  };

  End visit_rows_backwards() {
    End end = End::begin;
    visit_stored_rows(tx_, keys_, view_, range_, true, [&](const ViewRow& row) {
      const bool more = sink_.row(row);
      range_.end = row.position;
      end = after(0, row.position.substr(prefix_), more);
      return end == End::begin;
    });
    return end;
  }

  End visit_nodes_backwards(int level) {
    const auto position = [&](const std::string& key) { return std::string_view(key).substr(prefix_); };
    if (range_.begin >= range_.end) return End::begin;
    const std::size_t position_offset = node_keys_.position_offset(level);
    End end = End::begin;
    tx_.scan(node_keys_.range(level, position(range_.begin), position(range_.end)),
             {.reverse = true, .isolation = kv::Isolation::snapshot},
             [&](std::string_view key, std::string_view value) {
               const auto partial = decode_reduce_node(value);
               if (!partial) {
                 end = End::lower;
                 return false;
               }
               const bool more = sink_.partial(*partial);
               range_.end.replace(prefix_, std::string::npos, key.substr(position_offset));
               end = after(level, key.substr(position_offset), more);
               return end == End::begin;
             });
    return end;
  }

  // What follows the entry at `position`; End::begin: the next entry of the same level.
  End after(int level, std::string_view position, bool more) {
    if (!more) return End::stopped;
    if (level >= highest_) return End::begin;
    climb_to_ = std::min(fan_out_.level(position), highest_);
    return climb_to_ > level ? End::higher : End::begin;
  }

  kv::Transaction& tx_;
  const IndexKeys& keys_;
  const int view_;
  const ReduceNodeKeys node_keys_;
  const FanOut fan_out_;
  const std::size_t prefix_;  // length of the range's keys before the position
  int highest_;               // highest level that can have a whole reduce node in the rest of the range
  int climb_to_ = 0;
  RowRange& range_;
  const RangeSink& sink_;
};

}  // namespace

ReduceNodeKeys::ReduceNodeKeys(const IndexKeys& keys, int view) : state_(keys.part(kNodesPart)) {
  Packer(state_).integer(view);
}

std::string ReduceNodeKeys::node(int level, std::string_view position) const {
  std::string key = state_;
  Packer(key).integer(level);
  key += position;
  return key;
}

kv::KeyRange ReduceNodeKeys::range(int level, std::string_view begin, std::string_view end) const {
  return {node(level, begin), node(level, end)};
}

ReduceTreeState read_reduce_tree_state(kv::Transaction& tx, const ReduceNodeKeys& keys) {
  const auto value = tx.get(keys.state(), kv::Isolation::snapshot);
  return value ? decode_reduce_tree_state(*value) : ReduceTreeState();
}

ReduceTreeState decode_reduce_tree_state(std::string_view value) {
  ReduceTreeState state;
  Reader reader(value);
  const auto kind = reader.take_int();
  if (!kind || *kind < 1 || *kind > 3) throw damaged();
  state.kind = static_cast<ReduceTreeState::Kind>(*kind);
  if (state.kind == ReduceTreeState::Kind::building) {
    const auto level = reader.take_int();
    auto position = reader.take_bytes();
    if (!level || *level < 1 || *level > 64 || !position) throw damaged();
    state.level = static_cast<int>(*level);
    state.position = *std::move(position);
  }
  if (!reader.rest().empty()) throw damaged();
  return state;
}

void write_reduce_tree_state(kv::Transaction& tx, const ReduceNodeKeys& keys, const ReduceTreeState& state) {
  if (state.kind == ReduceTreeState::Kind::none) return tx.clear(keys.state());
  DIVAN_CHECK(state.kind != ReduceTreeState::Kind::building || state.level > 0,
              "reduce nodes of level {} are being built", state.level);
  std::string value;
  Packer packer(value);
  packer.integer(static_cast<int>(state.kind));
  if (state.kind == ReduceTreeState::Kind::building) packer.integer(state.level).bytes(state.position);
  tx.set(keys.state(), value);
}

std::string encode_reduce_node(const std::optional<Partial>& partial) {
  std::string value;
  if (!partial) return value;
  append_varint(value, partial->bytes);
  value += partial->value;
  return value;
}

std::optional<Partial> decode_reduce_node(std::string_view value) {
  if (value.empty()) return std::nullopt;
  const auto bytes = take_varint(value);
  if (!bytes || *bytes > kMaxBytesBelow || value.empty()) throw damaged();
  return Partial{std::string(value), *bytes};
}

void visit_range(kv::Transaction& tx, const IndexKeys& keys, int view, const FanOut& fan_out, bool nodes,
                 RowRange& range, const RangeSink& sink) {
  RangeWalk(tx, keys, view, fan_out, nodes, range, sink).run();
}

}  // namespace divan::index::views
