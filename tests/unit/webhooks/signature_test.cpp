// Signatures of deliveries, as other implementations of Standard Webhooks make them.
#include "service/webhooks/signature.h"

#include <gtest/gtest.h>

namespace meshd::webhooks {
namespace {

// The example of the specification's libraries.
TEST(Signature, is_that_of_standard_webhooks) {
  EXPECT_EQ(
      sign("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})"),
      "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(Secrets, are_base64_behind_a_prefix) {
  EXPECT_EQ(key_of_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  for (const char* secret : {"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                             "whsec_c2hvcnQ=", "whsec_MfKQ9r8GKYqr!wjU", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS"})
    EXPECT_FALSE(key_of_secret(secret)) << secret;
  const std::string longest(88, 'A');  // 66 bytes
  EXPECT_FALSE(key_of_secret("whsec_" + longest));
}

TEST(Secrets, that_are_made_differ_and_are_valid) {
  const std::string one = new_key();
  EXPECT_NE(one, new_key());
  EXPECT_EQ(key_of_secret(secret_of_key(one)), one);
}

}  // namespace
}  // namespace meshd::webhooks
