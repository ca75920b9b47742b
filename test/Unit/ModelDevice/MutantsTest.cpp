// What can be lost of a plan: each thing once.

#include "test/ModelDevice/Mutants.h"

#include "../Runtime/TinyExecutable.h"

#include <gmock/gmock.h>

using namespace accel::rt;
using namespace accel::rt::model;

namespace {

/// Two bodies: one records, both wait for it; one copy.
Executable recorded() {
  Executable executable = test::tinyExecutable();
  Program &program = executable.programs[0];
  program.bodies = {{"first", "cpu", {}}, {"second", "cpu", {}}};
  View view = test::contiguousView(0, {4});
  program.bodies[0].commands = {test::command(RecordCommand{"made"}, "A"),
                                test::command(WaitCommand{"made"}, "B"),
                                test::command(RecordCommand{"unheard"}, "C")};
  program.bodies[1].commands = {test::command(CopyCommand{view, view}, "D"),
                                test::command(WaitCommand{"made", 0}, "E")};
  return executable;
}

TEST(ModelMutants, AreEachThingOnce) {
  std::vector<std::pair<Mutant::Kind, std::set<int64_t>>> found;
  for (const Mutant &mutant : mutantsOf(recorded()))
    found.push_back({mutant.kind, mutant.lost});
  using Kind = Mutant::Kind;
  std::vector<std::pair<Mutant::Kind, std::set<int64_t>>> expected = {
      {Kind::Wait, {1}},   {Kind::Copy, {3}},    {Kind::Wait, {4}},
      {Kind::Record, {0}}, {Kind::Edge, {1, 4}}, {Kind::Record, {2}}};
  EXPECT_EQ(found, expected);
}

TEST(ModelMutants, LackWhatTheyLose) {
  Executable executable = recorded();
  for (const Mutant &mutant : mutantsOf(executable)) {
    Executable made = without(executable, mutant);
    size_t left = 0;
    for (const Body &body : made.programs[0].bodies)
      left += body.commands.size();
    EXPECT_EQ(left, 5 - mutant.lost.size()) << mutant.what;
  }
  Mutant copy{Mutant::Kind::Copy, 0, {3}, ""};
  EXPECT_EQ(without(executable, copy).programs[0].bodies[1].commands[0].node,
            "E");
}

} // namespace
