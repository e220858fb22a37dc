#include "divan/http/field_list.h"

#include <gmock/gmock.h>

namespace divan::http {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FieldList, ElementsAreTrimmedAndNotEmpty) {
  EXPECT_THAT(split_list("a, b c\t,,\t d "), ElementsAre("a", "b c", "d"));
  EXPECT_THAT(split_list(" , ,"), IsEmpty());
  EXPECT_THAT(split_list(""), IsEmpty());
  EXPECT_EQ(trim(" \t"), "");
}

}  // namespace
}  // namespace divan::http
