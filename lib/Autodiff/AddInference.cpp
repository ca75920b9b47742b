// Adds the entries of a training program that do not train: what a user asks of
// a model between steps and after them.

#include "BatchNorm.h"
#include "Passes.h"
#include "SeparateRows.h"
#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Reports.h"
#include "dialects/Accel/SeparateRows.h"
#include "dialects/NN/Entry.h"
#include "lib/Autodiff/BuildStep.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace accel::autodiff {
#define GEN_PASS_DEF_ADDINFERENCEPASS
#include "lib/Autodiff/Passes.h.inc"

/// What training alone needs: statistics of the batch, dropout, and where
/// gradients stop.
static void dropTraining(func::FuncOp entry) {
  normalizeByRunning(entry);
  for (Operation &op :
       llvm::make_early_inc_range(entry.getBody().front().without_terminator()))
    if (isa<nn::DropoutOp, nn::StopGradientOp>(op)) {
      op.getResult(0).replaceAllUsesWith(op.getOperand(0));
      op.erase();
    }
}

/// Gives an entry these results, by name.
static void giveResults(func::FuncOp entry,
                        ArrayRef<std::pair<std::string, Value>> results) {
  Operation *exit = entry.getBody().front().getTerminator();
  OpBuilder builder(exit);
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> attributes;
  for (auto &[name, value] : results) {
    values.push_back(value);
    attributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(nn::kOutputAttr, builder.getStringAttr(name))));
  }
  exit->setOperands(values);
  entry.setFunctionType(builder.getFunctionType(entry.getArgumentTypes(),
                                                exit->getOperandTypes()));
  entry.setAllResultAttrs(attributes);
}

/// A file's outputs go by their names, and a step's reports are among them: an
/// output called as one would be taken for it.
static bool isTaken(StringRef output) {
  return llvm::is_contained(kStepReports, output) ||
         output.starts_with(kTermPrefix);
}

/// Asked for it is an error; else the entry goes without.
static LogicalResult checkName(func::FuncOp main, StringAttr output,
                               bool isAskedFor) {
  if (!isTaken(output))
    return success();
  InFlightDiagnostic message =
      isAskedFor ? main.emitError() : main.emitWarning();
  message << "the model's output " << output
          << " is called as what a step reports: ";
  if (isAskedFor)
    message << "give it another name in the model to have it in --eval-outputs";
  else
    message << "the entry 'forward' goes without it; give it another name in "
               "the model to have it";
  return failure(isAskedFor);
}

/// Drops what the results do not need: inputs and states as well as ops.
static LogicalResult prune(func::FuncOp entry) {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(entry.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  llvm::BitVector unused(entry.getNumArguments());
  for (BlockArgument argument : entry.getArguments())
    unused[argument.getArgNumber()] = argument.use_empty();
  return entry.eraseArguments(unused);
}

namespace {
struct AddInferencePass : impl::AddInferencePassBase<AddInferencePass> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation()->hasAttr(kUntrainableAttr))
      return; // nn-build-step says so
    func::FuncOp main = nn::findEntry(getOperation(), nn::EntryKind::forward);
    if (!main) {
      getOperation().emitError() << "expected a forward entry, found none";
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    after = main;
    for (nn::EntryKind kind : {nn::EntryKind::eval, nn::EntryKind::forward})
      if (llvm::is_contained(entries, nn::stringifyEntryKind(kind)) &&
          failed(add(main, kind, symbols)))
        return signalPassFailure();
  }

  LogicalResult add(func::FuncOp main, nn::EntryKind kind,
                    SymbolTable &symbols) {
    func::FuncOp entry = main.clone();
    entry.setSymName(nn::stringifyEntryKind(kind));
    nn::setEntryKind(entry, kind);
    SmallVector<std::pair<std::string, Value>> results;
    bool evaluates = kind == nn::EntryKind::eval;
    symbols.insert(entry, std::next(Block::iterator(after)));
    if (evaluates) {
      FailureOr<Value> made = buildLoss(entry, loss);
      if (failed(made))
        return failure();
      results.emplace_back(kLossReport.str(), *made);
    }
    llvm::StringSet<> wanted;
    for (const std::string &output : evalOutputs)
      if (!wanted.insert(output).second)
        return main.emitError()
               << "found '" << output << "' twice in --eval-outputs";
    Operation *exit = entry.getBody().front().getTerminator();
    for (OpOperand &operand : exit->getOpOperands()) {
      auto output = entry.getResultAttrOfType<StringAttr>(
          operand.getOperandNumber(), nn::kOutputAttr);
      if (!output || output == loss)
        continue;
      bool given = evaluates ? wanted.erase(output) : true;
      if (given && failed(checkName(main, output, evaluates)))
        return failure();
      if (given && !isTaken(output))
        results.emplace_back(output.str(), operand.get());
    }
    if (evaluates && !wanted.empty())
      return main.emitError()
             << "expected one of the model's outputs beside the loss in "
                "--eval-outputs, found '"
             << wanted.begin()->getKey() << "'";
    if (results.empty()) { // the loss is all that the model gives
      symbols.erase(entry);
      return success();
    }
    giveResults(entry, results);
    dropTraining(entry);
    after = entry;
    if (failed(prune(entry)))
      return failure();
    return evaluates ? addTerms(entry) : success();
  }

  /// Of what the loss of all rows can be made, the entry gives that, too.
  LogicalResult addTerms(func::FuncOp entry) {
    std::optional<SeparateRows> rows = findSeparateRows(
        entry, SmallVector<std::string>(batchDims.begin(), batchDims.end()));
    if (rows) {
      getOperation()->setAttr(kSeparateRowsAttr, rows->attribute);
      SmallVector<std::pair<std::string, Value>> results;
      for (OpOperand &operand :
           entry.getBody().front().getTerminator()->getOpOperands())
        results.emplace_back(
            entry
                .getResultAttrOfType<StringAttr>(operand.getOperandNumber(),
                                                 nn::kOutputAttr)
                .str(),
            operand.get());
      llvm::append_range(results, rows->terms);
      giveResults(entry, results);
    }
    return prune(entry); // what was built in search of them
  }

  func::FuncOp after; ///< the entry that the next one follows
};
} // namespace
} // namespace accel::autodiff
