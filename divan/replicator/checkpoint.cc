#include "divan/replicator/checkpoint.h"

#include "divan/base/json.h"

namespace divan::replicator {
namespace {

std::optional<std::string> text_in(std::string_view object, std::string_view name) {
  const auto value = json::member(object, name);
  if (!value || *value == "null") return std::nullopt;
  return json::string_value(*value).value_or(std::string(*value));
}

}  // namespace

std::string Session::json() const {
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("session_id").string(id);
  writer.key("start_time").string(start_time).key("end_time").string(end_time);
  writer.key("start_last_seq").string(start_last_seq).key("end_last_seq").string(end_last_seq);
  writer.key("recorded_seq").string(end_last_seq);
  writer.key("missing_checked").number(missing_checked).key("missing_found").number(missing_found);
  writer.key("docs_read").number(docs_read).key("docs_written").number(docs_written);
  writer.key("doc_write_failures").number(doc_write_failures).end_object();
  return out;
}

std::optional<Checkpoint> Checkpoint::parse(std::string_view json) {
  auto session = text_in(json, "session_id");
  auto sequence = text_in(json, "source_last_seq");
  if (!session || !sequence) return std::nullopt;
  Checkpoint checkpoint{*std::move(session), *std::move(sequence)};
  json::for_each_element(json::member(json, "history").value_or("[]"), [&](std::string_view one) {
    checkpoint.history.emplace_back(one);
    return checkpoint.history.size() < kMaxHistory;
  });
  return checkpoint;
}

std::optional<std::string> common_sequence(const std::optional<Checkpoint>& source,
                                           const std::optional<Checkpoint>& target) {
  if (!source || !target) return std::nullopt;
  if (source->session_id == target->session_id) return source->source_last_seq;
  for (const auto& mine : source->history) {
    const auto id = text_in(mine, "session_id");
    for (const auto& other : target->history) {
      if (id && text_in(other, "session_id") == id) return text_in(mine, "recorded_seq");
    }
  }
  return std::nullopt;
}

std::string checkpoint_body(const Session& session, const std::vector<std::string>& earlier) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("session_id").string(session.id);
  writer.key("source_last_seq").string(session.end_last_seq);
  writer.key("replication_id_version").number(kIdVersion);
  writer.key("history").begin_array().raw(session.json());
  for (std::size_t i = 0; i < earlier.size() && i + 1 < kMaxHistory; ++i) writer.raw(earlier[i]);
  writer.end_array().end_object();
  return out;
}

}  // namespace divan::replicator
