// Reading many documents in one request: _bulk_get.
#include <fmt/core.h>

#include <array>

#include "divan/api/document_bodies.h"
#include "divan/api/routes.h"
#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/partition.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/read_ahead.h"
#include "divan/docs/reader.h"
#include "divan/http/accept.h"
#include "divan/http/field_list.h"
#include "divan/http/multipart.h"

namespace divan::api {
namespace {

constexpr std::size_t kPageBytes = 256 << 10;
constexpr std::size_t kPageRows = 1'000;

// A requested document.
struct RequestedDocument {
  std::string id;
  std::optional<docs::Revision> revision;  // nullopt: all leaves
  std::vector<docs::Revision> known{};     // `atts_since`: attachments up to these are not sent
  std::optional<Error> error{};            // of the request; if set, nothing is read
  // As shown in the response.
  std::string id_json = "null";
  std::string rev_json = R"("undefined")";

  // With `latest`, all leaves that descend from the revision.
  docs::RevisionSelection find(const docs::RevTree& tree, bool latest) const {
    if (revision) return docs::find_revisions(tree, std::span(&*revision, 1), latest);
    docs::RevisionSelection all;
    for (const auto& leaf : tree) all.found.push_back(&leaf);
    return all;
  }

  std::string error_json(const Error& problem) const {
    // As in CouchDB, where the id is then found to be illegal before the revision is read.
    const bool is_illegal = problem.name() == "illegal_docid" || problem.name() == "illegal_partition";
    return fmt::format(R"({{"id":{},"rev":{},"error":{},"reason":{}}})", id_json,
                       is_illegal && !revision ? "null" : rev_json, json::quoted(problem.name()),
                       json::quoted(problem.reason()));
  }
};

RequestedDocument parse_requested(std::string_view item) {
  RequestedDocument wanted;
  const auto reject = [&](Error error, std::string_view rev = "null") {
    wanted.error = std::move(error);
    wanted.rev_json = rev;
    return wanted;
  };
  if (!item.starts_with('{')) return reject(bad_request("document must be a JSON object"));
  const auto id = json::member(item, "id");
  if (!id) return reject(bad_request("document id missed"));
  const auto text = json::string_value(*id);
  if (!text) return reject(bad_request("Document id must be a string"));
  wanted.id = *text;
  wanted.id_json = json::quoted(wanted.id);
  if (auto error = docs::document_id_error(wanted.id)) return reject(*std::move(error));
  if (const auto rev = json::member(item, "rev")) {
    wanted.revision = docs::Revision::parse(json::string_value(*rev).value_or(""));
    if (!wanted.revision) return reject(bad_request("Invalid rev format"), *rev);
    wanted.rev_json = json::quoted(wanted.revision->to_string());
  }
  const auto since = json::member(item, "atts_since");
  if (!since) return wanted;
  std::optional<std::string_view> invalid;
  const bool is_array = json::for_each_element(*since, [&](std::string_view rev) {
    auto revision = docs::Revision::parse(json::string_value(rev).value_or(""));
    if (revision) wanted.known.push_back(*std::move(revision));
    if (!revision) invalid = rev;
    return revision.has_value();
  });
  if (invalid) return reject(bad_request("Invalid rev format"), *invalid);
  if (!is_array) return reject(bad_request("att_since value must be array of revs."), *since);
  return wanted;
}

// The response, page by page; each page is read in one transaction.
class BulkGetPages : public PageSource {
 public:
  BulkGetPages(const Context& context, const Call& call, const std::string& body)
      : context_(context), name_(call.path()[0]), latest_(call.flag("latest")), placeholders_(context.rng) {
    options_.revs = call.flag("revs");
    const bool is_array =
        json::for_each_element(json::member(body, "docs").value_or(""), [&](std::string_view item) {
          wanted_.push_back(parse_requested(item));
          return true;
        });
    if (!is_array) throw bad_request("Missing JSON list of 'docs'.");
  }

  bool next(std::string& out) override {
    if (contents_) {
      if (!contents_->next(out)) contents_.reset();
      return contents_ || next_ < wanted_.size();
    }
    std::string page;
    const std::size_t first = next_;
    context_.store.run([&](kv::Transaction& tx) {
      page.clear();
      placeholders_.clear();
      next_ = first;
      read_page(tx, page);
    });
    ahead_.end_page();
    if (next_ == wanted_.size()) end(page);
    if (placeholders_.any()) {
      contents_ = placeholders_.pages(context_, std::move(page));
      return true;
    }
    out += page;
    return next_ < wanted_.size();
  }

 protected:
  // Appends the revisions of a document, or an error instead of them.
  virtual void append(kv::Transaction& tx, const docs::Database& database, const RequestedDocument& wanted,
                      const docs::RevTree& tree, const docs::RevisionSelection& revisions,
                      std::string& out) = 0;
  virtual void append_error(const RequestedDocument& wanted, const Error& error, std::string& out) = 0;
  virtual void end(std::string& out) = 0;

  bool is_first() const { return next_ == 0; }
  bool is_empty() const { return wanted_.empty(); }
  const docs::DocumentOptions& options() const { return options_; }
  ContentPlaceholders& placeholders() { return placeholders_; }

 private:
  void read_page(kv::Transaction& tx, std::string& out) {
    const std::size_t end = std::min(wanted_.size(), next_ + ahead_.next());
    prefetch_documents(tx, end);
    std::optional<docs::Database> database;
    std::optional<Error> missing;
    try {
      database = context_.catalog.open(tx, name_);
    } catch (const Error& error) { missing = error; }
    if (database) prefetch_bodies(tx, *database, end);
    for (; next_ < end && out.size() < kPageBytes; ++next_) {
      ahead_.used();
      const RequestedDocument& wanted = wanted_[next_];
      const std::size_t begin = out.size(), contents = placeholders_.count();
      try {
        if (missing) throw Error(*missing);
        if (wanted.error) throw Error(*wanted.error);
        docs::check_id_in(*database, wanted.id);
        const auto tree = docs::read_tree(tx, *database, wanted.id, kv::Isolation::snapshot);
        const auto revisions = wanted.find(tree, latest_);
        if (revisions.found.empty()) throw not_found("missing");
        append(tx, *database, wanted, tree, revisions, out);
      } catch (const Error& error) {
        out.resize(begin);
        placeholders_.shrink(contents);
        append_error(wanted, error, out);
      }
    }
  }

  void prefetch_documents(kv::Transaction& tx, std::size_t end) const {
    if (!tx.is_remote()) return;
    std::vector<std::string_view> ids;
    for (std::size_t i = next_; i < end; ++i) {
      if (!wanted_[i].error) ids.push_back(wanted_[i].id);
    }
    docs::prefetch_documents(tx, context_.catalog, name_, ids);
  }

  void prefetch_bodies(kv::Transaction& tx, const docs::Database& database, std::size_t end) const {
    if (!tx.is_remote()) return;
    std::vector<docs::Leaf> leaves;
    std::uint64_t bytes = 0;
    for (std::size_t i = next_; i < end && bytes < kPageBytes; ++i) {
      if (wanted_[i].error) continue;
      const auto tree = docs::read_tree(tx, database, wanted_[i].id, kv::Isolation::snapshot);
      const auto selection = wanted_[i].find(tree, latest_);
      for (const docs::Leaf* leaf : selection.found) {
        bytes += leaf->body_bytes;
        leaves.push_back(*leaf);
      }
    }
    docs::prefetch_bodies(tx, database, leaves);
  }

  const Context& context_;
  const std::string name_;
  const bool latest_;
  docs::DocumentOptions options_;
  std::vector<RequestedDocument> wanted_;
  std::size_t next_ = 0;
  docs::ReadAhead ahead_{kPageRows};
  ContentPlaceholders placeholders_;      // of the present page
  std::unique_ptr<PageSource> contents_;  // what is left of that page, if it has large contents
};

class JsonPages final : public BulkGetPages {
 public:
  JsonPages(const Context& context, const Call& call, const std::string& body)
      : BulkGetPages(context, call, body),
        attachments_(call.flag("attachments")),
        form_(docs::attachment_form(false, call.flag("att_encoding_info"))) {}

 protected:
  void append(kv::Transaction& tx, const docs::Database& database, const RequestedDocument& wanted,
              const docs::RevTree& tree, const docs::RevisionSelection& revisions,
              std::string& out) override {
    begin(wanted, out);
    for (const docs::Leaf* leaf : revisions.found) {
      out += leaf == revisions.found.front() ? "{\"ok\":" : ",{\"ok\":";
      std::string body = docs::read_body(tx, database, *leaf);
      // As in CouchDB, `atts_since` of one document asks for its attachments.
      if (attachments_ || !wanted.known.empty()) {
        const auto known = docs::latest_known_generation(leaf->path, wanted.known);
        body = with_data_or_placeholders(tx, database, body, known, placeholders());
      } else if (form_ != docs::AttachmentForm::stubs) {
        body = docs::with_attachment_form(tx, database, body, form_);
      }
      docs::append_document(out, wanted.id, *leaf, body, tree, options());
      out += '}';
    }
    out += "]}";
  }

  void append_error(const RequestedDocument& wanted, const Error& error, std::string& out) override {
    begin(wanted, out);
    out += fmt::format(R"({{"error":{}}}]}})", wanted.error_json(error));
  }

  void end(std::string& out) override { out += is_empty() ? "{\"results\":[]}\n" : "]}\n"; }

 private:
  void begin(const RequestedDocument& wanted, std::string& out) const {
    out += is_first() ? "{\"results\":[" : ",\n";
    out += "{\"id\":" + wanted.id_json + ",\"docs\":[";
  }

  const bool attachments_;
  const docs::AttachmentForm form_;
};

// Each revision is a part, with its attachments after it.
class MultipartPages final : public BulkGetPages {
 public:
  MultipartPages(const Context& context, const Call& call, const std::string& body)
      : BulkGetPages(context, call, body), boundary_(context.rng.uuid()), inner_(context.rng.uuid()) {}

  const std::string& boundary() const { return boundary_; }

 protected:
  void append(kv::Transaction& tx, const docs::Database& database, const RequestedDocument& wanted,
              const docs::RevTree& tree, const docs::RevisionSelection& revisions,
              std::string& out) override {
    http::MultipartWriter writer(out, boundary_, !is_first());
    for (const docs::Leaf* leaf : revisions.found) {
      const auto append_json = [&](std::string& json, std::string_view body) {
        docs::append_document(json, wanted.id, *leaf, body, tree, options());
      };
      const auto known = docs::latest_known_generation(leaf->path, wanted.known);
      std::string part;
      const std::string type = append_with_attachments(tx, database, docs::read_body(tx, database, *leaf),
                                                       append_json, known, inner_, placeholders(), part);
      http::Headers fields;
      if (!has_control(wanted.id) && http::trim(wanted.id) == wanted.id)
        fields.push_back({"X-Doc-Id", wanted.id});
      fields.push_back({"X-Rev-Id", leaf->revision().to_string()});
      writer.begin_part(type, fields);
      out += part;
    }
  }

  void append_error(const RequestedDocument& wanted, const Error& error, std::string& out) override {
    http::MultipartWriter writer(out, boundary_, !is_first());
    writer.begin_part(kErrorPart);
    out += wanted.error_json(error);
  }

  void end(std::string& out) override { http::MultipartWriter(out, boundary_, !is_empty()).end(); }

 private:
  // Neither begins with the other: parsers take a line that begins with a boundary for a delimiter.
  const std::string boundary_;
  const std::string inner_;  // of the attachments of a revision
};

}  // namespace

Async<RouteResult> bulk_get(const Context& context, const CallPtr& call) {
  constexpr std::array<std::string_view, 5> kOfSingleDocuments = {"open_revs", "new_edits", "w", "rev",
                                                                  "atts_since"};
  call->allow("POST");
  for (const auto name : kOfSingleDocuments) {
    if (call->param(name)) throw bad_request(fmt::format("\"{}\" query parameter is not acceptable", name));
  }
  const std::string body = call->json_body();
  context.store.run([&](kv::Transaction& tx) { context.catalog.open(tx, call->path()[0]); });
  const std::string accepted = call->list_header("Accept");
  const bool is_mixed = http::accepts_media_type(accepted, "multipart/mixed");
  const bool is_multipart = (is_mixed || http::accepts_media_type(accepted, "multipart/related")) &&
                            !http::accepts_media_type(accepted, "application/json");
  if (!is_multipart) return stream_pages(context, *call, std::make_unique<JsonPages>(context, *call, body));
  auto pages = std::make_unique<MultipartPages>(context, *call, body);
  const std::string type =
      fmt::format("multipart/{}; boundary=\"{}\"", is_mixed ? "mixed" : "related", pages->boundary());
  return stream_pages(context, *call, std::move(pages), http::Response{200, {{"Content-Type", type}}});
}

}  // namespace divan::api
