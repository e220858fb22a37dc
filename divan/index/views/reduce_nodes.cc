#include "divan/index/views/reduce_nodes.h"

#include <climits>

#include "divan/base/bytes.h"

namespace divan::index::views {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

constexpr int kNodesPart = 4;
// Of what a node stands for: far from what overflows.
constexpr std::uint64_t kMaxBytesBelow = std::uint64_t{1} << 56;

Error damaged() { return internal_error("A node of a view in the store is damaged."); }

// One way through a range. Backwards, since a node's key is where it begins: it can be taken if that is in
// the range.
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
      switch (level == 0 ? take_rows() : take_nodes(level)) {
        case End::stopped: return;
        case End::higher: level = climb_to_; break;
        case End::lower: --level; break;
        case End::begin:
          if (level == 0) {
            range_.end = range_.begin;
            return;
          }
          // What is left is less than a node of this level.
          highest_ = --level;
      }
    }
  }

 private:
  // Why there is no going on in a level.
  enum class End {
    begin,    // no further entry begins in the range
    higher,   // here begins a node of the level climb_to_
    lower,    // the next entry has no value
    stopped,  // the sink has enough
  };

  End take_rows() {
    End end = End::begin;
    visit_stored_rows(tx_, keys_, view_, range_, true, [&](const ViewRow& row) {
      const bool more = sink_.row(row);
      range_.end = row.place;
      end = after(0, row.place.substr(prefix_), more);
      return end == End::begin;
    });
    return end;
  }

  End take_nodes(int level) {
    const auto place = [&](const std::string& key) { return std::string_view(key).substr(prefix_); };
    if (range_.begin >= range_.end) return End::begin;
    const std::size_t place_at = node_keys_.place_at(level);
    End end = End::begin;
    tx_.scan(node_keys_.range(level, place(range_.begin), place(range_.end)),
             {.reverse = true, .isolation = kv::Isolation::snapshot},
             [&](std::string_view key, std::string_view value) {
               const auto partial = decode_reduce_node(value);
               if (!partial) {
                 end = End::lower;
                 return false;
               }
               const bool more = sink_.partial(*partial);
               range_.end.replace(prefix_, std::string::npos, key.substr(place_at));
               end = after(level, key.substr(place_at), more);
               return end == End::begin;
             });
    return end;
  }

  // What to do after the entry at `place`; begin: go on in this level.
  End after(int level, std::string_view place, bool more) {
    if (!more) return End::stopped;
    if (level >= highest_) return End::begin;
    climb_to_ = std::min(fan_out_.level(place), highest_);
    return climb_to_ > level ? End::higher : End::begin;
  }

  kv::Transaction& tx_;
  const IndexKeys& keys_;
  const int view_;
  const ReduceNodeKeys node_keys_;
  const FanOut fan_out_;
  const std::size_t prefix_;  // of the range's keys: what stands before the place
  int highest_;               // level that can have a whole node in what is left of the range
  int climb_to_ = 0;
  RowRange& range_;
  const RangeSink& sink_;
};

}  // namespace

ReduceNodeKeys::ReduceNodeKeys(const IndexKeys& keys, int view) : state_(keys.part(kNodesPart)) {
  Packer(state_).integer(view);
}

std::string ReduceNodeKeys::node(int level, std::string_view place) const {
  std::string key = state_;
  Packer(key).integer(level);
  key += place;
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
    auto place = reader.take_bytes();
    if (!level || *level < 1 || *level > 64 || !place) throw damaged();
    state.level = static_cast<int>(*level);
    state.place = *std::move(place);
  }
  if (!reader.rest().empty()) throw damaged();
  return state;
}

void write_reduce_tree_state(kv::Transaction& tx, const ReduceNodeKeys& keys, const ReduceTreeState& state) {
  if (state.kind == ReduceTreeState::Kind::none) return tx.clear(keys.state());
  std::string value;
  Packer packer(value);
  packer.integer(static_cast<int>(state.kind));
  if (state.kind == ReduceTreeState::Kind::building) packer.integer(state.level).bytes(state.place);
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

void take_range(kv::Transaction& tx, const IndexKeys& keys, int view, const FanOut& fan_out, bool nodes,
                RowRange& range, const RangeSink& sink) {
  RangeWalk(tx, keys, view, fan_out, nodes, range, sink).run();
}

}  // namespace divan::index::views
