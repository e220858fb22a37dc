// A process is killed at each operation of the store between the beginning of a change and its row in the
// feed. The changes that it had acknowledged are in the feed all the same.
//
// The process is this test program, started again with the number of the operation at which it kills itself.
// It writes what it acknowledges to a file, which (unlike a socket) needs no reader.
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "divan/base/bytes.h"
#include "divan/docs/writer.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/updates/check.h"
#include "divan/updates/feed.h"
#include "divan/updates/observed_store.h"
#include "divan/updates/sequencer.h"

namespace divan::updates {
namespace {

using testing::ObservedStore;
using testing::Operation;

constexpr const char* kDirectory = "DIVAN_UPDATES_CRASH_DIRECTORY";
constexpr const char* kPoint = "DIVAN_UPDATES_CRASH_POINT";
constexpr int kExitedByItself = 42;

kv::embedded::Options store_options(const std::string& directory) {
  kv::embedded::Options options;
  options.directory = directory + "/store";
  options.durable = false;  // writes survive a kill, though not a power cut
  options.cache_bytes = 8 << 20;
  return options;
}

std::string protocol(const std::string& directory) { return directory + "/protocol"; }

// Ends the process without any of its destructors at a point given by number. Points are before and after
// each operation.
class Killer {
 public:
  Killer(long point, const std::string& directory)
      : point_(point), file_(::open(protocol(directory).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600)) {}

  // "commit" lines tell the parent which points are at commits.
  void pass(Operation operation) {
    if (++passed_ == point_) ::kill(::getpid(), SIGKILL);
    if (operation == Operation::commit) say(fmt::format("commit {}", passed_));
  }
  void say(const std::string& line) const {
    const std::string text = line + "\n";
    if (::write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(1);
  }
  long passed() const { return passed_; }

 private:
  const long point_;
  const int file_;
  long passed_ = 0;
};

// A database server's work, on one thread so that the points are the same in each run.
class Victim {
 public:
  Victim(const std::string& directory, long point)
      : killer_(point, directory), engine_(store_options(directory), clock_, rng_) {}

  long run() {
    create("a");
    write("a");
    create("b");
    read_feed();
    sequencer_.step();
    write("a");
    write("b");
    sequencer_.step();
    read_feed();
    write("b");
    remove("b");
    sequencer_.step();
    write("a");
    create("b");
    write("b");
    sequencer_.step();
    read_feed();
    write("a");
    return killer_.passed();
  }

 private:
  void create(const std::string& name) {
    store_.run([&](kv::Transaction& tx) { catalog_.create(tx, name); });
    killer_.say("created " + name);
  }
  void remove(const std::string& name) {
    store_.run([&](kv::Transaction& tx) { catalog_.remove(tx, name); });
    killer_.say("deleted " + name);
  }
  void write(const std::string& name) {
    const auto tx = store_.begin();
    docs::Writer writer(*tx, catalog_.open(*tx, name));
    auto document = docs::parse_document("{}");
    document.id = "doc" + std::to_string(++documents_);
    writer.edit(document);
    writer.finish();
    tx->commit();
    killer_.say(fmt::format("updated {} {}", name, tx->committed_version()));
  }
  // A consumer that remembers its position, and what it has seen.
  void read_feed() {
    std::vector<Update> found;
    store_.run([&](kv::Transaction& tx) {
      found.clear();
      visit_updates(tx, position_, [&](const Update& update) {
        found.push_back(update);
        return true;
      });
    });
    for (const auto& update : found) {
      position_ = update.sequence;
      killer_.say(fmt::format("seen {} {} {}", update.kind, update.database, update.sequence.hex()));
    }
  }

  SystemClock clock_;
  SystemRng rng_;
  Killer killer_;
  kv::embedded::EmbeddedDatabase engine_;
  ObservedStore store_{engine_, [this](Operation operation, bool) { killer_.pass(operation); }};
  events::Bus bus_;
  docs::Catalog catalog_{bus_, clock_};
  Sequencer sequencer_{store_, catalog_, clock_};
  kv::Versionstamp position_;
  int documents_ = 0;
};

// Runs a process that is killed at the point; returns true if it did not reach its end before.
bool run_victim(const std::string& directory, long point) {
  std::vector<std::string> variables{fmt::format("{}={}", kDirectory, directory),
                                     fmt::format("{}={}", kPoint, point)};
  std::vector<char*> environment;
  // Without those of a run in several processes: the child has one test, which may belong to another process.
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("GTEST_")) environment.push_back(*variable);
  }
  for (auto& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::vector<std::string> words{"victim", "--gtest_filter=UpdatesCrash.DISABLED_Victim",
                                 "--gtest_also_run_disabled_tests", "--gtest_brief=1"};
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", &quiet, nullptr, arguments.data(), environment.data()), 0);
  posix_spawn_file_actions_destroy(&quiet);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == kExitedByItself)) << "status " << status;
  return killed;
}

using Key = std::pair<std::string, std::string>;  // kind, database

// What the victim has acknowledged, and what its consumer has seen.
struct Acknowledged {
  std::map<std::string, std::string> state;      // database → created or deleted
  std::map<std::string, std::uint64_t> updated;  // database → version of the last update
  std::map<Key, kv::Versionstamp> seen;
  kv::Versionstamp position;
  std::vector<long> commits;  // points

  explicit Acknowledged(const std::string& directory) {
    std::ifstream file(protocol(directory));
    std::string word, database;
    while (file >> word) {
      if (word == "commit") {
        file >> commits.emplace_back();
      } else if (word == "updated") {
        file >> database;
        file >> updated[database];
      } else if (word == "seen") {
        std::string kind, position_hex;
        file >> kind >> database >> position_hex;
        seen[{kind, database}] = position = kv::Versionstamp::from_hex(position_hex).value();
      } else {
        file >> database;
        state[database] = word;
        updated.erase(database);
      }
    }
  }
};

void expect_nothing_lost(const std::string& directory) {
  Acknowledged acknowledged(directory);
  SystemClock clock;
  SystemRng rng;
  kv::embedded::EmbeddedDatabase store(store_options(directory), clock, rng);
  events::Bus bus;
  docs::Catalog catalog(bus, clock);
  Sequencer sequencer(store, catalog, clock);
  sequencer.step();
  // The consumer continues at its position.
  store.run([&](kv::Transaction& tx) {
    visit_updates(tx, acknowledged.position, [&](const Update& update) {
      EXPECT_LT(acknowledged.position, update.sequence);
      acknowledged.seen[{update.kind, update.database}] = acknowledged.position = update.sequence;
      return true;
    });
  });
  for (const auto& [database, state] : acknowledged.state) {
    EXPECT_TRUE(acknowledged.seen.contains({state, database})) << state << " " << database;
    const auto created = acknowledged.seen[{"created", database}];
    const auto deleted = acknowledged.seen[{"deleted", database}];
    const bool exists =
        store.run([&, &name = database](kv::Transaction& tx) { return catalog.find(tx, name); }).has_value();
    EXPECT_EQ(created > deleted, exists) << database;
  }
  for (const auto& [database, version] : acknowledged.updated) {
    // The victim may have died between a deletion and its acknowledgement.
    const auto row =
        std::max(acknowledged.seen[{"updated", database}], acknowledged.seen[{"deleted", database}]);
    EXPECT_GT(read_u64(row.bytes()), version) << database;
  }
  kv::Findings findings;
  Check check(store.begin()->read_version(), findings);
  struct : kv::RowSource {
    void scan(const kv::KeyRange&, const kv::RowVisitor&) override {}
  } none;
  store.dump([&](std::string_view key, std::string_view value) {
    check.row(key, value);
    return true;
  });
  check.finish(none);
  EXPECT_THAT(findings.kept(), ::testing::ElementsAre());
}

// Kills a process there and checks what is left; returns true if it was killed.
bool kill_at(long point) {
  SCOPED_TRACE(fmt::format("killed at point {}", point));
  kv::embedded::TemporaryDirectory directory;
  const bool killed = run_victim(directory.path(), point);
  expect_nothing_lost(directory.path());
  return killed;
}

// Not a test of its own: what the test below starts.
TEST(UpdatesCrash, DISABLED_Victim) {
  const char* const directory = std::getenv(kDirectory);
  const char* const point = std::getenv(kPoint);
  if (directory == nullptr || point == nullptr) GTEST_SKIP() << "is started by UpdatesCrash";
  Victim victim(directory, std::atol(point));
  victim.run();
  ::_exit(kExitedByItself);
}

// Case 12: killed between commit and write, the row is there after the restart. At each commit, before and
// after it; with DIVAN_LONG=1 at each operation of the store.
TEST(UpdatesCrash, NoAcknowledgedChangeIsMissing) {
  const char* const is_long = std::getenv("DIVAN_LONG");
  if (is_long != nullptr && std::string_view(is_long) == "1") {
    long point = 1;
    while (kill_at(point) && !HasFailure()) ++point;
    EXPECT_GT(point, 200);
    return;
  }
  kv::embedded::TemporaryDirectory whole;
  EXPECT_FALSE(run_victim(whole.path(), 0));
  expect_nothing_lost(whole.path());
  const auto commits = Acknowledged(whole.path()).commits;
  EXPECT_GT(commits.size(), 30u);
  for (const long point : commits) EXPECT_TRUE(kill_at(point));
}

}  // namespace
}  // namespace divan::updates
