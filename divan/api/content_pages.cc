#include "divan/api/content_pages.h"

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/kv/chunks.h"

namespace divan::api {
namespace {

// Chunks that are read in one transaction.
constexpr std::uint64_t kChunksPerPage = 4;
// In base64, each but the last chunk is encoded on its own.
static_assert(kv::kChunkBytes % 3 == 0);

}  // namespace

bool ContentPages::next(std::string& out) {
  std::string page = first_.empty() ? context_.store.run([&](kv::Transaction& tx) { return read(tx); })
                                    : std::exchange(first_, {});
  range_.first = page_end();
  out += page;
  return range_.first < range_.end;
}

std::unique_ptr<ContentPages> ContentPages::gzip(const Context& context, docs::Database database,
                                                 docs::Content content) {
  DIVAN_CHECK(content.deflated, "a content that is not compressed is to be sent in gzip");
  const http::ByteRange all{0, content.length};
  auto pages = std::make_unique<ContentPages>(context, std::move(database), std::move(content), all);
  pages->is_gzip_ = true;
  return pages;
}

std::uint64_t ContentPages::page_end() const {
  const std::uint64_t first = range_.first / kv::kChunkBytes;
  return std::min(range_.end, (first + kChunksPerPage) * kv::kChunkBytes);
}

std::string ContentPages::read(kv::Transaction& tx) const {
  const std::uint64_t first = range_.first / kv::kChunkBytes;
  const std::uint64_t end = (page_end() + kv::kChunkBytes - 1) / kv::kChunkBytes;
  if (end <= first) return {};
  const auto chunk = static_cast<std::uint32_t>(first), count = static_cast<std::uint32_t>(end - first);
  if (content_.length > kChunksPerPage * kv::kChunkBytes) tx.read_once();
  if (is_gzip_) {
    std::string page(first == 0 ? docs::start_gzip() : "");
    page += docs::read_stored_chunks(tx, database_, content_, chunk, count);
    if (page_end() == range_.end) page += docs::end_gzip(content_.deflated->crc32, content_.length);
    return page;
  }
  std::string chunks = docs::read_content_chunks(tx, database_, content_, chunk, count);
  const std::uint64_t skipped = range_.first - first * kv::kChunkBytes;
  const std::uint64_t wanted = range_.end - range_.first;
  if (skipped == 0 && wanted >= chunks.size()) return chunks;
  return chunks.substr(skipped, wanted);
}

// A text with contents instead of placeholders.
class FilledPages final : public PageSource {
 public:
  FilledPages(const Context& context, const ContentPlaceholders& placeholders, std::string text)
      : context_(context),
        placeholder_(placeholders.placeholder_),
        contents_(placeholders.contents_),
        text_(std::move(text)) {}

  bool next(std::string& out) override {
    if (content_) {
      std::string page;
      const bool more = content_->next(page);
      const bool is_encoded = contents_[next_].encoding == ContentPlaceholders::Encoding::base64;
      out += is_encoded ? to_base64(page) : page;
      if (more) return true;
      content_.reset();
      ++next_;
    }
    if (next_ == contents_.size()) {
      out += std::string_view(text_).substr(at_);
      return false;
    }
    const auto found = text_.find(placeholder_, at_);
    DIVAN_CHECK(found != std::string::npos, "a response lacks placeholder {}", next_);
    out += std::string_view(text_).substr(at_, found - at_);
    at_ = found + placeholder_.size();
    const auto& [database, content, encoding] = contents_[next_];
    content_.emplace(context_, database, content, http::ByteRange{0, content.length});
    return true;
  }

 private:
  const Context& context_;
  const std::string placeholder_;
  const std::vector<ContentPlaceholders::LargeContent> contents_;
  const std::string text_;
  std::size_t at_ = 0;                   // of `text_`
  std::size_t next_ = 0;                 // of `contents_`
  std::optional<ContentPages> content_;  // the one that is being read
};

void ContentPlaceholders::append(kv::Transaction& tx, const docs::Database& database,
                                 const docs::Attachment& attachment, Encoding encoding, std::string& out) {
  const docs::Content content = docs::read_content(tx, database, attachment.md5);
  const auto chunks = kv::chunk_count(content.length);
  if (chunks == 0) return;
  if (chunks > 1) {
    if (placeholder_.empty()) placeholder_ = rng_.uuid();
    contents_.push_back({database, content, encoding});
    out += placeholder_;
    return;
  }
  const std::string bytes = docs::read_content_chunks(tx, database, content, 0, chunks);
  out += encoding == Encoding::base64 ? to_base64(bytes) : bytes;
}

std::unique_ptr<PageSource> ContentPlaceholders::pages(const Context& context, std::string text) const {
  return std::make_unique<FilledPages>(context, *this, std::move(text));
}

std::string with_data_or_placeholders(kv::Transaction& tx, const docs::Database& database,
                                      std::string_view body, std::uint32_t known,
                                      ContentPlaceholders& placeholders) {
  return docs::with_contents(body, [&](std::string& out, const docs::Attachment& attachment) {
    if (attachment.revpos <= known) return docs::append_stub(out, attachment);
    out += "\"data\":\"";
    placeholders.append(tx, database, attachment, ContentPlaceholders::Encoding::base64, out);
    out += '"';
  });
}

}  // namespace divan::api
