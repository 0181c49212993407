#include "api/server/tls_context.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "service/core/error.h"
#include "tests/http/tls_files.h"
#include "tests/support/temp_folder.h"

namespace meshd::api {

namespace {

class TlsContextTest : public ::testing::Test {
 protected:
  /// What the constructor says about the two files.
  static std::string refused(const std::string& certificate, const std::string& key) {
    try {
      const TlsContext context(certificate, key);
    } catch (const core::Error& error) {
      return error.detail();
    }
    return {};
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() + "/" + name) << text;
    return folder_.path() + "/" + name;
  }
  static void expect_parts(const std::string& text, const std::initializer_list<std::string>& parts) {
    for (const std::string& part : parts) EXPECT_NE(std::string::npos, text.find(part)) << text;
  }

  testing::TempFolder folder_;
  http_test::TlsFiles one_ = http_test::make_certificate(folder_.path(), "one");
  http_test::TlsFiles two_ = http_test::make_certificate(folder_.path(), "two");
};

TEST_F(TlsContextTest, files_that_cannot_be_read_are_named) {
  const std::string missing = folder_.path() + "/missing.pem";
  expect_parts(refused(missing, one_.key), {"--tls-cert", missing, "No such file"});
  expect_parts(refused(one_.certificate, missing), {"--tls-key", missing, "No such file"});
}

TEST_F(TlsContextTest, files_without_pem_are_named) {
  const std::string text = write("text.pem", "no certificate\n");
  expect_parts(refused(text, one_.key), {"--tls-cert", text, "PEM"});
  expect_parts(refused(one_.certificate, text), {"--tls-key", text, "PEM"});
  expect_parts(refused(one_.certificate, one_.certificate), {"--tls-key", "PEM"});
}

TEST_F(TlsContextTest, key_of_another_certificate_is_refused) {
  expect_parts(refused(one_.certificate, two_.key), {"--tls-key", two_.key, "is not the key of", one_.certificate});
}

TEST_F(TlsContextTest, key_with_a_passphrase_is_refused_without_asking_for_it) {
  const std::unique_ptr<FILE, int (*)(FILE*)> plain(std::fopen(one_.key.c_str(), "r"), &std::fclose);
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(PEM_read_PrivateKey(plain.get(), nullptr, nullptr, nullptr),
                                                           &EVP_PKEY_free);
  const std::string path = folder_.path() + "/locked.pem";
  {
    const std::unique_ptr<FILE, int (*)(FILE*)> out(std::fopen(path.c_str(), "w"), &std::fclose);
    unsigned char word[] = "word";
    ASSERT_EQ(1, PEM_write_PrivateKey(out.get(), key.get(), EVP_aes_128_cbc(), word, 4, nullptr, nullptr));
  }
  expect_parts(refused(one_.certificate, path), {"--tls-key", path, "passphrase"});
}

TEST_F(TlsContextTest, facts_name_the_certificate_and_warn_of_an_open_key) {
  ::chmod(one_.key.c_str(), 0600);
  const TlsContext context(one_.certificate, one_.key);
  EXPECT_EQ("/CN=one", context.facts().subject);
  EXPECT_NE("", context.facts().not_after);
  EXPECT_TRUE(context.facts().warnings.empty());
  ::chmod(one_.key.c_str(), 0644);
  ASSERT_EQ(1U, context.facts().warnings.size());
  expect_parts(context.facts().warnings[0], {one_.key, "chmod"});
}

TEST_F(TlsContextTest, reload_takes_new_files_and_keeps_the_old_ones_when_they_are_broken) {
  TlsContext context(one_.certificate, one_.key);
  const auto replace = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(two_.certificate, one_.certificate, replace);
  EXPECT_THROW(context.reload(), core::Error) << "the key is still the old one's";
  EXPECT_EQ("/CN=one", context.facts().subject);
  std::filesystem::copy_file(two_.key, one_.key, replace);
  context.reload();
  EXPECT_EQ("/CN=two", context.facts().subject);
}

}  // namespace

}  // namespace meshd::api
