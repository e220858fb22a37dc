#include "divan/replicator/remote_peer.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/http/url.h"
#include "divan/replicator/multipart_document.h"
#include "divan/replicator/responses.h"

namespace divan::replicator {
namespace {

using std::chrono::milliseconds;

// Documents that are read in a request: in the first one, and at most.
constexpr std::size_t kFirstTogether = 100;
constexpr std::size_t kMostTogether = 500;
// Revisions in the URL of a request: their names have up to 34 bytes, which some servers' limits allow.
constexpr std::size_t kRevisionsInUrl = 50;
// The heartbeat of a request that waits for changes: proxies close connections that are idle for a minute.
constexpr milliseconds kHeartbeat{30'000};
// Of the response to such a request: heartbeats and a row, and how long it may take.
constexpr std::size_t kMaxLongPollBytes = 1 << 20;
constexpr milliseconds kLongPollTimeout{600'000};

// The statuses of servers without `_bulk_get`, which take it for a document's name.
bool lacks_bulk_get(int status) {
  return status == 400 || status == 404 || status == 405 || status == 415 || status == 501;
}

// The members of an object as parameters of a query: a=1&b=2
std::string query_of(std::string_view object) {
  std::string query;
  json::for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
    if (!query.empty()) query += '&';
    query += http::percent_encode(json::unescape(raw_name)) + "=" +
             http::percent_encode(json::string_value(value).value_or(std::string(value)));
    return true;
  });
  return query;
}

void append_revisions(json::Writer& writer, std::span<const docs::Revision> revisions) {
  writer.begin_array();
  for (const auto& revision : revisions) writer.string(revision.to_string());
  writer.end_array();
}

std::string revisions_json(std::span<const docs::Revision> revisions) {
  std::string json;
  json::Writer writer(json);
  append_revisions(writer, revisions);
  return json;
}

class RemoteWatch final : public PeerWatch {
 public:
  explicit RemoteWatch(std::unique_ptr<http_client::AsyncClient::Pending> wait) : wait_(std::move(wait)) {}

 private:
  const std::unique_ptr<http_client::AsyncClient::Pending> wait_;
};

class RemoteContent final : public ContentReader {
 public:
  explicit RemoteContent(std::unique_ptr<http_client::Stream> stream) : stream_(std::move(stream)) {}
  std::string next() override { return stream_->next(); }

 private:
  const std::unique_ptr<http_client::Stream> stream_;
};

class RemotePeer final : public Peer {
 public:
  RemotePeer(const Endpoint& endpoint, const RemoteOptions& options, const Clock& clock, Rng& rng,
             http_client::AsyncClient& waiter, const std::atomic<bool>& stopped)
      : http_(endpoint, options, clock, stopped), rng_(rng), waiter_(waiter) {}

  void create(std::string_view params) override {
    const auto response = http_.send("PUT", "?" + query_of(params));
    if (response.status != 412) http_.check(response);
  }

  std::string update_sequence() override {
    const auto json = http_.checked(http_.send("GET", ""));
    check_same(json);
    return sequence_in(json, "update_seq");
  }

  std::optional<StoredCheckpoint> read_checkpoint(std::string_view id) override {
    const auto response = http_.send("GET", "/_local/" + http::percent_encode(id));
    if (response.status == 404) return std::nullopt;
    const auto json = http_.checked(response);
    return StoredCheckpoint{string_in(json, "_rev"), json};
  }

  std::string write_checkpoint(std::string_view id, const std::optional<std::string>& revision,
                               std::string_view body) override {
    std::string text = "{";
    text += "\"_id\":" + json::quoted("_local/" + std::string(id));
    if (revision) text += ",\"_rev\":" + json::quoted(*revision);
    text += "," + std::string(body.substr(1));
    check_same(http_.checked(http_.send("GET", "")));
    return string_in(http_.checked(http_.send("PUT", "/_local/" + http::percent_encode(id), text)), "rev");
  }

  ChangesPage changes(const std::string& since, std::size_t limit, const Replication& replication) override {
    for (;; limit = std::max<std::size_t>(limit / 2, 1)) {
      const auto heartbeat = fmt::format("&heartbeat={}", http_.options().idle_timeout.count() / 3 + 1);
      try {
        const auto response = http_.repeat(
            [&] { return http_.send_once(changes_request(since, limit, replication, heartbeat)); });
        return parse_changes(http_.checked(response), limit);
      } catch (const http_client::ResponseTooLarge&) {
        if (limit == 1) throw;
      }
    }
  }

  std::unique_ptr<PeerWatch> watch_changes(const std::string& since, const Replication& replication,
                                           std::function<void()> wake) override {
    auto request = changes_request(since, 1, replication,
                                   fmt::format("&feed=longpoll&heartbeat={}", kHeartbeat.count()));
    request.timeout = kLongPollTimeout;
    auto options = http_.options().http;
    options.max_response_bytes = kMaxLongPollBytes;
    options.memory = nullptr;
    // The changes are then read as others are, and so is an error.
    return std::make_unique<RemoteWatch>(
        waiter_.send(std::move(request), options,
                     [wake = std::move(wake)](const http_client::AsyncClient::Result&) { wake(); }));
  }

  std::vector<MissingRevisions> missing(std::span<const ChangedDocument> documents) override {
    std::string body;
    json::Writer writer(body);
    writer.begin_object();
    for (const auto& document : documents) {
      writer.key(document.id);
      append_revisions(writer, document.revisions);
    }
    writer.end_object();
    return parse_missing(http_.checked(http_.send("POST", "/_revs_diff", body)), documents);
  }

  ReadDocuments read(std::span<const MissingRevisions> wanted) override {
    for (;;) {
      const std::size_t count = std::min(wanted.size(), together_);
      try {
        std::size_t bytes = 0;
        auto read = read_all(wanted.first(count), bytes);
        read.taken = count;
        together_ =
            std::clamp<std::size_t>(count * kReadBytes / std::max<std::size_t>(bytes, 1), 1, kMostTogether);
        return read;
      } catch (const http_client::ResponseTooLarge&) {
        if (count == 1) return read_one_by_one(wanted.front());
        together_ = count / 2;
      }
    }
  }

  std::unique_ptr<ContentReader> open_content(const LargeDocument& document,
                                              const AttachmentContent& content) override {
    auto stream = http_.open(fmt::format("/{}/{}?rev={}", http::percent_encode(document.id),
                                         http::percent_encode(content.name), document.revision.to_string()));
    const int status = stream->status();
    if (status == 403 || status == 404 || status == 410) return nullptr;
    if (status != 200)
      throw ServerError(502, "http_error",
                        fmt::format("{}: An attachment cannot be read ({}).", http_.shown(), status));
    return std::make_unique<RemoteContent>(std::move(stream));
  }

  bool write_large(const LargeDocument& document, Peer& source) override {
    std::optional<MultipartDocument> body;
    bool is_gone = false;
    const auto response = http_.repeat([&] {
      body.emplace(document, source, rng_.uuid());
      auto request = http_.request("PUT", "/" + http::percent_encode(document.id) + "?new_edits=false");
      request.content_type = body->content_type();
      request.body_length = body->length();
      request.next_of_body = [&] { return body->next(); };
      try {
        return http_.send_once(request);
      } catch (const Error&) {
        if (!body->is_gone()) throw;
        is_gone = true;
        return http_client::Response{.status = 404};
      }
    });
    if (is_gone || response.status == 400 || response.status == 413) return false;
    if (response.status == 401 || response.status == 403) {
      // Refused by a function of the target, unless the database is.
      http_.check(http_.send("GET", ""));
      return false;
    }
    http_.check(response);
    return true;
  }

  // If the server refuses a request because of one document, or of its size, each half is sent separately.
  std::size_t write(std::span<const std::string> documents) override {
    std::string body = R"({"new_edits":false,"docs":[)";
    for (std::size_t i = 0; i < documents.size(); ++i) {
      if (i > 0) body += ',';
      body += documents[i];
    }
    body += "]}";
    const auto response = http_.send("POST", "/_bulk_docs", body);
    if (response.status == 400 || response.status == 413) {
      if (documents.size() == 1) return 1;
      const auto half = documents.size() / 2;
      return write(documents.first(half)) + write(documents.subspan(half));
    }
    return parse_bulk_docs(http_.checked(response), documents.size());
  }

 private:
  http_client::Request changes_request(const std::string& since, std::size_t limit,
                                       const Replication& replication, const std::string& feed) const {
    std::string path = fmt::format("/_changes?style={}&since={}&limit={}{}",
                                   replication.winning_revs_only ? "main_only" : "all_docs",
                                   http::percent_encode(since), limit, feed);
    const auto& filter = replication.filter;
    std::string body;
    if (filter.has_doc_ids) {
      path += "&filter=_doc_ids";
      json::Writer writer(body);
      writer.begin_object().key("doc_ids").begin_array();
      for (const auto& id : filter.doc_ids) writer.string(id);
      writer.end_array().end_object();
    } else if (filter.selector) {
      path += "&filter=_selector";
      body = "{\"selector\":" + *filter.selector + "}";
    } else if (!filter.filter.empty()) {
      path += "&filter=" + http::percent_encode(filter.filter) + "&" + query_of(filter.query_params);
    }
    auto request = http_.request(body.empty() ? "GET" : "POST", path);
    request.body = std::move(body);
    return request;
  }

  // The revisions of a document that are too large together. One that is too large by itself is a failure.
  ReadDocuments read_one_by_one(const MissingRevisions& wanted) {
    ReadDocuments all;
    std::size_t all_bytes = 0;
    for (const auto& revision : wanted.revisions) {
      if (all_bytes >= kReadBytes) {
        all.rest.push_back(revision);
        continue;
      }
      const MissingRevisions one{wanted.id, {revision}, wanted.ancestors};
      try {
        std::size_t bytes = 0;
        auto read = read_all({&one, 1}, bytes);
        all_bytes += bytes;
        std::ranges::move(read.documents, std::back_inserter(all.documents));
        std::ranges::move(read.large, std::back_inserter(all.large));
        all.failures += read.failures;
      } catch (const http_client::ResponseTooLarge&) { ++all.failures; }
    }
    all.taken = all.rest.empty() ? 1 : 0;
    return all;
  }

  // First without contents; those of documents with few bytes of them are read together.
  ReadDocuments read_all(std::span<const MissingRevisions> wanted, std::size_t& bytes) {
    ReadDocuments read;
    std::vector<MissingRevisions> again;  // to be read with their contents
    std::uint64_t contents_bytes = 0;     // of these
    const auto read_again = [&] {
      if (again.empty()) return;
      get_documents(
          again, true,
          [&](const MissingRevisions&, std::string_view document) { read.documents.emplace_back(document); },
          read.failures);
      again.clear();
      contents_bytes = 0;
    };
    const auto accept = [&](const MissingRevisions& of, std::string_view document) {
      auto contents = lacking_contents(document, of.ancestors);
      const auto revision = revision_of(json::member(document, "_rev").value_or(""));
      const auto length = total_length(contents);
      if (contents.empty()) {
        read.documents.emplace_back(document);
      } else if (length > kMaxInlineBytes) {
        read.large.push_back({of.id, revision, std::string(document), std::move(contents)});
      } else {
        if (again.empty() || again.back().id != of.id) again.push_back({of.id, {}, of.ancestors});
        again.back().revisions.push_back(revision);
        contents_bytes += length;
        if (contents_bytes > kReadBytes) read_again();
      }
    };
    bytes = get_documents(wanted, false, accept, read.failures);
    read_again();
    return read;
  }

  // Returns the size of the responses.
  std::size_t get_documents(std::span<const MissingRevisions> wanted, bool with_contents,
                            const AcceptDocument& accept, std::size_t& failures) {
    if (has_bulk_get_) {
      const std::string path = "/_bulk_get?latest=true&revs=true";
      const auto response = http_.send("POST", path + (with_contents ? "&attachments=true" : ""),
                                       bulk_get_body(wanted, with_contents));
      has_bulk_get_ = !lacks_bulk_get(response.status);
      if (has_bulk_get_) {
        const auto json = http_.checked(response);
        failures += parse_bulk_get(json, wanted, accept);
        return json.size();
      }
    }
    std::size_t bytes = 0;
    for (const auto& document : wanted) {
      for (std::span<const docs::Revision> rest = document.revisions; !rest.empty();) {
        const auto some = rest.first(std::min(rest.size(), kRevisionsInUrl));
        rest = rest.subspan(some.size());
        const auto json = http_.checked(http_.send("GET", open_revs_path(document, some, with_contents)));
        failures += parse_open_revs(json, document, accept);
        bytes += json.size();
      }
    }
    return bytes;
  }

  static std::string bulk_get_body(std::span<const MissingRevisions> wanted, bool with_contents) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object().key("docs").begin_array();
    for (const auto& document : wanted) {
      for (const auto& revision : document.revisions) {
        writer.begin_object().key("id").string(document.id).key("rev").string(revision.to_string());
        if (with_contents && !document.ancestors.empty()) {
          writer.key("atts_since");
          append_revisions(writer, document.ancestors);
        }
        writer.end_object();
      }
    }
    writer.end_array().end_object();
    return body;
  }

  static std::string open_revs_path(const MissingRevisions& document,
                                    std::span<const docs::Revision> revisions, bool with_contents) {
    auto path = "/" + http::percent_encode(document.id) +
                "?latest=true&revs=true&open_revs=" + http::percent_encode(revisions_json(revisions));
    if (!with_contents) return path;
    // With fewer of them, more contents are sent than are needed.
    const std::span<const docs::Revision> ancestors = document.ancestors;
    const auto known = revisions_json(ancestors.first(std::min(ancestors.size(), kRevisionsInUrl)));
    return path + "&attachments=true&atts_since=" + http::percent_encode(known);
  }

  // Throws if the server says that the database is not the one that it was at first.
  void check_same(std::string_view info) {
    const auto time =
        json::string_value(json::member(info, "instance_start_time").value_or("")).value_or("0");
    if (created_.empty()) created_ = time;
    if (created_ != time)
      throw ServerError(503, "database_recreated",
                        fmt::format("{}: The database was deleted and created again.", http_.shown()));
  }

  HttpDatabase http_;
  std::string created_;  // "0": unknown
  Rng& rng_;
  http_client::AsyncClient& waiter_;
  bool has_bulk_get_ = true;
  std::size_t together_ = kFirstTogether;  // revisions' documents in a request
};

}  // namespace

std::unique_ptr<Peer> connect(const Endpoint& endpoint, const RemoteOptions& options, const Clock& clock,
                              Rng& rng, http_client::AsyncClient& waiter, const std::atomic<bool>& stopped) {
  return std::make_unique<RemotePeer>(endpoint, options, clock, rng, waiter, stopped);
}

}  // namespace divan::replicator
