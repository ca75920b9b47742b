// accel-make-executable FOLDER KIND RANKS [MICRO-BATCHES [FIRST [LABELS]]]:
// writes FOLDER/m.accx and its input FOLDER/x.npy, FIRST, FIRST + 1, …, for
// tests of acc-run that need no compiler. Of a training program LABELS are the
// input that the compiler added. KINDs:
//   copy    y = x
//   meet    the same, and an all_reduce of the ranks
//   gemm    the same, and a product of matrices of 64 by 64
//   hang    the same, and a kernel that never ends
//   large   arenas of 4 GiB
//   weights the state in a file of its own, FOLDER/weights.bin
//   train   the training program of TinyTraining.h
//   folded  the same, with parameters that the exporter folded away
//   tokens  the same, with inputs of integers [4, 8]
//   score   the same, with the entry eval of TinyEvaluation.h
//   given   training with that entry on x alone, and a frozen state that no
//           rank keeps

#include "Data/OpenTensor.h"
#include "TinyEvaluation.h"

#include <cstdio>
#include <cstring>
#include <fstream>

using namespace accel::rt;
using namespace accel::rt::test;

int main(int argc, char **argv) {
  if (argc < 4 || argc > 7) {
    std::fprintf(stderr, "usage: accel-make-executable FOLDER KIND RANKS "
                         "[MICRO-BATCHES [FIRST [LABELS]]]\n");
    return 2;
  }
  std::string folder = argv[1], kind = argv[2], kernels;
  int64_t ranks = std::atoll(argv[3]);
  int64_t microBatches = argc > 4 ? std::atoll(argv[4]) : 1;
  double first = argc > 5 ? std::atof(argv[5]) : 0;
  Executable executable = tinyExecutable(ranks);
  std::vector<SectionData> sections = tinySections();
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
    commands.push_back(
        command(KernelCommand{"tiny_hang", {}, {}, 1, 1}, "Conv#4"));
    if (microBatches > 1) { // the first of them last
      executable.microBatches = microBatches;
      std::vector<Loop> &loops = program.entries[1].loops;
      loops.push_back(loops[0]);
      loops[0].trips = microBatches - 1;
      loops[0].segments[0].runs[0].microBatch = 1;
    }
    sections = tinyTrainingSections(kernels);
  } else if (kind == "large") {
    constexpr int64_t bytes = int64_t(4) << 30;
    program.arenas[0].bytes = 256 + bytes;
    program.buffers.push_back(
        {"large", "scratch", "device", 256, bytes, 1, bytes, "", ""});
    program.arenas.push_back({"shared", bytes, 64, 0});
    program.buffers.push_back(
        {"common", "communication", "shared", 0, bytes, 1, bytes, "", ""});
  } else if (kind == "weights") {
    FirstValue &first = executable.states[0].first;
    first.section.clear();
    first.path = "weights.bin";
    sections.clear();
    std::ofstream(folder + "/weights.bin", std::ios::binary)
        .write(reinterpret_cast<const char *>(kTinyState), sizeof kTinyState);
  } else if (kind == "train" || kind == "folded" || kind == "tokens" ||
             kind == "score" || kind == "given") {
    int64_t length = kind == "tokens" || kind == "score" ? 8 : 0;
    bool evaluates = kind == "score" || kind == "given";
    executable = evaluates ? tinyEvaluation(ranks, microBatches, length)
                           : tinyTraining(ranks, microBatches, length);
    sections = tinyTrainingSections(kernels);
    if (argc > 6)
      executable.unshiftedLabels = argv[6];
    for (BufferPlan &buffer : executable.programs[0].buffers)
      if (kind == "given" && buffer.source == "mask")
        buffer.source.clear();
    if (kind == "folded")
      executable.folded = {{"ln.bias", std::vector<int64_t>{3}},
                           {"lm_head.weight", {}}};
  } else if (kind != "copy") {
    std::fprintf(stderr, "unknown kind '%s'\n", kind.c_str());
    return 2;
  }
  std::filesystem::create_directories(folder);
  std::vector<int64_t> shape = executable.inputs[0].shape;
  std::string header = npyHeader(DType::F32, shape);
  std::ofstream input(folder + "/x.npy", std::ios::binary);
  input << header;
  for (int64_t i = 0; i < shape[0]; ++i) {
    float value = static_cast<float>(first + static_cast<double>(i));
    input.write(reinterpret_cast<char *>(&value), 4);
  }
  Status status = writeExecutableFile(executable, sections, folder + "/m.accx");
  if (!status.ok())
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
