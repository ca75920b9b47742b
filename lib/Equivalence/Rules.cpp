// The table of rules as data, and the premises that a test leaves out.

#include "Follow.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

ArrayRef<Rule> Follower::getRules() {
  static constexpr Rule kRules[] = {
#define RULE(ID, STAGE, LAST, FILE, SAYS)                                      \
  {RuleId::ID, #ID, FILE, SAYS, Stage::STAGE, LAST, &Follower::follow##ID},
#define PREMISE(RULE, ID, TEXT)
#include "Rules.def"
#undef RULE
#undef PREMISE
  };
  return kRules;
}

ArrayRef<PremiseText> equivalence::getPremises() {
  static constexpr PremiseText kPremises[] = {
#define RULE(ID, STAGE, LAST, FILE, SAYS)
#define PREMISE(RULE, ID, TEXT) {RuleId::RULE, Premise::ID, #ID, TEXT},
#include "Rules.def"
#undef RULE
#undef PREMISE
  };
  return kPremises;
}

static thread_local std::optional<Premise> leftOut;

WithoutPremise::WithoutPremise(Premise premise) { leftOut = premise; }
WithoutPremise::~WithoutPremise() { leftOut.reset(); }

bool equivalence::isLeftOut(Premise premise) { return leftOut == premise; }
