#include "divan/kv/embedded/entry_list.h"

#include <algorithm>
#include <new>

#include "divan/base/check.h"

namespace divan::kv::embedded {

EntryList::Node* EntryList::Node::make(char* memory, std::size_t height) {
  DIVAN_CHECK(height >= 1 && height <= kMaxHeight, "a node of {} levels", height);
  char* const lowest = memory + bytes(height) - sizeof(Link);
  for (char* link = memory; link < lowest; link += sizeof(Link)) new (link) Link(nullptr);
  auto* const node = new (lowest) Node();
  node->lowest_.store(reinterpret_cast<Node*>(height), std::memory_order_relaxed);
  return node;
}

EntryList::EntryList() { before_.fill(head()); }

std::size_t EntryList::random_height() {
  // xorshift64
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  static_assert(kBranching == 4);  // two bits a level
  const int zeros = std::countr_zero(random_ >> 32 | std::uint64_t{1} << 32);
  return std::min(1 + static_cast<std::size_t>(zeros) / 2, kMaxHeight);
}

// Moves `before_` to the last nodes before `key`.
//
// On each level, the nodes of `before_` and their successors are neighbours with the last insertion between
// them, and the gap of a level is part of the gap of the next one. So the lowest gap that contains the key is
// where the search descends from.
void EntryList::find_gaps(const InternalKey& key) {
  const auto precedes = [&](const Node* node) { return node == head() || node->key() < key; };
  std::size_t level = 0;
  Node* before = head();
  if (precedes(before_[0])) {
    while (level < kMaxHeight && is_before(before_[level]->next(level), key)) ++level;
    if (level > 0) before = before_[level - 1];
  } else {
    while (level < kMaxHeight && !precedes(before_[level])) ++level;
    if (level < kMaxHeight) before = before_[level];
  }
  while (level > 0) {
    --level;
    for (Node* next = before->next(level); is_before(next, key); next = before->next(level)) before = next;
    before_[level] = before;
  }
}

bool EntryList::insert(Node* node) {
  const auto height = reinterpret_cast<std::uintptr_t>(node->next());
  const InternalKey key = node->key();
  find_gaps(key);
  if (const Node* next = before_[0]->next(); next != nullptr && next->key() == key) return false;
  // A reader that does not see the new height finds the node on a lower level.
  if (height > this->height()) height_.store(height, std::memory_order_relaxed);
  for (std::size_t level = 0; level < height; ++level) {
    Node*& before = before_[level];
    node->link(level).store(before->next(level), std::memory_order_relaxed);
    before->link(level).store(node, std::memory_order_release);
    before = node;
  }
  return true;
}

EntryList::Node* EntryList::last() const {
  const Node* node = head();
  for (std::size_t level = height(); level-- > 0;) {
    while (const Node* next = node->next(level)) node = next;
  }
  return node == head() ? nullptr : const_cast<Node*>(node);
}

EntryList::Node* EntryList::find(const InternalKey& key) const {
  const Node* node = head();
  const Node* after = nullptr;  // known not to be before `key`
  for (std::size_t level = height() - 1;;) {
    Node* const next = node->next(level);
    if (next != after && is_before(next, key)) {
      node = next;
    } else if (level == 0) {
      return next;
    } else {
      after = next;
      --level;
    }
  }
}

EntryList::Node* EntryList::find_before(const InternalKey& key) const {
  const Node* node = head();
  const Node* after = nullptr;
  for (std::size_t level = height() - 1;;) {
    const Node* const next = node->next(level);
    if (next != after && is_before(next, key)) {
      node = next;
    } else if (level == 0) {
      return node == head() ? nullptr : const_cast<Node*>(node);
    } else {
      after = next;
      --level;
    }
  }
}

std::uint64_t EntryList::estimate_before(const InternalKey& key) const {
  const Node* node = head();
  std::uint64_t count = 0;
  for (std::size_t level = height() - 1;;) {
    const Node* const next = node->next(level);
    if (is_before(next, key)) {
      node = next;
      ++count;
    } else if (level == 0) {
      return count;
    } else {
      count *= kBranching;
      --level;
    }
  }
}

}  // namespace divan::kv::embedded
