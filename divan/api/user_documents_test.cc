// Users' documents, and logging in with them.
#include "divan/api/user_documents.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <future>

#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/http/basic_auth.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int kFew = 2;  // iterations, to be fast

docs::IncomingDocument document_of(std::string_view json) {
  return docs::parse_document(json::compact(json));
}

std::string refusal(std::string_view json) {
  SeededRng rng(1);
  auto document = document_of(json);
  try {
    prepare_user_document(document, kFew, rng);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), 403);
    return error.reason();
  }
  return "";
}

std::string prepared(std::string_view json) {
  SeededRng rng(1);
  auto document = document_of(json);
  prepare_user_document(document, kFew, rng);
  return document.body;
}

// Ann's document, with `members` in addition to or instead of the required ones.
std::string ann(std::string_view members) {
  return R"({"_id":"org.couchdb.user:ann","name":"ann","type":"user","roles":["a"],)" + std::string(members) +
         "}";
}

TEST(UserDocuments, OnlyTheHashOfAPasswordIsStored) {
  const std::string body = prepared(ann(R"("password":"s3cret","salt":"x","iterations":1,"n":1.50)"));
  EXPECT_THAT(body, Not(HasSubstr("s3cret")));
  const auto value = json::parse_object(body);
  EXPECT_EQ(value.at("password_scheme").as_string(), "pbkdf2");
  EXPECT_EQ(value.at("pbkdf2_prf").as_string(), "sha256");
  EXPECT_EQ(value.at("iterations").as_int64(), kFew);
  EXPECT_EQ(value.at("salt").as_string().size(), 32u);
  EXPECT_EQ(value.at("derived_key").as_string().size(), 64u);
  EXPECT_FALSE(value.contains("password"));
  EXPECT_THAT(body, HasSubstr(R"("n":1.50)"));

  const auto account = read_user_document("ann", body);
  ASSERT_TRUE(account);
  EXPECT_TRUE(compare_password("s3cret", account->password).equal);
  EXPECT_FALSE(compare_password("s3creT", account->password).equal);
  EXPECT_THAT(account->roles, ElementsAre("a"));
}

TEST(UserDocuments, APasswordIsRecognizedInAnyEncoding) {
  for (const auto* members : {R"("p\u0061ssword":"s3cret")", R"("password":"s3cret","password":"s3cret")",
                              R"("password":"s3cret","p\u0061ssword":null,"password":"s3cret")",
                              R"("password":"s3cret","password":null)"}) {
    EXPECT_THAT(prepared(ann(members)), Not(HasSubstr("s3cret"))) << members;
  }
  // Also in the body of a deletion.
  EXPECT_THAT(prepared(R"({"_id":"org.couchdb.user:ann","_deleted":true,"password":"s3cret"})"),
              Not(HasSubstr("s3cret")));
}

TEST(UserDocuments, WithoutAPasswordTheHashIsKept) {
  const std::string body = prepared(ann(R"("password":"s3cret")"));
  const std::string again = prepared(R"({"_id":"org.couchdb.user:ann",)" + body.substr(1));
  EXPECT_EQ(again, body);
}

// The first one is a vector of RFC 6070: CouchDB before 3.4 writes SHA-1 without naming it.
TEST(UserDocuments, HashesOfOtherServersAreRead) {
  const auto is_right = [](std::string_view prf, std::string_view key) {
    const auto account = read_user_document(
        "ann", fmt::format(R"({{"name":"ann","type":"user","roles":[],"password_scheme":"pbkdf2",{})"
                           R"("iterations":2,"salt":"salt","derived_key":"{}"}})",
                           prf, key));
    return account && compare_password("password", account->password).equal &&
           !compare_password("passwore", account->password).equal;
  };
  EXPECT_TRUE(is_right("", "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"));
  EXPECT_TRUE(is_right(R"("pbkdf2_prf":"sha",)", "EA6C014DC72D6F8CCD1ED92ACE1D41F0D8DE8957"));
  EXPECT_TRUE(is_right(R"("pbkdf2_prf":"sha512",)",
                       "e1d9c16aa681708a45f5c7c4e215ceb66e011a2e9f0040713f18aefdb866d53c"
                       "f76cab2868a39b9f7840edce4fef5a82be67335c77a6068e04112754f27ccf4e"));
  EXPECT_FALSE(is_right(R"("pbkdf2_prf":"sha256",)", "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"));
}

// As CouchDB 1.2 wrote it.
TEST(UserDocuments, SimpleHashesAreRead) {
  const std::string body = prepared(ann(
      R"("password_scheme":"simple","password_sha":"c88e9c67041a74e0357befdff93f87dde0904214","salt":"salt")"));
  const auto account = read_user_document("ann", body);
  ASSERT_TRUE(account);
  EXPECT_TRUE(compare_password("password", account->password).equal);
  // It takes as long as an unknown name.
  const auto wrong = compare_password("passwore", account->password, 3);
  EXPECT_FALSE(wrong.equal);
  EXPECT_EQ(wrong.iterations, 3);
  // A new password has another scheme.
  EXPECT_THAT(prepared(R"({"_id":"org.couchdb.user:ann","password":"x",)" + body.substr(1)),
              Not(HasSubstr("simple")));
}

TEST(UserDocuments, MalformedDocumentsAreRejectedInCouchDbsWords) {
  const std::string id = R"({"_id":"org.couchdb.user:ann",)";
  const std::map<std::string, std::string> refused = {
      {R"({"_id":"x","type":"user","name":"ann","roles":[]})",
       "Doc ID must be of the form org.couchdb.user:name"},
      {id + R"("type":"user","name":"bob","roles":[]})", "Doc ID must be of the form org.couchdb.user:name"},
      {R"({"type":"user","name":"ann","roles":[]})", "Doc ID must be of the form org.couchdb.user:name"},
      {id + R"("name":"ann","roles":[]})", "doc.type must be user"},
      {id + R"("type":"admin","name":"ann","roles":[]})", "doc.type must be user"},
      {id + R"("type":"user","roles":[]})", "doc.name is required"},
      {id + R"("type":"user","name":"","roles":[]})", "doc.name is required"},
      {id + R"("type":"user","name":1,"roles":[]})", "doc.name is required"},
      {id + R"("type":"user","name":"ann"})", "doc.roles must exist"},
      {id + R"("type":"user","name":"ann","roles":"a"})", "doc.roles must be an array"},
      {id + R"("type":"user","name":"ann","roles":{}})", "doc.roles must be an array"},
      {id + R"("type":"user","name":"ann","roles":["a",1]})", "doc.roles can only contain strings"},
      {id + R"("type":"user","name":"ann","roles":["a","_admin"]})",
       "No system roles (starting with underscore) in users db."},
      {id + R"("type":"user","name":"ann","roles":["\u005fadmin"]})",
       "No system roles (starting with underscore) in users db."},
      {id + R"("type":"user","name":"ann","roles":[],"role\u0073":["_admin"]})",
       "No system roles (starting with underscore) in users db."},
      {R"({"_id":"org.couchdb.user:_a","type":"user","name":"_a","roles":[]})",
       "Username may not start with underscore."},
      {R"({"_id":"org.couchdb.user:a:b","type":"user","name":"a:b","roles":[]})",
       "Character `:` is not allowed in usernames."},
      {ann(R"("password":1)"), "Password must be a string."},
      {ann(R"("password":{})"), "Password must be a string."},
      {ann(R"("password_scheme":"bcrypt","salt":"s")"), "Password scheme `bcrypt` not supported."},
      {ann(R"("password_scheme":"simple","password_sha":"00","salt":"s")"),
       "password_sha must be 20 bytes in hexadecimal digits."},
      {ann(R"("password_scheme":"simple","salt":"s")"),
       "password_sha must be 20 bytes in hexadecimal digits."},
      {ann(R"("password_scheme":"simple","password_sha":")" + std::string(40, '0') + '"'),
       "salt must be a string."},
      {ann(R"("password_scheme":1)"), "Password scheme `1` not supported."},
      {ann(R"("password_scheme":"pbkdf2","derived_key":"00","salt":"s","iterations":"2")"),
       "iterations must be a number."},
      {ann(R"("password_scheme":"pbkdf2","derived_key":"00","salt":"s","iterations":0)"),
       "iterations must be from 1 to 10000000."},
      {ann(R"("password_scheme":"pbkdf2","derived_key":"00","salt":"s","iterations":10000001)"),
       "iterations must be from 1 to 10000000."},
      {ann(R"("password_scheme":"pbkdf2","derived_key":1,"salt":"s","iterations":2)"),
       "derived_key must be a string."},
      {ann(R"("password_scheme":"pbkdf2","derived_key":"xy","salt":"s","iterations":2)"),
       "derived_key must be 1 to 64 bytes in hexadecimal digits."},
      {ann(R"("password_scheme":"pbkdf2","derived_key":"","salt":"s","iterations":2)"),
       "derived_key must be 1 to 64 bytes in hexadecimal digits."},
      {ann(R"("password_scheme":"pbkdf2","derived_key":")" + std::string(130, '0') +
           R"(","salt":"s","iterations":2)"),
       "derived_key must be 1 to 64 bytes in hexadecimal digits."},
      {ann(R"("password_scheme":"pbkdf2","derived_key":"00","iterations":2)"), "salt must be a string."},
      {ann(R"("password_scheme":"pbkdf2","pbkdf2_prf":"md5","derived_key":"00","salt":"s","iterations":2)"),
       "pbkdf2_prf `md5` not supported."},
  };
  for (const auto& [document, reason] : refused) EXPECT_EQ(refusal(document), reason) << document;
  EXPECT_EQ(refusal(ann(R"("n":1)")), "");
  EXPECT_EQ(refusal(R"({"_id":"_design/x","password":1})"), "");
  EXPECT_EQ(refusal(R"({"_id":"org.couchdb.user:ann","_deleted":true})"), "");
}

TEST(UserDocuments, ADamagedDocumentIsNoAccount) {
  const std::string good = prepared(ann(R"("password":"s3cret")"));
  ASSERT_TRUE(read_user_document("ann", good));
  EXPECT_FALSE(read_user_document("bob", good));
  for (std::size_t size = 0; size < good.size(); ++size) read_user_document("ann", good.substr(0, size));
  SeededRng rng(7);
  for (int round = 0; round < 2000; ++round) {
    std::string body = good;
    body[rng.below(body.size())] = static_cast<char>(rng.next());
    read_user_document("ann", body);
  }
  EXPECT_FALSE(read_user_document("ann", ""));
  EXPECT_FALSE(read_user_document("ann", "[]"));
  EXPECT_FALSE(read_user_document("ann", R"({"name":"ann","type":"user","roles":["_admin"]})"));
}

struct UsersDatabase : testing::Test {
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SystemClock clock;
  SeededRng rng{1};
  docs::Catalog catalog{bus, clock};
  Accounts accounts{rng, clock};

  UsersDatabase() {
    Config config;
    config.override_with("chttpd_auth", "iterations", std::to_string(kFew));
    accounts.configure(config);
    accounts.add_admin("admin", "secret");
  }

  void create() {
    store->run([&](kv::Transaction& tx) { catalog.create(tx, kUsersDatabase); });
  }

  std::string write(std::string_view json) {
    std::vector documents{document_of(json)};
    prepare_user_document(documents[0], kFew, rng);
    return write_as_is(std::move(documents));
  }

  std::string write_as_is(std::vector<docs::IncomingDocument> documents) {
    const auto result = docs::bulk_edit(*store, catalog, kUsersDatabase, documents, rng).front();
    EXPECT_FALSE(result.error) << result.error->what();
    return result.revision.to_string();
  }

  User log_in(std::string_view name, std::string_view password) {
    const http::Credentials credentials{std::string(name), std::string(password)};
    for (;;) {
      std::promise<void> checked;
      const auto done = [&](const Error*) { checked.set_value(); };
      std::optional<Account> account;
      if (!accounts.is_admin(credentials.name))
        account = store->run([&](kv::Transaction& tx) { return find_user(tx, catalog, name); });
      if (auto user = accounts.authenticate(credentials, account, "127.0.0.1", {.done = done})) return *user;
      checked.get_future().get();
    }
  }

  std::string refused(std::string_view name, std::string_view password) {
    try {
      log_in(name, password);
    } catch (const Error& error) { return fmt::format("{} {}", error.status(), error.reason()); }
    return "";
  }
};

constexpr const char* kRefused = "401 Name or password is incorrect.";

TEST_F(UsersDatabase, AUserLogsInWithExactlyItsRoles) {
  EXPECT_EQ(refused("ann", "1"), kRefused);  // the database does not exist either
  create();
  write(ann(R"("password":"1")"));
  const User user = log_in("ann", "1");
  EXPECT_EQ(user.name, "ann");
  EXPECT_FALSE(user.admin);
  EXPECT_THAT(user.roles, ElementsAre("a"));
  EXPECT_EQ(refused("ann", "2"), kRefused);
  EXPECT_EQ(refused("ann", ""), kRefused);
  EXPECT_EQ(refused("bob", "1"), kRefused);
}

TEST_F(UsersDatabase, AChangeTakesEffectWithTheNextRequest) {
  create();
  auto rev = write(ann(R"("password":"1")"));
  log_in("ann", "1");
  rev = write(ann(R"("password":"2","_rev":")" + rev + '"'));
  EXPECT_EQ(refused("ann", "1"), kRefused);
  log_in("ann", "2");
  rev = write(ann(R"("password":"1","_rev":")" + rev + '"'));
  log_in("ann", "1");  // the same password again, but with another salt
  EXPECT_EQ(refused("ann", "2"), kRefused);
  const auto document = store->run([&](kv::Transaction& tx) {
    return docs::find_document(tx, catalog.open(tx, kUsersDatabase), "org.couchdb.user:ann", std::nullopt)
        .body;
  });
  std::string other_roles = document;
  other_roles.replace(other_roles.find(R"(["a"])"), 5, R"(["b","c"])");
  rev = write(R"({"_id":"org.couchdb.user:ann","_rev":")" + rev + "\"," + other_roles.substr(1));
  EXPECT_THAT(log_in("ann", "1").roles, ElementsAre("b", "c"));
  write(R"({"_id":"org.couchdb.user:ann","_deleted":true,"_rev":")" + rev + "\"}");
  EXPECT_EQ(refused("ann", "1"), kRefused);
  // A deletion may have a body.
  rev = write(ann(R"("password":"1")"));
  log_in("ann", "1");
  write(ann(R"("password":"1","_deleted":true,"_rev":")" + rev + '"'));
  EXPECT_EQ(refused("ann", "1"), kRefused);
}

TEST_F(UsersDatabase, NoUserCanLogInWithoutTheDatabase) {
  create();
  write(ann(R"("password":"1")"));
  log_in("ann", "1");
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, kUsersDatabase); });
  EXPECT_EQ(refused("ann", "1"), kRefused);
}

TEST_F(UsersDatabase, NoDocumentReplacesAnAdministrator) {
  create();
  write(R"({"_id":"org.couchdb.user:admin","name":"admin","type":"user","roles":[],"password":"mine"})");
  EXPECT_EQ(refused("admin", "mine"), kRefused);
  EXPECT_TRUE(log_in("admin", "secret").admin);
}

TEST_F(UsersDatabase, ADamagedDocumentIsNoAccountAndDoesNotAffectOthers) {
  create();
  write(ann(R"("password":"1")"));
  const std::string good = prepared(ann(R"("password":"1")"));
  docs::IncomingDocument document;
  int number = 0;
  for (const auto& body : {good.substr(0, good.size() / 2), good.substr(1), std::string("\xff\xfe"),
                           std::string("["), std::string(R"({"name":)"), std::string(good.size(), '{')}) {
    document.id = fmt::format("org.couchdb.user:u{}", ++number);
    document.body = body;
    write_as_is({document});
    EXPECT_EQ(refused(fmt::format("u{}", number), "1"), kRefused) << body;
  }
  EXPECT_EQ(log_in("ann", "1").name, "ann");
  EXPECT_TRUE(log_in("admin", "secret").admin);
}

TEST_F(UsersDatabase, ConflictsMustBeResolvedFirst) {
  create();
  write(ann(R"("password":"1")"));
  log_in("ann", "1");
  auto other = document_of(ann(R"("password":"2","_rev":"1-abc")"));
  prepare_user_document(other, kFew, rng);
  docs::bulk_replicate(*store, catalog, kUsersDatabase, {other});
  const std::string why =
      "401 User document conflicts must be resolved before the document is used for authentication purposes.";
  EXPECT_EQ(refused("ann", "1"), why);
  EXPECT_EQ(refused("ann", "2"), why);
  EXPECT_TRUE(log_in("admin", "secret").admin);
}

TEST_F(UsersDatabase, InvalidNamesHaveNoAccount) {
  create();
  for (const std::string& name :
       {std::string(), std::string("\0", 1), std::string("\xff"), std::string(100'000, 'x'),
        std::string(3000, '\0'), std::string("_design/x"), std::string("../x")}) {
    EXPECT_EQ(refused(name, "1"), kRefused);
  }
}

}  // namespace
}  // namespace divan::api
