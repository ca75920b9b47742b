// Safetensors headers: the order and alignment of the format's own writer, and
// a reader that takes no range on trust.

#include "Data/Safetensors.h"
#include "TinyExecutable.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fcntl.h>
#include <fstream>

using namespace accel::rt;
using namespace accel::rt::test;
using ::testing::HasSubstr;

namespace {

std::string makeFile(const std::string &json, size_t payload) {
  uint64_t length = json.size();
  return std::string(reinterpret_cast<char *>(&length), 8) + json +
         std::string(payload, 'x');
}

Status readText(const std::string &text, std::vector<SafetensorsEntry> &entries,
                uint64_t &start) {
  TemporaryFolder folder;
  std::ofstream(folder / "f", std::ios::binary) << text;
  FileHandle handle(open((folder / "f").c_str(), O_RDONLY));
  return readSafetensors(handle.get(), "f", entries, start);
}

std::string errorOf(const std::string &text) {
  std::vector<SafetensorsEntry> entries;
  uint64_t start;
  Status status = readText(text, entries, start);
  return status.ok() ? "" : status.message();
}

TEST(Safetensors, WritesWhatItReads) {
  std::vector<SafetensorsEntry> entries = {{"b\"ias", DType::F32, {3}},
                                           {"a", DType::BF16, {1, 5}},
                                           {"step", DType::I64, {}},
                                           {"a/w", DType::F32, {2, 2}},
                                           {"none", DType::F64, {0, 7}}};
  std::string header = safetensorsHeader(entries);
  EXPECT_EQ(header.size() % 8, 0u);
  std::vector<std::string> names;
  for (const SafetensorsEntry &entry : entries) {
    names.push_back(entry.name);
    EXPECT_EQ(entry.begin % static_cast<uint64_t>(dtypeBytes(entry.dtype)), 0u);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"none", "step", "a/w", "b\"ias", "a"}));
  std::vector<SafetensorsEntry> found;
  uint64_t start = 0;
  Status status = readText(header + std::string(46, 'x'), found, start);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(start, header.size());
  ASSERT_EQ(found.size(), entries.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, entries[i].name);
    EXPECT_EQ(found[i].dtype, entries[i].dtype);
    EXPECT_EQ(found[i].shape, entries[i].shape);
    EXPECT_EQ(found[i].begin, entries[i].begin);
    EXPECT_EQ(found[i].bytes, entries[i].bytes);
  }
  // One byte less, and the last range leaves the file.
  EXPECT_THAT(errorOf(header + std::string(45, 'x')),
              HasSubstr("expected a type, a shape and a range of the file for "
                        "'a'"));
}

TEST(Safetensors, RefusesWhatIsNoSuchFile) {
  EXPECT_THAT(errorOf(""), HasSubstr("expected the header of a safetensors"));
  EXPECT_THAT(errorOf("12345678"), HasSubstr("expected the header"));
  EXPECT_THAT(errorOf(makeFile("[1]", 0)),
              HasSubstr("expected the JSON header"));
  EXPECT_THAT(errorOf(makeFile("{\"a\":", 0)),
              HasSubstr("expected the JSON header"));
  auto tensor = [](const std::string &body) {
    return errorOf(makeFile("{\"a\":{" + body + "}}", 8));
  };
  EXPECT_EQ(tensor("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]"),
            "");
  for (const char *body :
       {"", "\"dtype\":\"F32\",\"shape\":[2]",
        "\"dtype\":\"F32\",\"data_offsets\":[0,8]",
        "\"shape\":[2],\"data_offsets\":[0,8]",
        "\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]",
        "\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]",
        "\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]",
        "\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]",
        "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]",
        "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]",
        "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]",
        "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]",
        "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":8",
        "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[\"0\",8]",
        "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,\"8\"]",
        "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]",
        "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":{\"a\":0,\"b\":8}",
        "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]",
        "\"dtype\":\"F32\",\"shape\":[2.5],\"data_offsets\":[0,8]",
        "\"dtype\":\"F33\",\"shape\":[8],\"data_offsets\":[0,8]",
        // Sums and products that leave 64 bits.
        "\"dtype\":\"F32\",\"shape\":[18446744073709551615,"
        "18446744073709551615],\"data_offsets\":[0,4]",
        "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":"
        "[18446744073709551608,0]",
        "\"dtype\":\"F32\",\"shape\":[18446744073709551615],"
        "\"data_offsets\":[0,0]",
        "\"dtype\":\"F32\",\"shape\":[36028797018963968,"
        "36028797018963968,36028797018963968,36028797018963968],"
        "\"data_offsets\":[0,0]",
        "\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],"
        "\"data_offsets\":[0,0]",
        "\"dtype\":\"F32\",\"shape\":[0,1099511627776,1099511627776],"
        "\"data_offsets\":[0,0]"})
    EXPECT_THAT(tensor(body), HasSubstr("for 'a'")) << body;
  // Numbers that share bytes are no tensor that commands can read.
  EXPECT_THAT(tensor("\"dtype\":\"F4\",\"shape\":[16],\"data_offsets\":[0,8]"),
              HasSubstr("expected a type, a shape and a range"));
  // What executables call a byte for each is no type of these files.
  EXPECT_THAT(tensor("\"dtype\":\"F4_E2M1_BYTES\",\"shape\":[8],"
                     "\"data_offsets\":[0,8]"),
              HasSubstr("expected a type, a shape and a range"));
  EXPECT_EQ(tensor("\"dtype\":\"F8_E8M0\",\"shape\":[8],"
                   "\"data_offsets\":[0,8]"),
            "");
  // Every byte has a name.
  std::string longer = makeFile("{}", 1);
  EXPECT_THAT(errorOf(longer),
              HasSubstr("expected " + std::to_string(longer.size() - 1) +
                        " bytes, as its header says, found " +
                        std::to_string(longer.size())));
  EXPECT_THAT(errorOf(makeFile("{\"a\":5}", 8)), HasSubstr("for 'a'"));
  EXPECT_THAT(errorOf(makeFile("{\"a\":{},\"a\":{}}", 8)),
              HasSubstr("for 'a'"));
  EXPECT_THAT(errorOf(makeFile("{\"a\\u0000\":{}}", 8)),
              HasSubstr("each name once, and without NUL"));
  std::string twice = "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":"
                      "[0,8]}";
  EXPECT_THAT(errorOf(makeFile("{\"a\":" + twice + ",\"a\":" + twice + "}", 8)),
              HasSubstr("each name once"));
}

TEST(Safetensors, BelievesNoLengthThatTheFileHasNot) {
  auto sized = [](uint64_t length, const std::string &rest) {
    return errorOf(std::string(reinterpret_cast<char *>(&length), 8) + rest);
  };
  for (uint64_t length : {uint64_t(0), uint64_t(1), uint64_t(3), UINT64_MAX})
    EXPECT_THAT(sized(length, "{}"), HasSubstr("expected the header of"))
        << length;
  // As long as no header is, in a file that is as long.
  TemporaryFolder folder;
  uint64_t length = 100000001;
  std::ofstream(folder / "f", std::ios::binary)
      .write(reinterpret_cast<char *>(&length), 8);
  std::filesystem::resize_file(folder / "f", 8 + length);
  FileHandle handle(open((folder / "f").c_str(), O_RDONLY));
  std::vector<SafetensorsEntry> entries;
  EXPECT_THAT(readSafetensors(handle.get(), "f", entries, length).message(),
              HasSubstr("expected the header of"));
  FileHandle pipe(open("/dev/null", O_RDONLY));
  EXPECT_THAT(readSafetensors(pipe.get(), "n", entries, length).message(),
              HasSubstr("cannot use 'n': expected a regular file"));
}

/// As the format's own reader: of two tensors in one range one would be wrong.
TEST(Safetensors, RefusesTensorsThatShareBytes) {
  auto header = [](const char *second) {
    return std::string(
               R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
               R"("none":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},)"
               R"("b":{"dtype":"F32","shape":[2],"data_offsets":)") +
           second + "}}";
  };
  EXPECT_EQ(errorOf(makeFile(header("[8,16]"), 16)), "");
  EXPECT_THAT(errorOf(makeFile(header("[4,12]"), 12)),
              HasSubstr("expected each tensor in a range of its own, found 'a' "
                        "and 'b' in the same bytes"));
  EXPECT_THAT(errorOf(makeFile(header("[0,8]"), 8)),
              HasSubstr("in the same bytes"));
}

} // namespace
