// safetensors files: what is written and read, and that each way in which a header can be wrong is
// an error of its own. Headers are written down here by the format's description, byte by byte.
#include <catch2/catch.hpp>

#include <cstring>

#include "io/safetensors_file.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

std::string length(std::uint64_t value) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i)
    bytes[static_cast<std::size_t>(i)] = static_cast<char>(value >> 8 * i);
  return bytes;
}

std::string with_header(const std::string& header, std::size_t data_bytes) {
  return length(header.size()) + header + std::string(data_bytes, 'd');
}

// The fault of a file of these bytes; its code must be that of altered data.
std::string fault_of(const std::string& bytes) {
  const TemporaryFolder folder;
  write_all(folder / "f", bytes);
  const auto error = error_of([&] { SafetensorsFile file(folder / "f"); });
  if (!error) return "no error";
  CHECK(error->code() == ExitCode::data);
  CHECK(says(error, folder / "f"));
  return error->what();
}

std::string fault_in(const std::string& header, std::size_t data_bytes = 24) {
  INFO(header);
  return fault_of(with_header(header, data_bytes));
}

const std::string good = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = good;
  REQUIRE(text.find(from) != std::string::npos);
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("what is written is the format, and reads back", "[safetensors]") {
  const std::vector<SafetensorsTensor> tensors{
      {.name = "a", .shape = {2, 3}, .begin = 0, .end = 24},
      {.name = "b \"\xc3\xa9", .shape = {2}, .begin = 24, .end = 32}};
  const std::string bytes = encode_safetensors_header(tensors);
  const std::string object =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      "\"b \\\"\xc3\xa9\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}";
  REQUIRE(bytes.size() % 8 == 0);
  CHECK(bytes.substr(0, 8) == length(bytes.size() - 8));
  CHECK(bytes.substr(8, object.size()) == object);
  CHECK(bytes.find_first_not_of(' ', 8 + object.size()) == std::string::npos);
  CHECK(bytes.size() < 8 + object.size() + 8);

  const TemporaryFolder folder;
  std::string data;
  for (std::uint32_t i = 0; i < 8; ++i) data.append(reinterpret_cast<const char*>(&i), 4);
  write_all(folder / "f", bytes + data);
  const SafetensorsFile file(folder / "f");
  CHECK(file.tensors() == tensors);
  std::vector<std::uint32_t> out(4, 99);
  file.read_box(tensors[0], {{0, 2}, {1, 3}}, out.data());
  CHECK(out == std::vector<std::uint32_t>{1, 2, 4, 5});
  file.read_box(tensors[1], {{0, 1}, {1, 2}}, out.data());
  CHECK(out == std::vector<std::uint32_t>{7, 2, 4, 5});
}

TEST_CASE("boxes of rows wider than what is read at once", "[safetensors]") {
  const TemporaryFolder folder;
  constexpr std::uint64_t width = 3 << 20;
  std::vector<std::uint32_t> numbers(2 * width);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i);
  const std::vector<SafetensorsTensor> tensors{
      {.name = "wide", .shape = {2, width}, .begin = 0, .end = 8 * width}};
  write_all(folder / "f",
            encode_safetensors_header(tensors) +
                std::string(reinterpret_cast<const char*>(numbers.data()), 8 * width));
  const SafetensorsFile file(folder / "f");
  std::vector<std::uint32_t> out(6);
  file.read_box(tensors[0], {{0, 2}, {2'000'001, 2'000'004}}, out.data());
  const auto first = static_cast<std::uint32_t>(width);
  CHECK(out == std::vector<std::uint32_t>{2000001, 2000002, 2000003, first + 2000001,
                                          first + 2000002, first + 2000003});
}

TEST_CASE("orders, scalars, empty tensors and other keys of metadata are legal", "[safetensors]") {
  CHECK(fault_in(good) == "no error");
  CHECK(fault_in(good + "   ") == "no error");
  CHECK(fault_in(R"({"b":{"data_offsets":[4,8],"shape":[1],"dtype":"F32"},"__metadata__":{"x":"y",)"
                 R"("x2":"z"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                 R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]}})",
                 8) == "no error");
  CHECK(fault_in("{}", 0) == "no error");
}

TEST_CASE("a file that is cut off, or none", "[safetensors]") {
  using Catch::Contains;
  CHECK_THAT(fault_of(""), Contains("found 0 bytes"));
  CHECK_THAT(fault_of("1234567"), Contains("found 7 bytes"));
  CHECK_THAT(fault_of(length(0) + "{}"), Contains("its header is empty"));
  CHECK_THAT(fault_of(length(100'000'001) + good), Contains("at most 100000000"));
  CHECK_THAT(fault_of(length(~std::uint64_t{0}) + good), Contains("at most 100000000"));
  const std::string whole = with_header(good, 24);
  for (std::size_t size = 9; size < whole.size(); ++size) {
    INFO(size);
    CHECK(fault_of(whole.substr(0, size)) != "no error");
  }
  CHECK_THAT(fault_of(whole.substr(0, 20)), Contains("cut off"));
  CHECK_THAT(fault_of(whole.substr(0, whole.size() - 1)), Contains("cut off"));
  CHECK_THAT(fault_of(whole + "x"), Contains("end at byte 24 of 25"));
  const TemporaryFolder folder;
  CHECK(says(error_of([&] { SafetensorsFile file(folder / "none"); }), "found nothing"));
  CHECK(says(error_of([&] { SafetensorsFile file(folder.path()); }), "found no file"));
}

TEST_CASE("a header that is not of the format", "[safetensors]") {
  using Catch::Contains;
  CHECK_THAT(fault_in("[1]"), Contains("expected a JSON object"));
  CHECK_THAT(fault_in("\xef\xbb\xbf" + good), Contains("expected a JSON object"));
  CHECK_THAT(fault_in(good.substr(0, good.size() - 1)), Contains("no JSON object in UTF-8"));
  CHECK_THAT(fault_in(good + "{}"), Contains("no JSON object in UTF-8"));
  CHECK_THAT(fault_in(changed("\"a\"", "\"\xff\xfe\"")), Contains("no JSON object in UTF-8"));
  CHECK_THAT(fault_in(changed("\"a\"", "\"\xc0\xaf\"")), Contains("no JSON object in UTF-8"));
  CHECK_THAT(fault_in(R"({"a":[]})"), Contains("a is a list: expected an object"));
  CHECK_THAT(fault_in(R"({"a":null})"), Contains("a is null: expected an object"));
  CHECK_THAT(fault_in(R"({"__metadata__":{"x":1}})"), Contains("__metadata__.x is 1"));
  CHECK_THAT(fault_in(R"({"__metadata__":{"x":{}}})"), Contains("__metadata__.x is an object"));
  CHECK_THAT(fault_in(R"({"__metadata__":{},"__metadata__":{}})"), Contains("is there twice"));
  // Deeper than any stack, were it to recurse.
  CHECK_THAT(fault_in("{\"a\":" + std::string(5'000'000, '[')), Contains("a is a list"));
  CHECK_THAT(fault_in(changed("[2,3]", std::string(5'000'000, '['))), Contains("holds a list"));
  CHECK_THAT(fault_in(changed("\"F32\"", std::string("{\"a\":"))), Contains("holds an object"));
}

TEST_CASE("a tensor that is not right", "[safetensors]") {
  using Catch::Contains;
  CHECK_THAT(fault_in(changed("F32", "BF16")), Contains("a is of dtype BF16") && Contains("F32"));
  CHECK_THAT(fault_in(changed("\"F32\"", "32")), Contains("dtype of the tensor a holds 32"));
  CHECK_THAT(fault_in(changed("\"dtype\":\"F32\",", "")), Contains("a has no \"dtype\""));
  CHECK_THAT(fault_in(changed("\"shape\":[2,3],", "")), Contains("a has no \"shape\""));
  CHECK_THAT(fault_in(changed(",\"data_offsets\":[0,24]", "")),
             Contains("a has no \"data_offsets\""));
  CHECK_THAT(fault_in(changed("\"shape\"", "\"extra\":1,\"shape\"")), Contains("has \"extra\""));
  CHECK_THAT(fault_in(changed("\"shape\"", "\"shape\":[6],\"shape\"")),
             Contains("has \"shape\" twice"));
  for (const char* shape : {"[2,-3]", "[2,3.0]", "[2,\"3\"]", "[2,null]", "[2,true]", "[[2],3]",
                            "[2,99999999999999999999]"}) {
    CHECK_THAT(fault_in(changed("[2,3]", shape)), Contains("expected counts alone"));
  }
  CHECK_THAT(fault_in(changed("[2,3]", "[2,4]")), Contains("has 24 bytes: expected 32"));
  CHECK_THAT(fault_in(changed("[2,3]", "[4294967296,4294967296]")), Contains("less than 2^64"));
  CHECK_THAT(fault_in(changed("[0,24]", "[24,0]")), Contains("cut off or altered"));
  CHECK_THAT(fault_in(changed("[0,24]", "[0,18446744073709551615]")), Contains("cut off"));
  CHECK_THAT(fault_in(changed("[0,24]", "[24]")), Contains("has 1 numbers: expected 2"));
  CHECK_THAT(fault_in(changed("[0,24]", "[0,24,24]")), Contains("expected counts alone"));
}

TEST_CASE("two tensors that do not go together", "[safetensors]") {
  using Catch::Contains;
  const auto two = [](const std::string& name, const std::string& first,
                      const std::string& second) {
    return R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + first + R"(},")" + name +
           R"(":{"dtype":"F32","shape":[2],"data_offsets":)" + second + "}}";
  };
  CHECK(fault_in(two("b", "[0,8]", "[8,16]"), 16) == "no error");
  CHECK(fault_in(two("b", "[8,16]", "[0,8]"), 16) == "no error");
  CHECK_THAT(fault_in(two("a", "[0,8]", "[8,16]"), 16), Contains("a is there twice"));
  CHECK_THAT(fault_in(two("\\u0061", "[0,8]", "[8,16]"), 16), Contains("a is there twice"));
  CHECK_THAT(fault_in(two("b", "[0,8]", "[4,12]"), 12), Contains("they overlap"));
  CHECK_THAT(fault_in(two("b", "[0,8]", "[0,8]"), 8), Contains("they overlap"));
  CHECK_THAT(fault_in(two("b", "[0,8]", "[12,20]"), 20), Contains("there is a hole"));
  CHECK_THAT(fault_in(two("b", "[4,12]", "[12,20]"), 20), Contains("there is a hole"));
}
