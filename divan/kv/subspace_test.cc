#include "divan/kv/subspace.h"

#include <gtest/gtest.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::kv {
namespace {

using tuple::String;
using tuple::Tuple;

TEST(Subspace, packs_and_unpacks_below_its_prefix) {
  const Subspace jobs = Subspace("P").sub({String{"jobs"}});
  EXPECT_EQ(jobs.prefix(), "P" + tuple::pack({String{"jobs"}}));
  const std::string key = jobs.pack({String{"pend"}, 5});
  EXPECT_EQ(key, "P" + tuple::pack({String{"jobs"}, String{"pend"}, 5}));
  EXPECT_EQ(jobs.unpack(key), (Tuple{String{"pend"}, 5}));
  EXPECT_EQ(jobs.unpack(jobs.prefix()), Tuple());
  EXPECT_EQ(Subspace(Tuple{String{"jobs"}}).prefix(), tuple::pack({String{"jobs"}}));
}

TEST(Subspace, knows_its_own_keys) {
  const Subspace jobs(Tuple{String{"jobs"}});
  EXPECT_TRUE(jobs.contains(jobs.prefix()));
  EXPECT_TRUE(jobs.contains(jobs.pack({1})));
  EXPECT_FALSE(jobs.contains(tuple::pack({String{"job"}, 1})));
  for (const std::string& foreign : {tuple::pack({String{"docs"}}), std::string(), std::string("\xff")}) {
    try {
      jobs.unpack(foreign);
      FAIL();
    } catch (const Error& error) { EXPECT_EQ(error.name(), "corrupt_key"); }
  }
  EXPECT_THROW(jobs.unpack(jobs.prefix() + "\xff"), Error);
}

TEST(Subspace, range_holds_its_tuples) {
  const Subspace jobs(Tuple{String{"jobs"}});
  const KeyRange all = jobs.range();
  EXPECT_TRUE(all.contains(jobs.pack({tuple::Null()})));
  EXPECT_TRUE(all.contains(jobs.pack({Versionstamp()})));
  EXPECT_FALSE(all.contains(jobs.prefix()));
  EXPECT_FALSE(all.contains(tuple::pack({String{"jobs2"}, 1})));

  const KeyRange pending = jobs.range({String{"pend"}});
  EXPECT_TRUE(pending.contains(jobs.pack({String{"pend"}, 1})));
  EXPECT_FALSE(pending.contains(jobs.pack({String{"run"}, 1})));
}

TEST(Subspace, fast_path_reads_and_writes_the_same_keys) {
  const Subspace jobs(Tuple{String{"jobs"}});
  std::string key = "what was there before";
  jobs.packer(key).string("pend").integer(5);
  EXPECT_EQ(key, jobs.pack({String{"pend"}, 5}));

  tuple::Reader reader = jobs.reader(key);
  EXPECT_EQ(reader.take_string(), "pend");
  EXPECT_EQ(reader.take_int(), 5);
  EXPECT_TRUE(reader.at_end());
  EXPECT_THROW(jobs.reader("elsewhere"), Error);
}

TEST(Subspace, versionstamped_key_counts_its_offset_from_the_start) {
  const Subspace feed("12345");
  const std::string key = feed.pack_with_versionstamp({Versionstamp::incomplete()});
  EXPECT_EQ(to_hex(key), "313233343533ffffffffffffffffffff000006000000");
  std::string same;
  feed.packer(same).versionstamp(Versionstamp::incomplete()).finish_versionstamped();
  EXPECT_EQ(same, key);
}

}  // namespace
}  // namespace divan::kv
