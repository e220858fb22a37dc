#include "divan/kv/embedded/key_prefix.h"

#include <cstdlib>

#include "divan/kv/tuple_codes.h"

namespace divan::kv::embedded {
namespace {

constexpr std::size_t kNowhere = std::string_view::npos;
constexpr int kWhere = 3;  // elements that say what a key is about

unsigned char byte_at(std::string_view key, std::size_t i) { return static_cast<unsigned char>(key[i]); }

// Where the string or byte string whose content begins at key[i] ends.
std::size_t string_end(std::string_view key, std::size_t i) {
  for (;;) {
    i = key.find('\0', i);
    if (i == std::string_view::npos) return kNowhere;
    if (i + 1 == key.size() || byte_at(key, i + 1) != tuple::kEscapeCode) return i + 1;
    i += 2;
  }
}

// Where the element that begins at key[i] ends; nowhere for the kinds that no key of ours begins with.
std::size_t element_end(std::string_view key, std::size_t i) {
  if (i >= key.size()) return kNowhere;
  const int code = byte_at(key, i);
  if (code == tuple::kStringCode || code == tuple::kBytesCode) return string_end(key, i + 1);
  std::size_t end = kNowhere;
  if (code > tuple::kBigNegativeCode && code < tuple::kBigPositiveCode) {
    end = i + 1 + static_cast<std::size_t>(std::abs(code - tuple::kZeroCode));
  }
  return end <= key.size() ? end : kNowhere;
}

// Where the elements end that say what a key is about.
std::size_t where_end(std::string_view key) {
  std::size_t end = 0;
  for (int i = 0; i < kWhere; ++i) {
    end = element_end(key, end);
    if (end == kNowhere) return kNowhere;
  }
  return end;
}

class FilterPrefixes final : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "divan.filter.1"; }
  bool InDomain(const rocksdb::Slice& key) const override { return !Transform(key).empty(); }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    const auto prefix = filter_prefix({key.data(), key.size()});
    return {key.data(), prefix.size()};
  }
};

}  // namespace

std::string_view filter_prefix(std::string_view key) {
  const std::size_t where = where_end(key);
  if (where >= key.size() || byte_at(key, where) != tuple::kStringCode) return {};
  const std::size_t end = element_end(key, where);
  return end == kNowhere ? std::string_view() : key.substr(0, end);
}

bool share_filter_prefix(std::string_view lower, std::string_view upper) {
  const std::string_view prefix = filter_prefix(lower);
  if (prefix.empty() || !upper.starts_with(prefix)) return false;
  // A string's end followed by 0xff is no end.
  const std::string_view rest = upper.substr(prefix.size());
  return rest.empty() || byte_at(rest, 0) != tuple::kEscapeCode || rest.size() == 1;
}

std::shared_ptr<const rocksdb::SliceTransform> filter_prefixes() {
  return std::make_shared<FilterPrefixes>();
}

}  // namespace divan::kv::embedded
