// attack_list: the attack list, a line each: name, a tab, the bytes in hexadecimal. For attacks_on_binary_test.py.
#include <cstdio>

#include "tests/http/attack_cases.h"

int main() {
  for (const auto& attack : meshd::http_test::attack_cases()) {
    std::printf("%s\t", attack.name.c_str());
    for (const char c : attack.bytes) std::printf("%02x", static_cast<unsigned char>(c));
    std::printf("\n");
  }
  return 0;
}
