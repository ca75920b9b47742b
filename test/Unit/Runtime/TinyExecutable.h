// A hand-made executable for the tests of the runtime: one input, one state,
// one output, so small that every byte of its file can be tried.

#ifndef ACCEL_TEST_UNIT_RUNTIME_TINYEXECUTABLE_H
#define ACCEL_TEST_UNIT_RUNTIME_TINYEXECUTABLE_H

#include "accel-rt/PlanFormat.h"

#include <cstdlib>
#include <filesystem>

namespace accel::rt::test {

/// A folder that vanishes with its owner.
struct TemporaryFolder {
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "accel-test-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }
  std::string path;
};

inline View contiguousView(int64_t buffer, std::vector<int64_t> shape,
                           DType dtype = DType::F32) {
  View view;
  view.buffer = buffer;
  view.dtype = dtype;
  view.shape = shape;
  view.strides.resize(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i])
    view.strides[i] = stride;
  return view;
}

inline Command command(decltype(Command::what) what, std::string node) {
  Command result;
  result.what = std::move(what);
  result.node = std::move(node);
  return result;
}

/// The value of the tiny executable's state, as its section holds it.
inline const float kTinyState[4] = {1, 2, 3, 4};

/// `ranks` ranks share x [4·ranks] over dp; main copies x to y. The state w
/// [2, 2] is a section.
inline Executable tinyExecutable(int64_t ranks = 1) {
  Executable executable;
  executable.target = "cpu";
  executable.mesh = {{"dp", ranks}};
  Part part{{4 * ranks}, {{"dp"}}};
  executable.inputs = {{"x", DType::F32, part.shape}};
  executable.outputs = {{"y", DType::F32, part.shape}};
  StatePlan state;
  state.name = "w";
  state.aliases = {"v"};
  state.shape = {2, 2};
  state.first.section = "state:w";
  state.first.bytes = 16;
  state.first.hash = hashBytes(kTinyState, sizeof kTinyState);
  state.first.permutation = {1, 0};
  executable.states = {state};
  Program program;
  program.name = "main";
  program.arenas = {{"device", 192, 64, 1 << 28}};
  program.buffers = {{"x", "input", "device", 0, 16, 1, 16, "", ""},
                     {"w", "state", "device", 64, 16, 1, 16, "", "w"},
                     {"y", "output", "device", 128, 16, 1, 16, "", ""}};
  View x = contiguousView(0, {4}), w = contiguousView(1, {2, 2}),
       y = contiguousView(2, {4});
  Body load{"load", "cpu", {}}, body{"body", "cpu", {}};
  load.commands = {
      command(ReadCommand{"state", "w", {{2, 2}, {{}, {}}}, w}, "W")};
  body.commands = {command(ReadCommand{"input", "x", part, x}, "X"),
                   command(CopyCommand{x, y}, "Copy#1"),
                   command(WriteCommand{"output", "y", part, y}, "Y")};
  program.bodies = {load, body};
  program.entries = {{"load", {{1, {{"cpu", false, {{0, 0}}}}}}},
                     {"forward", {{1, {{"cpu", false, {{1, 0}}}}}}}};
  executable.programs = {program};
  return executable;
}

inline std::vector<SectionData> tinySections() {
  return {{"state:w", DType::F32, {2, 2}, kTinyState, sizeof kTinyState}};
}

/// Ranks that meet in a collective for a very long time.
inline Executable meetingExecutable(int64_t ranks) {
  Executable executable = tinyExecutable(ranks);
  Program &program = executable.programs[0];
  program.arenas.push_back({"shared", 64, 64, 0});
  program.buffers.push_back(
      {"s", "communication", "shared", 0, 16, 1, 16, "", ""});
  CollectiveCommand collective;
  collective.kind = "all_reduce";
  collective.axes = {"dp"};
  collective.combine = "sum";
  collective.inputs = collective.outputs = {contiguousView(3, {4})};
  program.bodies[1].commands.push_back(
      command(FillCommand{{0, 0, 0, 0}, contiguousView(3, {4})}, "Zero"));
  program.bodies[1].commands.push_back(command(collective, "AllReduce#1"));
  return executable;
}

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_TINYEXECUTABLE_H
