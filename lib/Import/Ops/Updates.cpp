// Import of the optimizers of ai.onnx.preview.training: one update of any
// number of tensors, given their gradients. The formulas are the schema's.

#include "lib/Import/OpTable.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// Operands are R, T and `groups` lists of tensors, as many of each; null after
/// an error. Returns how many.
static int64_t countTensors(Importer &n, int64_t groups) {
  int64_t lists = n.operandCount() - 2;
  if (lists > 0 && lists % groups == 0)
    return lists / groups;
  n.error() << "expected a rate, a count and " << groups
            << " lists of as many tensors, found " << n.operandCount()
            << " operands";
  return 0;
}

static Value add(Importer &n, Value x, Value y) {
  return n.binary<nn::AddOp>(x, y);
}
static Value multiply(Importer &n, Value x, Value y) {
  return n.binary<nn::MulOp>(x, y);
}
/// share · x + (1 - share) · y
static Value average(Importer &n, Value x, Value y, double share) {
  return add(n, n.scale(x, share), n.scale(y, 1 - share));
}
/// x - rate · direction
static Value descend(Importer &n, Value x, Value rate, Value direction) {
  return n.binary<nn::SubOp>(x, multiply(n, rate, direction));
}
/// The count of updates as the rate's type.
static Value readCount(Importer &n) {
  return n.cast(n.operand(1), Importer::element(n.operand(0)));
}
static Value isLater(Importer &n, Value count) {
  return n.compare(nn::ComparePredicate::gt, count, n.splatLike(count, 0));
}

static LogicalResult importAdam(Importer &n) {
  double alpha = n.floatAttr("alpha", 0.9f), beta = n.floatAttr("beta", 0.999f),
         epsilon = n.floatAttr("epsilon", 1e-6f),
         before = n.floatAttr("norm_coefficient", 0),
         after = n.floatAttr("norm_coefficient_post", 0);
  int64_t count = countTensors(n, 4);
  Value rate = n.operand(0), updates = readCount(n);
  auto rest = [&](double share) {
    Value power = n.binary<nn::PowOp>(n.splatLike(updates, share), updates);
    return n.binary<nn::SubOp>(n.splatLike(power, 1), power);
  };
  Value corrected = n.binary<nn::DivOp>(
      multiply(n, rate, n.unary<nn::SqrtOp>(rest(beta))), rest(alpha));
  rate = n.select(isLater(n, updates), corrected, rate);
  for (int64_t index = 0; index < count && !n.hasFailed(); ++index) {
    auto tensor = [&](int64_t list) {
      return n.operand(2 + list * count + index);
    };
    Value x = tensor(0), gradient = add(n, n.scale(x, before), tensor(1));
    Value first = average(n, tensor(2), gradient, alpha),
          second = average(n, tensor(3), multiply(n, gradient, gradient), beta);
    Value root = n.plus(n.unary<nn::SqrtOp>(second), epsilon);
    Value next = descend(n, x, rate, n.binary<nn::DivOp>(first, root));
    n.setResult(index, n.scale(next, 1 - after));
    n.setResult(count + index, first);
    n.setResult(2 * count + index, second);
  }
  return n.finish();
}

static LogicalResult importMomentum(Importer &n) {
  double alpha = n.floatAttr("alpha", 0), beta = n.floatAttr("beta", 0),
         norm = n.floatAttr("norm_coefficient", 0);
  std::string mode = n.stringAttr("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    return n.error() << "expected 'mode' to be standard or nesterov, found '"
                     << mode << "'";
  int64_t count = countTensors(n, 3);
  Value rate = n.operand(0), updates = readCount(n);
  Value share = n.select(isLater(n, updates), n.splatLike(updates, beta),
                         n.splatLike(updates, 1));
  for (int64_t index = 0; index < count && !n.hasFailed(); ++index) {
    auto tensor = [&](int64_t list) {
      return n.operand(2 + list * count + index);
    };
    Value x = tensor(0), gradient = add(n, n.scale(x, norm), tensor(1));
    Value next =
        add(n, n.scale(tensor(2), alpha), multiply(n, share, gradient));
    Value direction =
        mode == "standard" ? next : add(n, gradient, n.scale(next, alpha));
    n.setResult(index, descend(n, x, rate, direction));
    n.setResult(count + index, next);
  }
  return n.finish();
}

static LogicalResult importAdagrad(Importer &n) {
  double decay = n.floatAttr("decay_factor", 0),
         epsilon = n.floatAttr("epsilon", 1e-6f),
         norm = n.floatAttr("norm_coefficient", 0);
  int64_t count = countTensors(n, 3);
  Value rate = n.binary<nn::DivOp>(n.operand(0),
                                   n.plus(n.scale(readCount(n), decay), 1));
  for (int64_t index = 0; index < count && !n.hasFailed(); ++index) {
    auto tensor = [&](int64_t list) {
      return n.operand(2 + list * count + index);
    };
    Value x = tensor(0), gradient = add(n, n.scale(x, norm), tensor(1));
    Value sum = add(n, tensor(2), multiply(n, gradient, gradient));
    Value root = n.plus(n.unary<nn::SqrtOp>(sum), epsilon);
    n.setResult(index,
                descend(n, x, rate, n.binary<nn::DivOp>(gradient, root)));
    n.setResult(count + index, sum);
  }
  return n.finish();
}

ArrayRef<OpRow> accel::import::updateOps() {
  static const llvm::StringLiteral domain = "ai.onnx.preview.training";
  static const OpRow rows[] = {
      {domain, "Adagrad", 1, 2, -1, importAdagrad},
      {domain, "Adam", 1, 2, -1, importAdam},
      {domain, "Momentum", 1, 2, -1, importMomentum},
  };
  return rows;
}
