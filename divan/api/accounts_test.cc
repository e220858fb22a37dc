// Checking passwords: merged, in order, with limits.
#include "divan/api/accounts.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <condition_variable>
#include <set>

namespace divan::api {
namespace {

constexpr const char* kWrong = "401 Name or password is incorrect.";

// Comparisons that block until the test opens the gate, counted.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  std::size_t begun = 0;
  std::multiset<std::string> compared;

  void set_open(bool value) {
    std::lock_guard lock(mutex);
    open = value;
    changed.notify_all();
  }
  void wait_for_begun(std::size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return begun >= count; });
  }
  bool compare(const PasswordCheck& check) {
    std::unique_lock lock(mutex);
    ++begun;
    changed.notify_all();
    changed.wait(lock, [&] { return open; });
    compared.insert(check.password);
    lock.unlock();
    return compare_password(check.password, check.hash, check.min_iterations).equal;
  }
};

struct AccountsTest : testing::Test {
  ManualClock clock;
  SystemRng rng;
  Gate gate;
  Config config;
  PasswordHash hash = hash_password("right", 2, rng.uuid());
  PasswordQueueLimits limits;
  std::optional<Accounts> made;
  std::function<std::optional<Account>(std::string_view name)> find_user = [this](std::string_view name) {
    return name.starts_with("nobody") ? std::nullopt : std::optional(Account{hash, {}});
  };

  Accounts& accounts() {
    if (made) return *made;
    made.emplace(rng, clock, PasswordChecks::Options{.limits = limits, .compare = [this](const auto& check) {
                                                       return gate.compare(check);
                                                     }});
    made->add_admin("admin", "-pbkdf2-00,salt,3");
    config.override_with("chttpd_auth", "iterations", "5");
    made->configure(config);
    return *made;
  }

  // One login and its result: a name, or status and reason.
  struct Login {
    std::mutex mutex;
    std::condition_variable changed;
    std::string outcome;

    std::string get() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !outcome.empty(); });
      return outcome;
    }
    bool ended() {
      std::lock_guard lock(mutex);
      return !outcome.empty();
    }
    void set(std::string text) {
      std::lock_guard lock(mutex);
      outcome = std::move(text);
      changed.notify_all();
    }
  };
  using LoginPtr = std::shared_ptr<Login>;

  static std::string text(const Error& error) { return fmt::format("{} {}", error.status(), error.reason()); }

  LoginPtr begin(const std::string& address, const std::string& name, const std::string& password,
                 LoginPtr login = std::make_shared<Login>()) {
    const PasswordWaiter waiter{.done = [this, address, name, password, login](const Error* refusal) {
      refusal != nullptr ? login->set(text(*refusal)) : void(begin(address, name, password, login));
    }};
    try {
      std::optional<Account> account;
      if (!accounts().is_admin(name)) account = find_user(name);
      const auto user = accounts().authenticate(http::Credentials{name, password}, account, address, waiter);
      if (user) login->set(user->name);
    } catch (const Error& error) { login->set(text(error)); }
    return login;
  }

  std::string log_in(const std::string& address, const std::string& name, const std::string& password) {
    return begin(address, name, password)->get();
  }

  ~AccountsTest() override {
    gate.set_open(true);
    made.reset();
  }
};

TEST_F(AccountsTest, RequestsWithTheSamePasswordShareOneCheck) {
  std::vector<LoginPtr> logins;
  for (int i = 0; i < 300; ++i) logins.push_back(begin("10.0.0.1", "ann", "right"));
  for (const auto& login : logins) EXPECT_FALSE(login->ended());
  gate.set_open(true);
  for (const auto& login : logins) EXPECT_EQ(login->get(), "ann");
  EXPECT_EQ(log_in("10.0.0.2", "ann", "right"), "ann");
  EXPECT_EQ(gate.compared.size(), 1u);
}

TEST_F(AccountsTest, ThreeHundredUsersLogInConcurrently) {
  std::vector<LoginPtr> logins;
  for (int i = 0; i < 300; ++i) logins.push_back(begin("10.0.0.1", fmt::format("user{}", i), "right"));
  gate.set_open(true);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(logins[i]->get(), fmt::format("user{}", i));
}

// A client with an outdated password retries.
TEST_F(AccountsTest, AWrongPasswordIsComparedOnce) {
  gate.set_open(true);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(log_in("10.0.0.1", "ann", "wrong"), kWrong);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(log_in("10.0.0.1", "nobody", "wrong"), kWrong);
  EXPECT_EQ(gate.compared.size(), 2u);
}

TEST_F(AccountsTest, ChangingThePasswordInvalidatesBothResults) {
  gate.set_open(true);
  EXPECT_EQ(log_in("10.0.0.1", "ann", "right"), "ann");
  EXPECT_EQ(log_in("10.0.0.1", "ann", "other"), kWrong);
  hash = hash_password("other", 2, rng.uuid());
  EXPECT_EQ(log_in("10.0.0.1", "ann", "right"), kWrong);
  EXPECT_EQ(log_in("10.0.0.1", "ann", "other"), "ann");
}

// The check compared the old password; the response must depend on the new one.
TEST_F(AccountsTest, APasswordThatChangesDuringItsCheck) {
  const auto login = begin("10.0.0.1", "ann", "right");
  gate.wait_for_begun(1);
  hash = hash_password("other", 2, rng.uuid());
  gate.set_open(true);
  EXPECT_EQ(login->get(), kWrong);
  EXPECT_EQ(gate.compared.size(), 2u);
}

TEST_F(AccountsTest, UsersLogInWhileOthersGuess) {
  EXPECT_FALSE(begin("10.0.0.1", "cached", "right")->ended());
  gate.set_open(true);
  EXPECT_EQ(log_in("10.0.0.1", "cached", "right"), "cached");
  for (int i = 0; i < 5; ++i) log_in("10.0.0.66", "ann", fmt::format("first {}", i));
  gate.set_open(false);
  const std::size_t before = gate.begun;
  std::vector<LoginPtr> guesses;
  for (int i = 0; i < 40; ++i) guesses.push_back(begin("10.0.0.66", "ann", fmt::format("wrong {}", i)));
  gate.wait_for_begun(before + 1);
  EXPECT_EQ(log_in("10.0.0.66", "cached", "right"), "cached");  // needs no check, whatever its address
  const auto ann = begin("10.0.0.1", "ann", "right");
  const auto bob = begin("10.0.0.66", "bob", "right");
  gate.wait_for_begun(before + 2);  // Ann's, though 39 guesses arrived before it
  gate.set_open(true);
  EXPECT_EQ(ann->get(), "ann");
  EXPECT_EQ(bob->get(), "bob");
  for (const auto& guess : guesses) EXPECT_EQ(guess->get(), kWrong);
}

TEST_F(AccountsTest, IfTooManyWaitGuessersAreRefused) {
  limits.checks = 20;
  gate.set_open(true);
  for (int i = 0; i < 5; ++i) log_in("10.0.0.66", "ann", fmt::format("first {}", i));
  gate.set_open(false);
  std::vector<LoginPtr> guesses, users;
  for (int i = 0; i < 40; ++i) guesses.push_back(begin("10.0.0.66", "ann", fmt::format("wrong {}", i)));
  for (int i = 0; i < 20; ++i) users.push_back(begin("10.0.0.1", fmt::format("user{}", i), "right"));
  gate.set_open(true);
  for (const auto& user : users) EXPECT_THAT(user->get(), testing::StartsWith("user"));
  std::size_t refused = 0;
  for (const auto& guess : guesses) refused += guess->get().starts_with("429 ") ? 1 : 0;
  EXPECT_GE(refused, 38u);  // one was being compared, and checks of users that began made space for another
  EXPECT_EQ(accounts().stats().refused, refused);
}

// Also if the hash is weaker than usual, or an administrator's.
TEST_F(AccountsTest, AWrongPasswordCostsAsMuchAsAnUnknownName) {
  accounts();
  EXPECT_EQ(compare_password("wrong", hash, 0).iterations, 2);
  EXPECT_EQ(compare_password("wrong", hash, 5).iterations, 5);
  EXPECT_EQ(compare_password("right", hash, 5).iterations, 2);
  std::map<std::string, int> costs;
  gate.set_open(true);
  made.emplace(rng, clock, PasswordChecks::Options{.compare = [&](const PasswordCheck& check) {
                 const auto compared = compare_password(check.password, check.hash, check.min_iterations);
                 std::lock_guard lock(gate.mutex);
                 costs[check.password] = compared.iterations;
                 return compared.equal;
               }});
  made->add_admin("admin", "-pbkdf2-00,salt,3");
  find_user = [this](std::string_view name) {
    return name == "ann" ? std::optional(Account{hash, {}}) : std::nullopt;
  };
  made->configure(config);
  for (const auto* name : {"ann", "admin", "bob"}) EXPECT_EQ(log_in("10.0.0.1", name, name), kWrong);
  EXPECT_THAT(costs,
              testing::UnorderedElementsAre(std::pair("ann", 5), std::pair("admin", 5), std::pair("bob", 5)));
  costs.clear();
  made->add_admin("root", "-pbkdf2-00,salt,9");
  for (const auto* name : {"Ann", "root"}) EXPECT_EQ(log_in("10.0.0.1", name, name), kWrong);
  EXPECT_THAT(costs, testing::UnorderedElementsAre(std::pair("Ann", 9), std::pair("root", 9)));
}

TEST_F(AccountsTest, HashesOfAdministratorsAreThoseOfCouchDB) {
  accounts();
  made->add_admin("old", "-hashed-c88e9c67041a74e0357befdff93f87dde0904214,salt");
  EXPECT_TRUE(made->is_admin_password("old", "password"));
  EXPECT_FALSE(made->is_admin_password("old", "-hashed-c88e9c67041a74e0357befdff93f87dde0904214,salt"));
  for (const auto* text :
       {"-hashed-", "-hashed-00", "-hashed-xy,salt", "-pbkdf2-00,salt", "-pbkdf2-00,salt,0"})
    EXPECT_THROW(made->add_admin("bad", text), Error) << text;
}

TEST_F(AccountsTest, ALockoutConcernsANameAndAnAddress) {
  gate.set_open(true);
  config.override_with("chttpd_auth_lockout", "mode", "enforce");
  config.override_with("chttpd_auth_lockout", "threshold", "3");
  config.override_with("chttpd_auth_lockout", "max_lifetime", "1000");
  EXPECT_EQ(log_in("10.0.0.66", "known", "right"), "known");
  for (const std::string name : {"ann", "nobody", "known"}) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(log_in("10.0.0.66", name, fmt::format("wrong {}", i)), kWrong);
    const auto compared = gate.compared.size();
    EXPECT_EQ(log_in("10.0.0.66", name, "another"),
              "403 Account is temporarily locked due to multiple authentication failures");
    EXPECT_EQ(gate.compared.size(), compared);
  }
  EXPECT_EQ(log_in("10.0.0.66", "known", "right"), "known");  // from the cache
  EXPECT_EQ(log_in("10.0.0.66", "bob", "right"), "bob");
  EXPECT_EQ(log_in("10.0.0.1", "ann", "right"), "ann");
  EXPECT_EQ(log_in("10.0.0.1", "nobody", "wrong"), kWrong);
  hash = hash_password("right", 2, rng.uuid());
  EXPECT_EQ(log_in("10.0.0.66", "ann", "right"), "ann");  // changing the password unlocked the name
  EXPECT_THAT(log_in("10.0.0.66", "nobody", "once more"), testing::StartsWith("403 "));
  clock.advance(std::chrono::milliseconds(1000));
  EXPECT_EQ(log_in("10.0.0.66", "nobody", "once more"), kWrong);
  EXPECT_EQ(log_in("10.0.0.66", "nobody", "and again"), kWrong);  // older failures have expired
}

TEST_F(AccountsTest, LockoutsAreEnforcedOnlyIfConfigured) {
  gate.set_open(true);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(log_in("10.0.0.1", "ann", fmt::format("wrong {}", i)), kWrong);
  EXPECT_EQ(log_in("10.0.0.1", "ann", "right"), "ann");
}

TEST_F(AccountsTest, InvalidSettings) {
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"mode", "maybe"}, {"threshold", "0"}, {"max_lifetime", "long"}}) {
    Config bad;
    bad.override_with("chttpd_auth_lockout", key, value);
    EXPECT_THROW(accounts().configure(bad), Error) << key;
  }
}

TEST_F(AccountsTest, StopRefusesWaitingChecks) {
  std::vector<LoginPtr> logins;
  for (int i = 0; i < 10; ++i) logins.push_back(begin("10.0.0.1", fmt::format("user{}", i), "right"));
  gate.wait_for_begun(2);
  std::jthread stop([&] { accounts().stop(); });
  for (const auto& login : logins) EXPECT_EQ(login->get(), "503 The server is stopping.");
  gate.set_open(true);
  stop.join();
  EXPECT_EQ(log_in("10.0.0.1", "ann", "right"), "503 The server is stopping.");
}

TEST_F(AccountsTest, AFailedComparisonIsNeitherRightNorWrong) {
  made.emplace(rng, clock, PasswordChecks::Options{.compare = [](const PasswordCheck&) -> bool {
                 throw internal_error("no memory");
               }});
  EXPECT_EQ(log_in("10.0.0.1", "ann", "right"), "500 internal_server_error: no memory");
  EXPECT_EQ(accounts().stats().wrong, 0u);
}

}  // namespace
}  // namespace divan::api
