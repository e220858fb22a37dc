#include "divan/kv/fdb/cluster.h"

#include <fmt/format.h>

namespace divan::kv::fdb {

Cluster::Cluster(const Client& client, const std::string& file, const Clock& clock, Duration answer_timeout)
    : client_(client), clock_(clock), answer_timeout_(answer_timeout) {
  const FdbError code = api().create_database(file.empty() ? nullptr : file.c_str(), &handle_);
  if (code != 0) {
    throw internal_error(fmt::format("FoundationDB's cluster file{}: {}", file.empty() ? "" : " " + file,
                                     api().describe(code)));
  }
  client_.run();
}

Cluster::~Cluster() { api().database_destroy(handle_); }

void Cluster::set_option(DatabaseOption option, std::int64_t value) const {
  const FdbError code = api().database_set_option(
      handle_, static_cast<int>(option), reinterpret_cast<const std::uint8_t*>(&value), sizeof value);
  if (code != 0) throw error_of(api(), code);
}

FdbError Cluster::outcome_of(const Future& future) const {
  if (future.wait(clock_, clock_.now() + answer_timeout_)) return future.error();
  throw Error(ErrorCode::transaction_timed_out,
              fmt::format("The FoundationDB cluster has not answered for {:g} s.", seconds(answer_timeout_)));
}

void Cluster::await(const Future& future) const {
  if (const FdbError code = outcome_of(future); code != 0) throw error_of(api(), code);
}

RawTransaction::RawTransaction(const Cluster& cluster) : cluster_(cluster), api_(cluster.api()) {
  const FdbError code = api_.database_create_transaction(cluster.handle(), &handle_);
  if (code != 0) throw error_of(api_, code);
}

void RawTransaction::set_option(TransactionOption option, std::string_view value) {
  const FdbError code =
      api_.transaction_set_option(handle_, static_cast<int>(option), data_of(value), size_of(value));
  if (code != 0) throw error_of(api_, code);
}

Future RawTransaction::read_version() { return future(api_.transaction_get_read_version(handle_)); }

Future RawTransaction::get(std::string_view key, bool snapshot) {
  return future(api_.transaction_get(handle_, data_of(key), size_of(key), snapshot));
}

Future RawTransaction::get_range(const RangeRequest& request) {
  return future(api_.transaction_get_range(handle_, data_of(request.begin), size_of(request.begin), 0, 1,
                                           data_of(request.end), size_of(request.end), 0, 1, request.limit,
                                           request.target_bytes, static_cast<int>(request.mode),
                                           request.iteration, 1, request.reverse));
}

Future RawTransaction::estimated_bytes(std::string_view begin, std::string_view end) {
  return future(api_.transaction_get_estimated_range_size_bytes(handle_, data_of(begin), size_of(begin),
                                                                data_of(end), size_of(end)));
}

Future RawTransaction::watch(std::string_view key) {
  return future(api_.transaction_watch(handle_, data_of(key), size_of(key)));
}

Future RawTransaction::versionstamp() { return future(api_.transaction_get_versionstamp(handle_)); }

Future RawTransaction::commit() { return future(api_.transaction_commit(handle_)); }

Future RawTransaction::on_error(FdbError code) { return future(api_.transaction_on_error(handle_, code)); }

void RawTransaction::set(std::string_view key, std::string_view value) {
  api_.transaction_set(handle_, data_of(key), size_of(key), data_of(value), size_of(value));
}

void RawTransaction::clear(std::string_view key) {
  api_.transaction_clear(handle_, data_of(key), size_of(key));
}

void RawTransaction::clear_range(std::string_view begin, std::string_view end) {
  api_.transaction_clear_range(handle_, data_of(begin), size_of(begin), data_of(end), size_of(end));
}

void RawTransaction::mutate(Mutation mutation, std::string_view key, std::string_view operand) {
  api_.transaction_atomic_op(handle_, data_of(key), size_of(key), data_of(operand), size_of(operand),
                             static_cast<int>(mutation));
}

void RawTransaction::add_conflict(ConflictRange type, std::string_view begin, std::string_view end) {
  const FdbError code = api_.transaction_add_conflict_range(
      handle_, data_of(begin), size_of(begin), data_of(end), size_of(end), static_cast<int>(type));
  if (code != 0) throw error_of(api_, code);
}

Version RawTransaction::committed_version() const {
  Version version = -1;
  const FdbError code = api_.transaction_get_committed_version(handle_, &version);
  if (code != 0) throw error_of(api_, code);
  return version;
}

std::int64_t RawTransaction::number_in(const Future& future) const {
  std::int64_t number = -1;
  const FdbError code = api_.future_get_int64(future.get(), &number);
  if (code != 0) throw error_of(api_, code);
  return number;
}

std::string RawTransaction::key_in(const Future& future) const {
  const std::uint8_t* key = nullptr;
  int size = 0;
  const FdbError code = api_.future_get_key(future.get(), &key, &size);
  if (code != 0) throw error_of(api_, code);
  return std::string(view(key, size));
}

std::optional<std::string> RawTransaction::value_in(const Future& future) const {
  FdbBool present = 0;
  const std::uint8_t* value = nullptr;
  int size = 0;
  const FdbError code = api_.future_get_value(future.get(), &present, &value, &size);
  if (code != 0) throw error_of(api_, code);
  if (present == 0) return std::nullopt;
  return std::string(view(value, size));
}

std::span<const FdbKeyValue> RawTransaction::rows_in(const Future& future, bool& more) const {
  const FdbKeyValue* rows = nullptr;
  int count = 0;
  FdbBool has_more = 0;
  const FdbError code = api_.future_get_keyvalue_array(future.get(), &rows, &count, &has_more);
  if (code != 0) throw error_of(api_, code);
  more = has_more != 0;
  return {rows, static_cast<std::size_t>(count)};
}

}  // namespace divan::kv::fdb
