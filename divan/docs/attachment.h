// The attachments of a document: named contents of any type that belong to a revision.
//
// The body of a revision with attachments begins with the member `_attachments`, whose values are the stubs
// that clients see. So every reader of a body shows attachments, without knowing about them. Their contents
// are elsewhere (contents.h). https://docs.couchdb.org/en/stable/api/document/attachments.html
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::docs {

inline constexpr std::string_view kDefaultContentType = "application/octet-stream";

/// An attachment of a stored revision.
struct Attachment {
  std::string name;
  std::string content_type;
  std::uint32_t revpos = 0;  ///< the generation in which it was attached
  std::string md5;           ///< 16 bytes
  std::uint64_t length = 0;
};

class Upload;

/// An attachment of a document that is to be written.
struct IncomingAttachment {
  enum class Source {
    data,      ///< `data`, or `deflated`
    uploaded,  ///< `upload`
    stub,      ///< the attachment of that name in the revision that is replaced
    stored,    ///< a content of the database: `md5` and `length`
    follows,   ///< it follows the document in the request's body, and is to be replaced by data
  };
  std::string name;
  std::string content_type{kDefaultContentType};
  std::optional<std::uint32_t> revpos{};
  Source source = Source::data;
  std::string data{};
  std::vector<std::string> deflated{};  ///< the chunks of the data, compressed: `data` is empty then
  std::uint32_t crc32 = 0;              ///< of the data, with `deflated`
  std::shared_ptr<const Upload> upload{};
  std::string md5{};
  std::string sha256{};
  std::uint64_t length = 0;
  bool is_gzipped = false;                    ///< the client sends it compressed
  std::optional<std::string> expected_md5{};  ///< of a content that is received, if the client has sent it

  /// Sets the source to data, with its digests.
  void set_data(std::string bytes);
  /// The bytes that are written in the document's transaction.
  std::uint64_t data_bytes() const;
  /// As an attachment whose content is stored.
  static IncomingAttachment of(const Attachment& stored);
};

/// Parses the value of `_attachments` in compact JSON. Throws as CouchDB does: doc_validation if it is not an
/// object of objects, bad_request for data that is not base64 and for invalid names and types.
std::vector<IncomingAttachment> parse_attachments(std::string_view json);

/// Throws bad_request unless it is valid: UTF-8, not empty, not beginning with an underscore.
void check_attachment_name(std::string_view name);
/// Throws bad_request unless it is UTF-8 without control characters, which no header field may have.
void check_content_type(std::string_view type);

/// "md5-..." as in stubs.
std::string digest_text(std::string_view md5);

/// The attachments in a stored body. Throws an internal error if it is damaged.
std::vector<Attachment> attachments_of(std::string_view body);
/// The attachment with this name; nullopt if there is none.
std::optional<Attachment> find_attachment(std::string_view body, std::string_view name);
/// `body`, which has none, with attachments.
std::string with_attachments(std::string_view body, const std::vector<Attachment>& attachments);
std::string without_attachments(std::string_view body);

/// Appends the members of an attachment without its content: `"length":5,"stub":true`.
void append_stub(std::string& out, const Attachment& attachment);

/// Appends the members of an attachment that stand for its content: `"data":"aGVsbG8="`.
using AppendContent = std::function<void(std::string& out, const Attachment& attachment)>;
/// `body` with these members of its attachments instead of those of stubs.
std::string with_contents(std::string_view body, const AppendContent& append);

/// The bytes of all of them that are written in the document's transaction.
std::uint64_t data_bytes(const std::vector<IncomingAttachment>& attachments);

}  // namespace divan::docs
