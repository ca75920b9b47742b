// Sums over machines have the bits of one machine: every element type, groups
// that lie over machines in any pattern, buckets of several views, chunks that
// end anywhere, and streams that are in collectives of the same ranks at once.

#include "Files.h"
#include "RunFixture.h"

#include <cstring>
#include <filesystem>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

class RemoteSums : public RunTest {
protected:
  /// Bits of numbers whose sum depends on the order in which they are added.
  static std::string numbers(DType dtype, int64_t count) {
    std::string bytes;
    uint32_t state = 7;
    for (int64_t i = 0; i < count; ++i) {
      state = state * 1664525 + 1013904223;
      double value = (double(state >> 8) / (1 << 24) - 0.5) *
                     std::pow(2.0, double(state % 13));
      float narrow = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &narrow, 4);
      uint64_t whole = 0;
      if (dtype == DType::F64)
        std::memcpy(&whole, &value, 8);
      else if (dtype == DType::F32)
        whole = bits;
      else if (dtype == DType::BF16)
        whole = bits >> 16;
      else if (dtype == DType::F16) // normal numbers of either sign
        whole = (bits >> 16 & 0x8000) | (0x3000 + (bits >> 8 & 0xfff));
      else
        whole = state; // integers, that wrap
      bytes.append(reinterpret_cast<char *>(&whole),
                   static_cast<size_t>(dtypeBytes(dtype)));
    }
    return bytes;
  }

  /// Two views of each rank in one collective: `rows` by `columns`, and one
  /// row.
  void prepare(DType dtype, const std::string &kind, const std::string &combine,
               int64_t ranks, int64_t rows, int64_t columns,
               bool inPlace = false) {
    bool scatters = kind == "reduce_scatter";
    int64_t size = dtypeBytes(dtype);
    Executable executable;
    executable.target = "cpu";
    executable.mesh = {{"dp", ranks}};
    Program program;
    program.name = "main";
    int64_t shared = 0, device = 0;
    CollectiveCommand collective;
    collective.kind = kind;
    collective.combine = combine;
    collective.axes = {"dp"};
    collective.dim = 1;
    Body body{"body", "cpu", {}};
    std::vector<Command> writes;
    int64_t number = 0;
    for (int64_t height : {rows, int64_t(1)}) {
      std::string x = "x" + std::to_string(number),
                  y = "y" + std::to_string(number++);
      int64_t width = scatters ? columns / ranks : columns;
      Part in{{ranks, height, columns}, {{"dp"}, {}, {}}},
          out{{ranks, height, width}, {{"dp"}, {}, {}}};
      executable.inputs.push_back({x, dtype, in.shape});
      executable.outputs.push_back({y, dtype, out.shape});
      int64_t inBytes = height * columns * size,
              outBytes = height * width * size;
      size_t buffer = program.buffers.size();
      program.buffers.push_back(
          {x, "communication", "shared", shared, inBytes, 1, inBytes, "", ""});
      size_t result = buffer;
      if (!inPlace) {
        result = program.buffers.size();
        program.buffers.push_back(
            {y, "output", "device", device, outBytes, 1, outBytes, "", ""});
        device += (outBytes + 63) / 64 * 64;
      }
      shared += (inBytes + 63) / 64 * 64;
      auto view = [&](size_t of, std::vector<int64_t> shape) {
        View made = contiguousView(of, shape);
        made.dtype = dtype;
        return made;
      };
      collective.inputs.push_back(view(buffer, {height, columns}));
      collective.outputs.push_back(view(result, {height, width}));
      body.commands.push_back(command(
          ReadCommand{"input", x, in, view(buffer, {1, height, columns})},
          "X"));
      writes.push_back(command(
          WriteCommand{"output", y, out, view(result, {1, height, width})},
          "Y"));
      std::string header = npyHeader(dtype, in.shape);
      std::ofstream(folder / (x + ".npy"), std::ios::binary)
          << header << numbers(dtype, ranks * height * columns);
    }
    program.arenas = {{"device", device, 64, 0}, {"shared", shared, 64, 0}};
    body.commands.push_back(command(collective, "Sum"));
    for (Command &one : writes)
      body.commands.push_back(one);
    program.bodies = {body};
    program.entries = {{"forward", {{1, {{"cpu", false, {{0, 0}}}}}}}};
    executable.programs = {program};
    Status status = writeExecutableFile(executable, {}, folder / "m.accx");
    ASSERT_TRUE(status.ok()) << status.message();
    options.executable = folder / "m.accx";
    options.inputs = folder.path;
    options.outputs = folder / "out";
    options.repeats = 3;
  }

  /// By connections of the ranks' own and by the network.
  void check(const std::vector<std::vector<std::string>> &patterns) {
    ASSERT_EQ(run(), "");
    std::string expected[] = {slurp(folder / "out/y0.npy"),
                              slurp(folder / "out/y1.npy")};
    ASSERT_GT(expected[1].size(), 64u);
    for (const char *way : {"sockets", "mpi"})
      for (const std::vector<std::string> &machines : patterns) {
        setenv("ACCEL_MESSAGES", way, 1);
        std::filesystem::remove_all(folder / "out");
        std::string told;
        options.progress = [&](const std::string &line) { told += line; };
        ASSERT_EQ(runOn(machines), "");
        options.progress = nullptr;
        EXPECT_THAT(told,
                    HasSubstr(way[0] == 's' ? "they go from rank to rank by TCP"
                                            : "they go by MPI"));
        std::string names = way;
        for (const std::string &machine : machines)
          names += " " + machine;
        EXPECT_TRUE(slurp(folder / "out/y0.npy") == expected[0]) << names;
        EXPECT_TRUE(slurp(folder / "out/y1.npy") == expected[1]) << names;
      }
    unsetenv("ACCEL_MESSAGES");
  }

  const std::vector<std::vector<std::string>> ofFour = {
      {"a", "a", "b", "b"}, {"a", "a", "a", "b"}, {"a", "b", "b", "b"},
      {"a", "b", "a", "b"}, {"a", "b", "b", "a"}, {"a", "b", "c", "c"},
      {"a", "b", "c", "d"}};
};

TEST_F(RemoteSums, OfEveryTypeInEveryPattern) {
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16,
                      DType::I32, DType::I64})
    for (const char *kind : {"all_reduce", "reduce_scatter"}) {
      SCOPED_TRACE(std::string(kind) + " of " + dtypeName(dtype));
      prepare(dtype, kind, "sum", 4, 3, 1236);
      check(ofFour);
    }
}

TEST_F(RemoteSums, InChunksThatEndAnywhere) {
  for (const char *kind : {"all_reduce", "reduce_scatter"}) {
    SCOPED_TRACE(kind);
    prepare(DType::BF16, kind, "sum", 4, 13, 30012); // 6 slots of staging
    check({ofFour[0], ofFour[1], ofFour[3]});
    prepare(DType::F32, kind, "max", 2, 13, 30012);
    check({{"a", "b"}});
    prepare(DType::F32, kind, "sum", 3, 13, 30009);
    check({{"a", "b", "c"}, {"a", "a", "b"}, {"a", "b", "b"}, {"a", "b", "a"}});
  }
}

TEST_F(RemoteSums, InPlace) {
  for (int64_t ranks : {2, 4}) {
    prepare(DType::F32, "all_reduce", "sum", ranks, 13, 30012, true);
    if (ranks == 2)
      check({{"a", "b"}});
    else
      check({ofFour[0], ofFour[3], ofFour[6]});
  }
}

TEST_F(RemoteSums, EndWhereAnotherMachineCannotGoOn) {
  prepare(DType::F32, "all_reduce", "sum", 4, 3, 1236);
  options.hangSeconds = 60;
  // The same words for all, but what they name is elsewhere another.
  std::ofstream(folder / "x1.npy", std::ios::binary) << "no array";
  EXPECT_THAT(runOn({"a", "a", "b", "b"}), HasSubstr("x1.npy"));
}

TEST_F(RemoteSums, NeedAsManyProcessesAsRanks) {
  prepare(DType::F32, "all_reduce", "sum", 4, 3, 1236);
  EXPECT_THAT(runOn({"a", "b"}),
              HasSubstr("expected 4 processes for --comm=mpi, one for each "
                        "rank of"));
}

} // namespace
