// Hundreds of wrong programs: each is changed in one place by a seed, and
// evaluated. All that compute something else must be rejected, and the
// unchanged ones accepted.

#include "Mutator.h"
#include "accel/Driver/Passes.h"
#include "accel/Evaluate/Interpreter.h"
#include "accel/InitAll.h"
#include "accel/Parallel/Passes.h"
#include "accel/Pipeline/Passes.h"
#include "accel/Verify/Equivalence.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;

namespace {
/// Embedding, two layers with dropout and halves exchanged between them,
/// squared error over a count, what each sample's id picks of its logits, and a
/// term of weights alone; square shapes, so that a wrong dimension has the
/// right type.
constexpr const char *kProgram = R"(
module attributes {accel.phase = "nn"} {
nn.state @table : tensor<16x16xf32> {init = #init_table}
nn.state @w1 : tensor<16x16xf32> {init = #init_w1}
nn.state @b1 : tensor<16xf32> {init = #init_b1}
nn.state @w2 : tensor<16x16xf32> {init = #init_w2}
func.func @main(%ids: tensor<16xi64> {nn.input = "ids"}, %t: tensor<16x16xf32> {nn.input = "t"},
    %table: tensor<16x16xf32> {nn.state = @table}, %w1: tensor<16x16xf32> {nn.state = @w1},
    %b1: tensor<16xf32> {nn.state = @b1}, %w2: tensor<16x16xf32> {nn.state = @w2})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %x = nn.gather %table, %ids dim 0 : (tensor<16x16xf32>, tensor<16xi64>) -> tensor<16x16xf32>
  %z = nn.matmul %x, %w1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %bb = nn.broadcast %b1 : (tensor<16xf32>) -> tensor<16x16xf32>
  %zb = nn.add %z, %bb : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %a = nn.tanh %zb : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %d1 = nn.dropout %a ratio 2.5e-01 site 0 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %left = nn.slice %d1 starts [0, 0] sizes [16, 8] steps [1, 1] : (tensor<16x16xf32>) -> tensor<16x8xf32>
  %right = nn.slice %d1 starts [0, 8] sizes [16, 8] steps [1, 1] : (tensor<16x16xf32>) -> tensor<16x8xf32>
  %h = nn.concat %right, %left dim 1 : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
  %y = nn.matmul %h, %w2 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %logits = nn.matmul %y, %table {transpose_rhs} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %d = nn.sub %logits, %t : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %q = nn.mul %d, %d : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %s = nn.reduce sum %q dims [0, 1] : (tensor<16x16xf32>) -> tensor<f32>
  %places = nn.reshape %ids : (tensor<16xi64>) -> tensor<16x1xi64>
  %picked = nn.gather_nd %logits, %places {batch_dims = 1 : i64} : (tensor<16x16xf32>, tensor<16x1xi64>) -> tensor<16xf32>
  %p = nn.reduce sum %picked dims [0] : (tensor<16xf32>) -> tensor<f32>
  %sp = nn.add %s, %p : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %c = nn.constant dense<0.00390625> : tensor<f32> : tensor<f32>
  %data = nn.mul %sp, %c : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %ww = nn.mul %w1, %w1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %r = nn.reduce sum %ww dims [0, 1] : (tensor<16x16xf32>) -> tensor<f32>
  %loss = nn.add %data, %r : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
)";

struct Setting {
  const char *name, *mesh;
  int64_t microBatches, stage;
  bool once, train;
};

constexpr Setting kSettings[] = {
    {"forward on two ranks", "dp=2", 1, 0, false, false},
    {"DDP, two micro-batches", "dp=2", 2, 0, false, true},
    {"ZeRO-1", "dp=2", 2, 1, false, true},
    {"ZeRO-2", "dp=2", 4, 2, false, true},
    {"ZeRO-3, one micro-batch", "dp=2", 1, 3, false, true},
    {"ZeRO-3, hybrid", "dp_replicate=2,dp_shard=2", 2, 3, false, true},
    {"ZeRO-3, gathered once", "dp=2", 2, 3, true, true}};

std::string randomElements(std::mt19937 &random, ArrayRef<int64_t> shape) {
  std::string text = "dense<";
  auto number = [&] {
    return std::to_string(static_cast<int>(random() % 33) - 16) + ".0e-2";
  };
  auto row = [&](int64_t size) {
    std::string list = "[";
    for (int64_t i = 0; i < size; ++i)
      list += (i ? ", " : "") + number();
    return list + "]";
  };
  if (shape.size() == 1) {
    text += row(shape[0]);
  } else {
    text += "[";
    for (int64_t i = 0; i < shape[0]; ++i)
      text += (i ? ", " : "") + row(shape[1]);
    text += "]";
  }
  text += "> : tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f32>";
}

/// What became of the mutants.
struct Tally {
  std::map<std::string, int> differing; ///< by what was changed
  int same = 0, strict = 0;             ///< as right as before; refused though

  int count(StringRef prefix = "") const {
    int sum = 0;
    for (auto &[change, number] : differing)
      if (StringRef(change).starts_with(prefix))
        sum += number;
    return sum;
  }
  void print() const {
    std::cout << "  " << count() << " mutants compute something else, "
              << count("mb: ") << " of them of micro-batches:";
    for (auto &[change, number] : differing)
      std::cout << " " << change << " " << number << ",";
    std::cout << " and " << same << " the same (" << strict << " refused)\n";
  }
};

class EquivalenceTest : public ::testing::Test {
protected:
  EquivalenceTest() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  OwningOpRef<ModuleOp> parse(bool train) {
    std::mt19937 random(7);
    std::string text = kProgram;
    const std::string dropout = "nn.dropout %a ratio 2.5e-01 site 0";
    if (!train) // draws in training alone
      text.replace(text.find(dropout), dropout.size(), "nn.abs %a");
    for (auto [name, shape] :
         {std::pair("#init_table", SmallVector<int64_t>{16, 16}),
          std::pair("#init_w1", SmallVector<int64_t>{16, 16}),
          std::pair("#init_b1", SmallVector<int64_t>{16}),
          std::pair("#init_w2", SmallVector<int64_t>{16, 16})})
      text.replace(text.find(name), strlen(name),
                   randomElements(random, shape));
    return parseSourceString<ModuleOp>(text, &context);
  }

  /// The project's GPT-2, in phase `nn`.
  OwningOpRef<ModuleOp> parseGpt2() {
    std::string file = ACCEL_BUILD_DIR "/test/equivalence-gpt2.mlir";
    std::string command =
        ACCEL_BUILD_DIR "/bin/acc-opt " ACCEL_SOURCE_DIR
                        "/test/Fixtures/gpt2_train/default_dynamic/model.onnx "
                        "--dim batch=8 --dim sequence=12 --compile-to=nn -o " +
        file;
    if (std::system(command.c_str()) != 0)
      return nullptr;
    return parseSourceFile<ModuleOp>(file, &context);
  }

  void compile(ModuleOp module, const Setting &setting, StringRef phase) {
    PassManager pm(&context);
    driver::RunPhasesPassOptions options;
    options.to = phase.str();
    options.train = setting.train;
    options.loss = setting.train ? "loss" : "";
    options.optimizer = setting.train ? "adamw" : "";
    if (setting.train)
      options.settings = {"optimizer.lr=0.1", "gradient_clipping=0.5"};
    options.mesh = setting.mesh;
    options.microBatches = setting.microBatches;
    options.zeroStage = setting.stage;
    options.zeroGatherOnce = setting.once;
    pm.addPass(driver::createRunPhasesPass(options));
    ASSERT_TRUE(succeeded(pm.run(module)));
  }

  /// The split alone, without what checks it before and after.
  LogicalResult split(ModuleOp module) {
    ScopedDiagnosticHandler quiet(&context,
                                  [](Diagnostic &) { return success(); });
    PassManager pm(&context);
    pm.enableVerifier(false);
    pm.addPass(parallel::createPlanReshardsPass());
    pm.addPass(parallel::createLocalizePass());
    pm.addPass(pipeline::createSplitTasksPass());
    pm.addPass(pipeline::createMergeScatterAddsPass());
    return pm.run(module);
  }

  enum class Result { Same, Other, NoProgram };

  /// Whether a module gives what is expected. It gives something else too where
  /// ranks that should agree do not, or a sum is left over for the next step.
  Result evaluate(ModuleOp module, const evaluate::TensorsByName &expected) {
    evaluate::TensorsByName outputs;
    bool isOther = false;
    ScopedDiagnosticHandler quiet(&context, [&](Diagnostic &diagnostic) {
      std::string text = diagnostic.str();
      isOther |= StringRef(text).starts_with("expected equal copies") ||
                 StringRef(text).contains("expected 0 after the step");
      return success();
    });
    if (failed(mlir::verify(module)))
      return Result::NoProgram;
    if (failed(evaluate::evaluateModule(module, inputs, {}, outputs)))
      return isOther ? Result::Other : Result::NoProgram;
    for (auto &entry : expected) {
      auto found = outputs.find(entry.getKey());
      if (found == outputs.end() ||
          !(evaluate::getMaxDifference(found->second, entry.second) <= 1e-9))
        return Result::Other;
    }
    return Result::Same;
  }

  bool accepts(ModuleOp logical, ModuleOp local,
               std::string *message = nullptr) {
    ScopedDiagnosticHandler quiet(&context, [&](Diagnostic &diagnostic) {
      if (message && message->empty())
        *message = diagnostic.str();
      return success();
    });
    return succeeded(verify::verifyEquivalence(logical, local));
  }

  /// One program's local mutants.
  void tryLocal(ModuleOp logical, const Setting &setting, unsigned seeds,
                Tally &tally) {
    SCOPED_TRACE(setting.name);
    OwningOpRef<ModuleOp> local(logical.clone());
    compile(*local, setting, "local");
    std::string message;
    ASSERT_TRUE(accepts(logical, *local, &message)) << message;
    inputs = *evaluate::makeRandomInputs(*local, 3);
    evaluate::TensorsByName expected;
    ASSERT_TRUE(
        succeeded(evaluate::evaluateModule(*local, inputs, {}, expected)));
    for (unsigned seed = 0; seed < seeds; ++seed) {
      OwningOpRef<ModuleOp> mutant(local->clone());
      std::string change = test::Mutator(*mutant, seed).changeLocal();
      if (change.empty())
        continue;
      count(logical, *mutant, expected, change, seed, tally);
    }
  }

  void count(ModuleOp logical, ModuleOp mutant,
             const evaluate::TensorsByName &expected, StringRef change,
             unsigned seed, Tally &tally) {
    Result result = evaluate(mutant, expected);
    if (result == Result::NoProgram)
      return;
    bool accepted = accepts(logical, mutant);
    if (result == Result::Same) {
      ++tally.same;
      tally.strict += !accepted;
      return;
    }
    ++tally.differing[change.str()];
    EXPECT_FALSE(accepted) << "seed " << seed << ": " << change.str();
  }

  MLIRContext context;
  evaluate::TensorsByName inputs;
};
} // namespace

TEST_F(EquivalenceTest, RejectsLocalMutants) {
  Tally tally;
  for (const Setting &setting : kSettings) {
    OwningOpRef<ModuleOp> logical = parse(setting.train);
    ASSERT_TRUE(logical);
    compile(*logical, setting, "decided");
    tryLocal(*logical, setting, 250, tally);
  }
  tally.print();
  EXPECT_GE(tally.count(), 400);
  EXPECT_GE(tally.count("mb: "), 100);
  EXPECT_GE(tally.differing.size(), 15u);
}

TEST_F(EquivalenceTest, RejectsMutantsOfGpt2) {
  Tally tally;
  for (const Setting &setting : {kSettings[2], kSettings[5], kSettings[6]}) {
    OwningOpRef<ModuleOp> logical = parseGpt2();
    ASSERT_TRUE(logical);
    compile(*logical, setting, "decided");
    tryLocal(*logical, setting, 80, tally);
  }
  tally.print();
  EXPECT_GE(tally.count(), 50);
}

TEST_F(EquivalenceTest, RejectsMutantsOfPlacement) {
  Tally tally;
  int refused = 0;
  for (const Setting &setting : kSettings) {
    SCOPED_TRACE(setting.name);
    OwningOpRef<ModuleOp> logical = parse(setting.train);
    ASSERT_TRUE(logical);
    compile(*logical, setting, "decided");
    OwningOpRef<ModuleOp> local(logical->clone());
    compile(*local, setting, "local");
    inputs = *evaluate::makeRandomInputs(*local, 3);
    evaluate::TensorsByName expected;
    ASSERT_TRUE(
        succeeded(evaluate::evaluateModule(*local, inputs, {}, expected)));
    for (unsigned seed = 0; seed < 100; ++seed) {
      OwningOpRef<ModuleOp> placed(logical->clone());
      std::string change;
      {
        ScopedDiagnosticHandler quiet(&context,
                                      [](Diagnostic &) { return success(); });
        change = test::Mutator(*placed, seed).changePlacement();
        if (change.empty() || failed(mlir::verify(*placed)))
          continue;
      }
      OwningOpRef<ModuleOp> mutant(placed->clone());
      if (failed(split(*mutant)))
        ++refused;
      else
        count(*placed, *mutant, expected, change, seed, tally);
    }
  }
  tally.print();
  std::cout << "  " << refused << " could not be split\n";
  EXPECT_GE(tally.count(), 50);
}
