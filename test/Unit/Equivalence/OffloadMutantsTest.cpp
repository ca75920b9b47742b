// Hundreds of wrong plans with states or activations in another place: each
// copy and each wait that offloading inserts left out or changed, and changes
// by a seed as of all plans.

#include "PlanMutants.h"
#include "dialects/Plan/Offloaded.h"
#include <cstdlib>
#include <random>

using namespace mlir;
using namespace accel;
using namespace accel::test;

namespace {
const std::string kHost = "offload.optimizer=cpu",
                  kWeights = "offload.parameters=cpu",
                  kMomentsInFile = "offload.optimizer=nvme",
                  kWeightsInFile = "offload.parameters=nvme",
                  kFolder = "offload.nvme_path=/local_nvme";
const PlanSetting kOffloaded[] = {
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

const std::string kTiles = "offload.tile=32";
const PlanSetting kTiled[] = {
    {"moments in tiles",
     "",
     "",
     1,
     0,
     true,
     "sequential",
     "cpu",
     {kHost, kTiles}},
    {"ZeRO-1, tiles of what each rank updates",
     "dp=2",
     "",
     2,
     1,
     true,
     "sequential",
     "cpu",
     {kHost, "offload.tile=16", "offload.buffer_count=1"}},
    {"ZeRO-3, all in tiles of shards, bf16",
     "dp=2",
     "bf16",
     2,
     3,
     true,
     "sequential",
     "cpu",
     {kWeights, kHost, "offload.tile=16"}},
    {"two stages, weights in tiles",
     "pp=2",
     "",
     4,
     0,
     true,
     "1f1b",
     "cpu",
     {kWeights, kHost, kTiles, "offload.buffer_count=3"}},
    // Two kernels take turns on each tile.
    {"tiles of an update in two kernels",
     "dp=2",
     "",
     1,
     2,
     true,
     "sequential",
     "cpu",
     {kHost, "offload.tile=16", "offload.buffer_count=1"},
     "lion"},
    {"tiles of a file",
     "",
     "",
     2,
     0,
     true,
     "sequential",
     "cpu",
     {kMomentsInFile, kFolder, kTiles}}};

const std::string kKept = "offload.activations=cpu";
const PlanSetting kActivations[] = {
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

class OffloadMutantsTest : public PlanMutantsTest {
protected:
  /// One mutant of `every`, drawn.
  void count(ModuleOp local, ModuleOp mutant,
             const evaluate::TensorsByName &expected, const std::string &what,
             MutantTally &tally) {
    if (draws() % every == 0 || std::getenv("ACCEL_SWEEPS"))
      PlanMutantsTest::count(local, mutant, expected, what, tally);
  }
  std::minstd_rand draws;
  unsigned every = 1;

  /// Every mutant of what offloading inserts: each copy and each wait left out,
  /// each copy of another state, each fetch behind its reader.
  void tryOffloaded(const PlanSetting &setting, MutantTally &tally) {
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

  /// Every mutant of what tiles add: each left out, each with a part of
  /// another one, fetched from there, put back there, or read elsewhere.
  void tryTiles(const PlanSetting &setting, MutantTally &tally) {
    SCOPED_TRACE(setting.name);
    OwningOpRef<ModuleOp> local, plan;
    evaluate::TensorsByName expected;
    ASSERT_NO_FATAL_FAILURE(makePlan(setting, local, plan, expected));
    auto list = [](ModuleOp module) {
      SmallVector<Operation *> ops;
      module.walk([&](plan::CommandOpInterface op) {
        if (op->hasAttr(plan::kTileAttr) ||
            (isa<plan::CopyOp>(*op) && op.getStreamName() == "offload"))
          ops.push_back(op);
      });
      return ops;
    };
    auto tryOne = [&](size_t number, const std::string &name, auto &&change) {
      OwningOpRef<ModuleOp> mutant(plan->clone());
      SmallVector<Operation *> ops = list(*mutant);
      if (change(ops[number], ops))
        count(*local, *mutant, expected, name, tally);
    };
    for (size_t number = 0; number < list(*plan).size(); ++number) {
      Operation *op = list(*plan)[number];
      if (auto copy = dyn_cast<plan::CopyOp>(op)) {
        for (StringRef side : {"source", "target"})
          tryOne(number, "wrong tile", [&](Operation *op, auto &ops) {
            auto view = op->getAttrOfType<plan::ViewAttr>(side);
            for (Operation *other : ops)
              if (auto of = other->getAttrOfType<plan::ViewAttr>(side);
                  of && of != view && of.getBuffer() == view.getBuffer() &&
                  of.getTensorType() == view.getTensorType()) {
                op->setAttr(side, of);
                return true;
              }
            return false;
          });
        continue;
      }
      tryOne(number, "tile left out", [](Operation *op, auto &) {
        op->erase();
        return true;
      });
      size_t inputs = cast<plan::KernelOp>(op).getInputs().size();
      for (size_t input = 0; input < inputs; ++input)
        tryOne(number, "part of another tile", [&](Operation *op, auto &ops) {
          auto kernel = cast<plan::KernelOp>(op);
          for (Operation *each : ops) {
            auto other = dyn_cast<plan::KernelOp>(each);
            if (!other || other.getFunction() != kernel.getFunction() ||
                other.getInputs()[input] == kernel.getInputs()[input])
              continue;
            SmallVector<Attribute> views(kernel.getInputs().getValue());
            views[input] = other.getInputs()[input];
            kernel.setInputsAttr(ArrayAttr::get(op->getContext(), views));
            return true;
          }
          return false;
        });
    }
  }

  /// Fewer places on the host than micro-batches in flight: one finds what
  /// another has left.
  void tryCopies(const PlanSetting &setting, MutantTally &tally) {
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
};
} // namespace

TEST_F(OffloadMutantsTest, RejectsMutantsOfOffload) {
  every = 3; // all of them take minutes
  MutantTally tally;
  for (const PlanSetting &setting : kOffloaded) {
    int before = tally.count();
    tryOffloaded(setting, tally);
    EXPECT_GE(tally.count(), before + 6) << setting.name;
  }
  tally.print();
  for (const char *change : {"not fetched", "not put back", "another state",
                             "fetched late", "read early", "evicted early"})
    EXPECT_GE(tally.differing[change], 5) << change;
  tally = tryPlans(kOffloaded, 31);
  EXPECT_GE(tally.count(), 60);
}

TEST_F(OffloadMutantsTest, RejectsMutantsOfTiles) {
  every = 3; // all of them take minutes
  MutantTally tally;
  for (const PlanSetting &setting : kTiled) {
    int before = tally.count();
    tryTiles(setting, tally);
    EXPECT_GE(tally.count(), before + 6) << setting.name;
    before = tally.count();
    tryOffloaded(setting, tally);
    EXPECT_GE(tally.count(), before + 6) << setting.name;
  }
  tally.print();
  for (const char *change :
       {"wrong tile", "tile left out", "part of another tile", "not fetched",
        "not put back", "another state", "half", "fetched late", "read early",
        "evicted early"})
    EXPECT_GE(tally.differing[change], 5) << change;
  tally = tryPlans(kTiled, 31);
  EXPECT_GE(tally.count(), 30);
}

TEST_F(OffloadMutantsTest, RejectsMutantsOfOffloadedActivations) {
  MutantTally tally;
  for (const PlanSetting &setting : kActivations) {
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
