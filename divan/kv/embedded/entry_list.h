// The ordered entries of a memtable.
//
// A skip list: an entry has a random height, and each level links the entries that are at least that high, so
// that a search descends from sparse levels to denser ones. One thread inserts while others read. A new
// entry is linked from the lowest level up, with release stores: a reader that finds it sees all of it.
// Entries are never removed.
//
// An insertion begins where the last one ended ("finger search"): it climbs until the levels' gaps contain
// the new key, and descends from there. Batches are sorted, so most entries are neighbours of the last one,
// and take a few comparisons instead of some thirty.
//
// RocksDB has a skip list, too, but Debian builds it with assertions, which double the comparisons of each
// search and more than double those of an insertion (docs/decisions/011-memtable.md).
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace divan::kv::embedded {

/// An internal key of RocksDB: a key of the store, and a tag of eight bytes: the number of the write and its
/// kind. Of two entries for one key, the one with the greater tag comes first.
struct InternalKey {
  std::string_view key;
  std::uint64_t tag;

  /// `bytes`: the key, then the tag (little-endian). At least 8 bytes.
  static InternalKey of(std::string_view bytes) {
    InternalKey parsed{bytes.substr(0, bytes.size() - sizeof tag), 0};
    std::memcpy(&parsed.tag, bytes.data() + parsed.key.size(), sizeof tag);
    return parsed;
  }
  /// `entry`: the length of the internal key as a varint, the internal key, and more.
  static InternalKey of_entry(const char* entry) {
    const auto* byte = reinterpret_cast<const unsigned char*>(entry);
    std::uint32_t length = *byte++;
    if (length >= 0x80) {
      length &= 0x7f;
      for (int shift = 7;; shift += 7) {
        length |= static_cast<std::uint32_t>(*byte & 0x7f) << shift;
        if (*byte++ < 0x80) break;
      }
    }
    return of({reinterpret_cast<const char*>(byte), length});
  }
  friend std::strong_ordering operator<=>(const InternalKey& a, const InternalKey& b) {
    const auto keys = a.key <=> b.key;
    return keys != 0 ? keys : b.tag <=> a.tag;
  }
  friend bool operator==(const InternalKey& a, const InternalKey& b) = default;
};
static_assert(std::endian::native == std::endian::little);

/// See above. insert() is for one thread at a time; everything else may be called concurrently.
class EntryList {
 public:
  static constexpr std::size_t kMaxHeight = 12;

  /// An entry's links, in front of its bytes. The memory must be aligned like a pointer, and must outlive the
  /// list.
  class Node {
   public:
    /// The bytes that a node of that height needs, in addition to those of its entry.
    static std::size_t bytes(std::size_t height) { return height * sizeof(Link); }
    /// Makes a node. Its entry may be written until it is inserted.
    static Node* make(char* memory, std::size_t height);

    char* entry() { return reinterpret_cast<char*>(this + 1); }
    const char* entry() const { return reinterpret_cast<const char*>(this + 1); }
    InternalKey key() const { return InternalKey::of_entry(entry()); }
    Node* next(std::size_t level = 0) const { return link(level).load(std::memory_order_acquire); }

   private:
    friend class EntryList;
    using Link = std::atomic<Node*>;
    // The links of higher levels are in front of this one, so that the lowest is next to the entry.
    Link& link(std::size_t level) { return *(&lowest_ - level); }
    const Link& link(std::size_t level) const { return *(&lowest_ - level); }
    // Between make() and insert(), the lowest link holds the height.
    Link lowest_;
  };

  EntryList();
  EntryList(const EntryList&) = delete;
  EntryList& operator=(const EntryList&) = delete;

  /// The height of the next node: each is four times as rare as the one below it.
  std::size_t random_height();

  /// Returns false if there is an entry with the same key and tag.
  bool insert(Node* node);

  Node* first() const { return head()->next(); }
  Node* last() const;
  /// The first entry that is not before `key`; null: none.
  Node* find(const InternalKey& key) const;
  /// The last entry before `key`; null: none.
  Node* find_before(const InternalKey& key) const;
  /// About how many entries are before `key`.
  std::uint64_t estimate_before(const InternalKey& key) const;

 private:
  static constexpr int kBranching = 4;

  Node* head() { return &head_.node; }
  const Node* head() const { return &head_.node; }
  std::size_t height() const { return height_.load(std::memory_order_relaxed); }
  bool is_before(const Node* node, const InternalKey& key) const {
    return node != nullptr && node->key() < key;
  }
  void find_gaps(const InternalKey& key);

  struct Head {
    std::array<std::atomic<Node*>, kMaxHeight - 1> higher{};
    Node node{};
  };
  static_assert(offsetof(Head, node) == (kMaxHeight - 1) * sizeof(Node*),
                "a node's links are in front of it");
  Head head_;
  std::atomic<std::size_t> height_{1};  // of the highest node
  // Of the inserting thread: on each level, the last node that is not after the last insertion.
  std::array<Node*, kMaxHeight> before_;
  std::uint64_t random_ = 0x9e3779b97f4a7c15;
};

}  // namespace divan::kv::embedded
