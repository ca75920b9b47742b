// Rows fetched over machines are those that were named, as on one machine: in
// any pattern of machines, none or all of them from one rank, rows that are
// longer than a slot of staging; and a name that nobody has ends the run.

#include "Files.h"
#include "RunFixture.h"

#include <filesystem>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

class RemoteFetch : public RunTest {
protected:
  /// Each rank has `rows` rows of `width` floats and fetches those of `wanted`,
  /// as many for each.
  void prepare(int64_t ranks, int64_t rows, int64_t width,
               const std::vector<int64_t> &wanted) {
    int64_t count = static_cast<int64_t>(wanted.size()) / ranks;
    Executable executable;
    executable.target = "cpu";
    executable.mesh = {{"ep", ranks}};
    Part all{{ranks, rows, width}, {{"ep"}, {}, {}}},
        names{{ranks, count}, {{"ep"}, {}}},
        result{{ranks, count, width}, {{"ep"}, {}, {}}};
    executable.inputs = {{"x", DType::F32, all.shape},
                         {"i", DType::I64, names.shape}};
    executable.outputs = {{"y", DType::F32, result.shape}};
    Program program;
    program.name = "main";
    int64_t inBytes = rows * width * 4,
            namesAt = (count * width * 4 + 63) / 64 * 64;
    program.arenas = {{"device", namesAt + count * 8, 64, 0},
                      {"shared", inBytes, 64, 0}};
    program.buffers = {
        {"x", "communication", "shared", 0, inBytes, 1, inBytes, "", ""},
        {"i", "input", "device", namesAt, count * 8, 1, count * 8, "", ""},
        {"y", "output", "device", 0, count * width * 4, 1, count * width * 4,
         "", ""}};
    CollectiveCommand fetch;
    fetch.kind = "fetch_rows";
    fetch.axes = {"ep"};
    fetch.inputs = {contiguousView(0, {rows, width})};
    fetch.index = contiguousView(1, {count}, DType::I64);
    fetch.outputs = {contiguousView(2, {count, width})};
    program.bodies = {
        {"body",
         "cpu",
         {command(ReadCommand{"input", "x", all,
                              contiguousView(0, {1, rows, width})},
                  "X"),
          command(ReadCommand{"input", "i", names,
                              contiguousView(1, {1, count}, DType::I64)},
                  "I"),
          command(fetch, "Fetch"),
          command(WriteCommand{"output", "y", result,
                               contiguousView(2, {1, count, width})},
                  "Y")}}};
    program.entries = {{"forward", {{1, {{"cpu", false, {{0, 0}}}}}}}};
    executable.programs = {program};
    Status status = writeExecutableFile(executable, {}, folder / "m.accx");
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<float> x;
    for (int64_t i = 0; i < ranks * rows * width; ++i)
      x.push_back(static_cast<float>(i));
    writeNpy(folder / "x.npy", all.shape, x);
    std::ofstream index(folder / "i.npy", std::ios::binary);
    index << npyHeader(DType::I64, names.shape);
    index.write(reinterpret_cast<const char *>(wanted.data()),
                static_cast<std::streamsize>(wanted.size() * 8));
    options.executable = folder / "m.accx";
    options.inputs = folder.path;
    options.outputs = folder / "out";
    options.repeats = 3;
  }

  void check(const std::vector<std::vector<std::string>> &patterns) {
    ASSERT_EQ(run(), "");
    std::string expected = slurp(folder / "out/y.npy");
    ASSERT_GT(expected.size(), 64u);
    for (const char *way : {"sockets", "mpi"})
      for (const std::vector<std::string> &machines : patterns) {
        setenv("ACCEL_MESSAGES", way, 1);
        std::filesystem::remove_all(folder / "out");
        EXPECT_EQ(runOn(machines), "");
        EXPECT_TRUE(slurp(folder / "out/y.npy") == expected)
            << way << " " << machines[1] << machines[2];
      }
    unsetenv("ACCEL_MESSAGES");
  }

  const std::vector<std::vector<std::string>> ofFour = {{"a", "a", "b", "b"},
                                                        {"a", "b", "a", "b"},
                                                        {"a", "b", "c", "c"},
                                                        {"a", "b", "c", "d"}};
};

TEST_F(RemoteFetch, RowsThatAreNamed) {
  // Own, of each other rank, twice the same, none; all of one rank; none at
  // all.
  prepare(4, 3, 5, {0, 11, 3, 3, -1, 7, 6,  9,  10, 11, 9,  9, //
                    0, 1,  2, 5, -1, 8, -1, -1, -1, -1, -1, -1});
  check(ofFour);
}

TEST_F(RemoteFetch, RowsLongerThanASlot) {
  prepare(4, 2, 70001, {6, 1, -1, 3, 0, 7, 4, 5, 5, 2, 1, 0});
  check({ofFour[0], ofFour[3]});
}

TEST_F(RemoteFetch, RefusesNamesThatNobodyHas) {
  prepare(2, 3, 5, {0, 6, 1, 2});
  EXPECT_THAT(
      runOn({"a", "b"}),
      HasSubstr("expected rows of 3 of each of 2 ranks, or -1 for none, "
                "found 6"));
}

} // namespace
