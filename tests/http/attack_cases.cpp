#include "tests/http/attack_cases.h"

#include <cstdio>
#include <utility>

#include "tests/http/compress.h"

namespace meshd::http_test {

namespace {

using Cases = std::vector<AttackCase>;

const std::string kHidden = std::string("GET ") + kSmuggled + " HTTP/1.1\r\nHost: t\r\n\r\n";

std::string line(const std::string& request_line) { return request_line + "\r\nHost: t\r\n\r\n"; }
std::string get(const std::string& target) { return line("GET " + target + " HTTP/1.1"); }
std::string with(const std::string& fields) { return "GET /show HTTP/1.1\r\nHost: t\r\n" + fields + "\r\n"; }
std::string post(const std::string& fields, const std::string& body) {
  return "POST /show HTTP/1.1\r\nHost: t\r\n" + fields + "\r\n" + body;
}
std::string chunked(const std::string& body) { return post("Transfer-Encoding: chunked\r\n", body); }
std::string bytes(const char* text, size_t size) { return {text, size}; }

void add(Cases& cases, const std::string& group, std::vector<AttackCase> more) {
  for (AttackCase& one : more) {
    one.name = group + ": " + one.name;
    cases.push_back(std::move(one));
  }
}

void request_lines(Cases& cases) {
  add(cases, "request line",
      {{"two spaces before the target", line("GET  / HTTP/1.1"), {400}},
       {"two spaces before the version", line("GET /  HTTP/1.1"), {400}},
       {"tab for a space", line("GET\t/ HTTP/1.1"), {400}},
       {"tab before the version", line("GET /\tHTTP/1.1"), {400}},
       {"leading space", line(" GET / HTTP/1.1"), {400}},
       {"trailing space", line("GET / HTTP/1.1 "), {400}},
       {"a fourth word", line("GET / HTTP/1.1 x"), {400}},
       {"no version, as HTTP/0.9", line("GET /"), {400}},
       {"a method alone", line("GET"), {400}},
       {"lower-case method", line("get / HTTP/1.1"), {405}, After::kKeeps},
       {"unknown method", line("BREW / HTTP/1.1"), {405}, After::kKeeps},
       {"TRACE", line("TRACE / HTTP/1.1"), {405}, After::kKeeps},
       {"TRACE with fields", "TRACE /show HTTP/1.1\r\nHost: t\r\nCookie: a=b\r\n\r\n", {405}, After::kKeeps},
       {"QUERY", line("QUERY /things/1 HTTP/1.1"), {405}, After::kKeeps},
       {"method with a bracket", line("GE(T / HTTP/1.1"), {400}},
       {"method with a NUL", bytes("GE\0T / HTTP/1.1\r\nHost: t\r\n\r\n", 28), {400}},
       {"method of 33 bytes", line(std::string(33, 'A') + " / HTTP/1.1"), {400}},
       {"method of 20 KiB", line(std::string(20'000, 'A') + " / HTTP/1.1"), {414}},
       {"CONNECT with an authority", line("CONNECT host:443 HTTP/1.1"), {400}},
       {"CONNECT with a path", line("CONNECT / HTTP/1.1"), {400}},
       {"lower-case protocol", line("GET / http/1.1"), {400}},
       {"another protocol", line("GET / HTTPS/1.1"), {400}},
       {"no minor version", line("GET / HTTP/1"), {400}},
       {"two-digit minor version", line("GET / HTTP/1.10"), {400}},
       {"version with a sign", line("GET / HTTP/+1.1"), {400}},
       {"version 0.9", line("GET / HTTP/0.9"), {505}},
       {"version 2.0", line("GET / HTTP/2.0"), {505}},
       {"version 9.9", line("GET / HTTP/9.9"), {505}},
       {"version 1.2 is spoken as 1.1", line("GET / HTTP/1.2"), {200}, After::kKeeps},
       {"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {505}},
       {"an answer for a request", line("HTTP/1.1 200 OK"), {400}},
       {"a TLS hello", bytes("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), {400}},
       {"NUL bytes", std::string(64, '\0'), {400}},
       {"high bytes", std::string(64, '\xff'), {400}},
       {"a bare LF first", "\n" + get("/"), {400}},
       {"two empty lines first", "\r\n\r\n" + get("/"), {400}},
       {"one empty line first is forgiven", "\r\n" + get("/"), {200}, After::kKeeps},
       {"a CR inside", line("GET /\r HTTP/1.1"), {400}},
       {"64 KiB without an end", "GET /" + std::string(65'536, 'a'), {414}}});
}

void targets(Cases& cases) {
  add(cases, "target",
      {{"no slash", get("show"), {400}},
       {"authority form", get("example.com:80"), {400}},
       {"asterisk with GET", get("*"), {400}},
       {"asterisk with OPTIONS", line("OPTIONS * HTTP/1.1"), {204}, After::kKeeps},
       {"fragment", get("/show#top"), {400}},
       {"raw high byte", get("/things/\xc3\xa9"), {400}},
       {"raw control byte", get("/things/\x01"), {400}},
       {"raw DEL", get("/things/\x7f"), {400}},
       {"raw NUL", bytes("GET /things/\0 HTTP/1.1\r\nHost: t\r\n\r\n", 36), {400}},
       {"dot segment", get("/./show"), {400}, After::kKeeps},
       {"dot-dot segment", get("/things/../show"), {400}, After::kKeeps},
       {"dot-dot above the root", get("/../../etc/passwd"), {400}, After::kKeeps},
       {"encoded dot-dot", get("/%2e%2e/%2e%2e/etc/passwd"), {400}, After::kKeeps},
       {"half encoded dot-dot", get("/things/.%2E/x"), {400}, After::kKeeps},
       {"dot-dot with an encoded slash", get("/things/..%2f..%2fetc"), {404}, After::kKeeps},
       {"dot-dot with backslashes", get("/things/..\\..\\etc/x"), {404}, After::kKeeps},
       {"dot-dot in the rest of a path", get("/tree/v1/a/../../b"), {400}, After::kKeeps},
       {"double encoded dot-dot is a name", get("/things/%252e%252e"), {200}, After::kKeeps},
       {"path parameter after dot-dot is a name", get("/things/..;"), {200}, After::kKeeps},
       {"encoded slash in a capture", get("/things/a%2fb"), {404}, After::kKeeps},
       {"encoded NUL", get("/things/%00"), {400}, After::kKeeps},
       {"encoded CRLF", get("/things/a%0d%0aX-Injected:%201"), {400}, After::kKeeps},
       {"encoded control byte", get("/things/%1b[31m"), {400}, After::kKeeps},
       {"percent at the end", get("/things/%"), {400}, After::kKeeps},
       {"percent and one digit", get("/things/%4"), {400}, After::kKeeps},
       {"percent and no digits", get("/things/%zz"), {400}, After::kKeeps},
       {"percent and a sign", get("/things/%+1"), {400}, After::kKeeps},
       {"not UTF-8", get("/things/%ff"), {400}, After::kKeeps},
       {"overlong UTF-8", get("/things/%c0%af"), {400}, After::kKeeps},
       {"UTF-8 surrogate", get("/things/%ed%a0%80"), {400}, After::kKeeps},
       {"UTF-8 above the last character", get("/things/%f4%90%80%80"), {400}, After::kKeeps},
       {"empty segment", get("/things//data"), {404}, After::kKeeps},
       {"two slashes first", get("//show"), {404}, After::kKeeps},
       {"empty capture", get("/things/"), {404}, After::kKeeps},
       {"slash at the end", get("/show/"), {404}, After::kKeeps},
       {"unknown verb of a thing", get("/things/1:explode"), {404}, After::kKeeps},
       {"absolute form", get("http://t/show"), {200}, After::kKeeps},
       {"absolute form without path", get("http://t"), {200}, After::kKeeps},
       {"absolute form of another host", get("http://other/show"), {400}},
       {"absolute form with a user", get("http://user@t/show"), {400}},
       {"absolute form without host", get("http:///show"), {400}},
       {"absolute form, broken IPv6", get("http://[::1/show"), {400}},
       {"another scheme", get("ftp://t/show"), {400}},
       {"script scheme", get("javascript://t/show"), {400}},
       {"path of 2,049 bytes", get("/" + std::string(2048, 'a')), {414}, After::kKeeps},
       {"path of 2,048 bytes is unknown only", get("/" + std::string(2047, 'a')), {404}, After::kKeeps},
       {"target of 9,000 bytes", get("/" + std::string(8999, 'a')), {414}},
       {"query of 9,000 bytes", get("/show?" + std::string(9000, 'a')), {414}},
       {"2,000 parameters",
        get("/show?" +
            [] {
              std::string text;
              for (int i = 0; i < 2000; ++i) text += "a=1&";
              return text;
            }()),
        {200},
        After::kKeeps},
       {"query with a broken escape", get("/show?a=%"), {400}, After::kKeeps},
       {"query with a NUL", get("/show?a=%00"), {400}, After::kKeeps},
       {"query that is not UTF-8", get("/show?a=%fe"), {400}, After::kKeeps},
       {"parameter twice", get("/generated?size=1&size=2"), {422}, After::kKeeps},
       {"parameter beyond 64 bits", get("/generated?size=99999999999999999999"), {422}, After::kKeeps},
       {"question marks in the query", get("/show?a=?&b=??"), {200}, After::kKeeps}});
}

void line_ends(Cases& cases) {
  add(cases, "line ends",
      {{"LF for all", "GET / HTTP/1.1\nHost: t\n\n", {400}},
       {"LF after the request line", "GET / HTTP/1.1\nHost: t\r\n\r\n", {400}},
       {"LF after a field", "GET / HTTP/1.1\r\nHost: t\n\r\n", {400}},
       {"LF for the empty line", "GET / HTTP/1.1\r\nHost: t\r\n\n", {400}},
       {"CR for the empty line", "GET / HTTP/1.1\r\nHost: t\r\n\rX: y\r\n\r\n", {400}},
       {"CR CR LF", "GET / HTTP/1.1\r\r\nHost: t\r\n\r\n", {400}},
       {"LF CR", "GET / HTTP/1.1\n\rHost: t\n\r\n\r", {400}},
       {"CR alone hides a field", with("A: b\rTransfer-Encoding: chunked\r\n"), {400}},
       {"line of a space", with(" \r\n"), {400}},
       {"vertical tab", with("A:\vb\r\n"), {400}},
       {"form feed", with("A: b\f\r\n"), {400}}});
}

void fields(Cases& cases) {
  std::string hundred;
  for (int i = 0; i < 99; ++i) hundred += "A: b\r\n";
  std::string thousands;
  for (int i = 0; i < 3000; ++i) thousands += "A: b\r\n";
  add(cases, "field",
      {{"space before the colon", with("A : b\r\n"), {400}},
       {"tab before the colon", with("A\t: b\r\n"), {400}},
       {"space in the name", with("A B: c\r\n"), {400}},
       {"empty name", with(": b\r\n"), {400}},
       {"no colon", with("AB\r\n"), {400}},
       {"folded with a space", with("A: b\r\n c\r\n"), {400}},
       {"folded with a tab", with("A: b\r\n\tc\r\n"), {400}},
       {"folded first field", "GET / HTTP/1.1\r\n Host: t\r\n\r\n", {400}},
       {"name with a NUL", with(bytes("A\0B: c\r\n", 8)), {400}},
       {"name with a high byte", with("\xc3\xa9: c\r\n"), {400}},
       {"name with a quote", with("\"A\": c\r\n"), {400}},
       {"name with a slash", with("A/B: c\r\n"), {400}},
       {"value with a NUL", with(bytes("A: b\0c\r\n", 8)), {400}},
       {"value with a control byte", with("A: \x01\r\n"), {400}},
       {"value with DEL", with("A: \x7f\r\n"), {400}},
       {"value with an escape sequence", with("A: \x1b[2J\r\n"), {400}},
       {"value with high bytes", with("A: \xff\xfe\r\n"), {200}, After::kKeeps},
       {"value with percent escapes stays as it is", with("A: %0d%0aB: c\r\n"), {200}, After::kKeeps},
       {"empty value", with("A:\r\n"), {200}, After::kKeeps},
       {"100 fields", with(hundred), {200}, After::kKeeps},
       {"101 fields", with(hundred + "A: b\r\n"), {431}},
       {"3,000 fields", with(thousands), {431}},
       {"a line of 20 KiB", with("A: " + std::string(20'000, 'b') + "\r\n"), {431}},
       {"a line of 9 KiB fits", with("A: " + std::string(9'000, 'b') + "\r\n"), {200}, After::kKeeps},
       {"a name of 20 KiB", with(std::string(20'000, 'A') + ": b\r\n"), {431}},
       {"64 KiB without an end", "GET / HTTP/1.1\r\nHost: t\r\nA: " + std::string(65'536, 'b'), {431}},
       {"REMOTE_ADDR", with("REMOTE_ADDR: 10.9.9.9\r\n"), {200}, After::kKeeps},
       {"X-Forwarded-For", with("X-Forwarded-For: 10.9.9.9\r\n"), {200}, After::kKeeps},
       {"empty X-Forwarded-For", with("X-Forwarded-For:\r\n"), {200}, After::kKeeps},
       {"method override", with("X-HTTP-Method-Override: DELETE\r\n"), {200}, After::kKeeps},
       {"Connection that is no list", with("Connection: @@\r\n"), {400}},
       {"Connection with both", with("Connection: keep-alive, close\r\n"), {200}},
       {"Connection names Host", with("Connection: Host\r\n"), {200}, After::kKeeps},
       {"unknown Expect", with("Expect: 200-ok\r\n"), {417}},
       {"two Expects", with("Expect: 100-continue\r\nExpect: x\r\n"), {417}},
       {"Expect without body", with("Expect: 100-continue\r\n"), {200}, After::kKeeps},
       {"Upgrade to h2c",
        with("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"),
        {200},
        After::kKeeps},
       {"Upgrade to websocket",
        with("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n"),
        {200},
        After::kKeeps},
       {"request id with control characters in disguise", with("X-Request-Id: a%0d%0ab\r\n"), {200}, After::kKeeps},
       {"request id of 10 KiB", with("X-Request-Id: " + std::string(10'000, 'a') + "\r\n"), {200}, After::kKeeps}});
}

void hosts(Cases& cases) {
  const auto host = [](const std::string& value) { return "GET /show HTTP/1.1\r\nHost:" + value + "\r\n\r\n"; };
  add(cases, "host",
      {{"none", "GET /show HTTP/1.1\r\n\r\n", {400}},
       {"none, absolute form", "GET http://t/show HTTP/1.1\r\n\r\n", {400}},
       {"none, HTTP/1.0", "GET /show HTTP/1.0\r\n\r\n", {200}},
       {"none, OPTIONS as balancers probe", "OPTIONS / HTTP/1.0\r\n\r\n", {204}},
       {"two", "GET /show HTTP/1.1\r\nHost: t\r\nHost: t\r\n\r\n", {400}},
       {"two, other case", "GET /show HTTP/1.1\r\nHost: t\r\nhOST: u\r\n\r\n", {400}},
       {"two, HTTP/1.0", "GET /show HTTP/1.0\r\nHost: t\r\nHost: u\r\n\r\n", {400}},
       {"empty", host(""), {400}},
       {"with a space", host(" a b"), {400}},
       {"with a path", host(" t/show"), {400}},
       {"with a user", host(" user@t"), {400}},
       {"with a quote", host(" \"t\""), {400}},
       {"a list", host(" a, b"), {400}},
       {"a port that is no number", host(" t:http"), {400}},
       {"a port of six digits", host(" t:808080"), {400}},
       {"two ports", host(" t:80:80"), {400}},
       {"a port alone", host(" :80"), {400}},
       {"broken IPv6", host(" [::1"), {400}},
       {"IPv6 with a tail", host(" [::1]x"), {400}},
       {"IPv6", host(" [::1]:80"), {200}, After::kKeeps},
       {"empty port", host(" t:"), {200}, After::kKeeps}});
}

void lengths(Cases& cases) {
  const auto length = [](const std::string& value) { return post("Content-Length:" + value + "\r\n", kHidden); };
  add(cases, "length",
      {{"with chunked", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + kHidden), {400}},
       {"after chunked", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n" + kHidden), {400}},
       {"twice the same", post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello" + kHidden), {400}},
       {"twice, other", post("Content-Length: 5\r\nContent-Length: 0\r\n", "hello" + kHidden), {400}},
       {"a list", length(" 5, 5"), {400}},
       {"plus", length(" +5"), {400}},
       {"minus", length(" -1"), {400}},
       {"letters after it", length(" 5abc"), {400}},
       {"hexadecimal", length(" 0x5"), {400}},
       {"fraction", length(" 5.0"), {400}},
       {"exponent", length(" 1e1"), {400}},
       {"empty", length(""), {400}},
       {"two numbers", length(" 5 5"), {400}},
       {"in quotes", length(" \"5\""), {400}},
       {"Arabic digits", length(" \xd9\xa5"), {400}},
       {"2^63", length(" 9223372036854775808"), {400}},
       {"2^64 + 5", length(" 18446744073709551621"), {400}},
       {"40 digits", length(" " + std::string(40, '9')), {400}},
       {"leading zeros", post("Content-Length: 0005\r\n", "hello"), {200}, After::kKeeps},
       {"underscore is another field", post("Content_Length: 500\r\n", ""), {200}, After::kKeeps},
       {"in a name with a space", post("Content-Length : 5\r\n", "hello"), {400}},
       {"too small: the rest is no request", post("Content-Length: 2\r\n", "he\x01llo"), {200, 400}},
       {"5 MiB for a document", post("Content-Length: 5242880\r\n", ""), {413}},
       {"10 GB for a document", post("Content-Length: 10737418240\r\n", ""), {413}},
       {"10 GB, waiting for 100", post("Content-Length: 10737418240\r\nExpect: 100-continue\r\n", ""), {413}},
       {"10 GB where there is nothing",
        "POST /nothing HTTP/1.1\r\nHost: t\r\nContent-Length: 10737418240\r\n\r\nabc",
        {404}},
       {"10 GB that a handler does not read",
        "PUT /deaf HTTP/1.1\r\nHost: t\r\nContent-Length: 10737418240\r\n\r\nabc",
        {200}}});
}

void hidden_requests(Cases& cases) {
  const std::string sized = "Host: t\r\nContent-Length: " + std::to_string(kHidden.size()) + "\r\n\r\n" + kHidden;
  const std::string in_chunk = "Host: t\r\nTransfer-Encoding: chunked\r\n\r\n" + [] {
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", kHidden.size());
    return std::string(size);
  }() + kHidden + "\r\n0\r\n\r\n";
  add(cases, "request in a body",
      {{"of GET", "GET /show HTTP/1.1\r\n" + sized, {400}, After::kKeeps},
       {"of GET, chunked", "GET /show HTTP/1.1\r\n" + in_chunk, {400}},
       {"of HEAD", "HEAD /show HTTP/1.1\r\n" + sized, {400}, After::kKeeps},
       {"of DELETE", "DELETE /things/1 HTTP/1.1\r\n" + sized, {400}, After::kKeeps},
       {"of OPTIONS", "OPTIONS /show HTTP/1.1\r\n" + sized, {204}, After::kKeeps},
       {"of TRACE", "TRACE /show HTTP/1.1\r\n" + sized, {405}, After::kKeeps},
       {"of an operation without body", "POST /plain HTTP/1.1\r\n" + sized, {400}, After::kKeeps},
       {"of an unknown path", "POST /nothing HTTP/1.1\r\n" + sized, {404}, After::kKeeps},
       {"of an unknown path, chunked", "POST /nothing HTTP/1.1\r\n" + in_chunk, {404}, After::kKeeps},
       {"of a method that is not allowed", "DELETE /show HTTP/1.1\r\n" + sized, {405}, After::kKeeps},
       {"without credentials", "GET /secret HTTP/1.1\r\n" + sized, {401}, After::kKeeps},
       {"without credentials, chunked", "GET /secret HTTP/1.1\r\n" + in_chunk, {401}, After::kKeeps},
       {"of a handler that does not read", "PUT /deaf HTTP/1.1\r\n" + sized, {200}, After::kKeeps},
       {"of a handler that does not read, chunked", "PUT /deaf HTTP/1.1\r\n" + in_chunk, {200}, After::kKeeps},
       {"of a handler that throws", "PUT /refuse HTTP/1.1\r\n" + sized, {413}, After::kKeeps},
       {"of an unknown coding",
        "POST /show HTTP/1.1\r\nHost: t\r\nContent-Encoding: br\r\nContent-Length: " + std::to_string(kHidden.size()) +
            "\r\n\r\n" + kHidden,
        {415},
        After::kKeeps},
       {"that is taken", "POST /show HTTP/1.1\r\n" + sized, {200}, After::kKeeps}});
}

void codings(Cases& cases) {
  const auto coding = [](const std::string& value) {
    return post("Transfer-Encoding:" + value + "\r\n", "0\r\n\r\n" + kHidden);
  };
  add(cases, "transfer coding",
      {{"gzip", coding(" gzip"), {400}},
       {"identity", coding(" identity"), {400}},
       {"chunked twice in one", coding(" chunked, chunked"), {400}},
       {"gzip, chunked", coding(" gzip, chunked"), {400}},
       {"chunked, identity", coding(" chunked, identity"), {400}},
       {"xchunked", coding(" xchunked"), {400}},
       {"chunked with a parameter", coding(" chunked;q=1"), {400}},
       {"in quotes", coding(" \"chunked\""), {400}},
       {"empty", coding(""), {400}},
       {"with a vertical tab", coding(" \vchunked"), {400}},
       {"with a comma after it", coding(" chunked,"), {400}},
       {"two fields", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), {400}},
       {"two fields, one identity",
        post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        {400}},
       {"space before the colon", post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), {400}},
       {"in HTTP/1.0", "POST /show HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}},
       {"underscore is another field", post("Transfer_Encoding: chunked\r\n", "0\r\n\r\n" + kHidden), {200, 400}},
       {"upper case", post("TRANSFER-ENCODING: CHUNKED\r\n", "0\r\n\r\n"), {200}, After::kKeeps}});
}

void chunks(Cases& cases) {
  std::string ones;
  for (int i = 0; i < 5000; ++i) ones += "1\r\na\r\n";
  std::string many_extensions;
  for (int i = 0; i < 2000; ++i) many_extensions += "1;abcdefgh\r\na\r\n";
  const std::string end = "0\r\n\r\n";
  add(cases, "chunk",
      {{"size not hexadecimal", chunked("g\r\nx\r\n" + end), {400}},
       {"negative size", chunked("-1\r\nx\r\n" + end), {400}},
       {"plus", chunked("+1\r\nx\r\n" + end), {400}},
       {"0x", chunked("0x1\r\nx\r\n" + end), {400}},
       {"space before the size", chunked(" 1\r\nx\r\n" + end), {400}},
       {"space after the size", chunked("1 \r\nx\r\n" + end), {400}},
       {"two sizes", chunked("1 1\r\nx\r\n" + end), {400}},
       {"no size", chunked("\r\nx\r\n" + end), {400}},
       {"fraction", chunked("1.0\r\nx\r\n" + end), {400}},
       {"size of 2^63", chunked("8000000000000000\r\nx\r\n"), {400}},
       {"size of 2^64 - 1", chunked("ffffffffffffffff\r\nx\r\n"), {400}},
       {"size of 2^64 + 1", chunked("10000000000000001\r\nx\r\n"), {400}},
       {"size with 40 zeros", chunked(std::string(40, '0') + "1\r\nx\r\n" + end), {400}},
       {"size line ends in LF", chunked("1\nx\r\n" + end), {400}},
       {"size line ends in CR", chunked("1\rx\r\n" + end), {400}},
       {"data ends in LF", chunked("1\r\nx\n" + end), {400}},
       {"no end after data", chunked("1\r\nxy\r\n" + end), {400}},
       {"data longer than said", chunked("1\r\nxyz" + end), {400}},
       {"extension with a control byte", chunked("1;a\x01\r\nx\r\n" + end), {400}},
       {"extension with a CR", chunked("1;a\rb\r\nx\r\n" + end), {400}},
       {"extension with a LF", chunked("1;a\nb\r\nx\r\n" + end), {400}},
       {"extension of 20 KiB", chunked("1;" + std::string(20'000, 'a') + "\r\nx\r\n" + end), {400}},
       {"extensions of 16 KiB in all", chunked(many_extensions + end), {400}},
       {"extension", chunked("1;a=\"b\"\r\nx\r\n" + end), {200}, After::kKeeps},
       {"trailer with a control byte", chunked("0\r\nA: \x01\r\n\r\n"), {400}},
       {"trailer that is folded", chunked("0\r\n A: b\r\n\r\n"), {400}},
       {"trailer that ends in LF", chunked("0\r\nA: b\n\r\n"), {400}},
       {"trailers of 20 KiB", chunked("0\r\nA: " + std::string(20'000, 'a') + "\r\n\r\n"), {400}},
       {"trailer with Content-Length changes nothing",
        chunked("0\r\nContent-Length: 50\r\n\r\n"),
        {200},
        After::kKeeps},
       {"trailer with Transfer-Encoding changes nothing",
        chunked("0\r\nTransfer-Encoding: x\r\n\r\n"),
        {200},
        After::kKeeps},
       {"5,000 chunks of one byte", chunked(ones + end), {200}, After::kKeeps},
       {"upper-case size", chunked("A\r\n0123456789\r\n" + end), {200}, After::kKeeps},
       {"nothing but the end", chunked(end), {200}, After::kKeeps},
       {"5 MiB for a document", chunked("500000\r\n" + std::string(5 << 20, 'x') + "\r\n" + end), {413}}});
}

void bombs(Cases& cases) {
  const auto coded = [](const std::string& target, const std::string& coding, const std::string& body) {
    return "POST " + target + " HTTP/1.1\r\nHost: t\r\nContent-Encoding: " + coding +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  const std::string hello = gzip_of("hello");
  std::string spoiled = hello;
  spoiled[spoiled.size() - 6] = static_cast<char>(spoiled[spoiled.size() - 6] ^ 1);
  add(cases, "content coding",
      {{"gzip bomb as a document", coded("/show", "gzip", gzip_zeros(32 << 20)), {413}},
       {"gzip bomb as an upload", coded("/bulk", "gzip", gzip_zeros(32 << 20)), {413}},
       {"zstd bomb as a document", coded("/show", "zstd", zstd_zeros(32 << 20, 0)), {413}},
       {"zstd bomb as an upload", coded("/bulk", "zstd", zstd_zeros(32 << 20, 0)), {413}},
       {"zstd with a window of 128 MiB", coded("/bulk", "zstd", zstd_zeros(1000, 27)), {400}},
       {"no gzip", coded("/show", "gzip", "this is no gzip data"), {400}},
       {"no zstd", coded("/show", "zstd", "this is no zstd data"), {400}},
       {"gzip cut off", coded("/show", "gzip", hello.substr(0, hello.size() - 9)), {400}},
       {"gzip with a wrong checksum", coded("/show", "gzip", spoiled), {400}},
       {"gzip with noise after it", coded("/show", "gzip", hello + "noise"), {400}},
       {"zstd cut off", coded("/show", "zstd", zstd_of("hello").substr(0, 8)), {400}},
       {"gzip, two members", coded("/show", "gzip", hello + hello), {200}, After::kKeeps},
       {"brotli", coded("/show", "br", "xxxx"), {415}, After::kKeeps},
       {"no deflate", coded("/show", "deflate", "xxxx"), {400}},
       {"gzip called deflate", coded("/show", "deflate", hello), {400}},
       {"gzip twice", coded("/show", "gzip, gzip", "xxxx"), {415}, After::kKeeps},
       {"identity", coded("/show", "identity", "hello"), {200}, After::kKeeps},
       {"gzip without body", post("Content-Encoding: gzip\r\n", ""), {200}, After::kKeeps},
       {"gzip, chunked, empty", post("Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), {400}}});
}

void ranges(Cases& cases) {
  const auto range = [](const std::string& value) {
    return "GET /small HTTP/1.1\r\nHost: t\r\nRange: " + value + "\r\n\r\n";
  };
  std::string overlapping = "bytes=0-";
  for (int i = 0; i < 1000; ++i) overlapping += ",0-";
  add(cases, "range",
      {{"past the end", range("bytes=12-19"), {416}, After::kKeeps},
       {"at the end", range("bytes=10-"), {416}, After::kKeeps},
       {"of nothing from the end", range("bytes=-0"), {416}, After::kKeeps},
       {"beyond 64 bits", range("bytes=99999999999999999999-"), {416}, After::kKeeps},
       {"end beyond 64 bits", range("bytes=0-99999999999999999999"), {206}, After::kKeeps},
       {"more than all from the end", range("bytes=-99999999999999999999"), {206}, After::kKeeps},
       {"upside down", range("bytes=5-2"), {200}, After::kKeeps},
       {"letters", range("bytes=a-b"), {200}, After::kKeeps},
       {"minus", range("bytes=--5"), {200}, After::kKeeps},
       {"another unit", range("items=0-1"), {200}, After::kKeeps},
       {"1,001 overlapping ones", range(overlapping), {200}, After::kKeeps},
       {"two fields", with("Range: bytes=0-1\r\nRange: bytes=2-3\r\n"), {200}, After::kKeeps},
       {"for a weak If-Range",
        "GET /small HTTP/1.1\r\nHost: t\r\nRange: bytes=0-1\r\nIf-Range: W/\"ten\"\r\n\r\n",
        {200},
        After::kKeeps},
       {"on a route without ranges", with("Range: bytes=0-1\r\n"), {200}, After::kKeeps}});
}

void silences(Cases& cases) {
  add(cases, "silence",
      {{"inside of the request line", "GET /sho", {408}},
       {"after the request line", "GET /show HTTP/1.1\r\n", {408}},
       {"inside of a field", "GET /show HTTP/1.1\r\nHost: t\r\nA: b", {408}},
       {"before the empty line", "GET /show HTTP/1.1\r\nHost: t\r\n", {408}},
       {"one byte", "G", {408}},
       {"an SSH banner", "SSH-2.0-OpenSSH_9\r\n", {408}},
       {"before a sized body", post("Content-Length: 5\r\n", ""), {408}},
       {"inside of a sized body", post("Content-Length: 5\r\n", "he"), {408}},
       {"inside of an upload", "PUT /bulk HTTP/1.1\r\nHost: t\r\nContent-Length: 500000\r\n\r\nhe", {408}},
       {"before an upload", "PUT /bulk HTTP/1.1\r\nHost: t\r\nContent-Length: 500000\r\n\r\n", {408}},
       {"before a chunk size", chunked(""), {408}},
       {"inside of a chunk", chunked("5\r\nhe"), {408}},
       {"before the end of the trailers", chunked("0\r\n"), {408}},
       {"inside of a chunk nobody reads",
        "PUT /deaf HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
        {200}}});
}

void pipelines(Cases& cases) {
  std::string hundred;
  for (int i = 0; i < 100; ++i) hundred += get("/show");
  add(cases, "pipeline",
      {{"three", get("/show") + get("/small") + get("/show"), {200, 200, 200}, After::kKeeps},
       {"a hundred", hundred, std::vector<int>(100, 200), After::kKeeps},
       {"a body and a request", post("Content-Length: 5\r\n", "hello") + get("/show"), {200, 200}, After::kKeeps},
       {"chunks and a request", chunked("5\r\nhello\r\n0\r\n\r\n") + get("/show"), {200, 200}, After::kKeeps},
       {"an upload and a request",
        "PUT /bulk HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello" + get("/show"),
        {201, 200},
        After::kKeeps},
       {"a worker's request and one more", get("/worker") + get("/show"), {200, 200}, After::kKeeps},
       {"a request and noise", get("/show") + "\x01\x02\x03", {200, 400}},
       {"nothing after close", with("Connection: close\r\n") + kHidden, {200}},
       {"nothing after HTTP/1.0", "GET /show HTTP/1.0\r\n\r\n" + kHidden, {200}},
       {"nothing after a refused head", with("A : b\r\n") + kHidden, {400}},
       {"nothing after a refused body", chunked("g\r\n") + kHidden, {400}},
       {"HTTP/1.0 keeps if asked",
        "GET /show HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get("/show"),
        {200, 200},
        After::kKeeps}});
}

}  // namespace

std::vector<AttackCase> attack_cases() {
  Cases cases;
  request_lines(cases);
  targets(cases);
  line_ends(cases);
  fields(cases);
  hosts(cases);
  lengths(cases);
  hidden_requests(cases);
  codings(cases);
  chunks(cases);
  bombs(cases);
  ranges(cases);
  silences(cases);
  pipelines(cases);
  return cases;
}

}  // namespace meshd::http_test
