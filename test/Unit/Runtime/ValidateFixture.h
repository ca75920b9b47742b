// What tests of the check of executables share: small programs, a change to one
// of them, and what the check says of it.

#ifndef ACCEL_TEST_UNIT_RUNTIME_VALIDATEFIXTURE_H
#define ACCEL_TEST_UNIT_RUNTIME_VALIDATEFIXTURE_H

#include "TinyTraining.h"

#include <gmock/gmock.h>

#include <functional>

namespace accel::rt::test {

using ::testing::HasSubstr;

/// tinyExecutable with a second stream: x is copied to z by `compute`, z to y
/// by `side`, and events order them.
inline Executable twoStreams() {
  Executable executable = tinyExecutable();
  Program &program = executable.programs[0];
  program.arenas[0].bytes = 256;
  program.buffers.push_back(
      {"z", "activation", "device", 192, 16, 1, 16, "", ""});
  View x = contiguousView(0, {4}), y = contiguousView(2, {4}),
       z = contiguousView(3, {4});
  auto &commands = program.bodies[1].commands;
  auto side = [](Command command) {
    command.stream = "side";
    return command;
  };
  commands = {commands[0],
              command(CopyCommand{x, z}, "ToZ"),
              command(RecordCommand{"z"}, "Record"),
              side(command(WaitCommand{"z"}, "Wait")),
              side(command(CopyCommand{z, y}, "ToY")),
              side(command(RecordCommand{"y"}, "Record")),
              command(WaitCommand{"y"}, "Wait"),
              commands[2]};
  return executable;
}

inline std::string check(Executable executable,
                         std::vector<SectionData> sections = tinySections()) {
  TemporaryFolder folder;
  Status status =
      writeExecutableFile(std::move(executable), sections, folder / "a.accx");
  return status.ok() ? "" : status.message();
}

using Change = std::function<void(Program &)>;
inline std::string changed(Executable executable, const Change &change) {
  change(executable.programs[0]);
  return check(std::move(executable));
}
inline std::string tiny(const Change &change) {
  return changed(tinyExecutable(), change);
}
inline std::string streams(const Change &change) {
  return changed(twoStreams(), change);
}
inline std::vector<Command> &commandsOf(Program &program, size_t body = 1) {
  return program.bodies[body].commands;
}

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_VALIDATEFIXTURE_H
