// Holds a program whose dimensions are padded against the one without padding,
// before either is split. New values of states must be 0 behind the logical
// ones, so that those of the next step are, and of all that reads them.

#include "Equivalence.h"

#include "Follow.h"
#include "States.h"
#include "dialects/NN/Entry.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

namespace {
/// One entry.
class PaddingVerifier {
public:
  PaddingVerifier(func::FuncOp whole, func::FuncOp padded, dist::MeshOp mesh)
      : logical(whole), padded(padded), follower(logical, mesh),
        symbols(padded->getParentOfType<ModuleOp>()) {}
  LogicalResult run();

private:
  LogicalResult bind(BlockArgument argument);
  LogicalResult verifyResult(OpOperand &operand);
  /// All of a value as a type holds it.
  Piece expect(Value wanted, Type type, bool zeros) {
    Piece piece;
    piece.logical = wanted;
    for (auto [held, size] :
         llvm::zip(cast<RankedTensorType>(type).getShape(), shapeOf(wanted))) {
      Dim &dim = piece.dims.emplace_back();
      dim.padding = held - size;
      dim.zeros = zeros && dim.padding;
    }
    return piece;
  }
  Logical logical;
  func::FuncOp padded;
  Follower follower;
  SymbolTable symbols;
  llvm::StringSet<> given;
};
} // namespace

LogicalResult PaddingVerifier::bind(BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  Value wanted;
  bool isState = false;
  if (auto name = padded.getArgAttrOfType<StringAttr>(number, nn::kInputAttr)) {
    wanted = logical.inputs.lookup(name);
    if (wanted && shapeOf(wanted) != shapeOf(argument))
      return emitError(argument.getLoc())
             << "expected the shape of input '" << name.getValue() << "'";
  } else if (auto state = padded.getArgAttrOfType<FlatSymbolRefAttr>(
                 number, nn::kStateAttr)) {
    wanted = logical.states.lookup(state.getValue());
    isState = true; // loaded, and made, with zeros behind the value
  }
  if (!wanted || shapeOf(wanted).size() != shapeOf(argument).size())
    return emitError(argument.getLoc())
           << "is no input and no state of the program without padding";
  Piece piece = expect(wanted, argument.getType(), isState);
  if (!follower.getMaker().fits(piece, argument.getType()))
    return emitError(argument.getLoc())
           << "expected " << wanted.getType() << ", padded, found "
           << argument.getType();
  follower.at(argument).pieces = {piece};
  return success();
}

LogicalResult PaddingVerifier::verifyResult(OpOperand &operand) {
  unsigned number = operand.getOperandNumber();
  auto output = padded.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr);
  auto state =
      padded.getResultAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr);
  Value value = operand.get();
  Type type = value.getType();
  Value wanted;
  if (output)
    wanted = logical.outputs.lookup(output);
  else if (state)
    wanted = logical.newStates.lookup(state.getValue());
  Location loc = value.getLoc();
  if (!wanted || shapeOf(wanted).size() != shapeOf(value).size() ||
      !given
           .insert((output ? "output " + output.getValue()
                           : "state " + state.getValue())
                       .str())
           .second)
    return emitError(loc) << "result " << number
                          << " is none of the program without padding";
  if (state && symbols.lookup<nn::StateOp>(state.getAttr()).getType() != type)
    return emitError(loc) << "expected the type of " << state;
  Piece expected = expect(wanted, type, bool(state));
  for (const Piece &piece : follower.hold(value, wanted)) {
    bool same = piece.partial.empty();
    for (auto [mine, theirs] : llvm::zip_equal(piece.dims, expected.dims))
      same &= mine.free
                  ? theirs.padding == 0
                  : mine.isSplitLike(theirs) && (mine.zeros || !theirs.zeros);
    if (same && (state || shapeOf(wanted) == shapeOf(value)))
      return success();
  }
  return emitError(loc) << (state ? "new state '" : "output '")
                        << (state ? state.getValue() : output.getValue())
                        << "' is not that of the program without padding"
                        << (expected.dims.empty()
                                ? ""
                                : ", or not 0 behind its end");
}

LogicalResult PaddingVerifier::run() {
  for (BlockArgument argument : padded.getArguments())
    if (failed(bind(argument)))
      return failure();
  for (Operation &op : padded.front().without_terminator()) {
    if (auto constraint = dyn_cast<dist::ConstraintOp>(op)) {
      Known what = follower.at(constraint.getInput());
      follower.at(constraint.getResult()) = std::move(what);
    } else if (failed(follower.follow(&op))) {
      return failure();
    }
  }
  for (OpOperand &operand : padded.front().getTerminator()->getOpOperands())
    if (failed(verifyResult(operand)))
      return failure();
  if (given.size() != logical.outputs.size() + logical.newStates.size())
    return padded.emitOpError() << "expected every output and new state of the "
                                   "program without padding";
  return success();
}

LogicalResult equivalence::verifyPadding(ModuleOp logical, ModuleOp padded) {
  dist::MeshOp mesh = dist::MeshOp::of(padded);
  if (!mesh)
    return padded.emitError() << "expected a mesh, found none";
  if (failed(verifyStates(logical, padded)))
    return failure();
  for (func::FuncOp entry : nn::getEntries(logical)) {
    auto other = padded.lookupSymbol<func::FuncOp>(entry.getSymName());
    if (!other || nn::getEntryKind(other) != nn::getEntryKind(entry))
      return padded.emitError() << "expected entry @" << entry.getSymName();
    if (failed(PaddingVerifier(entry, other, mesh).run()))
      return failure();
  }
  return success();
}
