#include "tests/http/tls_files.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

namespace meshd::http_test {

namespace {

constexpr long kDaySeconds = 86'400;

void expect(bool holds) {
  if (!holds) throw std::runtime_error("no certificate could be made");
}

template <class Write>
void write_file(const std::string& path, const Write& write) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  expect(file != nullptr && write(file.get()) == 1);
}

}  // namespace

TlsFiles make_certificate(const std::string& folder, const std::string& name) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), &X509_free);
  expect(key != nullptr && certificate != nullptr);
  X509* made = certificate.get();
  X509_set_version(made, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
  X509_gmtime_adj(X509_getm_notBefore(made), -kDaySeconds);
  X509_gmtime_adj(X509_getm_notAfter(made), kDaySeconds);
  X509_set_pubkey(made, key.get());
  X509_NAME* subject = X509_get_subject_name(made);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(made, subject);
  const std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> names(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost"), &X509_EXTENSION_free);
  X509_add_ext(made, names.get(), -1);
  expect(X509_sign(made, key.get(), EVP_sha256()) > 0);
  TlsFiles out{folder + "/" + name + ".crt", folder + "/" + name + ".key"};
  write_file(out.certificate, [&](FILE* file) { return PEM_write_X509(file, made); });
  write_file(out.key,
             [&](FILE* file) { return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  return out;
}

}  // namespace meshd::http_test
