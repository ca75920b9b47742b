// Writes an executable whose call is one collective, many times over, and
// nothing else, so that acc-run's seconds of a call are the collective's:
//
//   acc-make-collective KIND RANKS BYTES TIMES OUT.accx
//
// KIND is all_reduce or reduce_scatter, of float32 sums; BYTES are a rank's
// input. What is summed is filled once, at load.

#include "accel-rt/PlanFormat.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace accel::rt;

namespace {

View viewOf(int64_t buffer, int64_t elements) {
  View view;
  view.buffer = buffer;
  view.dtype = DType::F32;
  view.shape = {elements};
  view.strides = {1};
  return view;
}

Command command(decltype(Command::what) what, const char *node) {
  Command result;
  result.what = std::move(what);
  result.node = node;
  return result;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: acc-make-collective KIND RANKS BYTES TIMES "
                         "OUT.accx\n");
    return 1;
  }
  int64_t ranks = std::atoll(argv[2]), bytes = std::atoll(argv[3]),
          times = std::atoll(argv[4]);
  bool scatters = std::strcmp(argv[1], "reduce_scatter") == 0;
  int64_t outBytes = scatters ? bytes / ranks : bytes;

  Executable executable;
  executable.target = "cpu";
  executable.mesh = {{"dp", ranks}};
  executable.microBatches = times; // what loops count
  Program program;
  program.name = "main";
  // As plans have it: what others read of a rank is shared, the piece that a
  // reduce_scatter leaves is its own.
  const char *outSpace = scatters ? "device" : "shared";
  int64_t outAt = scatters ? 0 : (bytes + 63) / 64 * 64;
  program.arenas = {{"device", scatters ? outBytes : 0, 64, 0},
                    {"shared", outAt + (scatters ? bytes : outBytes), 64, 0}};
  program.buffers = {
      {"x", "communication", "shared", 0, bytes, 1, bytes, "", ""},
      {"y", "output", outSpace, outAt, outBytes, 1, outBytes, "", ""}};
  View x = viewOf(0, bytes / 4), y = viewOf(1, outBytes / 4);
  CollectiveCommand collective;
  collective.kind = argv[1];
  collective.axes = {"dp"};
  collective.combine = "sum";
  collective.inputs = {x};
  collective.outputs = {y};
  // Written where --outputs are asked for, and else nothing.
  Part part{{ranks, outBytes / 4}, {{"dp"}, {}}};
  executable.outputs = {{"y", DType::F32, part.shape}};
  View whole = y;
  whole.shape = {1, outBytes / 4};
  whole.strides = {outBytes / 4, 1};
  // 1.0: what sums are of changes nothing in their time.
  program.bodies = {
      {"load", "cpu", {command(FillCommand{{0, 0, 128, 63}, x}, "Fill")}},
      {"body",
       "cpu",
       {command(collective, "Collective"),
        command(WriteCommand{"output", "y", part, whole}, "Y")}}};
  program.entries = {{"load", {{1, {{"cpu", false, {{0, 0}}}}}}},
                     {"forward", {{times, {{"cpu", false, {{1, 0}}}}}}}};
  executable.programs = {program};
  Status status = writeExecutableFile(executable, {}, argv[5]);
  if (!status.ok())
    std::fprintf(stderr, "acc-make-collective: error: %s\n",
                 status.message().c_str());
  return status.ok() ? 0 : 1;
}
