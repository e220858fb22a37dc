#include "divan/replicator/remote_peer.h"

#include <fmt/core.h>

#include <algorithm>
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
// Documents that are read in a request: in the first one, and at most.
constexpr std::size_t kFirstTogether = 100;
constexpr std::size_t kMostTogether = 500;
// A long poll is ended by the server before the client gives up.
constexpr milliseconds kPollMargin{30'000};

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

void append_revisions(json::Writer& writer, std::span<const docs::Revision> revisions) {
  writer.begin_array();
  for (const auto& revision : revisions) writer.string(revision.to_string());
  writer.end_array();
}

class RemotePeer final : public Peer {
 public:
  RemotePeer(Endpoint endpoint, const RemoteOptions& options)
      : endpoint_(std::move(endpoint)),
        options_(options),
        client_({options.connect_timeout, options.max_response_bytes}) {}

  void create(std::string_view params) override {
    std::string query;
    json::for_each_member(params, [&](std::string_view raw_name, std::string_view value) {
      query += query.empty() ? '?' : '&';
      query += http::percent_encode(json::unescape(raw_name)) + "=" +
               http::percent_encode(json::string_value(value).value_or(std::string(value)));
      return true;
    });
    const auto response = send("PUT", query);
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
    return read_changes(since, limit, replication, "");
  }

  bool wait_for_changes(const std::string& since, const Replication& replication,
                        milliseconds most) override {
    try {
      read_changes(since, 1, replication, fmt::format("&feed=longpoll&timeout={}", most.count()),
                   most + kPollMargin);
    } catch (const Error&) {
      if (!client_.stopped()) throw;
    }
    return !client_.stopped();
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
    std::vector<MissingRevisions> all;
    const bool is_object = json::for_each_member(json, [&](std::string_view raw_id, std::string_view value) {
      all.push_back({json::unescape(raw_id), revisions_of(json::member(value, "missing").value_or("[]")),
                     revisions_of(json::member(value, "possible_ancestors").value_or("[]"))});
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
        if (count == 1) throw;
        together_ = count / 2;
      }
    }
  }

  // A server that refuses a request because of one document, or of its size, is asked for halves of it.
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
      if (json::member(result, "error")) ++refused;
      return true;
    });
    if (!is_array || refused > documents.size()) throw bad_response("is not that of `_bulk_docs`");
    return refused;
  }

  void stop() override { client_.stop(); }

 private:
  ChangesPage read_changes(const std::string& since, std::size_t limit, const Replication& replication,
                           const std::string& feed, milliseconds idle = {}) {
    std::string path = fmt::format("/_changes?style={}&since={}&limit={}{}",
                                   replication.winning_revs_only ? "main_only" : "all_docs",
                                   http::percent_encode(since), limit, feed);
    const auto& filter = replication.filter;
    std::string body = "{}";
    if (filter.has_doc_ids) {
      path += "&filter=_doc_ids";
      body.clear();
      json::Writer writer(body);
      writer.begin_object().key("doc_ids").begin_array();
      for (const auto& id : filter.doc_ids) writer.string(id);
      writer.end_array().end_object();
    } else if (filter.selector) {
      path += "&filter=_selector";
      body = "{\"selector\":" + *filter.selector + "}";
    } else if (!filter.filter.empty()) {
      path += "&filter=" + http::percent_encode(filter.filter);
      json::for_each_member(filter.query_params, [&](std::string_view raw_name, std::string_view value) {
        path += "&" + http::percent_encode(json::unescape(raw_name)) + "=" +
                http::percent_encode(json::string_value(value).value_or(std::string(value)));
        return true;
      });
    }
    const auto json = checked(send("POST", path, body, idle));
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

  ReadDocuments read_all(std::span<const MissingRevisions> wanted, std::size_t& bytes) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object().key("docs").begin_array();
    for (const auto& document : wanted) {
      for (const auto& revision : document.revisions) {
        writer.begin_object().key("id").string(document.id).key("rev").string(revision.to_string());
        if (!document.ancestors.empty()) {
          writer.key("atts_since");
          append_revisions(writer, document.ancestors);
        }
        writer.end_object();
      }
    }
    writer.end_array().end_object();
    const auto json = checked(send("POST", "/_bulk_get?latest=true&revs=true&attachments=true", body));
    bytes = json.size();
    ReadDocuments read;
    std::set<std::string> ids;
    const bool is_array =
        json::for_each_element(json::member(json, "results").value_or(""), [&](std::string_view result) {
          const auto id = string_in(result, "id");
          json::for_each_element(json::member(result, "docs").value_or(""), [&](std::string_view one) {
            ids.insert(id);
            if (const auto document = json::member(one, "ok")) {
              read.documents.emplace_back(*document);
            } else {
              check_is_missing(json::member(one, "error").value_or(""));
              ++read.failures;
            }
            return true;
          });
          return true;
        });
    if (!is_array) throw bad_response("has no `results`");
    // What is missing here would never be copied.
    for (const auto& document : wanted) {
      if (!ids.contains(document.id)) throw bad_response("lacks a document that was asked for");
    }
    return read;
  }

  // A revision that a source lacks cannot be copied. After other errors, the replication tries again later.
  static void check_is_missing(std::string_view error) {
    const auto name = json::string_value(json::member(error, "error").value_or("")).value_or("");
    if (name == "not_found" || name == "too_large" || name == "forbidden") return;
    throw Error(503, "source_failed",
                fmt::format("The source cannot read a document: {}", error.substr(0, 200)));
  }

  HttpResponse send(std::string method, const std::string& path, std::string body = {},
                    milliseconds idle = {}) {
    HttpRequest request{std::move(method),
                        endpoint_.url + path,
                        endpoint_.headers,
                        endpoint_.user,
                        endpoint_.password,
                        std::move(body),
                        idle > milliseconds(0) ? idle : options_.idle_timeout};
    milliseconds pause = kFirstPause;
    for (int retry = 0;; ++retry) {
      try {
        auto response = client_.send(request);
        const bool is_temporary =
            response.status == 429 || (response.status >= 500 && response.status != 501);
        if (!is_temporary || retry >= options_.retries) return response;
      } catch (const ResponseTooLarge&) { throw; } catch (const Error&) {
        if (client_.stopped() || retry >= options_.retries) throw;
      }
      for (milliseconds slept{0}; slept < pause && !client_.stopped(); slept += kFirstPause)
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
    throw Error(response.status, name,
                fmt::format("{}: {} ({})", endpoint_.shown(), reason, response.status));
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
  HttpClient client_;
  std::size_t together_ = kFirstTogether;  // revisions' documents in a request
};

}  // namespace

std::unique_ptr<Peer> connect(const Endpoint& endpoint, const RemoteOptions& options) {
  return std::make_unique<RemotePeer>(endpoint, options);
}

}  // namespace divan::replicator
