#include "divan/index/views/reduce_tree_updater.h"

#include <algorithm>
#include <utility>

#include "divan/base/check.h"

namespace divan::index::views {
namespace {

using Kind = EntryChange::Kind;

// Maximum bytes of entries held before they are reduced: JavaScript receives them in one call.
constexpr std::size_t kMaxHeldBytes = 8'000'000;
// A reduce node with more entries than this in the level below has no value.
constexpr std::size_t kMaxEntries = 5'000;
constexpr std::size_t kMaxBytes = 4'000'000;

// Maximum bytes of reduce nodes that a transaction writes.
constexpr std::size_t kMaxWrittenBytes = 4'000'000;

// Approximate size of a write.
std::size_t size_of(const ReduceNodeWrites::Node& node) {
  return 100 + node.position.size() + (node.value ? node.value->size() : 0);
}

void write_node(kv::Transaction& tx, const ReduceNodeKeys& keys, const ReduceNodeWrites::Node& node) {
  const std::string key = keys.node(node.level, node.position);
  if (node.value) {
    tx.set(key, *node.value);
  } else {
    tx.clear(key);
  }
}

ReduceNodeWrites dropped() { return {.clear = true, .nodes = {}, .state = ReduceTreeState{}}; }

ReduceNodeWrites disabled() {
  return {.clear = true, .nodes = {}, .state = ReduceTreeState{ReduceTreeState::Kind::disabled, 0, {}}};
}

}  // namespace

void ReduceNodeWrites::write(kv::Transaction& tx, const ReduceNodeKeys& keys) const {
  if (clear) tx.clear_range(keys.all());
  for (const Node& node : nodes) write_node(tx, keys, node);
  if (state) write_reduce_tree_state(tx, keys, *state);
}

class ReduceTreeUpdater::Level {
 public:
  Level(const ReduceTreeUpdater& updater, int level)
      : keys_(updater.keys_),
        node_keys_(updater.node_keys_),
        view_(updater.view_.number),
        fan_out_(updater.views_.fan_out()),
        level_(level),
        reduction_(make_reduction(updater.views_, updater.view_)) {}

  // Reads the entries of reduce nodes beginning at `from`, until a boundary at which `stop` returns true;
  // returns false if there was none. Entries before the first boundary are ignored.
  bool read(kv::Transaction& tx, std::string_view from, const std::function<bool()>& stop) {
    stopped_at_.clear();
    const auto visit = [&](std::string_view position, const auto& entry, std::size_t bytes) {
      if (fan_out_.level(position) >= level_) {
        end_node();
        if (position != from && stop()) {
          stopped_at_ = position;
          return false;
        }
        begin_node(position);
      }
      if (open_) add(entry, bytes);
      return true;
    };
    if (level_ == 1) {
      read_rows(tx, from, visit);
    } else {
      read_nodes(tx, from, visit);
    }
    end_node();
    return !stopped_at_.empty();
  }

  bool is_full() const { return entries_ >= fan_out_.at_once || bytes_ >= kMaxHeldBytes; }
  const std::string& stopped_at() const { return stopped_at_; }

  // Reduces what was read since the last call. Must not be called inside a transaction.
  void compute() {
    auto reduced = reduction_->take_results();
    DIVAN_CHECK(!open_ && computed_ + reduced.size() == nodes_.size(), "{} reductions of {} reduce nodes",
                computed_ + reduced.size(), nodes_.size());
    for (Reduced& result : reduced) {
      auto& node = nodes_[computed_];
      if (!valueless_[computed_++] && !result.error && result.partial.value.size() <= kMaxReduceNodeBytes) {
        node.value = encode_reduce_node(result.partial);
      }
      exceeded_limit_ |= result.exceeded_limit;
    }
    entries_ = bytes_ = 0;
  }

  bool exceeded_limit() const { return exceeded_limit_; }
  std::vector<ReduceNodeWrites::Node> take_nodes() { return std::move(nodes_); }
  bool has_reduce_nodes() const { return !nodes_.empty(); }

 private:
  template <class Visit>
  void read_rows(kv::Transaction& tx, std::string_view from, const Visit& visit) {
    RowRange range = all_rows(keys_, view_);
    const std::size_t prefix = range.begin.size();
    range.begin += from;
    visit_stored_rows(tx, keys_, view_, range, false, [&](const ViewRow& row) {
      return visit(row.position.substr(prefix), row, row.key.size() + row.value.size());
    });
  }

  template <class Visit>
  void read_nodes(kv::Transaction& tx, std::string_view from, const Visit& visit) {
    const std::size_t position_offset = node_keys_.position_offset(level_ - 1);
    tx.scan(node_keys_.range(level_ - 1, from, kAfterAllPositions), {.isolation = kv::Isolation::snapshot},
            [&](std::string_view key, std::string_view value) {
              return visit(key.substr(position_offset), decode_reduce_node(value), value.size());
            });
  }

  void begin_node(std::string_view position) {
    nodes_.push_back({level_, std::string(position), std::string()});
    valueless_.push_back(false);
    open_ = true;
    node_entries_ = node_bytes_ = 0;
  }
  void end_node() {
    if (std::exchange(open_, false)) reduction_->end_group();
  }

  void add(const ViewRow& row, std::size_t bytes) {
    if (fits(bytes)) reduction_->add(row);
  }
  void add(const std::optional<Partial>& partial, std::size_t bytes) {
    if (!partial) valueless_.back() = true;
    if (fits(bytes) && partial) reduction_->add(*partial);
  }
  bool fits(std::size_t bytes) {
    ++entries_;
    bytes_ += bytes;
    if (++node_entries_ > kMaxEntries || (node_bytes_ += bytes) > kMaxBytes) valueless_.back() = true;
    return !valueless_.back();
  }

  const IndexKeys& keys_;
  const ReduceNodeKeys& node_keys_;
  const int view_;
  const FanOut fan_out_;
  const int level_;
  const std::unique_ptr<Reduction> reduction_;
  std::vector<ReduceNodeWrites::Node> nodes_;  // without values until computed
  std::vector<bool> valueless_;
  std::size_t computed_ = 0;
  bool open_ = false;  // whether entries are added to the last reduce node
  std::size_t node_entries_ = 0;
  std::size_t node_bytes_ = 0;
  std::size_t entries_ = 0;
  std::size_t bytes_ = 0;
  bool exceeded_limit_ = false;
  std::string stopped_at_;
};

ReduceNodeWrites ReduceTreeUpdater::update(const std::vector<EntryChange>& rows,
                                           const std::function<void(kv::Transaction&)>& write_rows) {
  ReduceNodeWrites all;
  std::vector<EntryChange> below = rows;
  std::vector<ReduceNodeWrites::Node> nodes_below;
  auto write_below = write_rows;
  for (int level = 1; !below.empty(); ++level) {
    bool exceeded_limit = false;
    auto nodes = update_level(level, below, write_below, exceeded_limit);
    if (exceeded_limit) return disabled();
    below = drop_unchanged(nodes);
    all.nodes.insert(all.nodes.end(), nodes.begin(), nodes.end());
    nodes_below = std::move(nodes);
    write_below = [&](kv::Transaction& tx) {
      for (const auto& node : nodes_below) write_node(tx, node_keys_, node);
    };
  }
  // Too much for one transaction: the reduce nodes are rebuilt after the rows.
  std::size_t bytes = 0;
  for (const auto& node : all.nodes) bytes += size_of(node);
  if (bytes > kMaxWrittenBytes) return dropped();
  return all;
}

std::vector<ReduceNodeWrites::Node> ReduceTreeUpdater::update_level(
    int level, const std::vector<EntryChange>& below,
    const std::function<void(kv::Transaction&)>& write_below, bool& exceeded_limit) {
  DIVAN_CHECK(std::ranges::is_sorted(below, {}, &EntryChange::position),
              "the changes of level {} are not sorted", level - 1);
  const FanOut fan_out = views_.fan_out();
  Level nodes(*this, level);
  std::vector<ReduceNodeWrites::Node> removed;
  std::string done;  // entries before this position were read
  auto next = below.begin();
  while (next != below.end()) {
    {
      const auto tx = store_.begin();
      write_below(*tx);
      for (const EntryChange& change : below) {
        if (fan_out.level(change.position) < level) continue;
        const std::string key = node_keys_.node(level, change.position);
        if (change.kind == Kind::removed) tx->clear(key);
        if (change.kind == Kind::inserted) tx->set(key, {});
      }
      const auto read = [&](std::string_view from) {
        done = nodes.read(*tx, from, [] { return true; }) ? nodes.stopped_at() : kAfterAllPositions;
      };
      for (; next != below.end() && !nodes.is_full(); ++next) {
        const bool boundary = fan_out.level(next->position) >= level;
        if (boundary && next->kind == Kind::removed) removed.push_back({level, next->position, std::nullopt});
        // The entry is in the preceding reduce node, or ends it, or no longer ends it.
        if (next->position > done && (!boundary || next->kind != Kind::changed)) {
          if (const auto before = node_before(*tx, level, next->position)) read(*before);
        }
        if (next->position >= done && boundary && next->kind != Kind::removed) read(next->position);
      }
    }
    nodes.compute();
  }
  exceeded_limit = nodes.exceeded_limit();
  auto written = nodes.take_nodes();
  written.insert(written.end(), removed.begin(), removed.end());
  std::sort(written.begin(), written.end(),
            [](const auto& a, const auto& b) { return a.position < b.position; });
  return written;
}

// The last boundary before a position.
std::optional<std::string> ReduceTreeUpdater::node_before(kv::Transaction& tx, int level,
                                                          std::string_view position) const {
  std::optional<std::string> found;
  const std::size_t position_offset = node_keys_.position_offset(level);
  tx.scan(node_keys_.range(level, {}, position),
          {.limit = 1, .reverse = true, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view) {
            found = key.substr(position_offset);
            return false;
          });
  return found;
}

// Removes reduce nodes that the store already has, and returns the changes of the others.
std::vector<EntryChange> ReduceTreeUpdater::drop_unchanged(std::vector<ReduceNodeWrites::Node>& nodes) const {
  std::vector<std::string> keys;
  keys.reserve(nodes.size());
  for (const auto& node : nodes) keys.push_back(node_keys_.node(node.level, node.position));
  const auto stored = store_.begin()->get_many(keys, kv::Isolation::snapshot);
  DIVAN_CHECK(stored.size() == nodes.size(), "{} of {} reduce nodes were read", stored.size(), nodes.size());
  std::vector<EntryChange> changes;
  std::vector<ReduceNodeWrites::Node> changed;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].value == stored[i]) continue;
    const Kind kind = !nodes[i].value ? Kind::removed : !stored[i] ? Kind::inserted : Kind::changed;
    changes.push_back({nodes[i].position, kind});
    changed.push_back(std::move(nodes[i]));
  }
  nodes = std::move(changed);
  return changes;
}

std::optional<ReduceNodeWrites> ReduceTreeUpdater::build_piece(bool resume_only) {
  using State = ReduceTreeState::Kind;
  ReduceNodeWrites writes;
  ReduceTreeState state;
  std::optional<Level> nodes;
  {
    const auto tx = store_.begin();
    state = read_reduce_tree_state(*tx, node_keys_);
    if (state.settled()) return std::nullopt;
    if (state.kind == State::none) {
      if (resume_only) return std::nullopt;
      writes.clear = true;
      state = {State::building, 1, {}};
    }
    nodes.emplace(*this, state.level);
    if (nodes->read(*tx, state.position, [&] { return nodes->is_full(); })) {
      state.position = nodes->stopped_at();
    } else if (state.position.empty() && !nodes->has_reduce_nodes()) {
      state = {State::complete, 0, {}};
    } else {
      state = {State::building, state.level + 1, {}};
    }
  }
  nodes->compute();
  if (nodes->exceeded_limit()) return disabled();
  writes.nodes = nodes->take_nodes();
  // What does not fit in one transaction is computed again with the next piece.
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < writes.nodes.size(); ++i) {
    bytes += size_of(writes.nodes[i]);
    if (i == 0 || bytes <= kMaxWrittenBytes) continue;
    state = {State::building, writes.nodes[i].level, writes.nodes[i].position};
    writes.nodes.resize(i);
  }
  writes.state = std::move(state);
  return writes;
}

}  // namespace divan::index::views
