// The rules of the first proof, in one table: what each says, what it needs for
// that, and where it is. Private to the library and its tests.

#ifndef ACCEL_LIB_EQUIVALENCE_RULES_H
#define ACCEL_LIB_EQUIVALENCE_RULES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringRef.h"

namespace accel::equivalence {

class Follower;
struct Known;

/// When a rule is asked of an op: stage by stage, within a stage in the order
/// of the table.
enum class Stage {
  Source,     ///< of ops without operands
  Deal,       ///< of nn.deal_rows
  Fetch,      ///< of dist.fetch_rows
  Collective, ///< of other collectives
  Wire,       ///< of these: what may be concluded
  Alone,      ///< of all other ops: what it concludes is all
  Words,      ///< what is said in other words, whatever the op's map says
  Map,        ///< the op as the logical program has it
  View,       ///< as another order of elements
  Parts,      ///< where nothing has followed
  Dealt,      ///< of rows that were dealt
  Portion,    ///< of what is made part by part
  Ring,       ///< where nothing has followed: of what goes round
  Formula,    ///< of all but deal_rows: what is seen where it is used
};

enum class RuleId {
#define RULE(ID, STAGE, LAST, FILE, SAYS) ID,
#define PREMISE(RULE, ID, TEXT)
#include "Rules.def"
#undef RULE
#undef PREMISE
};

/// What a rule needs, that one check of it looks for.
enum class Premise {
#define RULE(ID, STAGE, LAST, FILE, SAYS)
#define PREMISE(RULE, ID, TEXT) ID,
#include "Rules.def"
#undef RULE
#undef PREMISE
};

/// From what is known of an op's operands it finds what its results are: each
/// fact that it adds is true of them, whatever the ranks' numbers are.
struct Rule {
  RuleId id;
  llvm::StringLiteral name, file, says;
  Stage stage;
  bool isLast; ///< asked only where nothing is known of the op's results
  void (Follower::*transfer)(mlir::Operation *op, Known &result);
};

struct PremiseText {
  RuleId rule;
  Premise premise;
  llvm::StringLiteral name, text;
};
llvm::ArrayRef<PremiseText> getPremises();

/// Of tests alone: as long as it lives, this thread's rules are without a
/// premise. What they accept then shows what it is there for.
class WithoutPremise {
public:
  explicit WithoutPremise(Premise premise);
  ~WithoutPremise();
  WithoutPremise(const WithoutPremise &) = delete;
  WithoutPremise &operator=(const WithoutPremise &) = delete;
};

bool isLeftOut(Premise premise);

/// Whether a premise of a rule holds.
inline bool holds(Premise premise, bool condition) {
  return condition || isLeftOut(premise);
}

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_RULES_H
