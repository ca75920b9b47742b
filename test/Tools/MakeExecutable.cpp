// accel-make-executable FOLDER KIND RANKS: writes FOLDER/m.accx and its input
// FOLDER/x.npy, for tests of acc-run that need no compiler. KINDs:
//   copy    y = x
//   meet    the same, and an all_reduce of the ranks
//   gemm    the same, and a product of matrices of 64 by 64
//   hang    a wait for what never happens
//   weights the state in a file of its own, FOLDER/weights.bin

#include "Data/Npy.h"
#include "TinyExecutable.h"

#include <cstdio>
#include <cstring>
#include <fstream>

using namespace accel::rt;
using namespace accel::rt::test;

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: accel-make-executable FOLDER KIND RANKS\n");
    return 2;
  }
  std::string folder = argv[1], kind = argv[2];
  int64_t ranks = std::atoll(argv[3]);
  Executable executable = tinyExecutable(ranks);
  Program &program = executable.programs[0];
  auto &commands = program.bodies[1].commands;
  if (kind == "meet") {
    program.arenas.push_back({"shared", 64, 64, 0});
    program.buffers.push_back(
        {"s", "communication", "shared", 0, 16, 1, 16, "", ""});
    View s = contiguousView(3, {4});
    CollectiveCommand collective;
    collective.kind = "all_reduce";
    collective.axes = {"dp"};
    collective.combine = "sum";
    collective.inputs = collective.outputs = {s};
    commands.push_back(command(FillCommand{{0, 0, 0, 0}, s}, "Zero"));
    commands.push_back(command(collective, "AllReduce#1"));
  } else if (kind == "gemm") {
    int64_t bytes = 64 * 64 * 4, scratch = 1 << 20;
    program.arenas[0].bytes = 256 + 3 * bytes + scratch;
    for (int64_t i = 0; i < 4; ++i)
      program.buffers.push_back({"g" + std::to_string(i), "scratch", "device",
                                 256 + i * bytes, i < 3 ? bytes : scratch, 1,
                                 i < 3 ? bytes : scratch, "", ""});
    GemmCommand gemm;
    gemm.a = contiguousView(3, {64, 64});
    gemm.b = contiguousView(4, {64, 64});
    gemm.c = contiguousView(5, {64, 64});
    gemm.scratch = contiguousView(6, {scratch}, DType::I8);
    for (const View &view : {gemm.a, gemm.b})
      commands.push_back(command(FillCommand{{0, 0, 128, 63}, view}, "Fill"));
    commands.push_back(command(gemm, "MatMul#1"));
  } else if (kind == "hang") {
    commands.push_back(command(WaitCommand{"never"}, "Conv#4"));
  } else if (kind == "weights") {
    FirstValue &first = executable.states[0].first;
    first.section.clear();
    first.path = "weights.bin";
    std::ofstream(folder + "/weights.bin", std::ios::binary)
        .write(reinterpret_cast<const char *>(kTinyState), sizeof kTinyState);
  } else if (kind != "copy") {
    std::fprintf(stderr, "unknown kind '%s'\n", kind.c_str());
    return 2;
  }
  std::filesystem::create_directories(folder);
  std::string header = npyHeader(DType::F32, {4 * ranks});
  std::ofstream input(folder + "/x.npy", std::ios::binary);
  input << header;
  for (int64_t i = 0; i < 4 * ranks; ++i) {
    float value = static_cast<float>(i);
    input.write(reinterpret_cast<char *>(&value), 4);
  }
  Status status =
      writeExecutableFile(executable, tinySections(), folder + "/m.accx");
  if (!status.ok())
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
