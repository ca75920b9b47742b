// Parameters of 16 bits that are trained: the step keeps them in f32, and the
// model computes with what they round to, as mixed precision with master
// weights does (Micikevicius et al., Mixed Precision Training,
// arXiv:1710.03740, section 3.1).

#include "lib/Autodiff/BuildStep.h"

#include "dialects/NN/Entry.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// The state in f32: a file that holds its values in 16 bits is read as it is.
static LogicalResult widenState(nn::StateOp state) {
  auto narrow = cast<RankedTensorType>(state.getType());
  RankedTensorType wide = narrow.clone(Float32Type::get(state.getContext()));
  if (isa<nn::RangeAttr>(state.getInit())) {
    if (!state.getStored())
      state.setStoredAttr(TypeAttr::get(narrow.getElementType()));
  } else if (auto init = dyn_cast<DenseElementsAttr>(state.getInit())) {
    state.setInitAttr(
        init.mapValues(wide.getElementType(), [](const APFloat &number) {
          APFloat same = number;
          bool losesInfo = false;
          same.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                       &losesInfo);
          return same.bitcastToAPInt();
        }));
  } else if (state.getMembers().empty()) {
    return state.emitError()
           << "expected values in a file, or in the program, of a parameter of "
           << narrow << " that is trained";
  }
  state.setTypeAttr(TypeAttr::get(wide));
  return success();
}

LogicalResult autodiff::keepMasterWeights(ModuleOp module,
                                          ArrayRef<Trained> trained) {
  SymbolTable symbols(module);
  llvm::DenseMap<Attribute, Type> widened;
  for (const Trained &each : trained) {
    Type element = getElementTypeOrSelf(each.argument.getType());
    if (element.isF32() || element.isF64())
      continue;
    nn::StateOp state = each.state;
    if (element.getIntOrFloatBitWidth() < 16)
      return state.emitError()
             << "expected a parameter of at least 16 bits to train, found "
             << each.argument.getType()
             << "; set requires_grad to False before the export";
    for (FlatSymbolRefAttr member : state.getMembers())
      if (failed(widenState(symbols.lookup<nn::StateOp>(member.getAttr()))))
        return failure();
    if (failed(widenState(state)))
      return failure();
    widened[FlatSymbolRefAttr::get(state.getSymNameAttr())] = element;
  }
  if (widened.empty())
    return success();
  for (auto entry : module.getOps<func::FuncOp>()) {
    if (!nn::getEntryKind(entry))
      continue;
    OpBuilder builder = OpBuilder::atBlockBegin(&entry.front());
    for (BlockArgument argument : entry.getArguments()) {
      auto found = widened.find(
          entry.getArgAttr(argument.getArgNumber(), nn::kStateAttr));
      if (found == widened.end())
        continue;
      auto narrow = cast<RankedTensorType>(argument.getType());
      argument.setType(narrow.clone(builder.getF32Type()));
      auto cast =
          nn::CastOp::create(builder, argument.getLoc(), narrow, argument);
      cast->setAttr(nn::kReasonAttr,
                    builder.getStringAttr("the model's own type of a weight"));
      argument.replaceAllUsesExcept(cast.getResult(), cast);
    }
    entry.setFunctionType(builder.getFunctionType(
        entry.front().getArgumentTypes(), entry.getResultTypes()));
  }
  return success();
}
