// Wrong programs whose dimensions are padded: each is changed in one place by a
// seed, and evaluated. All that compute something else than the program without
// padding must be rejected, and so must those of their ranks.

#include "MutantsFixture.h"

#include "dialects/Accel/Established.h"
#include "lib/Equivalence/Equivalence.h"
#include "lib/Parallel/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::test;

namespace {
constexpr Setting kOdd[] = {
    {"step", "tp=2", 1, 0, false, true},
    {"step in bf16", "tp=2", 1, 0, false, true, Program::Square, "bf16"}};

class PaddingTest : public MutantsTest {
protected:
  /// A table of 63 words, no two alike, as `train` leaves it.
  OwningOpRef<ModuleOp> makeOdd(const Setting &setting) {
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(
        ACCEL_SOURCE_DIR "/test/Fixtures/odd_vocabulary.mlir", &context);
    if (!module)
      return nullptr;
    for (auto state : module->getOps<nn::StateOp>()) {
      auto type = cast<RankedTensorType>(state.getType());
      SmallVector<float> numbers;
      for (int64_t i = 0; i < type.getNumElements(); ++i)
        numbers.push_back(0.25f * std::sin(float(i)));
      state.setInitAttr(DenseElementsAttr::get(type, ArrayRef<float>(numbers)));
    }
    return succeeded(compile(*module, setting, "train")) ? std::move(module)
                                                         : nullptr;
  }
  /// Before anything is split.
  OwningOpRef<ModuleOp> pad(ModuleOp logical, const Setting &setting) {
    OwningOpRef<ModuleOp> padded(logical.clone());
    PassManager pm(&context);
    parallel::AnnotatePassOptions annotate;
    annotate.mesh = setting.mesh;
    pm.addPass(parallel::createAnnotatePass(annotate));
    pm.addPass(parallel::createPadDimsPass());
    if (failed(pm.run(*padded)))
      return nullptr;
    // All of the phase runs on it again.
    (*padded)->removeAttr(kEstablishedAttr);
    return padded;
  }
};

class PaddedProgramTest : public PaddingTest {
protected:
  LogicalResult prove(ModuleOp logical, ModuleOp padded) override {
    return equivalence::verifyPadding(logical, padded);
  }
};
} // namespace

TEST_F(PaddedProgramTest, RejectsMutants) {
  Tally tally;
  for (const Setting &setting : kOdd) {
    SCOPED_TRACE(setting.name);
    OwningOpRef<ModuleOp> logical = makeOdd(setting);
    ASSERT_TRUE(logical);
    OwningOpRef<ModuleOp> padded = pad(*logical, setting);
    ASSERT_TRUE(padded);
    std::string message;
    ASSERT_TRUE(accepts(*logical, *padded, &message)) << message;
    bool isPadded = false;
    padded->walk(
        [&](nn::StateOp state) { isPadded |= state.getLogical().has_value(); });
    ASSERT_TRUE(isPadded);
    inputs = *evaluate::makeRandomInputs(*logical, 3);
    evaluate::TensorsByName expected;
    ASSERT_TRUE(
        succeeded(evaluate::evaluateModule(*logical, inputs, {}, expected)));
    ASSERT_TRUE(evaluate(*padded, expected) == Result::Same);
    for (unsigned seed : getSeeds(setting, countSeeds(150))) {
      OwningOpRef<ModuleOp> mutant(padded->clone());
      Mutator mutator(*mutant, seed);
      std::string what = mutator.changeFills();
      if (!what.empty())
        count(*logical, *mutant, expected, what, seed, tally);
    }
  }
  tally.print();
  EXPECT_GE(tally.count(), 60);
  for (const char *change :
       {"another number in padding", "padding not filled", "another end"})
    EXPECT_GT(tally.differing[change], 0) << change;
}

TEST_F(PaddingTest, RejectsMutantsOfRanks) {
  Tally tally;
  for (Setting setting : kOdd) {
    OwningOpRef<ModuleOp> logical = makeOdd(setting);
    ASSERT_TRUE(logical);
    OwningOpRef<ModuleOp> padded = pad(*logical, setting);
    ASSERT_TRUE(padded);
    setting.mesh = ""; // it has one
    tryLocal(*padded, setting, countSeeds(60), tally, &Mutator::changeSplits);
    tryLocal(*padded, setting, countSeeds(60), tally, &Mutator::changeLocal);
  }
  tally.print();
  EXPECT_GE(tally.count(), 40);
}
