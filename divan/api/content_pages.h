// Responses with contents of attachments, which may be larger than memory.
#pragma once

#include "divan/api/page_stream.h"
#include "divan/docs/contents.h"

namespace divan::api {

/// A part of a content, from `first` up to `end`.
struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

/// The bytes of a content. It may be removed meanwhile, with the last revision that has it: then next()
/// throws an internal error.
class ContentPages final : public PageSource {
 public:
  ContentPages(const Context& context, docs::Database database, docs::Content content, ContentRange range)
      : context_(context), database_(std::move(database)), content_(std::move(content)), range_(range) {}

  /// Reads the first page in the transaction that has found the content.
  void read_first(kv::Transaction& tx) { first_ = read(tx); }

  bool next(std::string& out) override;

 private:
  std::string read(kv::Transaction& tx) const;

  const Context& context_;
  const docs::Database database_;
  const docs::Content content_;
  ContentRange range_;  // what next() has not returned
  std::string first_;
};

/// A response in which large contents are replaced by marks, until it is sent. Not thread-safe.
class MarkedResponse {
 public:
  explicit MarkedResponse(Rng& rng) : rng_(rng) {}

  enum class Encoding { none, base64 };
  /// Appends a content to `out`, or a mark for it if it is large. Throws an internal error if it is missing.
  void append(kv::Transaction& tx, const docs::Database& database, const docs::Attachment& attachment,
              Encoding encoding, std::string& out);

  /// Forgets what was appended, if the transaction begins again.
  void clear() { marked_.clear(); }
  bool has_marks() const { return !marked_.empty(); }
  /// The response, in which all marks occur in their order, with the contents.
  std::unique_ptr<PageSource> pages(const Context& context, std::string response) const;

 private:
  friend class MarkedPages;
  struct Marked {
    docs::Database database;
    docs::Content content;
    Encoding encoding;
  };

  Rng& rng_;
  std::string mark_;  // occurs in no document, since it is random; empty without marks
  std::vector<Marked> marked_;
};

/// `body` with the data of its attachments, in base64, instead of stubs; those that were attached up to the
/// generation `known` stay stubs.
std::string with_marked_data(kv::Transaction& tx, const docs::Database& database, std::string_view body,
                             std::uint32_t known, MarkedResponse& response);

}  // namespace divan::api
