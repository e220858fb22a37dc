#include "divan/replicator/remote_peer.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/http/url.h"
#include "divan/replicator/http_client.h"

namespace divan::replicator {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{250};
// Of another server's error.
constexpr std::size_t kMaxReasonBytes = 500;
// Documents that are read in a request: in the first one, and at most.
constexpr std::size_t kFirstTogether = 100;
constexpr std::size_t kMostTogether = 500;
// The heartbeat of a request that waits for changes.
constexpr milliseconds kHeartbeat{30'000};

Error bad_response(std::string_view what) {
  return {502, "bad_response", fmt::format("The other server's response {}.", what)};
}

std::string string_in(std::string_view object, std::string_view name) {
  const auto value = json::member(object, name);
  const auto text = value ? json::string_value(*value) : std::nullopt;
  if (!text) throw bad_response(fmt::format("has no string `{}`", name));
  return *text;
}

// Sequences are strings, in old servers numbers.
std::string sequence_in(std::string_view object, std::string_view name) {
  const auto value = json::member(object, name);
  if (!value || *value == "null") throw bad_response(fmt::format("has no `{}`", name));
  return json::string_value(*value).value_or(std::string(*value));
}

docs::Revision revision_of(std::string_view json) {
  const auto revision = docs::Revision::parse(json::string_value(json).value_or(""));
  if (!revision) throw bad_response("has an invalid revision");
  return *revision;
}

std::vector<docs::Revision> revisions_of(std::string_view array) {
  std::vector<docs::Revision> revisions;
  json::for_each_element(array, [&](std::string_view one) {
    revisions.push_back(revision_of(one));
    return true;
  });
  return revisions;
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

// The body of a PUT of a document with contents (multipart/related, RFC 2387).
class MultipartDocument {
 public:
  // `document` and `source` must outlive it.
  MultipartDocument(const LargeDocument& document, Peer& source, std::string boundary)
      : document_(document), source_(source), boundary_(std::move(boundary)), length_(end().size()) {
    for (std::size_t i = 0; i <= document_.contents.size(); ++i) length_ += begin_of(i).size();
    length_ += total_length(document_.contents);
  }

  std::string content_type() const { return "multipart/related; boundary=\"" + boundary_ + "\""; }
  std::uint64_t length() const { return length_; }
  // True if the source no longer has an attachment.
  bool is_gone() const { return is_gone_; }

  std::string next() {
    if (reader_) {
      auto bytes = reader_->next();
      if (bytes.empty() ? left_ > 0 : bytes.size() > left_)
        throw bad_response("has another length of an attachment than its document says");
      left_ -= bytes.size();
      if (!bytes.empty()) return bytes;
      reader_.reset();
    }
    if (part_ > document_.contents.size()) return std::exchange(is_ended_, true) ? "" : end();
    if (part_ > 0) {
      const auto& content = document_.contents[part_ - 1];
      left_ = content.length;
      reader_ = source_.open_content(document_, content);
      if (!reader_) {
        is_gone_ = true;
        throw not_found();
      }
    }
    return begin_of(part_++);
  }

 private:
  // What precedes a content: 0 is the document.
  std::string begin_of(std::size_t part) const {
    if (part == 0) return "--" + boundary_ + "\r\nContent-Type: application/json\r\n\r\n" + document_json();
    return "\r\n--" + boundary_ + "\r\n\r\n";
  }
  std::string end() const { return "\r\n--" + boundary_ + "--"; }

  // With `follows` for the contents that follow.
  std::string document_json() const {
    std::string out;
    json::Writer writer(out);
    writer.begin_object();
    json::for_each_member(document_.json, [&](std::string_view raw_name, std::string_view value) {
      const auto name = json::unescape(raw_name);
      writer.key(name);
      name == "_attachments" ? append_attachments(writer, value) : static_cast<void>(writer.raw(value));
      return true;
    });
    writer.end_object();
    return out;
  }
  // Contents follow in the order of their names here, which is that of `contents`.
  void append_attachments(json::Writer& writer, std::string_view attachments) const {
    writer.begin_object();
    auto content = document_.contents.begin();
    json::for_each_member(attachments, [&](std::string_view raw_name, std::string_view stub) {
      const auto name = json::unescape(raw_name);
      writer.key(name);
      if (content == document_.contents.end() || content->name != name) {
        writer.raw(stub);
        return true;
      }
      writer.begin_object().key("content_type").string(content->type);
      if (const auto revpos = json::member(stub, "revpos")) writer.key("revpos").raw(*revpos);
      writer.key("length").number(static_cast<std::int64_t>(content->length));
      writer.key("follows").boolean(true).end_object();
      ++content;
      return true;
    });
    writer.end_object();
  }

  const LargeDocument& document_;
  Peer& source_;
  const std::string boundary_;
  std::uint64_t length_;
  std::size_t part_ = 0;  // the next one
  std::unique_ptr<ContentReader> reader_;
  std::uint64_t left_ = 0;  // bytes of the reader's content
  bool is_gone_ = false;
  bool is_ended_ = false;
};

class RemoteWatch final : public ChangesWatch {
 public:
  explicit RemoteWatch(std::unique_ptr<HttpWaiter::Wait> wait) : wait_(std::move(wait)) {}

 private:
  const std::unique_ptr<HttpWaiter::Wait> wait_;
};

class RemoteContent final : public ContentReader {
 public:
  explicit RemoteContent(std::unique_ptr<HttpStream> stream) : stream_(std::move(stream)) {}
  std::string next() override { return stream_->next(); }

 private:
  const std::unique_ptr<HttpStream> stream_;
};

class RemotePeer final : public Peer {
 public:
  RemotePeer(Endpoint endpoint, const RemoteOptions& options, Rng& rng, HttpWaiter& waiter,
             const std::atomic<bool>& stopped)
      : endpoint_(std::move(endpoint)), options_(options), rng_(rng), waiter_(waiter), stopped_(stopped) {}

  void create(std::string_view params) override {
    const auto response = send("PUT", "?" + query_of(params));
    if (response.status != 412) check(response);
  }

  std::string update_sequence() override { return sequence_in(checked(send("GET", "")), "update_seq"); }

  std::optional<StoredCheckpoint> read_checkpoint(std::string_view id) override {
    const auto response = send("GET", "/_local/" + http::percent_encode(id));
    if (response.status == 404) return std::nullopt;
    const auto json = checked(response);
    return StoredCheckpoint{string_in(json, "_rev"), json};
  }

  std::string write_checkpoint(std::string_view id, const std::optional<std::string>& revision,
                               std::string_view body) override {
    std::string text = "{";
    text += "\"_id\":" + json::quoted("_local/" + std::string(id));
    if (revision) text += ",\"_rev\":" + json::quoted(*revision);
    text += "," + std::string(body.substr(1));
    return string_in(checked(send("PUT", "/_local/" + http::percent_encode(id), text)), "rev");
  }

  ChangesPage changes(const std::string& since, std::size_t limit, const Replication& replication) override {
    const auto json =
        checked(repeat([&] { return send_once(changes_request(since, limit, replication, "")); }));
    ChangesPage page;
    const bool is_array =
        json::for_each_element(json::member(json, "results").value_or(""), [&](std::string_view row) {
          ChangedDocument changed{string_in(row, "id"), {}};
          json::for_each_element(json::member(row, "changes").value_or(""), [&](std::string_view change) {
            changed.revisions.push_back(revision_of(json::member(change, "rev").value_or("")));
            return true;
          });
          page.documents.push_back(std::move(changed));
          return true;
        });
    if (!is_array) throw bad_response("has no `results`");
    page.last_sequence = sequence_in(json, "last_seq");
    if (const auto pending = json::member(json, "pending")) page.pending = json::int_value(*pending);
    page.is_last = page.documents.size() < limit;
    if (page.pending && !page.documents.empty()) page.is_last = *page.pending == 0;
    return page;
  }

  std::unique_ptr<ChangesWatch> watch_changes(const std::string& since, const Replication& replication,
                                              std::function<void()> wake) override {
    auto request = changes_request(since, 1, replication,
                                   fmt::format("&feed=longpoll&heartbeat={}", kHeartbeat.count()));
    request.idle_timeout = 2 * kHeartbeat;
    return std::make_unique<RemoteWatch>(
        waiter_.wait_for(std::move(request), options_.http, std::move(wake)));
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
    const auto json = checked(send("POST", "/_revs_diff", body));
    std::map<std::string_view, const ChangedDocument*> by_id;
    for (const auto& document : documents) by_id.emplace(document.id, &document);
    std::vector<MissingRevisions> all;
    const bool is_object = json::for_each_member(json, [&](std::string_view raw_id, std::string_view value) {
      MissingRevisions missing{json::unescape(raw_id),
                               revisions_of(json::member(value, "missing").value_or("[]")),
                               revisions_of(json::member(value, "possible_ancestors").value_or("[]"))};
      // Other revisions are not sent to the target, since a filter may exclude them.
      const auto asked = by_id.find(missing.id);
      std::erase_if(missing.revisions, [&](const docs::Revision& revision) {
        return asked == by_id.end() ||
               std::ranges::find(asked->second->revisions, revision) == asked->second->revisions.end();
      });
      if (!missing.revisions.empty()) all.push_back(std::move(missing));
      return true;
    });
    if (!is_object) throw bad_response("is not an object");
    return all;
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
      } catch (const ResponseTooLarge&) {
        if (count == 1) return read_one_by_one(wanted.front());
        together_ = count / 2;
      }
    }
  }

  std::unique_ptr<ContentReader> open_content(const LargeDocument& document,
                                              const AttachmentContent& content) override {
    auto request =
        request_of("GET", fmt::format("/{}/{}?rev={}", http::percent_encode(document.id),
                                      http::percent_encode(content.name), document.revision.to_string()));
    auto stream = open(request, options_.http, stopped_);
    const int status = stream->status();
    if (status == 404) return nullptr;
    if (status != 200)
      throw Error(status >= 400 && status < 600 ? status : 502, "http_error",
                  fmt::format("{}: An attachment cannot be read ({}).", endpoint_.shown(), status));
    return std::make_unique<RemoteContent>(std::move(stream));
  }

  bool write_large(const LargeDocument& document, Peer& source) override {
    std::optional<MultipartDocument> body;
    bool is_gone = false;
    const auto response = repeat([&] {
      body.emplace(document, source, rng_.uuid());
      auto request = request_of("PUT", "/" + http::percent_encode(document.id) + "?new_edits=false");
      request.content_type = body->content_type();
      request.body_length = body->length();
      request.next_of_body = [&] { return body->next(); };
      try {
        return send_once(request);
      } catch (const Error&) {
        if (!body->is_gone()) throw;
        is_gone = true;
        return HttpResponse{404, {}};
      }
    });
    if (is_gone || response.status == 400 || response.status == 403 || response.status == 413) return false;
    check(response);
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
    const auto response = send("POST", "/_bulk_docs", body);
    if (response.status == 400 || response.status == 413) {
      if (documents.size() == 1) return 1;
      const auto half = documents.size() / 2;
      return write(documents.first(half)) + write(documents.subspan(half));
    }
    const auto json = checked(response);
    std::size_t refused = 0;
    const bool is_array = json::for_each_element(json, [&](std::string_view result) {
      if (const auto error = json::member(result, "error")) {
        check_is_refused(json::string_value(*error).value_or(""));
        ++refused;
      }
      return true;
    });
    if (!is_array || refused > documents.size()) throw bad_response("is not that of `_bulk_docs`");
    return refused;
  }

 private:
  HttpRequest changes_request(const std::string& since, std::size_t limit, const Replication& replication,
                              const std::string& feed) const {
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
    auto request = request_of(body.empty() ? "GET" : "POST", path);
    request.body = std::move(body);
    return request;
  }

  // The revisions of a document that are too large together. One that is too large by itself is a failure.
  ReadDocuments read_one_by_one(const MissingRevisions& wanted) {
    ReadDocuments all{.taken = 1};
    for (const auto& revision : wanted.revisions) {
      const MissingRevisions one{wanted.id, {revision}, wanted.ancestors};
      try {
        std::size_t bytes = 0;
        auto read = read_all({&one, 1}, bytes);
        std::ranges::move(read.documents, std::back_inserter(all.documents));
        std::ranges::move(read.large, std::back_inserter(all.large));
        all.failures += read.failures;
      } catch (const ResponseTooLarge&) { ++all.failures; }
    }
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

  // Returns the size of the response.
  template <class Accept>
  std::size_t get_documents(std::span<const MissingRevisions> wanted, bool with_contents,
                            const Accept& accept, std::size_t& failures) {
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
    const std::string path = "/_bulk_get?latest=true&revs=true";
    const auto json = checked(send("POST", path + (with_contents ? "&attachments=true" : ""), body));
    std::map<std::string_view, const MissingRevisions*> by_id;
    for (const auto& document : wanted) by_id.emplace(document.id, &document);
    std::set<std::string> ids;
    const bool is_array =
        json::for_each_element(json::member(json, "results").value_or(""), [&](std::string_view result) {
          const auto id = string_in(result, "id");
          const auto asked = by_id.find(id);
          if (asked == by_id.end()) throw bad_response("has a document that was not requested");
          json::for_each_element(json::member(result, "docs").value_or(""), [&](std::string_view one) {
            ids.insert(id);
            if (const auto document = json::member(one, "ok")) {
              accept(*asked->second, *document);
            } else {
              check_is_missing(json::member(one, "error").value_or(""));
              ++failures;
            }
            return true;
          });
          return true;
        });
    if (!is_array) throw bad_response("has no `results`");
    // What is missing here would never be copied.
    for (const auto& document : wanted) {
      if (!ids.contains(document.id)) throw bad_response("lacks a document that was requested");
    }
    return json.size();
  }

  // Throws if a document was not written for another reason than itself.
  static void check_is_refused(std::string_view error) {
    if (error == "missing_stub") throw Error(412, "missing_stub", "The target lacks an attachment.");
    if (error == "internal_server_error" || error == "internal_error" || error == "timeout" ||
        error == "service_unavailable")
      throw Error(503, "target_failed", fmt::format("The target cannot write a document: {}.", error));
  }

  // A revision that a source lacks cannot be copied. After other errors, the replication tries again later.
  static void check_is_missing(std::string_view error) {
    const auto name = json::string_value(json::member(error, "error").value_or("")).value_or("");
    if (name == "not_found" || name == "too_large" || name == "forbidden") return;
    throw Error(503, "source_failed",
                fmt::format("The source cannot read a document: {}", error.substr(0, 200)));
  }

  HttpRequest request_of(std::string method, const std::string& path) const {
    return {.method = std::move(method),
            .url = endpoint_.url + path,
            .headers = endpoint_.headers,
            .user = endpoint_.user,
            .password = endpoint_.password,
            .idle_timeout = options_.idle_timeout};
  }

  HttpResponse send_once(const HttpRequest& request) const {
    return replicator::send(request, options_.http, stopped_);
  }

  HttpResponse send(std::string method, const std::string& path, std::string body = {}) {
    auto request = request_of(std::move(method), path);
    request.body = std::move(body);
    return repeat([&] { return send_once(request); });
  }

  // Sends a request until there is a response that is not temporary.
  template <class Send>
  HttpResponse repeat(const Send& send) {
    milliseconds pause = kFirstPause;
    for (int retry = 0;; ++retry) {
      try {
        auto response = send();
        const bool is_temporary =
            response.status == 429 || (response.status >= 500 && response.status != 501);
        if (!is_temporary || retry >= options_.retries) return response;
      } catch (const ResponseTooLarge&) { throw; } catch (const Error& error) {
        // After a timeout, others should have their turns: the job is tried again later.
        if (stopped_ || error.status() == 504 || retry >= options_.retries) throw;
      }
      for (milliseconds slept{0}; slept < pause && !stopped_; slept += kFirstPause)
        std::this_thread::sleep_for(kFirstPause);
      pause *= 2;
    }
  }

  // Throws the error of a response whose status is not 2xx.
  void check(const HttpResponse& response) const {
    if (response.status >= 200 && response.status < 300) return;
    std::string name = "http_error", reason = "no reason";
    if (response.body.starts_with('{')) {
      name = json::string_value(json::member(response.body, "error").value_or("")).value_or(name);
      reason = json::string_value(json::member(response.body, "reason").value_or("")).value_or(reason);
    }
    throw Error(
        response.status, std::string(shown_text(name, kMaxReasonBytes)),
        fmt::format("{}: {} ({})", endpoint_.shown(), shown_text(reason, kMaxReasonBytes), response.status));
  }

  // The JSON of a response.
  std::string checked(const HttpResponse& response) const {
    check(response);
    try {
      return json::compact(response.body);
    } catch (const Error&) { throw bad_response("is not JSON"); }
  }

  const Endpoint endpoint_;
  const RemoteOptions options_;
  Rng& rng_;
  HttpWaiter& waiter_;
  const std::atomic<bool>& stopped_;
  std::size_t together_ = kFirstTogether;  // revisions' documents in a request
};

}  // namespace

std::unique_ptr<Peer> connect(const Endpoint& endpoint, const RemoteOptions& options, Rng& rng,
                              HttpWaiter& waiter, const std::atomic<bool>& stopped) {
  return std::make_unique<RemotePeer>(endpoint, options, rng, waiter, stopped);
}

}  // namespace divan::replicator
