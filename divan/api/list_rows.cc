#include "divan/api/list_rows.h"

#include "divan/base/check.h"

namespace divan::api {
namespace {

constexpr std::string_view kRows = "\"rows\":[";

}  // namespace

std::string ListRows::next() {
  std::string text;
  while (!is_last_) {
    checkpoint_();
    is_last_ = !listing_->next(text);
    if (head_.empty() && !text.empty()) {
      const auto rows = text.find(kRows);
      DIVAN_CHECK(rows != text.npos, "a listing begins without rows: {}", text.substr(0, 100));
      head_ = text.substr(0, rows);
      if (head_.ends_with(',')) head_.pop_back();
      head_ += '}';
      text.erase(0, rows + kRows.size());
    }
    if (is_last_) {
      DIVAN_CHECK(text.ends_with("]}\n"), "a listing ends with {} bytes", text.size());
      text.resize(text.size() - 3);
    }
    if (text.find('{') != text.npos) break;
  }
  // A page after the first one begins with the comma after the row before it.
  if (text.starts_with(',')) text.front() = ' ';
  return "[" + text + "]";
}

}  // namespace divan::api
