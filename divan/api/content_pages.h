// Responses with contents of attachments, which may be larger than memory.
#pragma once

#include "divan/api/page_stream.h"
#include "divan/docs/contents.h"
#include "divan/http/byte_range.h"

namespace divan::api {

/// The bytes of a content. It may be removed meanwhile, with the last revision that has it: then next()
/// throws an internal error.
class ContentPages final : public PageSource {
 public:
  /// A part of the content.
  ContentPages(const Context& context, docs::Database database, docs::Content content, http::ByteRange range)
      : context_(context), database_(std::move(database)), content_(std::move(content)), range_(range) {}
  /// A compressed content in gzip.
  static std::unique_ptr<ContentPages> gzip(const Context& context, docs::Database database,
                                            docs::Content content);

  /// Reads the first page in the transaction that has found the content.
  void read_first(kv::Transaction& tx) { first_ = read(tx); }

  bool next(std::string& out) override;

 private:
  // The end of the page that begins with range_.first.
  std::uint64_t page_end() const;
  std::string read(kv::Transaction& tx) const;

  const Context& context_;
  const docs::Database database_;
  const docs::Content content_;
  bool is_gzip_ = false;
  http::ByteRange range_;  // what next() has not returned, in bytes of the content
  std::string first_;
};

/// The placeholders of large contents in the text of a response, which are replaced when it is sent. Not
/// thread-safe.
class ContentPlaceholders {
 public:
  explicit ContentPlaceholders(Rng& rng) : rng_(rng) {}

  enum class Encoding { none, base64 };
  /// Appends a content to `out`, or a placeholder if it is large. Throws an internal error if the content is
  /// missing.
  void append(kv::Transaction& tx, const docs::Database& database, const docs::Attachment& attachment,
              Encoding encoding, std::string& out);

  /// Must be called when the transaction begins again, with another text.
  void clear() { contents_.clear(); }
  bool any() const { return !contents_.empty(); }
  std::size_t count() const { return contents_.size(); }
  /// Must be called when the text is cut off after so many placeholders.
  void shrink(std::size_t count) {
    while (contents_.size() > count) contents_.pop_back();
  }
  /// The text, which has all placeholders in the order in which they were appended, with the contents
  /// instead.
  std::unique_ptr<PageSource> pages(const Context& context, std::string text) const;

 private:
  friend class FilledPages;
  struct LargeContent {
    docs::Database database;
    docs::Content content;
    Encoding encoding;
  };

  Rng& rng_;
  std::string placeholder_;  // random, so that it is in no document; empty before the first append()
  std::vector<LargeContent> contents_;
};

/// `body` with the data of its attachments, in base64, instead of stubs, or placeholders of the data; those
/// that were attached up to the generation `known` stay stubs.
std::string with_data_or_placeholders(kv::Transaction& tx, const docs::Database& database,
                                      std::string_view body, std::uint32_t known,
                                      ContentPlaceholders& placeholders);

}  // namespace divan::api
