// Hundreds of wrong programs: each is changed in one place by a seed, and
// evaluated. All that compute something else than the step as `train` left it
// must be rejected, and the unchanged ones accepted.

#include "MutantsFixture.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;

namespace {
constexpr Setting kSettings[] = {
    {"forward on two ranks", "dp=2", 1, 0, false, false},
    {"DDP, two micro-batches", "dp=2", 2, 0, false, true},
    {"ZeRO-1", "dp=2", 2, 1, false, true},
    {"ZeRO-2", "dp=2", 4, 2, false, true},
    {"ZeRO-3, one micro-batch", "dp=2", 1, 3, false, true},
    {"ZeRO-3, hybrid", "dp_replicate=2,dp_shard=2", 2, 3, false, true},
    {"ZeRO-3, gathered once", "dp=2", 2, 3, true, true}};

/// Padded states, rows in another order, sums in another type.
constexpr Setting kUneven[] = {
    {"padded, ZeRO-1", "dp=2", 2, 1, false, true, Program::Uneven},
    {"padded, ZeRO-2", "dp=2", 1, 2, false, true, Program::Uneven},
    {"padded, ZeRO-3", "dp=2", 2, 3, false, true, Program::Uneven},
    {"padded, ZeRO-3 in bf16", "dp=2", 2, 3, false, true, Program::Uneven,
     "bf16"},
    {"padded, ZeRO-3, hybrid", "dp_replicate=2,dp_shard=2", 1, 3, false, true,
     Program::Uneven}};

/// Gradients of tables, of which ranks exchange the rows.
constexpr Setting kRows[] = {
    {"rows, ZeRO-2", "dp=2", 1, 2, false, false, Program::Rows},
    {"rows, ZeRO-3, hybrid", "dp_replicate=2,dp_shard=2", 2, 3, false, false,
     Program::Rows}};

/// Meshes of batches, sequences and tensors: values are asked to be split as
/// seeds say.
constexpr Setting kConstrained[] = {
    {"dp x sp x tp", "", 1, 0, false, true},
    {"dp x sp x tp, forward", "", 1, 0, false, false},
    {"dp x sp x tp, two micro-batches", "", 2, 0, false, true},
    {"dp_shard x sp x tp, ZeRO-3", "", 1, 3, false, true},
    {"dp_shard x sp x tp, ZeRO-2, padded", "", 1, 2, false, true,
     Program::Uneven}};

/// Meshes as users write them, of a layer of a decoder.
constexpr Setting kSplits[] = {
    {"tp", "tp=2", 1, 0, false, true, Program::Decoder},
    {"tp, the vocabulary whole", "tp=2", 1, 0, false, true, Program::Decoder,
     "", "tp.vocabulary=false"},
    {"tp, sequence parallelism", "tp=2", 1, 0, false, true, Program::Decoder,
     "", "sequence_parallelism=true"},
    {"cp", "cp=2", 1, 0, false, true, Program::Decoder},
    {"sp, two micro-batches", "sp=2", 2, 0, false, true, Program::Decoder},
    {"dp x tp, two micro-batches", "dp=2,tp=2", 2, 0, false, true,
     Program::Decoder},
    {"dp x tp, ZeRO-1", "dp=2,tp=2", 2, 1, false, true, Program::Decoder},
    {"dp x cp, ZeRO-2", "dp=2,cp=2", 2, 2, false, true, Program::Decoder},
    {"dp_shard x cp, ZeRO-3", "dp_shard=2,cp=2", 1, 3, false, true,
     Program::Decoder},
    {"dp_shard x tp, ZeRO-3", "dp_shard=2,tp=2", 2, 3, false, true,
     Program::Decoder},
    {"cp x tp", "cp=2,tp=2", 1, 0, false, true, Program::Decoder},
    {"cp x sp, forward", "cp=2,sp=2", 1, 0, false, false, Program::Decoder},
    {"sp x cp x tp", "cp=2,sp=2,tp=2", 1, 0, false, true, Program::Decoder}};

/// Keys that go round, and rows in stripes.
constexpr Setting kRings[] = {
    {"ring", "cp=2", 1, 0, false, true, Program::Decoder, "",
     "cp.strategy=ring"},
    {"ring, two micro-batches", "cp=2", 2, 0, false, true, Program::Decoder, "",
     "cp.strategy=ring"},
    {"dp_shard x ring, ZeRO-3", "dp_shard=2,cp=2", 1, 3, false, true,
     Program::Decoder, "", "cp.strategy=ring"},
    {"dp x ring, ZeRO-1", "dp=2,cp=2", 2, 1, false, true, Program::Decoder, "",
     "cp.strategy=ring"},
    {"ring x tp, sequence parallelism", "cp=2,tp=2", 1, 0, false, true,
     Program::Decoder, "", "cp.strategy=ring sequence_parallelism=true"}};

/// Four ranks of which two share a key head.
constexpr Setting kGrouped[] = {
    {"tp, shared heads", "tp=4", 1, 0, false, true, Program::Grouped},
    {"dp x tp, shared heads, two micro-batches", "dp=2,tp=4", 2, 0, false, true,
     Program::Grouped},
    {"tp, shared heads, sequence parallelism", "tp=4", 1, 0, false, true,
     Program::Grouped, "", "sequence_parallelism=true"},
    {"dp_shard x tp, shared heads, ZeRO-3", "dp_shard=2,tp=4", 1, 3, false,
     true, Program::Grouped}};

/// Matrices that ranks iterate on for each other (Muon).
constexpr Setting kOwners[] = {
    {"owners, ZeRO-1", "dp=2", 2, 1, false, true, Program::Decoder},
    {"owners, ZeRO-3", "dp=2", 1, 3, false, true, Program::Decoder},
    {"owners, tp", "tp=2", 1, 0, false, true, Program::Decoder},
    {"owners, dp_shard x tp, ZeRO-2", "dp_shard=2,tp=2", 1, 2, false, true,
     Program::Decoder}};

/// Gradients that ranks send as factors, and keep terms of.
constexpr Setting kFactors[] = {
    {"factors", "dp=2", 1, 0, false, true, Program::Decoder, "",
     "comm_hook=power_sgd power_sgd.start_powerSGD_iter=0"},
    {"factors, two micro-batches", "dp=2", 2, 0, false, true, Program::Decoder,
     "", "comm_hook=power_sgd power_sgd.start_powerSGD_iter=0"},
    {"factors of rank 2", "dp=2", 1, 0, false, true, Program::Decoder, "",
     "comm_hook=power_sgd power_sgd.start_powerSGD_iter=0 "
     "power_sgd.matrix_approximation_rank=2 "
     "power_sgd.min_compression_rate=1"}};

std::vector<Setting> constrain(unsigned seeds) {
  std::vector<Setting> settings;
  for (Setting setting : kConstrained)
    for (unsigned seed = 1; seed <= countSeeds(seeds); ++seed) {
      setting.constraints = seed;
      settings.push_back(setting);
    }
  return settings;
}

/// Parts of fused weights, of which ranks have their share.
constexpr Setting kShares[] = {
    {"tp", "tp=2", 1, 0, false, true},
    {"dp x tp, two micro-batches", "dp=2,tp=2", 2, 0, false, true},
    {"dp_shard x tp, ZeRO-3", "dp_shard=2,tp=2", 1, 3, false, true}};

class EquivalenceTest : public MutantsTest {
protected:
  /// Mutants of one rank's programs.
  void tryLocals(ArrayRef<Setting> settings, unsigned seeds, Tally &tally) {
    for (const Setting &setting : settings) {
      OwningOpRef<ModuleOp> logical = makeLogical(setting);
      ASSERT_TRUE(logical);
      if (setting.constraints && !canBePlaced(*logical, setting))
        continue;
      tryLocal(*logical, setting, seeds, tally);
    }
  }
  /// Mutants of programs on whole tensors, as `change` makes them, split as
  /// they are.
  void tryPlaced(ArrayRef<Setting> settings, unsigned seeds,
                 std::string (Mutator::*change)(), Tally &tally);
};
} // namespace

/// Whether there is a way from each sharding to the next: to one that divides
/// the tensor, and to no terms that it does not get.
static bool canBeResharded(ModuleOp module) {
  bool can = true;
  module.walk([&](dist::ReshardOp op) {
    auto from = dist::ShardingAttr::of(op.getInput().getType()),
         to = dist::ShardingAttr::of(op.getType());
    for (dist::ShardingAttr sharding : {from, to})
      can &= succeeded(
          dist::verifySharding(op, sharding, op.getType().getShape()));
    for (StringAttr axis : to.getPartial().getNames())
      can &= from.getPartial().contains(axis);
    can &= !to.isPartial() || from.getReduction() == to.getReduction();
  });
  return can;
}

void EquivalenceTest::tryPlaced(ArrayRef<Setting> settings, unsigned seeds,
                                std::string (Mutator::*change)(),
                                Tally &tally) {
  int refused = 0;
  for (const Setting &setting : settings) {
    SCOPED_TRACE(setting.name + (" " + std::to_string(setting.constraints)));
    OwningOpRef<ModuleOp> logical = makeLogical(setting);
    ASSERT_TRUE(logical);
    if (setting.constraints && !canBePlaced(*logical, setting))
      continue;
    OwningOpRef<ModuleOp> decided(logical->clone());
    ASSERT_TRUE(succeeded(compile(*decided, setting, "decided")));
    inputs = *evaluate::makeRandomInputs(*logical, 3);
    evaluate::TensorsByName expected;
    ASSERT_TRUE(
        succeeded(evaluate::evaluateModule(*logical, inputs, {}, expected)));
    for (unsigned seed : getSeeds(setting, seeds)) {
      OwningOpRef<ModuleOp> mutant(decided->clone());
      std::string what;
      {
        ScopedDiagnosticHandler quiet(&context,
                                      [](Diagnostic &) { return success(); });
        Mutator mutator(*mutant, seed);
        what = (mutator.*change)();
        if (what.empty() || failed(mlir::verify(*mutant)) ||
            !canBeResharded(*mutant))
          continue;
      }
      if (failed(split(*mutant)))
        ++refused;
      else
        count(*logical, *mutant, expected, what, seed, tally);
    }
  }
  tally.print();
  std::cout << "  " << refused << " could not be split\n";
}

TEST_F(EquivalenceTest, RejectsLocalMutants) {
  Tally tally;
  tryLocals(kSettings, countSeeds(250), tally);
  tally.print();
  EXPECT_GE(tally.count(), 400);
  EXPECT_GE(tally.count("mb: "), 100);
  EXPECT_GE(tally.differing.size(), 15u);
}

TEST_F(EquivalenceTest, RejectsLocalMutantsOfUnevenSteps) {
  Tally tally;
  tryLocals(kUneven, countSeeds(100), tally);
  tally.print();
  EXPECT_GE(tally.count(), 150);
}

TEST_F(EquivalenceTest, RejectsLocalMutantsOnTensorParallelMeshes) {
  Tally tally;
  tryLocals(constrain(6), 25, tally);
  tally.print();
  EXPECT_GE(tally.count(), 150);
}

TEST_F(EquivalenceTest, RejectsLocalMutantsOfSplitSequencesAndHeads) {
  Tally all;
  unsigned first = 0;
  for (Setting setting : kSplits) {
    setting.firstSeed = first += 100000;
    OwningOpRef<ModuleOp> logical = makeLogical(setting);
    ASSERT_TRUE(logical);
    Tally tally;
    tryLocal(*logical, setting, countSeeds(80), tally, &Mutator::changeSplits);
    tryLocal(*logical, setting, countSeeds(20), tally, &Mutator::changeLocal);
    tryPlaced(setting, countSeeds(20), &Mutator::changeWritten, tally);
    std::cout << "  " << setting.name << ": " << tally.count() << "\n";
    all += tally;
  }
  all.print();
  EXPECT_GE(all.count(), 500);
  EXPECT_GE(all.differing.size(), 20u);
  for (const char *change :
       {"other rows of attention", "other axes in a row", "scaled term",
        "term added before the sum", "shifted window", "missing mask",
        "the first part on each rank"})
    EXPECT_GT(all.differing[change], 0) << change;
}

static SmallVector<Operation *> findStriped(ModuleOp module) {
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (auto stride = op->getAttrOfType<IntegerAttr>("stride");
        stride && stride.getInt() != 1)
      found.push_back(op);
  });
  return found;
}

TEST_F(EquivalenceTest, RejectsMutantsOfStripedRows) {
  Tally tally;
  unsigned first = 0;
  for (Setting setting : kRings) {
    setting.firstSeed = first += 100000;
    OwningOpRef<ModuleOp> logical = makeLogical(setting);
    ASSERT_TRUE(logical);
    OwningOpRef<ModuleOp> local(logical->clone());
    ASSERT_TRUE(succeeded(compile(*local, setting, "local")));
    EXPECT_FALSE(findStriped(*local).empty()) << setting.name;
    tryLocal(*logical, setting, countSeeds(30), tally, &Mutator::changeSplits);
    tryLocal(*logical, setting, countSeeds(30), tally, &Mutator::changeLocal);
    evaluate::TensorsByName expected;
    ASSERT_TRUE(
        succeeded(evaluate::evaluateModule(*logical, inputs, {}, expected)));
    for (size_t at = 0; at < findStriped(*local).size(); ++at)
      for (const char *name : {"stride", "turn", "row_offset", "column_offset",
                               "row_steps", "column_steps"}) {
        OwningOpRef<ModuleOp> mutant(local->clone());
        Operation *op = findStriped(*mutant)[at];
        Attribute one = op->getAttr(name);
        Builder builder(op->getContext());
        auto more = [&](Attribute number) {
          return builder.getI64IntegerAttr(cast<IntegerAttr>(number).getInt() +
                                           1);
        };
        if (auto steps = dyn_cast<DictionaryAttr>(one)) {
          NamedAttribute step = *steps.begin();
          op->setAttr(name, builder.getDictionaryAttr(builder.getNamedAttr(
                                step.getName(), more(step.getValue()))));
        } else {
          op->setAttr(name, more(one));
        }
        count(*logical, *mutant, expected, "rows in other stripes", at, tally);
      }
  }
  tally.print();
  EXPECT_GE(tally.count(), 100);
  EXPECT_GE(tally.differing["rows in other stripes"], 40);
}

/// Where key heads are shared, ranks add up terms of their gradients.
static SmallVector<dist::AllReduceOp> findKeySums(ModuleOp module) {
  SmallVector<dist::AllReduceOp> sums;
  module.walk([&](dist::AllReduceOp op) {
    if (llvm::equal(op.getAxes().getNames(),
                    ArrayRef(StringAttr::get(module.getContext(), "tp"))))
      sums.push_back(op);
  });
  return sums;
}

TEST_F(EquivalenceTest, RejectsMutantsOfSharedKeyHeads) {
  Tally tally;
  unsigned first = 0;
  for (Setting setting : kGrouped) {
    setting.firstSeed = first += 100000;
    OwningOpRef<ModuleOp> logical = makeLogical(setting);
    ASSERT_TRUE(logical);
    tryLocal(*logical, setting, countSeeds(60), tally, &Mutator::changeSplits);
    tryLocal(*logical, setting, countSeeds(20), tally, &Mutator::changeLocal);
    OwningOpRef<ModuleOp> local(logical->clone());
    ASSERT_TRUE(succeeded(compile(*local, setting, "local")));
    size_t sums = findKeySums(*local).size();
    EXPECT_GE(sums, 2u) << setting.name;
    evaluate::TensorsByName expected;
    ASSERT_TRUE(
        succeeded(evaluate::evaluateModule(*logical, inputs, {}, expected)));
    for (size_t number = 0; number < sums; ++number) {
      OwningOpRef<ModuleOp> mutant(local->clone());
      dist::AllReduceOp sum = findKeySums(*mutant)[number];
      sum.getResult().replaceAllUsesWith(sum->getOperand(0));
      sum.erase();
      count(*logical, *mutant, expected, "a term of shared heads", number,
            tally);
    }
  }
  tally.print();
  EXPECT_GE(tally.count(), 60);
  EXPECT_GE(tally.differing["a term of shared heads"], 8);
}

TEST_F(EquivalenceTest, RejectsMutantsOfExchangedRows) {
  for (const Setting &setting : kRows) {
    OwningOpRef<ModuleOp> module = makeLogical(setting);
    ASSERT_TRUE(module && succeeded(compile(*module, setting, "local")));
    bool exchanges = false;
    module->walk([&](dist::AllToAllOp) { exchanges = true; });
    EXPECT_TRUE(exchanges) << setting.name;
  }
  Tally tally;
  tryLocals(kRows, countSeeds(70), tally);
  tryPlaced(kRows, countSeeds(40), &Mutator::changeWritten, tally);
  EXPECT_GE(tally.count(), 70);
}

TEST_F(EquivalenceTest, RejectsMutantsOfFactors) {
  Tally tally;
  tryLocals(kFactors, countSeeds(200), tally);
  tally.print();
  EXPECT_GE(tally.count(), 200);
}

/// What joins matrices, or cuts one out, in dimension 0.
static SmallVector<Operation *> findStacking(ModuleOp module) {
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    auto concat = dyn_cast<nn::ConcatOp>(op);
    auto slice = dyn_cast<nn::SliceOp>(op);
    if ((concat && concat.getDim() == 0 && concat.getType().getRank() == 3) ||
        (slice && slice.getType().getRank() == 3 &&
         slice.getInput().getType().getDimSize(0) > 1 &&
         slice.getSizes()[0] == 1))
      found.push_back(op);
  });
  return found;
}

TEST_F(EquivalenceTest, RejectsMutantsOfOwners) {
  Tally tally;
  unsigned first = 0;
  for (Setting setting : kOwners) {
    setting.firstSeed = first += 100000;
    setting.optimizer = "muon";
    OwningOpRef<ModuleOp> logical = makeLogical(setting);
    ASSERT_TRUE(logical);
    OwningOpRef<ModuleOp> local(logical->clone());
    ASSERT_TRUE(succeeded(compile(*local, setting, "local")));
    EXPECT_GE(findStacking(*local).size(), 8u) << setting.name;
    tryLocal(*logical, setting, countSeeds(60), tally, &Mutator::changeSplits);
    tryLocal(*logical, setting, countSeeds(60), tally, &Mutator::changeLocal);
    evaluate::TensorsByName expected;
    ASSERT_TRUE(
        succeeded(evaluate::evaluateModule(*logical, inputs, {}, expected)));
    for (size_t at = 0; at < findStacking(*local).size(); ++at) {
      OwningOpRef<ModuleOp> mutant(local->clone());
      Operation *op = findStacking(*mutant)[at];
      if (auto slice = dyn_cast<nn::SliceOp>(op)) {
        SmallVector<int64_t> starts(slice.getStarts());
        starts[0] = (starts[0] + 1) % slice.getInput().getType().getDimSize(0);
        slice.setStarts(starts);
      } else {
        Value joined = op->getOperand(0);
        op->setOperand(0, op->getOperand(1));
        op->setOperand(1, joined);
      }
      count(*logical, *mutant, expected, "another's matrix", at, tally);
    }
  }
  tally.print();
  EXPECT_GE(tally.count(), 80);
  EXPECT_GE(tally.differing["another's matrix"], 20);
}

TEST_F(EquivalenceTest, RejectsMutantsOfGpt2) {
  Tally tally;
  for (const Setting &setting : {kSettings[2], kSettings[5], kSettings[6]}) {
    OwningOpRef<ModuleOp> logical = parseGpt2();
    ASSERT_TRUE(logical);
    ASSERT_TRUE(succeeded(compile(*logical, setting, "train")));
    tryLocal(*logical, setting, countSeeds(80), tally);
  }
  tally.print();
  EXPECT_GE(tally.count(), 50);
}

TEST_F(EquivalenceTest, RejectsMutantsOfSharesOfParts) {
  Tally tally;
  for (const Setting &setting : kShares) {
    OwningOpRef<ModuleOp> logical = parseGpt2();
    ASSERT_TRUE(logical);
    ASSERT_TRUE(succeeded(compile(*logical, setting, "train")));
    tryLocal(*logical, setting, countSeeds(80), tally);
  }
  tally.print();
  EXPECT_GE(tally.count(), 50);
  EXPECT_GE(tally.count("other parts"), 3);
}

TEST_F(EquivalenceTest, RejectsMutantsOfPlacement) {
  Tally tally;
  tryPlaced(kSettings, countSeeds(100), &Mutator::changePlacement, tally);
  EXPECT_GE(tally.count(), 50);
}

TEST_F(EquivalenceTest, RejectsMutantsOfWhatPlacementWrites) {
  Tally tally;
  tryPlaced(kSettings, countSeeds(60), &Mutator::changeWritten, tally);
  tryPlaced(kUneven, countSeeds(60), &Mutator::changeWritten, tally);
  tryPlaced(constrain(6), 20, &Mutator::changeWritten, tally);
  EXPECT_GE(tally.count(), 200);
}
