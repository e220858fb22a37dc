#include "divan/index/left_out.h"

#include "divan/base/bytes.h"
#include "divan/base/check.h"

namespace divan::index {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;
using Record = IndexKeys::Record;

}  // namespace

void LeftOutSummary::write(json::Writer& writer) const {
  writer.begin_object().key("documents").number(documents).key("rows").number(rows);
  writer.key("examples").begin_array();
  for (const Example& example : examples) {
    writer.begin_object()
        .key("id")
        .string(example.id)
        .key("rows")
        .number(example.left_out.rows)
        .key("reason")
        .string(example.left_out.reason)
        .end_object();
  }
  writer.end_array().end_object();
}

LeftOutSummary read_left_out(kv::Transaction& tx, const IndexKeys& keys, std::size_t max_examples) {
  LeftOutSummary summary;
  const std::vector<std::string> counters{keys.record(Record::left_out_documents),
                                          keys.record(Record::left_out_rows)};
  const auto counts = tx.get_many(counters, kv::Isolation::snapshot);
  summary.documents = kv::decode_counter(counts[0]);
  summary.rows = kv::decode_counter(counts[1]);
  if (summary.documents == 0) return summary;
  const std::string records = keys.record(Record::left_out);
  tx.scan(kv::below(records), {.limit = max_examples, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            auto id = Reader(key.substr(records.size())).take_string();
            if (!id) throw internal_error("The key of a record of left-out rows is damaged.");
            summary.examples.push_back({*std::move(id), decode_left_out(value)});
            return true;
          });
  return summary;
}

bool lacks_rows(kv::Transaction& tx, const IndexKeys& keys) {
  return kv::decode_counter(tx.get(left_out_documents_key(keys), kv::Isolation::snapshot)) != 0;
}

std::string left_out_documents_key(const IndexKeys& keys) { return keys.record(Record::left_out_documents); }

std::string left_out_key(const IndexKeys& keys, std::string_view id) {
  std::string key = keys.record(Record::left_out);
  Packer(key).string(id);
  return key;
}

LeftOut decode_left_out(std::string_view value) {
  Reader reader(value);
  const auto rows = reader.take_int();
  auto reason = reader.take_string();
  if (!rows || *rows < 0 || !reason || !reader.at_end())
    throw internal_error("A record of left-out rows is damaged.");
  return {*rows, *std::move(reason)};
}

void write_left_out(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                    const std::optional<LeftOut>& before, const std::optional<LeftOut>& after) {
  if (before == after) return;
  DIVAN_CHECK(!after || after->rows >= 0, "a document has {} left-out rows", after->rows);
  if (after) {
    std::string value;
    Packer(value).integer(after->rows).string(utf8_prefix(after->reason, LeftOut::kMaxReasonBytes));
    tx.set(left_out_key(keys, id), value);
  } else {
    tx.clear(left_out_key(keys, id));
  }
  const std::int64_t documents = (after ? 1 : 0) - (before ? 1 : 0);
  const std::int64_t rows = (after ? after->rows : 0) - (before ? before->rows : 0);
  if (documents != 0) tx.add(keys.record(Record::left_out_documents), documents);
  if (rows != 0) tx.add(keys.record(Record::left_out_rows), rows);
}

}  // namespace divan::index
