// Wrong programs of experts that ranks have a share of: each is changed in one
// place by a seed, and evaluated. All that compute something else than the step
// as `train` left it must be rejected.

#include "MutantsFixture.h"

#include "mlir/Parser/Parser.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::test;

namespace {
constexpr Setting kExperts[] = {
    {"forward", "ep=2", 1, 0, false, false},
    {"ep", "ep=2", 1, 0, false, true},
    {"ep=4, two micro-batches", "ep=4", 2, 0, false, true},
    {"dp x ep, two micro-batches", "dp=2,ep=2", 2, 0, false, true},
    {"dp x ep, ZeRO-1", "dp_shard=2,ep=2", 1, 1, false, true},
    {"dp_shard x ep, ZeRO-3", "dp_shard=2,ep=2", 2, 3, false, true},
    {"ep x tp", "ep=2,tp=2", 1, 0, false, true},
    {"tp of experts", "tp=2", 1, 0, false, true}};

class ExpertsTest : public MutantsTest {
protected:
  /// The mixture with matrices of which no two are alike, as `train` leaves it.
  OwningOpRef<ModuleOp> makeMixture(const Setting &setting) {
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(
        ACCEL_SOURCE_DIR "/test/Fixtures/mixture.mlir", &context);
    if (!module)
      return nullptr;
    float phase = 0;
    for (auto state : module->getOps<nn::StateOp>()) {
      auto type = cast<RankedTensorType>(state.getType());
      SmallVector<float> numbers;
      for (int64_t i = 0; i < type.getNumElements(); ++i)
        numbers.push_back(0.5f * std::sin(float(i) * 1.7f + phase));
      phase += 1;
      state.setInitAttr(DenseElementsAttr::get(type, ArrayRef<float>(numbers)));
    }
    return succeeded(compile(*module, setting, "train")) ? std::move(module)
                                                         : nullptr;
  }
};
} // namespace

TEST_F(ExpertsTest, RejectsMutantsOfExchangeAndRouting) {
  Tally all;
  unsigned first = 0;
  for (Setting setting : kExperts) {
    setting.firstSeed = first += 100000;
    OwningOpRef<ModuleOp> logical = makeMixture(setting);
    ASSERT_TRUE(logical);
    OwningOpRef<ModuleOp> local(logical->clone());
    ASSERT_TRUE(succeeded(compile(*local, setting, "local")));
    bool fetches = false;
    local->walk([&](dist::FetchRowsOp) { fetches = true; });
    EXPECT_EQ(fetches, StringRef(setting.mesh).contains("ep")) << setting.name;
    Tally tally;
    tryLocal(*logical, setting, countSeeds(70), tally, &Mutator::changeExperts);
    tryLocal(*logical, setting, countSeeds(15), tally);
    std::cout << "  " << setting.name << ": " << tally.count() << "\n";
    all += tally;
  }
  all.print();
  EXPECT_GE(all.count(), 200);
  for (const char *change :
       {"rows by other numbers", "other rows sent", "rows that are not sent",
        "scaled rows", "other experts' numbers", "dealt otherwise",
        "another rank's experts", "transposed experts", "summed matrices",
        "other choice"})
    EXPECT_GT(all.differing[change], 0) << change;
}
