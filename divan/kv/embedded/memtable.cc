#include "divan/kv/embedded/memtable.h"

#include <cstddef>
#include <new>

#include "divan/kv/embedded/entry_list.h"

namespace divan::kv::embedded {
namespace {

using Node = EntryList::Node;

// An internal key as RocksDB passes it to searches: alone, or at the beginning of an entry.
InternalKey target(const rocksdb::Slice& internal_key, const char* entry) {
  return entry != nullptr ? InternalKey::of_entry(entry)
                          : InternalKey::of({internal_key.data(), internal_key.size()});
}

class EntryIterator : public rocksdb::MemTableRep::Iterator {
 public:
  explicit EntryIterator(const EntryList* list) : list_(list) {}

  bool Valid() const override { return node_ != nullptr; }
  const char* key() const override { return node_->entry(); }
  void Next() override { node_ = node_->next(); }
  void Prev() override { node_ = list_->find_before(node_->key()); }
  void Seek(const rocksdb::Slice& internal_key, const char* entry) override {
    node_ = list_->find(target(internal_key, entry));
  }
  void SeekForPrev(const rocksdb::Slice& internal_key, const char* entry) override {
    const InternalKey key = target(internal_key, entry);
    node_ = list_->find(key);
    if (node_ == nullptr || node_->key() != key) node_ = list_->find_before(key);
  }
  void SeekToFirst() override { node_ = list_->first(); }
  void SeekToLast() override { node_ = list_->last(); }

  void restart(const EntryList* list) {
    list_ = list;
    node_ = nullptr;
  }

 private:
  const EntryList* list_;
  const Node* node_ = nullptr;
};

// The memory of an object that is destroyed, but not deleted, by its user.
class OwnMemory {
 protected:
  explicit OwnMemory(void* memory) : memory_(memory) {}
  ~OwnMemory() { ::operator delete(memory_); }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

 private:
  void* memory_;
};

// RocksDB only calls the destructor of an iterator that is to be allocated in an arena, whose class is not
// public. The first base is destroyed last; GCC's check of virtual calls would write into the object after
// that.
class ArenaIterator final : private OwnMemory, public EntryIterator {
 public:
  __attribute__((no_sanitize("vptr"))) ~ArenaIterator() override {}

  static EntryIterator* make(const EntryList* list) {
    void* const memory = ::operator new(sizeof(ArenaIterator));
    return new (memory) ArenaIterator(memory, list);
  }

 private:
  ArenaIterator(void* memory, const EntryList* list) : OwnMemory(memory), EntryIterator(list) {}
};

class MemTable final : public rocksdb::MemTableRep {
 public:
  explicit MemTable(rocksdb::Allocator* allocator) : MemTableRep(allocator) {}

  rocksdb::KeyHandle Allocate(std::size_t bytes, char** entry) override {
    const std::size_t height = list_.random_height();
    const std::size_t size = Node::bytes(height) + bytes + alignof(Node) - 1;
    char* memory = nullptr;
    MemTableRep::Allocate(size, &memory);
    const auto misaligned = reinterpret_cast<std::uintptr_t>(memory) % alignof(Node);
    if (misaligned != 0) memory += alignof(Node) - misaligned;
    Node* const node = Node::make(memory, height);
    *entry = node->entry();
    return node;
  }
  void Insert(rocksdb::KeyHandle node) override { InsertKey(node); }
  bool InsertKey(rocksdb::KeyHandle node) override { return list_.insert(static_cast<Node*>(node)); }

  bool Contains(const char* entry) const override {
    const InternalKey key = InternalKey::of_entry(entry);
    const Node* const found = list_.find(key);
    return found != nullptr && found->key() == key;
  }
  std::uint64_t ApproximateNumEntries(const rocksdb::Slice& begin, const rocksdb::Slice& end) override {
    const auto before = [&](const rocksdb::Slice& key) {
      return list_.estimate_before(target(key, nullptr));
    };
    const std::uint64_t first = before(begin), last = before(end);
    return last > first ? last - first : 0;
  }
  std::size_t ApproximateMemoryUsage() override { return 0; }  // all of it is allocated through the allocator

  Iterator* GetIterator(rocksdb::Arena* arena) override {
    return arena != nullptr ? ArenaIterator::make(&list_) : new EntryIterator(&list_);
  }
  // Without an arena, RocksDB calls this in MemTableRep::Get(), which does not delete the result. (It does so
  // in updates in place and in merges of many operands, neither of which the options allow.)
  Iterator* GetDynamicPrefixIterator(rocksdb::Arena* arena) override {
    if (arena != nullptr) return ArenaIterator::make(&list_);
    static thread_local EntryIterator lookup(nullptr);
    lookup.restart(&list_);
    return &lookup;
  }

 private:
  EntryList list_;
};

class MemTableFactory final : public rocksdb::MemTableRepFactory {
 public:
  const char* Name() const override { return "divan.EntryList"; }
  bool CanHandleDuplicatedKey() const override { return true; }

  using MemTableRepFactory::CreateMemTableRep;
  rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator&,
                                          rocksdb::Allocator* allocator, const rocksdb::SliceTransform*,
                                          rocksdb::Logger*) override {
    return new MemTable(allocator);
  }
};

}  // namespace

std::shared_ptr<rocksdb::MemTableRepFactory> memtable_factory() {
  return std::make_shared<MemTableFactory>();
}

}  // namespace divan::kv::embedded
