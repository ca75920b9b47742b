// Which interfaces every nn op takes part in the compiler by. A new op that
// lacks one fails here, not in the first model that uses it.

#include "dialects/Interfaces/Cost.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/Interfaces/Evaluate.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "lib/Driver/InitAll.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;

namespace {
class Interfaces : public ::testing::Test {
protected:
  Interfaces() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The nn ops that compute something: all but the declaration of a state.
  SmallVector<RegisteredOperationName> getOps() {
    SmallVector<RegisteredOperationName> ops;
    for (RegisteredOperationName name :
         context.getRegisteredOperationsByDialect("nn"))
      if (name.getStringRef() != nn::StateOp::getOperationName())
        ops.push_back(name);
    return ops;
  }

  template <typename Interface>
  void expectOnAllBut(std::initializer_list<StringRef> exceptions) {
    for (RegisteredOperationName name : getOps())
      EXPECT_EQ(name.hasInterface<Interface>(),
                !llvm::is_contained(exceptions, name.getStringRef()))
          << name.getStringRef().str();
  }

  MLIRContext context;
};

TEST_F(Interfaces, DialectHasOps) { EXPECT_GT(getOps().size(), 45u); }
TEST_F(Interfaces, AllHaveAMeaning) {
  expectOnAllBut<EvaluateOpInterface>(
      {"nn.batch_norm", "nn.dropout", "nn.rng"});
}
TEST_F(Interfaces, AllHaveACost) {
  expectOnAllBut<CostOpInterface>(
      {"nn.batch_norm", "nn.dropout", "nn.rng", "nn.stop_gradient"});
}
// Rows are dealt by localisation, on one rank's tensors.
TEST_F(Interfaces, AllHaveAShardingRule) {
  expectOnAllBut<ShardingRuleOpInterface>({"nn.batch_norm", "nn.dropout",
                                           "nn.rng", "nn.stop_gradient",
                                           "nn.deal_rows"});
}
// What is drawn is expanded, and stops are dropped, by nn-build-step, before
// anything asks; products and attention are commands of their own; iterations
// are products, the marks of gradients and of whole sums are gone by then.
TEST_F(Interfaces, AllButCommandsAreKernelSources) {
  expectOnAllBut<KernelSourceOpInterface>(
      {"nn.matmul", "nn.grouped_matmul", "nn.grouped_matmul_grad", "nn.conv",
       "nn.conv_input_grad", "nn.conv_weight_grad", "nn.newton_schulz",
       "nn.deal_rows", "nn.attention", "nn.attention_grad", "nn.gradient",
       "nn.complete", "nn.cut", "nn.batch_norm", "nn.dropout", "nn.rng",
       "nn.stop_gradient"});
}
TEST_F(Interfaces, AllButCommandsAreEmitted) {
  expectOnAllBut<ElementSourceOpInterface>(
      {"nn.matmul", "nn.grouped_matmul", "nn.grouped_matmul_grad", "nn.conv",
       "nn.conv_input_grad", "nn.conv_weight_grad", "nn.newton_schulz",
       "nn.deal_rows", "nn.attention", "nn.attention_grad", "nn.gradient",
       "nn.complete", "nn.cut", "nn.batch_norm", "nn.dropout", "nn.rng",
       "nn.stop_gradient"});
}
} // namespace
