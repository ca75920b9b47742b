// Which linear layers are quantized: said on the products of the forward.

#include "Passes.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/Chunks.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;

namespace accel::precision {
#define GEN_PASS_DEF_TAGPRODUCTSPASS
#include "lib/Precision/Passes.h.inc"

namespace {
/// A product with a matrix of weights on its right.
struct LinearLayer {
  nn::MatmulOp product;
  nn::StateOp weight;
};

struct TagProductsPass : impl::TagProductsPassBase<TagProductsPass> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    return success(compile(context, only, onlyGlobs) &&
                   compile(context, skip, skipGlobs));
  }

  void runOnOperation() override {
    // The first forward is the one that becomes the step.
    func::FuncOp main = nn::findEntry(getOperation(), nn::EntryKind::forward);
    for (func::FuncOp entry : nn::getEntries(getOperation()))
      if (entry == main || evaluates)
        tag(entry);
  }

private:
  static bool compile(MLIRContext *context, ArrayRef<std::string> patterns,
                      SmallVectorImpl<llvm::GlobPattern> &into) {
    into.clear();
    for (const std::string &pattern : patterns) {
      llvm::Expected<llvm::GlobPattern> glob =
          llvm::GlobPattern::create(pattern);
      if (!glob) {
        llvm::consumeError(glob.takeError());
        emitError(UnknownLoc::get(context))
            << "expected a glob pattern of names of weights, found '" << pattern
            << "'";
        return false;
      }
      into.push_back(std::move(*glob));
    }
    return true;
  }

  void tag(func::FuncOp entry) {
    nn::ArgumentStates states(entry);
    SmallVector<LinearLayer> layers;
    entry.walk([&](nn::MatmulOp product) {
      nn::StateOp weight = findWeight(product.getRhs(), states);
      if (weight && !findWeight(product.getLhs(), states))
        layers.push_back({product, weight});
    });
    for (LinearLayer layer : layers) {
      std::string why = explain(layer, layers.front().product == layer.product,
                                layers.back().product == layer.product);
      OpBuilder builder(layer.product);
      if (why.empty())
        layer.product->setAttr(nn::kProductAttr,
                               nn::ProductAttr::get(&getContext(),
                                                    layer.weight.getSymName(),
                                                    nn::ProductKind::fprop));
      else
        layer.product->setAttr(nn::kReasonAttr, builder.getStringAttr(why));
    }
  }

  /// The matrix of weights that a value is, rounded or viewed.
  static nn::StateOp findWeight(Value value, const nn::ArgumentStates &states) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isa<nn::CastOp, nn::CutOp, nn::TransposeOp, nn::SliceOp>(op) &&
          !isView(op))
        return {};
      value = op->getOperand(0);
    }
    auto state = states.find(cast<BlockArgument>(value));
    return state && state.getRole() == nn::StateRole::parameter &&
                   cast<RankedTensorType>(state.getType()).getRank() == 2
               ? state
               : nn::StateOp();
  }

  /// Why a layer stays in 16 bits; empty where it does not.
  std::string explain(LinearLayer layer, bool isFirst, bool isLast) const {
    StringRef name = layer.weight.getSymName();
    auto matches = [&](const llvm::GlobPattern &glob) {
      return glob.match(name);
    };
    if (!onlyGlobs.empty() && llvm::none_of(onlyGlobs, matches))
      return "16 bits: not among fp8.only";
    if (llvm::any_of(skipGlobs, matches))
      return "16 bits: fp8.skip has it";
    for (int64_t size :
         cast<RankedTensorType>(layer.product.getRhs().getType()).getShape())
      if (size % kMultiple != 0)
        return "16 bits: " + std::to_string(size) + " is no multiple of 16";
    if (keepsOuter && (isFirst || isLast))
      return std::string("16 bits: the ") + (isFirst ? "first" : "last") +
             " linear layer";
    return "";
  }

  /// What units for fp8 take the sides of a matrix in.
  static constexpr int64_t kMultiple = 16;
  SmallVector<llvm::GlobPattern> onlyGlobs, skipGlobs;
};
} // namespace
} // namespace accel::precision
