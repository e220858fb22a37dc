// Attachments of documents: /{db}/{document}/{name}
// (https://docs.couchdb.org/en/stable/api/document/attachments.html).
#include <fmt/core.h>

#include <algorithm>

#include "divan/api/attachment_receiver.h"
#include "divan/api/content_pages.h"
#include "divan/api/database_access.h"
#include "divan/api/routes.h"
#include "divan/api/streamed_body.h"
#include "divan/base/bytes.h"
#include "divan/docs/contents.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/reader.h"
#include "divan/http/accept.h"

namespace divan::api {
namespace {

Error missing_attachment() { return not_found("Document is missing attachment"); }

// The ETag of an attachment, or of its content in gzip: a client that continues a download must not put bytes
// of both together.
std::string attachment_etag(const docs::Attachment& attachment, bool is_gzip) {
  return fmt::format("\"{}{}\"", to_base64(attachment.md5), is_gzip ? "-gzip" : "");
}

bool takes_gzip(const Call& call, const docs::Content& content) {
  return content.deflated && http::accepts_gzip(call.list_header("Accept-Encoding"));
}

// 304 if the client has the attachment, in either form.
std::optional<http::Response> known_attachment(const Call& call, const docs::Attachment& attachment,
                                               const docs::Content& content) {
  for (const bool is_gzip : {true, false}) {
    if (is_gzip && !takes_gzip(call, content)) continue;
    auto unchanged = not_modified(call, attachment_etag(attachment, is_gzip));
    if (!unchanged) continue;
    if (content.deflated) unchanged->headers.push_back({"Vary", "Accept-Encoding"});
    return unchanged;
  }
  return std::nullopt;
}

// A response with the content of an attachment.
struct ContentResponse {
  http::Response head;
  bool is_gzip = false;
  http::ByteRange range;  // of the content, unless it is gzip
};

// What the request asks for. Throws requested_range_not_satisfiable (416).
ContentResponse choose_response(const Call& call, const docs::Attachment& attachment,
                                const docs::Content& content) {
  // A page in an attachment must not act for the user whose cookie the browser has.
  ContentResponse response{.head = {200,
                                    {{"Cache-Control", "must-revalidate"},
                                     {"Content-Type", attachment.content_type},
                                     {"Accept-Ranges", "bytes"},
                                     {"Content-Security-Policy", "sandbox"}}},
                           .range = {.first = 0, .end = attachment.length}};
  auto& headers = response.head.headers;
  const std::string etag = attachment_etag(attachment, false);
  const auto field = call.header("Range");
  const auto part = field && call.header("If-Range").value_or(etag) == etag
                        ? http::parse_range(*field, attachment.length)
                        : std::nullopt;
  response.is_gzip = !part && takes_gzip(call, content);
  headers.push_back({"ETag", attachment_etag(attachment, response.is_gzip)});
  if (content.deflated) headers.push_back({"Vary", "Accept-Encoding"});
  if (part) {
    response.range = *part;
    response.head.status = 206;
    headers.push_back(
        {"Content-Range", fmt::format("bytes {}-{}/{}", part->first, part->end - 1, attachment.length)});
  }
  std::uint64_t length = response.range.end - response.range.first;
  if (response.is_gzip) {
    headers.push_back({"Content-Encoding", "gzip"});
    length = content.deflated->length + docs::kGzipBytes;
  }
  headers.push_back({"Content-Length", std::to_string(length)});
  return response;
}

Async<RouteResult> get_attachment(const Context& context, Call& call, const std::string& id,
                                  const std::string& name) {
  const auto rev = call.param("rev");
  const auto revision = rev ? std::optional(docs::parse_revision(*rev)) : std::nullopt;
  http::Response head;
  std::unique_ptr<ContentPages> pages;
  co_await call.run(context.store, [&](kv::Transaction& tx) {
    docs::prefetch_document(tx, context.catalog, call.path()[0], id);
    const auto database = context.catalog.open(tx, call.path()[0]);
    const auto attachment = docs::find_attachment(docs::find_document(tx, database, id, revision).body, name);
    if (!attachment) throw missing_attachment();
    const auto content = docs::read_content(tx, database, attachment->md5);
    if (auto unchanged = known_attachment(call, *attachment, content)) {
      head = *std::move(unchanged);
      return;
    }
    ContentResponse response;
    try {
      response = choose_response(call, *attachment, content);
    } catch (const Error& error) {
      if (error.status() != 416) throw;
      head = http::error_response(error);
      head.headers.push_back({"Content-Range", fmt::format("bytes */{}", attachment->length)});
      return;
    }
    head = std::move(response.head);
    if (call.exchange()->request().method() == "HEAD") return;
    pages = response.is_gzip ? ContentPages::gzip(context, database, content)
                             : std::make_unique<ContentPages>(context, database, content, response.range);
    pages->read_first(tx);
  });
  if (!pages) co_return head;
  co_await call.executor().allow_blocking();
  co_return co_await stream_pages(context, call, std::move(pages), std::move(head));
}

// The document without the attachment, as an edit of its revision `document.revision`. Throws conflict if
// that is not a leaf. Returns false if it had no such attachment.
bool read_edited(kv::Transaction& tx, const docs::Database& database, docs::IncomingDocument& document,
                 const std::string& name) {
  const auto tree = docs::read_tree(tx, database, document.id);
  const docs::Leaf* leaf = docs::find_leaf(tree, *document.revision);
  if (leaf == nullptr || leaf->deleted) throw conflict();
  const std::string body = docs::read_body(tx, database, *leaf);
  document.body = docs::without_attachments(body);
  document.attachments.clear();
  bool found = false;
  for (const auto& attachment : docs::attachments_of(body)) {
    if (attachment.name == name) {
      found = true;
    } else {
      document.attachments.push_back(
          {.name = attachment.name, .source = docs::IncomingAttachment::Source::stub});
    }
  }
  return found;
}

Async<void> receive(const Context& context, Call& call, docs::IncomingAttachment& attachment) {
  attachment.is_gzipped = http::equal_ignoring_case(call.header("Content-Encoding").value_or(""), "gzip");
  AttachmentReceiver receiver(context, call, attachment, content_length(call.request()));
  RequestWaiter waiter(context, call);
  for (bool is_last = false; !is_last;) {
    auto part = co_await read_body(waiter, receiver.wanted_bytes());
    is_last = part.is_last;
    co_await receiver.add(std::move(part.data));
  }
  co_await receiver.finish(UINT64_MAX);
}

Async<RouteResult> put_attachment(const Context& context, Call& call, const std::string& id,
                                  const std::string& name) {
  docs::check_document_id(id);
  docs::check_attachment_name(name);
  docs::IncomingAttachment attachment{.name = name};
  if (const auto type = call.header("Content-Type")) attachment.content_type = *type;
  docs::check_content_type(attachment.content_type);
  docs::IncomingDocument document;
  document.id = id;
  document.body = "{}";
  document.revision = named_revision(call, std::nullopt);
  // Before the content is received, which may take long.
  co_await call.run(context.store, [&](kv::Transaction& tx) {
    const auto database = context.catalog.open(tx, call.path()[0]);
    if (document.revision) {
      read_edited(tx, database, document, name);
    } else {
      const auto tree = docs::read_tree(tx, database, id, kv::Isolation::snapshot);
      if (!tree.empty() && !tree.front().deleted) throw conflict();
    }
  });
  check_before_upload(context, call, document);
  if (const auto md5 = call.header("Content-MD5"))
    attachment.expected_md5 = from_base64(*md5).value_or("malformed");
  co_await receive(context, call, attachment);
  if (call.has_streamed_body()) co_await authorize_again(context, call);
  document.attachments.push_back(std::move(attachment));
  const auto path = fmt::format("/{}/{}/{}", http::percent_encode(call.path()[0]), http::percent_encode(id),
                                http::percent_encode(name));
  http::Headers headers{{"Location", absolute_uri(call, path)}};
  co_return co_await write_document(context, call, std::move(document), 201, std::move(headers));
}

Async<RouteResult> delete_attachment(const Context& context, Call& call, const std::string& id,
                                     const std::string& name) {
  docs::IncomingDocument document;
  document.id = id;
  document.revision = named_revision(call, std::nullopt);
  co_await call.run(context.store, [&](kv::Transaction& tx) {
    const auto database = context.catalog.open(tx, call.path()[0]);
    if (document.revision) {
      if (!read_edited(tx, database, document, name)) throw missing_attachment();
      return;
    }
    if (!docs::find_attachment(docs::find_document(tx, database, id, std::nullopt).body, name))
      throw missing_attachment();
    throw conflict();
  });
  co_return co_await write_document(context, call, std::move(document), 200);
}

}  // namespace

Async<RouteResult> attachment(const Context& context, Call& call, std::string id, std::string name) {
  call.allow("GET,PUT,DELETE");
  if (call.method() == "PUT") co_return co_await put_attachment(context, call, id, name);
  if (call.method() == "DELETE") co_return co_await delete_attachment(context, call, id, name);
  co_return co_await get_attachment(context, call, id, name);
}

}  // namespace divan::api
