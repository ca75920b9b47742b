// Places every value in the outermost loop that can hold it.

#include "RowEmitter.h"

#include "Device/CPU/Kernel.h"
#include "NarrowNumbers.h"
#include "ScalarMath.h"
#include "dialects/Interfaces/ElementSource.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace accel;

/// A loop body (or the function's) while it is being filled. New ops go before
/// `end`: the terminator, or the inner loop that is open at the time.
struct RowEmitter::Scope {
  unsigned depth;
  Operation *end;
  std::map<Key, Values> known;
};

RowEmitter::RowEmitter(Operation *end, Value refusal)
    : b(end->getLoc(), end->getContext()), description(refusal) {
  scopes.push_back(std::make_unique<Scope>(Scope{0, end, {}}));
  current = scopes.front().get();
  scopeOfBlock[end->getBlock()] = current;
  enter(current);
}

RowEmitter::~RowEmitter() = default;

void RowEmitter::enter(Scope *scope) {
  current = scope;
  b.setInsertionPoint(scope->end);
}

RowEmitter::Scope *RowEmitter::scopeOf(Value value) {
  Block *block = value.getParentBlock();
  auto found = scopeOfBlock.find(block);
  while (found == scopeOfBlock.end()) {
    block = block->getParentOp()->getBlock();
    found = scopeOfBlock.find(block);
  }
  return found->second;
}

RowEmitter::Scope *RowEmitter::scopeOf(ArrayRef<Value> values) {
  Scope *deepest = scopes.front().get();
  for (Value value : values) {
    Scope *scope = scopeOf(value);
    if (scope->depth > deepest->depth)
      deepest = scope;
  }
  return deepest;
}

RowEmitter::Values RowEmitter::once(const void *key, ArrayRef<Value> index,
                                    function_ref<Values()> emit) {
  Scope *scope = scopeOf(index);
  Key full{key, {}};
  for (Value value : index)
    full.second.push_back(value.getAsOpaquePointer());
  if (auto found = scope->known.find(full); found != scope->known.end())
    return found->second;
  Scope *outer = current;
  enter(scope);
  Values values = emit();
  enter(outer);
  scope->known[full] = values;
  return values;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

void RowEmitter::bind(Value tensor, Memory where) {
  memory[tensor] = std::move(where);
}

Type RowEmitter::getComputeType(Type element) {
  if (element.isF64())
    return b.getF64Type();
  if (isa<FloatType>(element))
    return b.getF32Type();
  return b.getIntegerType(element.getIntOrFloatBitWidth());
}

Type RowEmitter::getStorageType(Type element) {
  if (element.isF64())
    return b.getF64Type();
  if (element.isF32())
    return b.getF32Type();
  if (isa<FloatType>(element))
    return getNarrowStorage(b, element);
  unsigned width = element.getIntOrFloatBitWidth();
  return b.getIntegerType(std::max(width, 8u));
}

static bool isNarrow(Type element) {
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
}

static Value toCompute(ImplicitLocOpBuilder &b, Value stored, Type element) {
  if (isNarrow(element))
    return emitWiden(b, stored, element);
  if (element.isInteger(1)) {
    Value zero = arith::ConstantIntOp::create(b, 0, 8);
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, stored, zero);
  }
  if (unsigned width = element.getIntOrFloatBitWidth(); width < 8)
    return arith::TruncIOp::create(b, b.getIntegerType(width), stored);
  return stored;
}

static Value toStorage(ImplicitLocOpBuilder &b, Value value, Type element) {
  if (isNarrow(element))
    return emitNarrow(b, value, element);
  if (element.isInteger(1) || element.isUnsignedInteger(4) ||
      element.isUnsignedInteger(2))
    return arith::ExtUIOp::create(b, b.getI8Type(), value);
  if (element.isInteger(4) || element.isInteger(2))
    return arith::ExtSIOp::create(b, b.getI8Type(), value);
  return value;
}

Value RowEmitter::round(Value value, Type element) {
  return toCompute(b, toStorage(b, value, element), element);
}

Value RowEmitter::call(ScalarFunction function, ValueRange operands) {
  Value x = operands.front();
  switch (function) {
  case ScalarFunction::Exp:
    return emitExp(b, x);
  case ScalarFunction::ExpOfNonPositive:
    return emitExp(b, x, /*nonPositive=*/true);
  case ScalarFunction::Log:
    return emitLog(b, x);
  case ScalarFunction::Log1p:
    return emitLog1p(b, x);
  case ScalarFunction::Tanh:
    return emitTanh(b, x);
  case ScalarFunction::Erf:
    return emitErf(b, x);
  case ScalarFunction::Sigmoid:
    return emitSigmoid(b, x);
  case ScalarFunction::Sqrt:
    return emitSqrt(b, x);
  case ScalarFunction::Sin:
    return emitLibraryCall(b, "sin", operands);
  case ScalarFunction::Cos:
    return emitLibraryCall(b, "cos", operands);
  case ScalarFunction::Atan:
    return emitLibraryCall(b, "atan", operands);
  case ScalarFunction::Pow:
    return emitLibraryCall(b, "pow", operands);
  case ScalarFunction::Fmod:
    return emitLibraryCall(b, "fmod", operands);
  }
  llvm_unreachable("unknown function");
}

Value RowEmitter::address(Value pointer, Value index, Type type) {
  return LLVM::GEPOp::create(b, pointer.getType(), type, pointer,
                             ArrayRef<LLVM::GEPArg>{index},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value RowEmitter::load(Value pointer, Value index, Type element) {
  Type type = getStorageType(element);
  Value stored = LLVM::LoadOp::create(b, type, address(pointer, index, type));
  return toCompute(b, stored, element);
}

void RowEmitter::store(Value value, Value pointer, Value index, Type element) {
  LLVM::StoreOp::create(b, toStorage(b, value, element),
                        address(pointer, index, getStorageType(element)));
}

void RowEmitter::bindComputed(Value tensor, Value pointer, Value offset,
                              ArrayRef<int64_t> strides) {
  computed[tensor] = {pointer, offset, SmallVector<int64_t>(strides)};
}

Value RowEmitter::element(Value tensor, ArrayRef<Value> index) {
  return once(tensor.getAsOpaquePointer(), index, [&]() -> Values {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (auto found = memory.find(tensor); found != memory.end()) {
      Memory where = found->second;
      return {load(where.pointer, offset(index, type.getShape(), where.strides),
                   type.getElementType())};
    }
    if (auto found = computed.find(tensor); found != computed.end()) {
      Computed where = found->second;
      Value position = offset(index, type.getShape(), where.strides);
      position = arith::SubIOp::create(b, position, where.offset);
      return {loadScratch(where.pointer, position,
                          getComputeType(type.getElementType()))};
    }
    auto source = cast<ElementSourceOpInterface>(tensor.getDefiningOp());
    return {source.emitElement(*this, index)};
  })[0];
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

Value RowEmitter::constantIndex(int64_t value) {
  Value &known = constants[value];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(scopes.front()->end->getBlock());
    known = arith::ConstantIntOp::create(b, value, 64);
  }
  return known;
}

std::optional<int64_t> RowEmitter::getConstant(Value value) {
  if (auto constant = value.getDefiningOp<arith::ConstantIntOp>())
    return constant.value();
  return std::nullopt;
}

Value RowEmitter::arithmetic(char kind, Value lhs, Value rhs) {
  std::optional<int64_t> x = getConstant(lhs), y = getConstant(rhs);
  if (x && y)
    return constantIndex(kind == '+'   ? *x + *y
                         : kind == '*' ? *x * *y
                         : kind == '/' ? *x / *y
                                       : *x % *y);
  if ((y == 0 && kind == '+') || (y == 1 && (kind == '*' || kind == '/')))
    return lhs;
  if (x == 0 && kind == '+')
    return rhs;
  if ((y == 0 && kind == '*') || (y == 1 && kind == '%'))
    return constantIndex(0);
  static const char kinds[] = "+*/%";
  const void *key = &kinds[StringRef(kinds).find(kind)];
  auto flags = arith::IntegerOverflowFlags::nsw;
  return once(key, {lhs, rhs}, [&]() -> Values {
    switch (kind) {
    case '+':
      return {arith::AddIOp::create(b, lhs, rhs, flags)};
    case '*':
      return {arith::MulIOp::create(b, lhs, rhs, flags)};
    case '/':
      return {arith::DivUIOp::create(b, lhs, rhs)};
    default:
      return {arith::RemUIOp::create(b, lhs, rhs)};
    }
  })[0];
}

Value RowEmitter::add(Value lhs, Value rhs) {
  Value sum = arithmetic('+', lhs, rhs);
  if (std::optional<int64_t> by = getConstant(rhs);
      by && sum != lhs && !getConstant(sum))
    noteSum(sum, lhs, *by);
  return sum;
}

Value RowEmitter::mul(Value lhs, int64_t rhs) {
  return arithmetic('*', lhs, constantIndex(rhs));
}

Value RowEmitter::div(Value lhs, int64_t rhs) {
  if (auto known = divide(lhs, rhs))
    return known->first;
  Value result = arithmetic('/', lhs, constantIndex(rhs));
  if (rhs != 1 && !getConstant(result))
    quotients[result] = {lhs, rhs};
  return result;
}

Value RowEmitter::rem(Value lhs, int64_t rhs) {
  if (auto known = divide(lhs, rhs))
    return known->second;
  Value result = arithmetic('%', lhs, constantIndex(rhs));
  if (!getConstant(result))
    remainders[result] = {lhs, rhs};
  return result;
}

Value RowEmitter::linearize(ArrayRef<Value> index, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return offset(index, shape, strides);
}

RowEmitter::Values RowEmitter::delinearize(Value position,
                                           ArrayRef<int64_t> shape) {
  Values index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (shape[dim] == 1) {
      index[dim] = constantIndex(0);
      continue;
    }
    bool first = llvm::all_of(shape.take_front(dim),
                              [](int64_t size) { return size == 1; });
    index[dim] = first ? position : rem(position, shape[dim]);
    if (!first)
      position = div(position, shape[dim]);
  }
  return index;
}

Value RowEmitter::offset(ArrayRef<Value> index, ArrayRef<int64_t> shape,
                         ArrayRef<int64_t> strides) {
  SmallVector<std::pair<Value, int64_t>> terms;
  for (size_t dim = 0; dim < index.size(); ++dim) {
    Value at = index[dim];
    int64_t stride = strides[dim];
    if (shape[dim] == 1 || stride == 0)
      continue;
    // x / n · (n · s) + x mod n · s = x · s.
    while (!terms.empty()) {
      auto quotient = quotients.find(terms.back().first);
      auto remainder = remainders.find(at);
      if (quotient == quotients.end() || remainder == remainders.end() ||
          quotient->second != remainder->second ||
          terms.back().second != quotient->second.second * stride)
        break;
      at = quotient->second.first;
      terms.pop_back();
    }
    terms.push_back({at, stride});
  }
  for (auto [at, stride] : terms)
    wantSplit(at);
  // Outer loops' terms first, so that their sum leaves the inner loops.
  llvm::stable_sort(terms, [&](auto &lhs, auto &rhs) {
    return scopeOf(lhs.first)->depth < scopeOf(rhs.first)->depth;
  });
  Value sum = constantIndex(0);
  for (auto [at, stride] : terms)
    sum = add(sum, mul(at, stride));
  return sum;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

RowEmitter::Values
RowEmitter::loop(Value begin, Value end, ValueRange initial,
                 function_ref<Values(Value, ValueRange)> body) {
  Scope *outer = current;
  Operation *outerEnd = outer->end;
  auto loop = scf::ForOp::create(b, begin, end, constantIndex(1), initial);
  Block *block = loop.getBody();
  if (!initial.empty()) {
    b.setInsertionPointToEnd(block);
    scf::YieldOp::create(b, loop.getRegionIterArgs());
  }
  outer->end = loop;
  scopes.push_back(std::make_unique<Scope>(
      Scope{outer->depth + 1, block->getTerminator(), {}}));
  Scope *inner = scopes.back().get();
  scopeOfBlock[block] = inner;
  enter(inner);
  Values last = body(loop.getInductionVar(), loop.getRegionIterArgs());
  block->getTerminator()->setOperands(last);
  outer->end = outerEnd;
  enter(outer);
  return Values(loop.getResults());
}

RowEmitter::Values
RowEmitter::loops(ArrayRef<int64_t> shape, ValueRange initial,
                  function_ref<Values(ArrayRef<Value>, ValueRange)> body) {
  Values index;
  std::function<Values(ValueRange)> nest = [&](ValueRange carried) -> Values {
    if (index.size() == shape.size())
      return body(index, carried);
    int64_t size = shape[index.size()];
    auto step = [&](Value at, ValueRange inner) {
      index.push_back(at);
      Values last = nest(inner);
      index.pop_back();
      return last;
    };
    if (size == 1)
      return step(constantIndex(0), carried);
    return loop(constantIndex(0), constantIndex(size), carried, step);
  };
  return nest(initial);
}

//===----------------------------------------------------------------------===//
// Scratch and refusals
//===----------------------------------------------------------------------===//

Value RowEmitter::scratch(Type type, int64_t elements) {
  int64_t bytes = elements * ((type.getIntOrFloatBitWidth() + 7) / 8);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  OpBuilder::InsertionGuard guard(b);
  if (stackBytes + bytes <= kStackLimit) {
    stackBytes += bytes;
    Value size = constantIndex(elements);
    b.setInsertionPointAfterValue(size);
    return LLVM::AllocaOp::create(b, pointer, type, size, /*alignment=*/64);
  }
  int64_t begin = llvm::alignTo(givenBytes, rt::cpu::kScratchAlignment);
  if (bytes > mostGiven - begin)
    return {};
  givenBytes = begin + bytes;
  Value place = constantIndex(begin);
  b.setInsertionPointAfterValue(place);
  return address(given, place, b.getI8Type());
}

void RowEmitter::giveScratch(Value pointer, int64_t bytes) {
  given = pointer;
  mostGiven = bytes;
}

Value RowEmitter::loadScratch(Value pointer, Value index, Type type) {
  return LLVM::LoadOp::create(b, type, address(pointer, index, type));
}

void RowEmitter::storeScratch(Value value, Value pointer, Value index) {
  LLVM::StoreOp::create(b, value, address(pointer, index, value.getType()));
}

void RowEmitter::refuse(Value bad, Value position, Value value, int64_t least,
                        int64_t end, bool isLabel) {
  assert(description && "expected a kernel that may refuse");
  if (!refused) {
    refused = scratch(b.getI64Type(), 1);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(refused);
    Value zero = arith::ConstantIntOp::create(b, 0, 64);
    LLVM::StoreOp::create(b, zero, refused);
  }
  auto branch = scf::IfOp::create(b, bad, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  Value zero = arith::ConstantIntOp::create(b, 0, 64);
  Value one = arith::ConstantIntOp::create(b, 1, 64);
  Value code = arith::AddIOp::create(b, position, one);
  Value old = LLVM::LoadOp::create(b, b.getI64Type(), refused);
  Value none = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, old, zero);
  Value less = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, code, old);
  Value take = arith::OrIOp::create(b, none, less);
  LLVM::StoreOp::create(b, arith::SelectOp::create(b, take, code, old),
                        refused);
  // The fields of a Refusal, in their order.
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantIntOp::create(b, number, 64);
  };
  for (auto [field, now] : llvm::enumerate(
           Values{value, constant(least), constant(end), constant(isLabel)})) {
    Value place = constant(static_cast<int64_t>(field));
    Value before = loadScratch(description, place, b.getI64Type());
    storeScratch(arith::SelectOp::create(b, take, now, before), description,
                 place);
  }
}

Value RowEmitter::refusal() {
  if (!refused)
    return constantIndex(0);
  return LLVM::LoadOp::create(b, b.getI64Type(), refused);
}
