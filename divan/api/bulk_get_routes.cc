// Reading many documents in one request: _bulk_get.
#include <fmt/core.h>

#include <array>

#include "divan/api/content_pages.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/docs/partition.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/read_ahead.h"
#include "divan/docs/reader.h"

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
    return fmt::format(R"({{"error":{{"id":{},"rev":{},"error":{},"reason":{}}}}})", id_json,
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
class BulkGetPages final : public PageSource {
 public:
  BulkGetPages(const Context& context, const Call& call, const std::string& body)
      : context_(context),
        name_(call.path()[0]),
        latest_(call.flag("latest")),
        attachments_(call.flag("attachments")),
        placeholders_(context.rng) {
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
      page = first == 0 ? "{\"results\":[" : "";
      placeholders_.clear();
      next_ = first;
      read_page(tx, page);
    });
    ahead_.end_page();
    if (next_ == wanted_.size()) page += "]}\n";
    if (placeholders_.any()) {
      contents_ = placeholders_.pages(context_, std::move(page));
      return true;
    }
    out += page;
    return next_ < wanted_.size();
  }

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
    while (next_ < end && out.size() < kPageBytes) {
      ahead_.used();
      const RequestedDocument& wanted = wanted_[next_];
      if (next_++ > 0) out += ",\n";
      out += "{\"id\":" + wanted.id_json + ",\"docs\":[";
      const std::size_t begin = out.size();
      try {
        if (missing) throw Error(*missing);
        if (wanted.error) throw Error(*wanted.error);
        docs::check_id_in(*database, wanted.id);
        append_revisions(tx, *database, wanted, out);
      } catch (const Error& error) {
        out.resize(begin);
        out += wanted.error_json(error);
      }
      out += "]}";
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

  void append_revisions(kv::Transaction& tx, const docs::Database& database, const RequestedDocument& wanted,
                        std::string& out) {
    const auto tree = docs::read_tree(tx, database, wanted.id, kv::Isolation::snapshot);
    const auto selection = wanted.find(tree, latest_);
    if (selection.found.empty()) throw not_found("missing");
    for (const docs::Leaf* leaf : selection.found) {
      out += leaf == selection.found.front() ? "{\"ok\":" : ",{\"ok\":";
      std::string body = docs::read_body(tx, database, *leaf);
      // As in CouchDB, `atts_since` of one document asks for its attachments.
      if (attachments_ || !wanted.known.empty()) {
        const auto known = docs::latest_known_generation(leaf->path, wanted.known);
        body = with_data_or_placeholders(tx, database, body, known, placeholders_);
      }
      docs::append_document(out, wanted.id, *leaf, body, tree, options_);
      out += '}';
    }
  }

  const Context& context_;
  const std::string name_;
  const bool latest_;
  const bool attachments_;
  docs::DocumentOptions options_;
  std::vector<RequestedDocument> wanted_;
  std::size_t next_ = 0;
  docs::ReadAhead ahead_{kPageRows};
  ContentPlaceholders placeholders_;      // of the present page
  std::unique_ptr<PageSource> contents_;  // what is left of that page, if it has large contents
};

}  // namespace

Async<RouteResult> bulk_get(const Context& context, const CallPtr& call) {
  constexpr std::array<std::string_view, 5> kOfSingleDocuments = {"open_revs", "new_edits", "w", "rev",
                                                                  "atts_since"};
  call->allow("POST");
  for (const auto name : kOfSingleDocuments) {
    if (call->param(name)) throw bad_request(fmt::format("\"{}\" query parameter is not acceptable", name));
  }
  auto pages = std::make_unique<BulkGetPages>(context, *call, call->json_body());
  context.store.run([&](kv::Transaction& tx) { context.catalog.open(tx, call->path()[0]); });
  return stream_pages(context, *call, std::move(pages));
}

}  // namespace divan::api
