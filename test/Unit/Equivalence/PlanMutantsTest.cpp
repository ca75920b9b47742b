// Hundreds of wrong plans: each is changed in one place by a seed, and executed
// on virtual ranks. All that compute something else must be refused, by the
// proof or by plan-verify before it, and the unchanged ones accepted.

#include "PlanMutator.h"
#include "lib/Driver/InitAll.h"
#include "lib/Driver/Passes.h"
#include "lib/Equivalence/PlanEquivalence.h"
#include "lib/Evaluate/Interpreter.h"
#include "lib/Plan/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;

namespace {
/// A decoder's layer: embedding, norm, one projection to query, key and value,
/// attention, a sum with what came in, tied logits; squared error.
constexpr const char *kProgram = R"(
module attributes {accel.phase = "nn"} {
nn.state @table : tensor<8x8xf32> = #8x8
nn.state @scale : tensor<8xf32> = #8
nn.state @shift : tensor<8xf32> = #8
nn.state @wqkv : tensor<8x24xf32> = #8x24
nn.state @bqkv : tensor<24xf32> = #24
nn.state @wo : tensor<8x8xf32> = #8x8
func.func @main(%ids: tensor<8x4xi64> {nn.input = "ids"}, %t: tensor<8x4x8xf32> {nn.input = "t"},
    %table: tensor<8x8xf32> {nn.state = @table}, %scale: tensor<8xf32> {nn.state = @scale},
    %shift: tensor<8xf32> {nn.state = @shift}, %wqkv: tensor<8x24xf32> {nn.state = @wqkv},
    %bqkv: tensor<24xf32> {nn.state = @bqkv}, %wo: tensor<8x8xf32> {nn.state = @wo})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %x = nn.gather %table, %ids dim 0 : (tensor<8x8xf32>, tensor<8x4xi64>) -> tensor<8x4x8xf32>
  %n = nn.layer_norm %x, %scale, %shift dim 2 epsilon 1.0e-05 : (tensor<8x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8x4x8xf32>
  %rows = nn.reshape %n : (tensor<8x4x8xf32>) -> tensor<32x8xf32>
  %p = nn.matmul %rows, %wqkv : (tensor<32x8xf32>, tensor<8x24xf32>) -> tensor<32x24xf32>
  %bb = nn.broadcast %bqkv : (tensor<24xf32>) -> tensor<32x24xf32>
  %pb = nn.add %p, %bb : tensor<32x24xf32>
  %qkv = nn.reshape %pb : (tensor<32x24xf32>) -> tensor<8x4x24xf32>
  %q0 = nn.slice %qkv starts [0, 0, 0] sizes [8, 4, 8] steps [1, 1, 1] : (tensor<8x4x24xf32>) -> tensor<8x4x8xf32>
  %k0 = nn.slice %qkv starts [0, 0, 8] sizes [8, 4, 8] steps [1, 1, 1] : (tensor<8x4x24xf32>) -> tensor<8x4x8xf32>
  %v0 = nn.slice %qkv starts [0, 0, 16] sizes [8, 4, 8] steps [1, 1, 1] : (tensor<8x4x24xf32>) -> tensor<8x4x8xf32>
  %q1 = nn.reshape %q0 : (tensor<8x4x8xf32>) -> tensor<8x4x2x4xf32>
  %k1 = nn.reshape %k0 : (tensor<8x4x8xf32>) -> tensor<8x4x2x4xf32>
  %v1 = nn.reshape %v0 : (tensor<8x4x8xf32>) -> tensor<8x4x2x4xf32>
  %q = nn.transpose %q1 [0, 2, 1, 3] : (tensor<8x4x2x4xf32>) -> tensor<8x2x4x4xf32>
  %k = nn.transpose %k1 [0, 2, 1, 3] : (tensor<8x4x2x4xf32>) -> tensor<8x2x4x4xf32>
  %v = nn.transpose %v1 [0, 2, 1, 3] : (tensor<8x4x2x4xf32>) -> tensor<8x2x4x4xf32>
  %a:2 = nn.attention %q, %k, %v {causal, scale = 0.5 : f64} : (tensor<8x2x4x4xf32>, tensor<8x2x4x4xf32>, tensor<8x2x4x4xf32>) -> (tensor<8x2x4x4xf32>, tensor<8x2x4xf32>)
  %a1 = nn.transpose %a#0 [0, 2, 1, 3] : (tensor<8x2x4x4xf32>) -> tensor<8x4x2x4xf32>
  %a2 = nn.reshape %a1 : (tensor<8x4x2x4xf32>) -> tensor<32x8xf32>
  %o = nn.matmul %a2, %wo : (tensor<32x8xf32>, tensor<8x8xf32>) -> tensor<32x8xf32>
  %o1 = nn.reshape %o : (tensor<32x8xf32>) -> tensor<8x4x8xf32>
  %h = nn.add %o1, %x : tensor<8x4x8xf32>
  %g = nn.gelu erf %h : tensor<8x4x8xf32>
  %logits = nn.matmul %g, %table {transpose_rhs} : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
  %d = nn.sub %logits, %t : tensor<8x4x8xf32>
  %dd = nn.mul %d, %d : tensor<8x4x8xf32>
  %s = nn.reduce sum %dd dims [0, 1, 2] : (tensor<8x4x8xf32>) -> tensor<f32>
  %c = nn.constant dense<0.00390625> : tensor<f32>
  %loss = nn.mul %s, %c : tensor<f32>
  return %loss : tensor<f32>
}
}
)";

struct Setting {
  const char *name, *mesh, *precision;
  int64_t microBatches, stage;
  bool train;
  const char *schedule = "sequential";
  const char *target = "cpu";
  std::vector<std::string> settings = {};
};

const Setting kSettings[] = {
    {"forward", "", "", 1, 0, false},
    {"forward on two ranks", "dp=2", "", 1, 0, false},
    {"one rank, two micro-batches", "", "", 2, 0, true},
    {"DDP", "dp=2", "", 1, 0, true},
    {"ZeRO-1, two micro-batches", "dp=2", "", 2, 1, true},
    {"ZeRO-2, two micro-batches", "dp=2", "", 2, 2, true},
    {"ZeRO-3, bf16", "dp=2", "bf16", 1, 3, true},
    {"ZeRO-3, hybrid, two micro-batches", "dp_replicate=2,dp_shard=2", "", 2, 3,
     true},
    {"two of four micro-batches in flight", "", "", 4, 0, true, "1f1b:2"},
    // More turns than plan-verify follows.
    {"two of eight micro-batches in flight", "", "", 8, 0, true, "1f1b:2"},
    {"ZeRO-3, three of four in flight", "dp=2", "", 4, 3, true, "1f1b:3"},
    {"ZeRO-2, all micro-batches in flight", "dp=2", "", 2, 2, true, "gpipe"},
    {"ZeRO-1, inputs of all micro-batches at once", "dp=2", "", 4, 1, true,
     "1f1b:2", "null:staged"},
    {"tp", "tp=2", "", 1, 0, true},
    {"cp", "cp=2", "", 1, 0, true},
    {"sp, two micro-batches", "sp=2", "", 2, 0, true},
    {"dp x tp, ZeRO-1", "dp=2,tp=2", "", 2, 1, true},
    {"dp_shard x cp, ZeRO-3", "dp_shard=2,cp=2", "", 1, 3, true}};

const Setting kPipelines[] = {
    {"two stages", "pp=2", "", 4, 0, true, "1f1b"},
    {"two stages, one micro-batch", "pp=2", "", 1, 0, true, "1f1b"},
    {"three stages with loops", "pp=3", "", 8, 0, true, "zb-h1"},
    {"three stages, one queue", "pp=3", "", 8, 0, true, "1f1b",
     "null:queues=1"},
    {"a V beside ZeRO-1", "dp_shard=2,pp=2", "", 4, 1, true, "zbv"}};

const std::string kHost = "offload.optimizer=cpu",
                  kWeights = "offload.parameters=cpu",
                  kMomentsInFile = "offload.optimizer=nvme",
                  kWeightsInFile = "offload.parameters=nvme",
                  kFolder = "offload.nvme_path=/local_nvme";
const Setting kOffloaded[] = {
    {"moments on the host", "", "", 1, 0, true, "sequential", "cpu", {kHost}},
    {"ZeRO-2, one moment at a time",
     "dp=2",
     "",
     2,
     2,
     true,
     "sequential",
     "cpu",
     {kHost, "offload.buffer_count=1"}},
    {"ZeRO-3, bf16, room for all",
     "dp=2",
     "bf16",
     1,
     3,
     true,
     "sequential",
     "cpu",
     {kHost, "offload.buffer_count=99"}},
    {"ZeRO-1, weights on the host",
     "dp=2",
     "",
     2,
     1,
     true,
     "sequential",
     "cpu",
     {kWeights}},
    {"ZeRO-3, all on the host",
     "dp=2",
     "",
     2,
     3,
     true,
     "1f1b:2",
     "cpu",
     {kWeights, kHost}},
    {"ranks read each other's weights where they are staged",
     "dp=2",
     "",
     1,
     3,
     true,
     "sequential",
     "null",
     {kWeights}},
    {"two stages, all on the host",
     "pp=2",
     "",
     4,
     0,
     true,
     "1f1b",
     "cpu",
     {kWeights, kHost, "offload.buffer_count=2"}},
    {"moments in a file",
     "",
     "",
     2,
     0,
     true,
     "sequential",
     "cpu",
     {kMomentsInFile, kFolder}},
    {"ZeRO-3, all in files, one at a time",
     "dp=2",
     "",
     2,
     3,
     true,
     "1f1b:2",
     "cpu",
     {kWeightsInFile, kMomentsInFile, kFolder, "offload.buffer_count=1"}},
    {"two stages, weights in files, moments on the host",
     "pp=2",
     "",
     4,
     0,
     true,
     "1f1b",
     "cpu",
     {kWeightsInFile, kHost, kFolder}}};

const std::string kKept = "offload.activations=cpu";
const Setting kActivations[] = {
    {"activations on the host",
     "",
     "",
     1,
     0,
     true,
     "sequential",
     "cpu",
     {kKept}},
    {"ZeRO-3, bf16, two micro-batches",
     "dp=2",
     "bf16",
     2,
     3,
     true,
     "sequential",
     "cpu",
     {kKept}},
    {"two of four micro-batches in flight, all on the host",
     "",
     "",
     4,
     0,
     true,
     "1f1b:2",
     "cpu",
     {kKept, kWeights, kHost}},
    // More turns than plan-verify follows.
    {"two of eight micro-batches in flight",
     "",
     "",
     8,
     0,
     true,
     "1f1b:2",
     "cpu",
     {kKept}},
    {"tp", "tp=2", "", 1, 0, true, "sequential", "cpu", {kKept}},
    {"two stages, parts of the backward",
     "pp=2",
     "",
     4,
     0,
     true,
     "zb-h1",
     "cpu",
     {kKept}}};

/// Numbers of a state, by its shape: they differ between states.
std::string makeElements(std::mt19937 &random, ArrayRef<int64_t> shape) {
  std::string text = "dense<";
  int64_t columns = shape.back(), rows = shape.size() > 1 ? shape[0] : 1;
  text += shape.size() > 1 ? "[" : "";
  for (int64_t row = 0; row < rows; ++row) {
    text += row ? ", [" : "[";
    for (int64_t column = 0; column < columns; ++column)
      text += (column ? ", " : "") +
              std::to_string(static_cast<int>(random() % 65) - 32) + ".0e-2";
    text += "]";
  }
  text += shape.size() > 1 ? "]" : "";
  return text + ">";
}

struct Tally {
  std::map<std::string, int> differing; ///< by what was changed
  int same = 0, strict = 0;             ///< as right as before; refused though
  int byProof = 0;                      ///< that plan-verify lets pass

  int count() const {
    int sum = 0;
    for (auto &[change, number] : differing)
      sum += number;
    return sum;
  }
  void print() const {
    std::cout << "  " << count() << " mutants compute something else ("
              << byProof << " of them pass plan-verify):";
    for (auto &[change, number] : differing)
      std::cout << " " << change << " " << number << ",";
    std::cout << " and " << same << " the same (" << strict << " refused)\n";
  }
};

class PlanMutantsTest : public ::testing::Test {
protected:
  PlanMutantsTest() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  OwningOpRef<ModuleOp> parse() {
    std::mt19937 random(7);
    std::string text = kProgram;
    for (auto [name, shape] :
         {std::pair("#8x8\n", SmallVector<int64_t>{8, 8}),
          std::pair("#8\n", SmallVector<int64_t>{8}),
          std::pair("#8x24\n", SmallVector<int64_t>{8, 24}),
          std::pair("#24\n", SmallVector<int64_t>{24})})
      for (size_t at; (at = text.find(name)) != std::string::npos;)
        text.replace(at, strlen(name) - 1, makeElements(random, shape));
    return parseSourceString<ModuleOp>(text, &context);
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
    options.mixedPrecision = setting.precision;
    options.microBatches = setting.microBatches;
    options.settings.push_back("zero_stage=" + std::to_string(setting.stage));
    for (const std::string &each : setting.settings)
      options.settings.push_back(each);
    options.schedule = setting.schedule;
    // Of CPUs not another one: a process keeps oneDNN to one set of
    // instructions.
    options.target = setting.target;
    options.threads = options.target == "cpu" ? 1 : 0;
    pm.addPass(driver::createRunPhasesPass(options));
    ASSERT_TRUE(succeeded(pm.run(module)));
  }

  /// Whether collectives cut and join what can be cut and joined: the evaluator
  /// asks for it.
  static bool fits(ModuleOp module) {
    auto check = [&](plan::CollectiveOp op) {
      int64_t ranks = 1, dim = op.getDim();
      dist::MeshOp mesh = *module.getOps<dist::MeshOp>().begin();
      for (auto axis : op.getAxes().getAsRange<StringAttr>())
        ranks *= axis == "mb" ? 1 : *mesh.findAxisSize(axis.getValue());
      bool gathers = op.getCollective() == plan::Collective::all_gather,
           scatters = op.getCollective() == plan::Collective::reduce_scatter;
      return llvm::all_of(
          llvm::zip(op.getInputs(), op.getOutputs()), [&](auto pair) {
            auto input = cast<plan::ViewAttr>(std::get<0>(pair)),
                 output = cast<plan::ViewAttr>(std::get<1>(pair));
            if (!gathers && !scatters)
              return input.getNumElements() == output.getNumElements();
            return dim < int64_t(input.getShape().size()) &&
                   (gathers || input.getShape()[dim] % ranks == 0);
          });
    };
    WalkResult found = module.walk([&](plan::CollectiveOp op) {
      return check(op) ? WalkResult::advance() : WalkResult::interrupt();
    });
    return !found.wasInterrupted();
  }

  /// Whether a plan gives what is expected, bit for bit, in each order that its
  /// waits allow. What cannot be executed gives something else.
  bool computesSame(ModuleOp module, const evaluate::TensorsByName &expected) {
    ScopedDiagnosticHandler quiet(&context,
                                  [](Diagnostic &) { return success(); });
    evaluate::TensorsByName outputs;
    if (!fits(module) ||
        failed(evaluate::evaluateModule(module, inputs, {}, outputs)) ||
        outputs.size() != expected.size())
      return false;
    for (auto &entry : expected) {
      auto found = outputs.find(entry.getKey());
      if (found == outputs.end() ||
          evaluate::getMaxDifference(found->second, entry.second) != 0)
        return false;
    }
    return true;
  }

  bool passesPlanVerify(ModuleOp module) {
    ScopedDiagnosticHandler quiet(&context,
                                  [](Diagnostic &) { return success(); });
    PassManager pm(&context);
    pm.enableVerifier(false);
    pm.addPass(plan::createVerifyPlanPass());
    return succeeded(pm.run(module));
  }

  bool accepts(ModuleOp local, ModuleOp plan, std::string *message = nullptr) {
    ScopedDiagnosticHandler quiet(&context, [&](Diagnostic &diagnostic) {
      if (message && message->empty())
        *message = diagnostic.str();
      return success();
    });
    return succeeded(equivalence::verifyPlanEquivalence(local, plan));
  }

  /// Makes a setting's plan, and what it gives.
  void makePlan(const Setting &setting, OwningOpRef<ModuleOp> &local,
                OwningOpRef<ModuleOp> &plan,
                evaluate::TensorsByName &expected) {
    local = parse();
    ASSERT_TRUE(local);
    compile(*local, setting, "local");
    plan = local->clone();
    compile(*plan, setting, "plan");
    std::string message;
    ASSERT_TRUE(accepts(*local, *plan, &message)) << message;
    inputs = *evaluate::makeRandomInputs(*local, 3);
    ASSERT_TRUE(
        succeeded(evaluate::evaluateModule(*plan, inputs, {}, expected)));
  }

  void tryPlan(const Setting &setting, unsigned first, unsigned seeds,
               Tally &tally) {
    SCOPED_TRACE(setting.name);
    OwningOpRef<ModuleOp> local, plan;
    evaluate::TensorsByName expected;
    ASSERT_NO_FATAL_FAILURE(makePlan(setting, local, plan, expected));
    for (unsigned seed = first; seed < first + seeds; ++seed) {
      OwningOpRef<ModuleOp> mutant(plan->clone());
      std::string change;
      {
        ScopedDiagnosticHandler quiet(&context,
                                      [](Diagnostic &) { return success(); });
        change = test::PlanMutator(*mutant, seed).change();
        if (change.empty() || failed(mlir::verify(*mutant)))
          continue;
      }
      SCOPED_TRACE("seed " + std::to_string(seed));
      count(*local, *mutant, expected, change, tally);
    }
  }

  void count(ModuleOp local, ModuleOp mutant,
             const evaluate::TensorsByName &expected, const std::string &change,
             Tally &tally) {
    bool passes = passesPlanVerify(mutant);
    bool accepted = passes && accepts(local, mutant);
    bool same = computesSame(mutant, expected);
    tally.same += same;
    tally.strict += same && !accepted;
    if (same)
      return;
    ++tally.differing[change];
    tally.byProof += passes;
    EXPECT_FALSE(accepted) << change;
  }

  /// Every mutant of what offloading inserts: each copy and each wait left out,
  /// each copy of another state, each fetch behind its reader.
  void tryOffloaded(const Setting &setting, Tally &tally) {
    SCOPED_TRACE(setting.name);
    OwningOpRef<ModuleOp> local, plan;
    evaluate::TensorsByName expected;
    ASSERT_NO_FATAL_FAILURE(makePlan(setting, local, plan, expected));
    auto isAside = [](plan::CommandOpInterface op) {
      return op.getStreamName() == "offload" ||
             op.getStreamName() == "activations";
    };
    auto list = [&](ModuleOp module) {
      SmallVector<plan::CommandOpInterface> ops;
      module.walk([&](plan::CommandOpInterface op) {
        auto wait = dyn_cast<plan::WaitOp>(*op);
        bool isOurs = wait ? wait.getEvent().starts_with("offload_") ||
                                 wait.getEvent().starts_with("activations_")
                           : isa<plan::CopyOp>(*op) && isAside(op);
        if (isOurs)
          ops.push_back(op);
      });
      return ops;
    };
    auto isFetch = [](plan::CopyOp copy) {
      StringRef target = copy.getTarget().getBuffer().getValue();
      return target.contains(".staged") || target.contains(".fetched");
    };
    auto tryOne = [&](size_t number, const std::string &name, auto &&change) {
      OwningOpRef<ModuleOp> mutant(plan->clone());
      plan::CommandOpInterface op = list(*mutant)[number];
      if (change(op, *mutant))
        count(*local, *mutant, expected, name, tally);
    };
    for (size_t number = 0; number < list(*plan).size(); ++number) {
      plan::CommandOpInterface op = list(*plan)[number];
      auto copy = dyn_cast<plan::CopyOp>(*op);
      auto erase = [](plan::CommandOpInterface op, ModuleOp) {
        op->erase();
        return true;
      };
      if (!copy) {
        tryOne(number, isAside(op) ? "evicted early" : "read early", erase);
        continue;
      }
      tryOne(number, isFetch(copy) ? "not fetched" : "not put back", erase);
      tryOne(number, "another state", [&](auto op, ModuleOp mutant) {
        for (plan::CommandOpInterface other : list(mutant))
          if (auto next = dyn_cast<plan::CopyOp>(*other);
              next && isFetch(next) == isFetch(copy) && next != op) {
            StringRef side = isFetch(copy) ? "source" : "target";
            auto view = next->template getAttrOfType<plan::ViewAttr>(side);
            if (view.getTensorType() == copy.getSource().getTensorType()) {
              op->setAttr(side, view);
              return true;
            }
          }
        return false;
      });
      tryOne(number, "half", [](auto op, ModuleOp) {
        for (StringRef side : {"source", "target"}) {
          auto view = op->template getAttrOfType<plan::ViewAttr>(side);
          SmallVector<int64_t> shape(view.getShape());
          if (shape.empty() || shape.front() < 2)
            return false;
          shape.front() /= 2;
          op->setAttr(side, plan::ViewAttr::get(
                                op->getContext(), view.getBuffer(),
                                view.getOffset(), view.getAxes(),
                                view.getElement(), shape, view.getStrides()));
        }
        return true;
      });
      if (isFetch(copy))
        tryOne(number, "fetched late", [](auto op, ModuleOp) {
          op->moveBefore(&op->getBlock()->back());
          return true;
        });
    }
  }

  /// Fewer places on the host than micro-batches in flight: one finds what
  /// another has left.
  void tryCopies(const Setting &setting, Tally &tally) {
    SCOPED_TRACE(setting.name);
    OwningOpRef<ModuleOp> local, plan;
    evaluate::TensorsByName expected;
    ASSERT_NO_FATAL_FAILURE(makePlan(setting, local, plan, expected));
    auto list = [](ModuleOp module) {
      SmallVector<plan::BufferOp> buffers;
      module.walk([&](plan::BufferOp buffer) {
        if (buffer.getSpace() == plan::Space::host && buffer.getSlots() > 1)
          buffers.push_back(buffer);
      });
      return buffers;
    };
    for (size_t number = 0; number < list(*plan).size(); ++number) {
      OwningOpRef<ModuleOp> mutant(plan->clone());
      plan::BufferOp buffer = list(*mutant)[number];
      buffer.setSlots(buffer.getSlots() - 1);
      count(*local, *mutant, expected, "another micro-batch", tally);
    }
  }

  /// So many seeds of each setting, or as many as ACCEL_PLAN_MUTANTS says.
  Tally tryPlans(ArrayRef<Setting> settings, unsigned seeds) {
    if (const char *more = std::getenv("ACCEL_PLAN_MUTANTS"))
      seeds = std::atoi(more);
    Tally tally;
    for (auto [number, setting] : llvm::enumerate(settings))
      tryPlan(setting, number * seeds, seeds, tally);
    tally.print();
    return tally;
  }

  MLIRContext context;
  evaluate::TensorsByName inputs;
};
} // namespace

TEST_F(PlanMutantsTest, RejectsMutantsOfPlans) {
  Tally tally = tryPlans(kSettings, 78);
  EXPECT_GE(tally.count(), 300);
  EXPECT_GE(tally.byProof, 150);
  EXPECT_GE(tally.differing.size(), 20u);
}

TEST_F(PlanMutantsTest, RejectsMutantsOfStages) {
  Tally tally = tryPlans(kPipelines, 62);
  EXPECT_GE(tally.count(), 100);
  EXPECT_GE(tally.byProof, 40);
  EXPECT_GE(tally.differing["wrong message"], 4);
  // Of one micro-batch every message has one run.
  EXPECT_GE(tally.differing["wrong run of a message"], 3);
}

TEST_F(PlanMutantsTest, RejectsMutantsOfOffload) {
  Tally tally;
  for (const Setting &setting : kOffloaded) {
    int before = tally.count();
    tryOffloaded(setting, tally);
    EXPECT_GE(tally.count(), before + 20) << setting.name;
  }
  tally.print();
  for (const char *change : {"not fetched", "not put back", "another state",
                             "fetched late", "read early", "evicted early"})
    EXPECT_GE(tally.differing[change], 5) << change;
  tally = tryPlans(kOffloaded, 31);
  EXPECT_GE(tally.count(), 60);
}

TEST_F(PlanMutantsTest, RejectsMutantsOfOffloadedActivations) {
  Tally tally;
  for (const Setting &setting : kActivations) {
    int before = tally.count();
    tryOffloaded(setting, tally);
    tryCopies(setting, tally);
    EXPECT_GE(tally.count(), before + 20) << setting.name;
  }
  tally.print();
  for (const char *change :
       {"not fetched", "not put back", "another state", "fetched late", "half",
        "read early", "evicted early", "another micro-batch"})
    EXPECT_GE(tally.differing[change], 5) << change;
  tally = tryPlans(kActivations, 31);
  EXPECT_GE(tally.count(), 60);
}
