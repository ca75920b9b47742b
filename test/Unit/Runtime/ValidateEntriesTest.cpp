// What the check of an executable says of several entries: a call finds what
// `load` has left and nothing of another's, and moves files of its own.

#include "TinyEvaluation.h"
#include "ValidateFixture.h"

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

/// tinyEvaluation, changed.
std::string evaluation(const Change &change) {
  Executable executable = tinyEvaluation();
  change(executable.programs[0]);
  std::string kernels;
  return check(std::move(executable), tinyTrainingSections(kernels));
}

Command fill(View view) {
  return command(FillCommand{bytesOf(0.f), std::move(view)}, "Fill");
}
/// The score is a copy of that.
void scoreOf(Program &program, const View &view) {
  std::get<CopyCommand>(commandsOf(program, 4)[0].what).source = view;
}

TEST(ValidateEntries, FindNothingOfEachOthers) {
  EXPECT_EQ(evaluation([](Program &) {}), "");
  // What a step has left, in whichever order they stand in the file.
  for (bool first : {false, true})
    EXPECT_THAT(evaluation([&](Program &p) {
                  for (size_t i = 0; i < p.buffers.size(); ++i)
                    if (p.buffers[i].name == "g")
                      scoreOf(p, contiguousView(static_cast<int64_t>(i), {}));
                  if (first)
                    std::swap(p.entries[1], p.entries[2]);
                }),
                HasSubstr("byte 0 of space 'shared', in buffer 'g', which "
                          "nothing has written, in a copy for node 'Score'"));
}

/// `load` fills 'a', and eval reads it.
TEST(ValidateEntries, LeaveWhatLoadHasLeft) {
  auto loaded = [](const std::function<void(Program &, View)> &change) {
    return evaluation([&](Program &p) {
      View a = addBuffer(p, "a", "activation", {});
      commandsOf(p, 0).push_back(fill(a));
      scoreOf(p, a);
      change(p, a);
    });
  };
  EXPECT_EQ(loaded([](Program &, View) {}), "");
  const char *expected = "expected what calls find of buffer 'a' to stay as "
                         "'load' has left it, found that the entry ";
  auto refused = [&](const char *rest) {
    return HasSubstr(std::string(expected) + rest);
  };
  // By the step, by the evaluation itself, by what lies at the same place.
  EXPECT_THAT(
      loaded([](Program &p, View a) { commandsOf(p, 1).push_back(fill(a)); }),
      refused("'step' overwrites byte "));
  EXPECT_THAT(
      loaded([](Program &p, View a) { commandsOf(p, 4).push_back(fill(a)); }),
      refused("'eval' overwrites byte "));
  EXPECT_THAT(loaded([](Program &p, View a) {
                BufferPlan other = p.buffers[a.buffer];
                other.name = "b";
                other.role = "communication";
                p.buffers.push_back(other);
                a.buffer = static_cast<int64_t>(p.buffers.size()) - 1;
                commandsOf(p, 1).push_back(fill(a));
              }),
              HasSubstr("through buffer 'b'"));
  EXPECT_THAT(loaded([](Program &p, View a) {
                commandsOf(p, 1)[0].releases.push_back(a);
              }),
              refused("'step' overwrites byte "));
  // A state gets another value of itself alone.
  EXPECT_EQ(loaded([](Program &p, View a) {
              p.buffers[a.buffer].role = "state";
              commandsOf(p, 1).push_back(fill(a));
            }),
            "");
  EXPECT_THAT(evaluation([](Program &p) {
                BufferPlan other = p.buffers[0];
                other.name = "b";
                other.role = "communication";
                p.buffers.push_back(other);
                View b = contiguousView(
                    static_cast<int64_t>(p.buffers.size()) - 1, {});
                commandsOf(p, 3).push_back(fill(b));
              }),
              HasSubstr("which buffer 'b' has overwritten,"));
}

/// An evaluation between steps leaves what they train as it was, and may sum
/// over micro-batches.
TEST(ValidateEntries, EvaluateWithoutTraining) {
  auto evaluated = [](const std::string &state) {
    return evaluation([&](Program &p) {
      for (size_t i = 0; i < p.buffers.size(); ++i)
        if (p.buffers[i].source == state)
          commandsOf(p, 4).push_back(
              fill(contiguousView(static_cast<int64_t>(i), {1})));
    });
  };
  EXPECT_THAT(evaluated("rows"),
              HasSubstr("expected what calls find of buffer 'rows' to stay as "
                        "'load' has left it, found that the entry 'eval'"));
  EXPECT_EQ(evaluated("sum"), "");
}

TEST(ValidateEntries, MoveFilesOfTheirOwn) {
  EXPECT_THAT(evaluation([](Program &p) {
                p.entries[2].loops = p.entries[1].loops;
                p.bodies.pop_back();
              }),
              HasSubstr("expected body 'forward', which reads inputs or writes "
                        "outputs, to be run by one entry, found it in 'step' "
                        "and 'eval' of program 'step'"));
  EXPECT_EQ(evaluation([](Program &p) { // a body that moves none
              auto &loops = p.entries[2].loops;
              loops.insert(loops.begin(), p.entries[1].loops[0]);
            }),
            "");
}

/// What the loss of an evaluation is made of: numbers that the first stage has.
TEST(ValidateEntries, TellTheTermsOfTheLoss) {
  std::string kernels;
  std::vector<SectionData> sections = tinyTrainingSections(kernels);
  auto quotient = [&](const std::function<void(Executable &)> &change) {
    Executable executable = tinyQuotient();
    change(executable);
    return check(std::move(executable), sections);
  };
  auto term = [](Executable &e) -> LossTerm & {
    return e.separateRows->terms[0];
  };
  EXPECT_EQ(quotient([](Executable &) {}), "");
  EXPECT_EQ(quotient([&](Executable &e) { term(e).denominator = ""; }), "");
  for (bool denominator : {false, true})
    EXPECT_THAT(quotient([&](Executable &e) {
                  (denominator ? term(e).denominator : term(e).numerator) = "z";
                }),
                HasSubstr("expected an output 'z', a number of type f32 or "
                          "f64"));
  EXPECT_THAT(quotient([&](Executable &e) { term(e).denominator = "n"; }),
              HasSubstr("expected outputs of its own for each term of the "
                        "loss, found 'n' twice"));
  EXPECT_THAT(quotient([&](Executable &e) { term(e).numerator = "loss"; }),
              HasSubstr("found 'loss' twice"));
  // An output of another shape, and one of the step alone.
  EXPECT_THAT(
      quotient([&](Executable &e) { term(e).numerator = "net/w.grad"; }),
      HasSubstr("expected an output 'net/w.grad', a number"));
  EXPECT_THAT(quotient([&](Executable &e) {
                e.programs[0].bodies[4].commands.resize(4);
              }),
              HasSubstr("expected the first stage's entry 'eval' to write "
                        "output 'd', found none"));
}

TEST(ValidateEntries, ListWhatAStepReports) {
  std::string kernels;
  std::vector<SectionData> sections = tinyTrainingSections(kernels);
  auto error = [&](auto change) {
    Executable executable = tinyTraining();
    change(executable);
    return check(executable, sections);
  };
  EXPECT_EQ(error([](Executable &) {}), "");
  // What is not listed is an output as others are.
  EXPECT_EQ(
      error([](Executable &e) { e.reports.erase(e.reports.begin() + 1); }), "");
  for (size_t place : {0, 3})
    EXPECT_THAT(
        error(
            [&](Executable &e) { e.reports.erase(e.reports.begin() + place); }),
        HasSubstr(std::string("expected a training step to report '") +
                  (place ? "verdict" : "loss") + "', found no such report"));
  EXPECT_THAT(error([](Executable &e) { e.reports.push_back(e.reports[1]); }),
              HasSubstr("found the report 'grad_norm' twice"));
  EXPECT_THAT(error([](Executable &e) { e.reports.resize(kMaxReports + 1); }),
              HasSubstr("expected at most 16 reports of a step, found 17"));
  EXPECT_THAT(error([](Executable &e) {
                e.reports.push_back({std::string(64, 'n'), DType::F32});
              }),
              HasSubstr("expected a report's name of at most 63 bytes"));
  EXPECT_THAT(error([](Executable &e) {
                e.reports.push_back({"index", DType::I64});
              }),
              HasSubstr("expected an output 'index', a number of type f32, f64 "
                        "or i32"));
  EXPECT_THAT(error([](Executable &e) { e.reports[3].dtype = DType::F32; }),
              HasSubstr("expected the report 'verdict' to have the type of the "
                        "output, found another"));
  // A loss is no whole number, and a verdict is one.
  EXPECT_THAT(error([](Executable &e) {
                std::swap(e.reports[0].name, e.reports[3].name);
                for (TensorPlan &output : e.outputs)
                  if (output.name == "loss" || output.name == "verdict")
                    output.name = output.name == "loss" ? "verdict" : "loss";
              }),
              HasSubstr("a number of type"));
}

TEST(ValidateEntries, TellWhatIsPrinted) {
  EXPECT_THAT(tiny([](Program &p) { p.entries[1].name = "eval"; }),
              HasSubstr("expected an entry 'step' beside 'eval', found none"));
  // The loss is an output of the step, and of no evaluation.
  Executable executable = tinyEvaluation();
  executable.outputs.push_back({"z", DType::F32, {}});
  std::get<WriteCommand>(commandsOf(executable.programs[0], 4)[1].what).name =
      "z";
  std::string kernels;
  std::vector<SectionData> sections = tinyTrainingSections(kernels);
  EXPECT_THAT(check(executable, sections),
              HasSubstr("expected the first stage's entry 'eval' to write "
                        "output 'loss', found none"));
  for (const ReportPlan &report : tinyTraining().reports) {
    std::string name = report.name;
    executable = tinyTraining();
    auto &commands = commandsOf(executable.programs[0], 3);
    commands.erase(
        std::find_if(commands.begin(), commands.end(),
                     [&](const Command &each) { return each.node == name; }));
    EXPECT_THAT(check(executable, sections),
                HasSubstr("expected the first stage's entry 'step' to write "
                          "output '" +
                          name + "', found none"));
    // What another stage's ranks have, the first one cannot tell.
    executable.mesh.push_back({"pp", 2});
    executable.programs.push_back(tinyTraining().programs[0]);
    executable.programs[1].stage = 1;
    EXPECT_THAT(check(executable, sections),
                HasSubstr("expected the first stage's entry 'step' to write "
                          "output '" +
                          name + "', found none"));
    std::swap(executable.programs[0].stage, executable.programs[1].stage);
    EXPECT_EQ(check(executable, sections), "");
  }
}

} // namespace
