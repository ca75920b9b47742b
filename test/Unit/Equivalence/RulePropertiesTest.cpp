// What a rule concludes is true: on small random programs of its premises, both
// programs are evaluated on virtual ranks. Without any one of the premises that
// its table names it concludes something that is not: so each is needed, and
// the programs reach it. ACCEL_RULES=20 tries 20 times as many programs.

#include "RuleProperties.h"

#include "lib/Driver/InitAll.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

namespace {
/// Of each kind of program: those that a rule concludes something of.
constexpr int kPrograms = 250;
/// For each of them, so many may be tried; of a premise that is left out, so
/// many in all.
constexpr int kTries = 40, kPremiseTries = 40000;

class RulePropertiesTest : public ::testing::Test {
protected:
  RulePropertiesTest() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  RuleProgram::Verdict attempt(const RuleProperty &property, uint64_t seed,
                               std::string &why) {
    RuleProgram program(context, seed);
    property.generate(program);
    RuleProgram::Verdict verdict = program.check(why);
    if (verdict == RuleProgram::Verdict::Unsound) {
      llvm::raw_string_ostream os(why);
      os << "\n";
      program.print(os);
    }
    return verdict;
  }

  /// ACCEL_RULE=Map,View asks these alone.
  static bool isWanted(RuleId id) {
    const char *names = std::getenv("ACCEL_RULE");
    SmallVector<StringRef> wanted;
    if (names)
      StringRef(names).split(wanted, ',');
    return !names || llvm::is_contained(wanted, getName(id));
  }

  static std::vector<RuleProperty> getAll() {
    std::vector<RuleProperty> all;
    for (ArrayRef<RuleProperty> some :
         {getSumProperties(), getMapProperties(), getMoveProperties(),
          getViewProperties(), getLookupProperties(), getPaddingProperties(),
          getEqualProperties(), getDealtProperties(), getRingProperties(),
          getOpProperties(), getWireProperties(), getPortionProperties()})
      llvm::copy_if(
          some, std::back_inserter(all),
          [](const RuleProperty &each) { return isWanted(each.rule); });
    return all;
  }

  static StringRef getName(RuleId id) {
    for (const Rule &rule : Follower::getRules())
      if (rule.id == id)
        return rule.name;
    return {};
  }

  MLIRContext context;
};

int countPrograms() {
  const char *times = std::getenv("ACCEL_RULES");
  return kPrograms * (times ? std::max(1, std::atoi(times)) : 1);
}
} // namespace

TEST_F(RulePropertiesTest, ConclusionsAreTrue) {
  for (const RuleProperty &property : getAll()) {
    int sound = 0, tried = 0, wanted = countPrograms(), none = 0;
    for (; sound < wanted && tried < wanted * kTries; ++tried) {
      std::string why;
      switch (attempt(property, tried, why)) {
      case RuleProgram::Verdict::Sound:
        ++sound;
        break;
      case RuleProgram::Verdict::Unsound:
        FAIL() << getName(property.rule).str() << ", " << property.name
               << ", seed " << tried << ": not true: " << why;
      case RuleProgram::Verdict::NoProgram:
        ++none;
        break;
      case RuleProgram::Verdict::Nothing:
        break;
      }
    }
    llvm::outs() << getName(property.rule) << ", " << property.name << ": "
                 << sound << " conclusions of " << tried << " programs ("
                 << none << " invalid), all true\n";
    EXPECT_EQ(sound, wanted)
        << getName(property.rule).str() << ", " << property.name;
  }
}

TEST_F(RulePropertiesTest, EachRuleHasPrograms) {
  if (std::getenv("ACCEL_RULE"))
    GTEST_SKIP() << "some rules alone are asked";
  std::vector<RuleProperty> all = getAll();
  for (const Rule &rule : Follower::getRules())
    EXPECT_TRUE(llvm::any_of(all, [&](const RuleProperty &property) {
      return property.rule == rule.id;
    })) << rule.name.str();
}

TEST_F(RulePropertiesTest, EachPremiseIsNeeded) {
  std::vector<RuleProperty> all = getAll();
  for (const PremiseText &premise : getPremises()) {
    if (!isWanted(premise.rule))
      continue;
    auto attemptWithout = [&](const RuleProperty &property, uint64_t seed,
                              std::string &why) {
      WithoutPremise without(premise.premise);
      return attempt(property, seed, why);
    };
    bool isFound = false, isTried = false;
    for (int tried = 0; tried < kPremiseTries && !isFound; ++tried)
      for (const RuleProperty &property : all) {
        if (isFound || property.rule != premise.rule)
          continue;
        isTried = true;
        std::string why;
        if (attemptWithout(property, tried, why) !=
            RuleProgram::Verdict::Unsound)
          continue;
        isFound = true;
        EXPECT_NE(attempt(property, tried, why), RuleProgram::Verdict::Unsound)
            << premise.name.str() << ": " << why;
        llvm::outs() << premise.name << ": missed at program " << tried
                     << " of " << property.name << "\n";
        if (std::getenv("ACCEL_SHOW"))
          llvm::outs() << why << "\n";
      }
    EXPECT_TRUE(isTried) << "no programs of " << premise.name.str();
    EXPECT_TRUE(isFound) << premise.name.str() << ": " << premise.text.str();
  }
}
