// Attachments of documents: /{db}/{document}/{name}
// (https://docs.couchdb.org/en/stable/api/document/attachments.html).
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "divan/api/attachment_receiver.h"
#include "divan/api/content_pages.h"
#include "divan/api/database_access.h"
#include "divan/api/routes.h"
#include "divan/api/streamed_body.h"
#include "divan/base/bytes.h"
#include "divan/docs/contents.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/reader.h"

namespace divan::api {
namespace {

Error missing_attachment() { return not_found("Document is missing attachment"); }

// Digits; the greatest number if they are a greater one.
std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) value = UINT64_MAX;
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The one range of a Range field (RFC 9110, 14.2). Returns nullopt, so that all is sent, if it is malformed
// or has several ranges. Throws requested_range_not_satisfiable (416).
std::optional<ContentRange> parse_range(std::string_view field, std::uint64_t length) {
  constexpr std::string_view kUnit = "bytes=";
  if (!http::equal_ignoring_case(field.substr(0, kUnit.size()), kUnit)) return std::nullopt;
  field.remove_prefix(kUnit.size());
  const auto dash = field.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = number(field.substr(0, dash)), last = number(field.substr(dash + 1));
  const bool is_suffix = dash == 0, is_open = dash + 1 == field.size();
  if ((!is_suffix && !first) || (!is_open && !last) || (is_suffix && is_open)) return std::nullopt;
  if (!is_suffix && !is_open && *last < *first) return std::nullopt;
  ContentRange range{.first = 0, .end = length};
  if (is_suffix) {
    range.first = length - std::min(length, *last);
  } else {
    range.first = *first;
    if (!is_open) range.end = std::min(length, *last + (*last < UINT64_MAX ? 1 : 0));
  }
  if (range.first >= range.end)
    throw Error(416, "requested_range_not_satisfiable", "Requested range not satisfiable");
  return range;
}

http::Headers fields_of(const docs::Attachment& attachment, const std::string& etag) {
  // A page in an attachment must not act for the user whose cookie the browser has.
  return {{"ETag", etag},
          {"Cache-Control", "must-revalidate"},
          {"Content-Type", attachment.content_type},
          {"Accept-Ranges", "bytes"},
          {"Content-Security-Policy", "sandbox"}};
}

// Sets the response's status and fields for what the request asks for, and returns that.
ContentRange choose_range(const Call& call, const docs::Attachment& attachment, const std::string& etag,
                          http::Response& head) {
  ContentRange range{.first = 0, .end = attachment.length};
  if (const auto field = call.header("Range"); field && call.header("If-Range").value_or(etag) == etag) {
    if (const auto part = parse_range(*field, attachment.length)) {
      range = *part;
      head.status = 206;
      head.headers.push_back(
          {"Content-Range", fmt::format("bytes {}-{}/{}", range.first, range.end - 1, attachment.length)});
    }
  }
  head.headers.push_back({"Content-Length", std::to_string(range.end - range.first)});
  return range;
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
    const std::string etag = fmt::format("\"{}\"", to_base64(attachment->md5));
    if (auto unchanged = not_modified(call, etag)) {
      head = *std::move(unchanged);
      return;
    }
    head = {200, fields_of(*attachment, etag), {}};
    const auto range = choose_range(call, *attachment, etag, head);
    if (call.exchange()->request().method() == "HEAD") return;
    pages = std::make_unique<ContentPages>(context, database,
                                           docs::read_content(tx, database, attachment->md5), range);
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
  const bool is_gzipped = http::equal_ignoring_case(call.header("Content-Encoding").value_or(""), "gzip");
  AttachmentReceiver receiver(context, call, attachment.name, is_gzipped, content_length(call.request()));
  RequestWaiter waiter(context, call);
  for (bool is_last = false; !is_last;) {
    auto part = co_await read_body(waiter, receiver.wanted_bytes());
    is_last = part.is_last;
    co_await receiver.add(std::move(part.data));
  }
  co_await receiver.finish(attachment, UINT64_MAX);
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
