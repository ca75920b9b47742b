// What the emitter makes of a plan: every command and value arrives in the
// file, and what the file cannot say is refused where it stands.

#include "lib/Emit/WriteExecutable.h"
#include "FakeTarget.h"

#include "accel-rt/PlanFormat.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace accel;
using ::testing::HasSubstr;

namespace {

constexpr const char *kPlan = R"mlir(
module attributes {accel.phase = "plan"} {
  dist.mesh @mesh ["mb" = 1, "dp" = 2]
  nn.state @"w" : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]> {aliases = ["v"]}
  nn.state @"far" : tensor<4xf32> from #nn.file<"FOLDER/data/weights.bin">[64 : 16] hash 18446744073709551615
  func.func private @kernel_0(tensor<2x2xf32>) -> tensor<2x2xf32> attributes {plan.kernel}
  plan.program @main stage 0 ranks 2 mesh @mesh {
    plan.arena device 196 bytes reserve 1048576
    plan.arena shared 64 bytes
    plan.buffer @x : input device at 0, 16 bytes slots 2 stride 64
    plan.buffer @w : state device at 128, 16 bytes source @w
    plan.buffer @c : constant device at 192, 4 bytes value dense<[true, false, true, true]> : tensor<4xi1>
    plan.buffer @s : communication shared at 0, 32 bytes
    plan.body @load_states engine cpu {
      plan.read state "w" -> @w[2x2xf32]
    }
    plan.body @forward engine cpu {
      plan.read input "x" -> @x[2x2xf32] of [4/dp, 2] loc("Input")
      plan.gemm @x[2x2xf32], @w[2x2xf32 strides [1, 2]] -> @s[2x2xf32 at dp*16] form {packed, chunk_rows = 8, layout = array<i64: 3, 4>, alpha = 0.5, library = "onednn"} releases @x[16xi8] loc(fused["MatMul#1", "Add#2"])
      plan.kernel @kernel_0(@w[2x2xf32]) -> @s[2x2xf32] rows 2 by 1 form {blocks = 8, stages = 2} loc("Gelu")
      plan.fill @s[2x2xf32] with 1.5 {plan.inserted_by = "plan-pad"}
      plan.record "filled"
      plan.wait "filled" on comm
      plan.collective all_reduce max over dp (@s[2x2xf32]) -> @s[2x2xf32] on comm
      plan.record "reduced" on comm
      plan.wait "reduced"
      plan.write @s[2x2xf32] of [4/dp, 2] -> output "y"
    }
    plan.body @clear engine cpu {
      plan.fill @s[2x2xf32] with 0.0
    }
    plan.entry @load {
      plan.segment cpu { plan.run @load_states }
    }
    plan.entry @forward {
      plan.segment cpu { plan.run @forward }
      plan.segment cpu capturable { plan.run @clear }
    }
  }
})mlir";

class WriteExecutable : public ::testing::Test {
protected:
  WriteExecutable() {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, nn::NNDialect, dist::DistDialect,
                    plan::PlanDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    SmallString<128> path;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("accel-emit", path));
    EXPECT_FALSE(llvm::sys::fs::create_directory(path + "/data"));
    folder = path.str().str();
  }
  ~WriteExecutable() override { llvm::sys::fs::remove_directories(folder); }

  /// Writes the plan after replacing texts by others; returns the error.
  std::string write(StringRef from, StringRef to) {
    return write({{from, to}});
  }
  std::string
  write(std::initializer_list<std::pair<StringRef, StringRef>> changes = {}) {
    std::string text = kPlan;
    auto replace = [&](StringRef a, StringRef b) {
      size_t at = text.find(a.str());
      ASSERT_NE(at, std::string::npos) << a.str();
      text.replace(at, a.size(), b.str());
    };
    replace("FOLDER", folder);
    for (auto [from, to] : changes)
      replace(from, to);
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return "no module: " + message;
    FakeTarget target, other(plan::Engine::null);
    std::vector<emit::Compiled> engines = {
        {&target, {{{"thing.so", "ELF"}}, {"avx2"}}},
        {&other, {{{otherSection, "other"}}, {"sse"}}}};
    bool failed = mlir::failed(
        emit::writeExecutable(*module, engines, {{"nn", "text"}},
                              folder + "/m.accx", /*embedWeights=*/false));
    EXPECT_EQ(failed, !message.empty());
    return message;
  }

  MLIRContext context;
  std::string folder, otherSection = "other.so";
};

TEST_F(WriteExecutable, KeepsEverything) {
  ASSERT_EQ(write(), "");
  std::unique_ptr<rt::ExecutableFile> file;
  rt::Status status = rt::ExecutableFile::open(folder + "/m.accx", file);
  ASSERT_TRUE(status.ok()) << status.message();
  const rt::Executable &plan = file->plan();
  EXPECT_EQ(plan.target, "fake:thing");
  EXPECT_EQ(plan.features, (std::vector<std::string>{"avx2", "null:sse"}));
  EXPECT_NE(file->find("code:other.so"), nullptr);
  ASSERT_EQ(plan.mesh.size(), 1u); // mb is no axis of ranks
  EXPECT_EQ(plan.numRanks(), 2);
  ASSERT_EQ(plan.states.size(), 2u);
  EXPECT_EQ(plan.states[0].aliases, std::vector<std::string>{"v"});
  EXPECT_EQ(plan.states[1].first.path, "data/weights.bin");
  EXPECT_EQ(plan.states[1].first.hash, UINT64_MAX);
  float w[4];
  ASSERT_TRUE(file->read(*file->find("state:w"), w).ok());
  EXPECT_EQ(w[3], 4.f);
  char mask[4];
  ASSERT_TRUE(file->read(*file->find("constant:main:c"), mask).ok());
  EXPECT_EQ(std::string(mask, 4), std::string("\1\0\1\1", 4));
  EXPECT_NE(file->find("code:thing.so"), nullptr);
  EXPECT_NE(file->find("ir:nn"), nullptr);

  ASSERT_EQ(plan.inputs.size(), 1u);
  EXPECT_EQ(plan.inputs[0].name, "x");
  ASSERT_EQ(plan.outputs.size(), 1u);
  EXPECT_EQ(plan.outputs[0].name, "y");
  const rt::Program &program = plan.programs[0];
  EXPECT_EQ(program.arenas[0].reserve, 1048576);
  EXPECT_EQ(program.buffers[0].slots, 2);
  EXPECT_EQ(program.buffers[1].source, "w");
  ASSERT_EQ(program.entries[1].loops.size(), 1u);
  const auto &segments = program.entries[1].loops[0].segments;
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_FALSE(segments[0].capturable);
  EXPECT_TRUE(segments[1].capturable);
  EXPECT_EQ(segments[0].runs[0].microBatch, 0);

  const auto &commands = program.bodies[1].commands;
  ASSERT_EQ(commands.size(), 10u);
  auto &gemm = std::get<rt::GemmCommand>(commands[1].what);
  EXPECT_EQ(commands[1].node, "MatMul#1, Add#2");
  EXPECT_EQ(gemm.b.strides, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(gemm.c.axes[0].bytes, 16);
  EXPECT_EQ(std::get<int64_t>(gemm.form.at("packed")), 1);
  EXPECT_EQ(std::get<int64_t>(gemm.form.at("chunk_rows")), 8);
  EXPECT_EQ(std::get<double>(gemm.form.at("alpha")), 0.5);
  EXPECT_EQ(std::get<std::string>(gemm.form.at("library")), "onednn");
  EXPECT_EQ(std::get<std::vector<int64_t>>(gemm.form.at("layout")).size(), 2u);
  EXPECT_EQ(commands[1].releases.size(), 1u);
  auto &kernel = std::get<rt::KernelCommand>(commands[2].what);
  EXPECT_EQ(kernel.function, "fake.kernel_0");
  EXPECT_EQ(std::get<int64_t>(kernel.form.at("blocks")), 8);
  EXPECT_EQ(std::get<int64_t>(kernel.form.at("stages")), 2);
  EXPECT_FALSE(kernel.scratch);
  EXPECT_EQ(std::get<rt::FillCommand>(commands[3].what).value,
            (std::vector<int64_t>{0, 0, 0xc0, 0x3f}));
  EXPECT_EQ(commands[3].node, "(plan-pad)");
  EXPECT_EQ(commands[3].insertedBy, "plan-pad");
  EXPECT_FALSE(commands[1].insertedBy);
  auto &collective = std::get<rt::CollectiveCommand>(commands[6].what);
  EXPECT_EQ(collective.kind, "all_reduce");
  EXPECT_EQ(collective.combine, "max");
  EXPECT_EQ(commands[6].stream, "comm");
}

TEST_F(WriteExecutable, KeepsWhatTrainingNeeds) {
  std::string reports;
  for (const char *name : {"loss", "grad_norm", "lr"})
    reports += std::string("plan.write @s[f32] -> output \"") + name + "\"\n";
  reports += "plan.write @s[i32] -> output \"verdict\"\n";
  reports += "plan.write";
  ASSERT_EQ(
      write({{"accel.phase = \"plan\"",
              "accel.phase = \"plan\", accel.seed = 5 : i64, "
              "accel.reports = [\"loss\", \"verdict\", \"lr\"], "
              "accel.folded_parameters = [{name = \"old\", shape = "
              "array<i64: 2, 3>}, {name = \"lost\"}]"},
             {"\"mb\" = 1", "\"mb\" = 2"},
             {"@\"w\" : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]> "
              "{aliases = [\"v\"]}",
              "moment @\"w\" : tensor<2x2xf32> = dense<1.5> {frozen}"},
             {"tensor<4xf32> from", "tensor<3xf64> logical [2] from"},
             {"[64 : 16] hash 18446744073709551615",
              "[64 : 8] hash 18446744073709551615 {stored = f32}"},
             {"plan.entry @forward", "plan.entry @step"},
             {"plan.write", reports}}),
      "");
  std::unique_ptr<rt::ExecutableFile> file;
  rt::Status status = rt::ExecutableFile::open(folder + "/m.accx", file);
  ASSERT_TRUE(status.ok()) << status.message();
  const rt::Executable &plan = file->plan();
  EXPECT_TRUE(plan.isTraining());
  EXPECT_EQ(plan.microBatches, 2);
  EXPECT_EQ(plan.seed, 5);
  ASSERT_EQ(plan.reports.size(), 3u);
  EXPECT_EQ(plan.reports[1].name, "verdict");
  EXPECT_EQ(plan.reports[1].dtype, rt::DType::I32);
  EXPECT_EQ(plan.reports[2].name, "lr");
  EXPECT_EQ(plan.reports[2].dtype, rt::DType::F32);
  ASSERT_EQ(plan.folded.size(), 2u);
  EXPECT_EQ(plan.folded[0].name, "old");
  EXPECT_EQ(*plan.folded[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_FALSE(plan.folded[1].shape);
  EXPECT_EQ(plan.states[1].shape, std::vector<int64_t>{3});
  EXPECT_EQ(plan.states[1].logicalShape, std::vector<int64_t>{2});
  EXPECT_TRUE(plan.states[0].logicalShape.empty());
  EXPECT_EQ(plan.states[0].role, "moment");
  EXPECT_TRUE(plan.states[0].frozen);
  // A splat is a fill, not a section of equal numbers.
  EXPECT_EQ(plan.states[0].first.fill,
            (std::vector<int64_t>{0, 0, 0xc0, 0x3f}));
  EXPECT_EQ(file->find("state:w"), nullptr);
  EXPECT_EQ(*plan.states[1].first.stored, rt::DType::F32);
}

TEST_F(WriteExecutable, AsksEachEnginesTarget) {
  ASSERT_EQ(
      write({{"-> output \"y\"", "-> output \"y\"\nplan.record \"end\""},
             {"@clear engine cpu {",
              "@clear engine null {\nplan.wait \"end\" of @forward on there"},
             {"plan.fill @s[2x2xf32] with 0.0",
              "plan.kernel @kernel_0(@w[2x2xf32]) -> @s[2x2xf32] rows 2 "
              "by 1 on there"},
             {"plan.segment cpu capturable", "plan.segment null"}}),
      "");
  std::unique_ptr<rt::ExecutableFile> file;
  ASSERT_TRUE(rt::ExecutableFile::open(folder + "/m.accx", file).ok());
  const std::vector<rt::Body> &bodies = file->plan().programs[0].bodies;
  auto symbolOf = [](const rt::Command &command) {
    return std::get<rt::KernelCommand>(command.what).function;
  };
  EXPECT_EQ(symbolOf(bodies[1].commands[2]), "fake.kernel_0");
  EXPECT_EQ(symbolOf(bodies[2].commands[1]), "other.kernel_0");
  EXPECT_EQ(bodies[2].engine, "null");
}

TEST_F(WriteExecutable, RefusesTwoSectionsOfOneName) {
  otherSection = "thing.so";
  EXPECT_THAT(write(), HasSubstr("expected one section of code called "
                                 "'thing.so', found one more, of engine "
                                 "'null'"));
}

TEST_F(WriteExecutable, RefusesWhatTheFileCannotSay) {
  EXPECT_THAT(write("ranks 2", "ranks 3"),
              HasSubstr("expected as many ranks as the mesh has (2), found 3"));
  EXPECT_THAT(write("device at 128,", "device"),
              HasSubstr("found one that was not allocated"));
  EXPECT_THAT(write("alpha = 0.5", "alpha = {}"),
              HasSubstr("in a form, found {}"));
  EXPECT_THAT(write("@forward engine cpu", "@forward engine cuda"),
              HasSubstr("expected an engine that code was made for, found "
                        "'cuda'"));
  EXPECT_THAT(write("196 bytes", "130 bytes"), HasSubstr("buffer 'w'"));
  EXPECT_THAT(write("accel.phase = \"plan\"",
                    "accel.phase = \"plan\", "
                    "accel.reports = [\"loss\", \"verdict\"]"),
              HasSubstr("expected an output 'loss', which 'accel.reports' "
                        "lists, found none"));
  EXPECT_FALSE(llvm::sys::fs::exists(folder + "/m.accx"));
}

} // namespace
