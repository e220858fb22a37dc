#include "divan/replicator/responses.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "divan/base/json.h"

namespace divan::replicator {
namespace {

constexpr std::size_t kMaxErrorBytes = 200;
// It becomes a part of URLs.
constexpr std::size_t kMaxSequenceBytes = 8'000;

std::vector<docs::Revision> revisions_of(std::string_view array) {
  std::vector<docs::Revision> revisions;
  json::for_each_element(array, [&](std::string_view one) {
    revisions.push_back(revision_of(one));
    return true;
  });
  return revisions;
}

void check_is_refused(std::string_view error) {
  if (error == "missing_stub") throw Error(412, "missing_stub", "The target lacks an attachment.");
  if (error == "internal_server_error" || error == "internal_error" || error == "timeout" ||
      error == "service_unavailable")
    throw Error(503, "target_failed", fmt::format("The target cannot write a document: {}.", error));
}

void check_is_missing(std::string_view error) {
  const auto name = json::string_value(json::member(error, "error").value_or("")).value_or("");
  if (name == "not_found" || name == "too_large" || name == "forbidden") return;
  throw Error(503, "source_failed",
              fmt::format("The source cannot read a document: {}", shown_text(error, kMaxErrorBytes)));
}

}  // namespace

Error bad_response(std::string_view what) {
  return {502, "bad_response", fmt::format("The other server's response {}.", what)};
}

std::string string_in(std::string_view object, std::string_view name) {
  const auto value = json::member(object, name);
  const auto text = value ? json::string_value(*value) : std::nullopt;
  if (!text) throw bad_response(fmt::format("has no string `{}`", name));
  return *text;
}

std::string sequence_in(std::string_view object, std::string_view name) {
  const auto value = json::member(object, name);
  if (!value || *value == "null") throw bad_response(fmt::format("has no `{}`", name));
  auto sequence = json::string_value(*value).value_or(std::string(*value));
  if (sequence.size() > kMaxSequenceBytes)
    throw bad_response(fmt::format("has a `{}` that is too long", name));
  return sequence;
}

docs::Revision revision_of(std::string_view json) {
  const auto revision = docs::Revision::parse(json::string_value(json).value_or(""));
  if (!revision) throw bad_response("has an invalid revision");
  return *revision;
}

ChangesPage parse_changes(std::string_view json, std::size_t limit) {
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

std::vector<MissingRevisions> parse_missing(std::string_view json,
                                            std::span<const ChangedDocument> documents) {
  std::map<std::string_view, const ChangedDocument*> by_id;
  for (const auto& document : documents) by_id.emplace(document.id, &document);
  std::vector<MissingRevisions> all;
  const bool is_object = json::for_each_member(json, [&](std::string_view raw_id, std::string_view value) {
    MissingRevisions missing{json::unescape(raw_id),
                             revisions_of(json::member(value, "missing").value_or("[]")),
                             revisions_of(json::member(value, "possible_ancestors").value_or("[]"))};
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

std::size_t parse_bulk_get(std::string_view json, std::span<const MissingRevisions> wanted,
                           const AcceptDocument& accept) {
  std::map<std::string_view, const MissingRevisions*> by_id;
  for (const auto& document : wanted) by_id.emplace(document.id, &document);
  std::set<std::string> ids;
  std::size_t failures = 0;
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
  for (const auto& document : wanted) {
    if (!ids.contains(document.id)) throw bad_response("lacks a document that was requested");
  }
  return failures;
}

std::size_t parse_open_revs(std::string_view json, const MissingRevisions& wanted,
                            const AcceptDocument& accept) {
  std::size_t failures = 0, count = 0;
  json::for_each_element(json, [&](std::string_view one) {
    ++count;
    if (const auto document = json::member(one, "ok")) {
      accept(wanted, *document);
    } else {
      revision_of(json::member(one, "missing").value_or(""));
      ++failures;
    }
    return true;
  });
  if (count == 0) throw bad_response("lacks a document that was requested");
  return failures;
}

std::size_t parse_bulk_docs(std::string_view json, std::size_t documents) {
  std::size_t refused = 0;
  const bool is_array = json::for_each_element(json, [&](std::string_view result) {
    if (const auto error = json::member(result, "error")) {
      check_is_refused(json::string_value(*error).value_or(""));
      ++refused;
    }
    return true;
  });
  if (!is_array || refused > documents) throw bad_response("is not that of `_bulk_docs`");
  return refused;
}

}  // namespace divan::replicator
