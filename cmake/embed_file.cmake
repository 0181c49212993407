# Writes a C++ file with the bytes of INPUT as the function NAME().
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <string_view>
namespace meshd::api::embedded {
static const unsigned char bytes_of_${NAME}[] = {\n${bytes}0};
std::string_view ${NAME}();
std::string_view ${NAME}() { return {reinterpret_cast<const char*>(bytes_of_${NAME}), sizeof(bytes_of_${NAME}) - 1}; }
}  // namespace meshd::api::embedded
")
