#include "divan/api/list_rows.h"

#include "divan/base/precompiled_test.h"

namespace divan::api {
namespace {

class Pages final : public PageSource {
 public:
  explicit Pages(std::vector<std::string> pages) : pages_(std::move(pages)) {}
  bool next(std::string& out) override {
    out += pages_.at(next_++);
    return next_ < pages_.size();
  }

 private:
  std::vector<std::string> pages_;
  std::size_t next_ = 0;
};

// The head and the pages of rows.
std::vector<std::string> taken_apart(std::vector<std::string> pages, int* checkpoints = nullptr) {
  ListRows rows(std::make_unique<Pages>(std::move(pages)), [&] {
    if (checkpoints != nullptr) ++*checkpoints;
  });
  std::vector<std::string> parts = {rows.next()};
  while (!rows.is_last()) parts.push_back(rows.next());
  parts.insert(parts.begin(), rows.head());
  return parts;
}

using ::testing::ElementsAre;

TEST(ApiListRows, AListingIsAHeadAndPagesOfRows) {
  EXPECT_THAT(
      taken_apart(
          {"{\"total_rows\":2,\"offset\":null,\"rows\":[\n{\"id\":\"a\"}", ",\n{\"id\":\"b\"}\n]}\n"}),
      ElementsAre(R"({"total_rows":2,"offset":null})", "[\n{\"id\":\"a\"}]", "[ \n{\"id\":\"b\"}\n]"));
}

TEST(ApiListRows, AReducedViewHasAnEmptyHead) {
  EXPECT_THAT(taken_apart({"{\"rows\":[\n{\"key\":null,\"value\":1}\n]}\n"}),
              ElementsAre("{}", "[\n{\"key\":null,\"value\":1}\n]"));
}

TEST(ApiListRows, NoRows) {
  EXPECT_THAT(taken_apart({"{\"total_rows\":0,\"offset\":0,\"rows\":[]}\n"}),
              ElementsAre(R"({"total_rows":0,"offset":0})", "[]"));
  EXPECT_THAT(taken_apart({"{\"rows\":[", "", "\n]}\n"}), ElementsAre("{}", "[\n]"));
}

// Pages without rows, such as those of a reduction, are not shown.
TEST(ApiListRows, EmptyPiecesAreSkippedButCheckpointsAreNot) {
  int checkpoints = 0;
  EXPECT_THAT(taken_apart({"{\"rows\":[", "", "\n{\"a\":1}", "", ",\n{\"b\":1}", "\n]}\n"}, &checkpoints),
              ElementsAre("{}", "[\n{\"a\":1}]", "[ \n{\"b\":1}]", "[\n]"));
  EXPECT_EQ(checkpoints, 6);
}

}  // namespace
}  // namespace divan::api
