#include "divan/events/database_events.h"

#include <gmock/gmock.h>

#include "divan/events/test_stream.h"

namespace divan::events {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DatabaseEvents, KindNamesRoundTrip) {
  const std::vector<std::string> names = {"created",      "deleted",       "updated",
                                          "ddoc_updated", "local_updated", "index_commit"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto kind = static_cast<DatabaseEvent>(i);
    EXPECT_EQ(kind_name(kind), names[i]);
    EXPECT_EQ(database_event_of(names[i]), kind);
  }
  EXPECT_EQ(database_event_of("Updated"), std::nullopt);
  EXPECT_EQ(database_event_of(""), std::nullopt);
}

TEST(DatabaseEvents, ArePublishedOnTheDatabasesChannelAndThatOfAll) {
  Bus bus;
  auto orders = bus.subscribe(database_channel("orders"));
  auto users = bus.subscribe(database_channel("users"));
  auto all = bus.subscribe(all_databases_channel());
  publish_database_event(bus, "orders", DatabaseEvent::ddoc_updated, "_design/by_date");
  publish_database_event(bus, "users", DatabaseEvent::updated);

  const auto message = orders.try_next();
  ASSERT_TRUE(message && message->event);
  EXPECT_EQ(message->event->kind, "ddoc_updated");
  EXPECT_EQ(message->event->database, "orders");
  EXPECT_EQ(message->event->id, "_design/by_date");
  EXPECT_THAT(drain(orders), IsEmpty());
  EXPECT_THAT(drain(users), ElementsAre("updated"));
  for (const auto* database : {"orders", "users"}) {
    const auto of_all = all.try_next();
    ASSERT_TRUE(of_all && of_all->event);
    EXPECT_EQ(of_all->event->database, database);
  }
}

TEST(DatabaseEvents, ASubscriberOfOneAndOfAllGetsTwo) {
  Bus bus;
  auto one = bus.subscribe(database_channel("orders"));
  auto all = bus.subscribe(all_databases_channel());
  publish_database_event(bus, "orders", DatabaseEvent::deleted);
  EXPECT_THAT(drain(one), ElementsAre("deleted"));
  EXPECT_THAT(drain(all), ElementsAre("deleted"));
  EXPECT_EQ(bus.stats().delivered, 2u);
}

// The channel of a database called "s" must differ from that of all databases, and slashes are common in
// names. A client that names channels without a leading underscore must not reach those of databases.
TEST(DatabaseEvents, ADatabasesNameCannotReachAnotherChannel) {
  Bus bus;
  auto all = bus.subscribe(all_databases_channel());
  auto nested = bus.subscribe(database_channel("a/b"));
  bus.publish(database_channel("s"), [] { return event_of("wrong"); });
  bus.publish(channel_name({"_db", "a", "b"}), [] { return event_of("wrong"); });
  bus.publish(channel_name({"dbs"}), [] { return event_of("wrong"); });
  bus.publish(channel_name({"db", "a/b"}), [] { return event_of("wrong"); });
  EXPECT_TRUE(is_own_channel(database_channel("a/b")));
  EXPECT_TRUE(is_own_channel(all_databases_channel()));
  EXPECT_THAT(drain(all), IsEmpty());
  EXPECT_THAT(drain(nested), IsEmpty());
}

}  // namespace
}  // namespace divan::events
