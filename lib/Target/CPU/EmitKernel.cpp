// From a kernel's function of nn ops to loops over rows: the results that have
// the same loops share them, and each element is asked for in the innermost.

#include "EmitKernel.h"

#include "Device/CPU/Kernel.h"
#include "RowEmitter.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "lib/Plan/Rows.h"
#include "lib/Target/Element/Scatter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace accel;
using namespace accel::cpu;
using Values = RowEmitter::Values;

static int64_t getRows(func::FuncOp kernel) {
  return kernel->getAttrOfType<IntegerAttr>(plan::kRowsAttr).getInt();
}

//===----------------------------------------------------------------------===//
// Instances
//===----------------------------------------------------------------------===//

/// The buffer whose bytes `buffer` shares, if it is another name for one.
static FlatSymbolRefAttr getRoot(Operation *from,
                                 SymbolTableCollection &symbols,
                                 FlatSymbolRefAttr buffer) {
  while (true) {
    auto op = symbols.lookupNearestSymbolFrom<plan::BufferOp>(from, buffer);
    if (!op || !op.getAliasOfAttr())
      return buffer;
    buffer = op.getAliasOfAttr();
  }
}

/// Whether two views begin at the same byte, whatever their shapes.
static bool beginTogether(Operation *from, SymbolTableCollection &symbols,
                          plan::ViewAttr lhs, plan::ViewAttr rhs) {
  return lhs.getOffset() == rhs.getOffset() && lhs.getAxes() == rhs.getAxes() &&
         getRoot(from, symbols, lhs.getBuffer()) ==
             getRoot(from, symbols, rhs.getBuffer());
}

KernelInstance cpu::getInstance(plan::KernelOp kernel,
                                SymbolTableCollection &symbols) {
  KernelInstance instance;
  instance.function = symbols.lookupSymbolIn<func::FuncOp>(
      kernel->getParentOfType<ModuleOp>(), kernel.getFunctionAttr());
  bool plain = true;
  auto add = [&](plan::ViewAttr view) {
    instance.strides.push_back(SmallVector<int64_t>(view.getStrides()));
    plain &= view.isContiguous();
  };
  auto outputs =
      llvm::to_vector(kernel.getOutputs().getAsRange<plan::ViewAttr>());
  for (auto view : kernel.getInputs().getAsRange<plan::ViewAttr>()) {
    add(view);
    int same = -1;
    for (auto [index, output] : llvm::enumerate(outputs))
      if (beginTogether(kernel, symbols, view, output))
        same = static_cast<int>(index);
    instance.inPlace.push_back(same);
    plain &= same < 0;
  }
  for (plan::ViewAttr view : outputs)
    add(view);
  instance.symbol = kernel.getFunction().str();
  if (DictionaryAttr form = kernel.getFormAttr())
    if (auto bytes = form.getAs<IntegerAttr>(rt::cpu::kThreadScratch))
      instance.threadScratch = bytes.getInt();
  plain &= instance.threadScratch == 0;
  if (!plain) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    for (const auto &strides : instance.strides) {
      llvm::interleaveComma(strides, stream);
      stream << ';';
    }
    llvm::interleaveComma(instance.inPlace, stream);
    if (instance.threadScratch)
      stream << ';' << instance.threadScratch;
    instance.symbol += "_" + llvm::utohexstr(llvm::xxh3_64bits(text));
  }
  return instance;
}

std::string cpu::getKernelSymbol(plan::KernelOp kernel,
                                 SymbolTableCollection &symbols) {
  return getInstance(kernel, symbols).symbol;
}

LogicalResult cpu::verifyKernel(func::FuncOp kernel) {
  auto rows = kernel->getAttrOfType<IntegerAttr>(plan::kRowsAttr);
  if (!rows)
    return kernel.emitOpError()
           << "expected the attribute '" << plan::kRowsAttr << "'";
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitOpError() << "expected one block";
  for (Operation &op : kernel.getBody().front()) {
    if (auto end = dyn_cast<func::ReturnOp>(op)) {
      for (Value result : end.getOperands())
        if (!plan::countRowDims(typeOf(result).getShape(), rows.getInt()))
          return kernel.emitOpError()
                 << "expected results of " << rows.getInt()
                 << " rows, found a result of type " << result.getType();
      continue;
    }
    if (!isa<ElementSourceOpInterface>(op))
      return op.emitOpError() << "expected an op that a kernel of the target "
                                 "'cpu' may contain, found '"
                              << op.getName() << "'";
    if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
      auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!value || !value.isSplat())
        return op.emitOpError() << "expected a constant with equal elements "
                                   "within a kernel";
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

/// The exported function: takes the addresses from an array, and calls the
/// body.
static void emitExport(ImplicitLocOpBuilder &b, StringRef symbol,
                       func::FuncOp body, unsigned arguments) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  auto function = func::FuncOp::create(
      b, symbol, b.getFunctionType({pointer, i64, i64}, i64));
  OpBuilder::InsertionGuard guard(b);
  Block *block = function.addEntryBlock();
  b.setInsertionPointToStart(block);
  Values operands;
  for (unsigned index = 0; index < arguments; ++index) {
    Value address = LLVM::GEPOp::create(
        b, pointer, pointer, block->getArgument(0),
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    operands.push_back(LLVM::LoadOp::create(b, pointer, address));
  }
  operands.push_back(block->getArgument(1));
  operands.push_back(block->getArgument(2));
  auto call = func::CallOp::create(b, body, operands);
  func::ReturnOp::create(b, call.getResults());
}

void cpu::emitFunction(
    ModuleOp module, StringRef symbol, unsigned arguments, bool refuses,
    llvm::function_ref<void(RowEmitter &, ValueRange, Value, Value)> emit) {
  unsigned addresses = arguments + refuses;
  auto b = ImplicitLocOpBuilder::atBlockEnd(module.getLoc(), module.getBody());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  SmallVector<Type> types(addresses, pointer);
  types.append({i64, i64});
  auto body = func::FuncOp::create(b, (symbol + kBodySuffix).str(),
                                   b.getFunctionType(types, i64));
  Block *block = body.addEntryBlock();
  emitExport(b, symbol, body, addresses);
  b.setInsertionPointToStart(block);
  Value zero = arith::ConstantIntOp::create(b, 0, 64);
  auto end = func::ReturnOp::create(b, zero);
  RowEmitter emitter(end, refuses ? block->getArgument(arguments) : Value());
  emit(emitter, block->getArguments().take_front(arguments),
       block->getArgument(addresses), block->getArgument(addresses + 1));
  end->setOperand(0, emitter.refusal());
}

/// The results that are written by the same loops.
namespace {
struct Nest {
  SmallVector<int64_t> row, inner;
  SmallVector<unsigned> results;
  SmallVector<DividedLoop> loops; ///< over `inner`
};
} // namespace

static std::vector<Nest> groupResults(ValueRange results, int64_t rows) {
  std::vector<Nest> nests;
  for (auto [index, result] : llvm::enumerate(results)) {
    ArrayRef<int64_t> shape = typeOf(result).getShape();
    if (llvm::is_contained(shape, 0))
      continue; // nothing to write
    unsigned dims = *plan::countRowDims(shape, rows);
    ArrayRef<int64_t> row = shape.take_front(dims),
                      inner = shape.drop_front(dims);
    auto found = llvm::find_if(nests, [&](const Nest &nest) {
      return ArrayRef<int64_t>(nest.row) == row &&
             ArrayRef<int64_t>(nest.inner) == inner;
    });
    if (found == nests.end()) {
      nests.push_back(
          {SmallVector<int64_t>(row), SmallVector<int64_t>(inner), {}, {}});
      found = std::prev(nests.end());
      for (int64_t size : inner)
        found->loops.push_back({0, size});
    }
    found->results.push_back(index);
  }
  return nests;
}

/// The sums over leading dimensions whose results' elements are the rows.
static SmallVector<nn::ReduceOp> getColumnReductions(func::FuncOp kernel,
                                                     int64_t rows) {
  SmallVector<nn::ReduceOp> columns;
  for (auto reduce : kernel.getBody().front().getOps<nn::ReduceOp>()) {
    auto source = cast<KernelSourceOpInterface>(reduce.getOperation());
    if (!source.isRowLocal(0, rows) && source.reducesColumns(rows))
      columns.push_back(reduce);
  }
  return columns;
}

/// Columns are summed up in panels, a line of all of them at a time: the lines'
/// elements lie side by side, as the sums in scratch do.
static void emitPanels(RowEmitter &e, ArrayRef<nn::ReduceOp> columns,
                       Value first, Value last,
                       llvm::function_ref<void(Value, Value)> emitRows) {
  constexpr int64_t kPanel = 512;
  SmallVector<Value> sums;
  for (nn::ReduceOp reduce : columns)
    sums.push_back(e.scratch(
        e.getComputeType(typeOf(reduce.getInput()).getElementType()), kPanel));
  Value zero = e.constantIndex(0), panel = e.constantIndex(kPanel);
  ImplicitLocOpBuilder &b = e.builder();
  Value panels = arith::CeilDivUIOp::create(
      b, arith::SubIOp::create(b, last, first), panel);
  e.loop(zero, panels, {}, [&](Value number, ValueRange) {
    ImplicitLocOpBuilder &b = e.builder();
    Value begin = e.add(first, e.mul(number, kPanel));
    Value end = arith::MinSIOp::create(b, last, e.add(begin, panel));
    Value width = arith::SubIOp::create(b, end, begin);
    e.loop(zero, width, {}, [&](Value at, ValueRange) {
      for (auto [reduce, sum] : llvm::zip_equal(columns, sums)) {
        Type type =
            e.getComputeType(typeOf(reduce->getOperand(0)).getElementType());
        Value none = arith::ConstantOp::create(
            e.builder(), e.builder().getFloatAttr(type, 0));
        e.storeScratch(none, sum, at);
      }
      return Values();
    });
    for (auto [reduce, sum] : llvm::zip_equal(columns, sums)) {
      nn::ReduceOp op = reduce;
      Value kept = sum;
      ArrayRef<int64_t> shape = typeOf(op.getInput()).getShape();
      size_t leading = op.getDims().size();
      ArrayRef<int64_t> rest = shape.drop_front(leading);
      Type type = e.getComputeType(typeOf(op.getInput()).getElementType());
      e.loops(
          shape.take_front(leading), {}, [&](ArrayRef<Value> line, ValueRange) {
            e.loop(zero, width, {}, [&](Value at, ValueRange) {
              Values index(line);
              llvm::append_range(index, e.delinearize(e.add(begin, at), rest));
              Value x = e.element(op.getInput(), index);
              Value before = e.loadScratch(kept, at, type);
              e.storeScratch(arith::AddFOp::create(e.builder(), before, x),
                             kept, at);
              return Values();
            });
            return Values();
          });
      SmallVector<int64_t> strides(rest.size(), 1);
      for (size_t dim = rest.size(); dim-- > 1;)
        strides[dim - 1] = strides[dim] * rest[dim];
      e.bindComputed(op.getResult(), kept, begin, strides);
    }
    emitRows(begin, end);
    return Values();
  });
}

/// The scatter that a kernel consists of, if it adds to its table in place, a
/// row at a time: rows that no index names stay as they are.
static nn::ScatterAddOp getScatterInPlace(const KernelInstance &instance,
                                          int64_t rows) {
  func::FuncOp kernel = instance.function;
  Operation *end = kernel.getBody().front().getTerminator();
  auto scatter = end->getNumOperands() == 1
                     ? end->getOperand(0).getDefiningOp<nn::ScatterAddOp>()
                     : nn::ScatterAddOp();
  auto table =
      scatter ? dyn_cast<BlockArgument>(scatter.getInit()) : BlockArgument();
  if (!table || instance.inPlace[table.getArgNumber()] != 0 ||
      scatter.getDim() != 0 || scatter.getBatchDims() != 0 ||
      scatter.getType().getDimSize(0) != rows)
    return {};
  return scatter;
}

/// Bodies of one nest: what a kernel may grow to by dividing loops.
static constexpr int64_t kMostBodies = 16;

/// Divides the loops of the nests; false if nothing is left to divide.
static bool divideLoops(std::vector<Nest> &nests,
                        ArrayRef<LoopDivision> wanted) {
  auto count = [](const Nest &nest) {
    int64_t bodies = 1;
    for (const DividedLoop &loop : nest.loops)
      bodies *= loop.countBodies();
    return bodies;
  };
  bool changed = false;
  for (const LoopDivision &division : wanted) {
    DividedLoop &loop = *division.loop;
    if (!loop.isWhole())
      continue; // Divided otherwise: it is asked again.
    DividedLoop whole = loop;
    if (division.factor)
      loop.split(division.factor);
    else
      loop.cut(division.at);
    if (llvm::any_of(nests,
                     [&](Nest &nest) { return count(nest) > kMostBodies; }))
      loop = whole;
    else
      changed = true;
  }
  return changed;
}

/// Emits the functions of an instance with the loops of `nests`; returns the
/// divisions of them that it would gain from. `used` becomes at least what it
/// keeps in scratch.
static std::vector<LoopDivision> emitNests(ModuleOp module,
                                           const KernelInstance &instance,
                                           std::vector<Nest> &nests,
                                           int64_t &used) {
  func::FuncOp kernel = instance.function;
  auto results = kernel.getBody().front().getTerminator()->getOperands();
  int64_t rows = getRows(kernel);
  unsigned inputs = kernel.getNumArguments();
  auto emit = [&](RowEmitter &e, ValueRange addresses, Value first,
                  Value last) {
    for (unsigned input = 0; input < inputs; ++input) {
      int same = instance.inPlace[input];
      e.bind(kernel.getArgument(input),
             {addresses[same < 0 ? input : inputs + same],
              instance.strides[input]});
    }
    nn::ScatterAddOp scatter = getScatterInPlace(instance, rows);
    auto emitRow = [&](Value row) {
      for (Nest &nest : nests) {
        Values lead = e.delinearize(row, nest.row);
        e.loops(nest.loops, [&](ArrayRef<Value> inner) {
          Values index(lead);
          llvm::append_range(index, inner);
          Values elements;
          for (unsigned result : nest.results)
            elements.push_back(e.element(results[result], index));
          for (auto [result, element] :
               llvm::zip_equal(nest.results, elements)) {
            RankedTensorType type = typeOf(results[result]);
            Value offset = e.offset(index, type.getShape(),
                                    instance.strides[inputs + result]);
            e.store(element, addresses[inputs + result], offset,
                    type.getElementType());
          }
        });
      }
    };
    if (rows == 1) {
      emitRow(e.constantIndex(0));
      return;
    }
    // Most rows are named by no index, and most chunks by few.
    Values near;
    if (scatter)
      near = element::findUpdatesWithin(e, scatter, first, last);
    if (scatter && !near[0])
      near.clear();
    auto emitWhereNamed = [&](Value row) {
      Value count =
          scatter ? element::findUpdates(e, scatter, row, near)[1] : Value();
      if (!count)
        return emitRow(row);
      Value one = e.constantIndex(1);
      Value times = arith::MinSIOp::create(e.builder(), count, one);
      e.loop(e.constantIndex(0), times, {}, [&](Value, ValueRange) {
        emitRow(row);
        return Values();
      });
    };
    auto emitRows = [&](Value begin, Value end) {
      e.loop(begin, end, {}, [&](Value row, ValueRange) {
        emitWhereNamed(row);
        return Values();
      });
    };
    SmallVector<nn::ReduceOp> columns = getColumnReductions(kernel, rows);
    if (columns.empty())
      emitRows(first, last);
    else
      emitPanels(e, columns, first, last, emitRows);
  };
  std::vector<LoopDivision> wanted;
  bool hasScratch = instance.threadScratch > 0;
  emitFunction(
      module, instance.symbol, inputs + results.size() + hasScratch,
      /*refuses=*/true,
      [&](RowEmitter &e, ValueRange addresses, Value first, Value last) {
        if (hasScratch)
          e.giveScratch(addresses.back(), instance.threadScratch);
        emit(e, addresses, first, last);
        wanted = e.getWanted();
        used = std::max(used, e.getUsedScratch());
      });
  return wanted;
}

int64_t cpu::emitKernel(ModuleOp module, const KernelInstance &instance) {
  func::FuncOp kernel = instance.function;
  std::vector<Nest> nests = groupResults(
      kernel.getBody().front().getTerminator()->getOperands(), getRows(kernel));
  int64_t used = 0;
  while (divideLoops(nests, emitNests(module, instance, nests, used)))
    for (StringRef suffix : {StringRef(), StringRef(kBodySuffix)})
      module.lookupSymbol((instance.symbol + suffix).str())->erase();
  return used;
}
