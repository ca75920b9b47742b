// The scalar code of random numbers: Philox in 64-bit integers whose upper
// halves are zero, which vectorise as 32-bit products.

#include "Group.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace accel;

namespace {
struct RandomUniformElement
    : ElementSourceOpInterface::ExternalModel<RandomUniformElement,
                                              nn::RandomUniformOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    Value counter = e.element(op->getOperand(0), index);
    Value key = e.element(op->getOperand(1), index);
    ImplicitLocOpBuilder &b = e.builder();
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(b, value, 64);
    };
    Value low = number(0xFFFFFFFF), half = number(32);
    auto lower = [&](Value x) -> Value {
      return arith::AndIOp::create(b, x, low);
    };
    auto upper = [&](Value x) -> Value {
      return arith::ShRUIOp::create(b, x, half);
    };
    auto mix = [&](Value x, Value y, Value z) -> Value {
      return arith::XOrIOp::create(b, arith::XOrIOp::create(b, x, y), z);
    };
    Value words[4] = {lower(counter), upper(counter), number(0), number(0)};
    Value keys[2] = {lower(key), upper(key)};
    for (int round = 0; round < 10; ++round) {
      Value first = arith::MulIOp::create(b, words[0], number(0xD2511F53));
      Value second = arith::MulIOp::create(b, words[2], number(0xCD9E8D57));
      words[0] = mix(upper(second), words[1], keys[0]);
      words[2] = mix(upper(first), words[3], keys[1]);
      words[1] = lower(second);
      words[3] = lower(first);
      keys[0] = lower(arith::AddIOp::create(b, keys[0], number(0x9E3779B9)));
      keys[1] = lower(arith::AddIOp::create(b, keys[1], number(0xBB67AE85)));
    }
    Value bits = arith::ShRUIOp::create(b, words[0], number(8));
    Value asFloat = arith::SIToFPOp::create(b, b.getF32Type(), bits);
    Value scale = arith::ConstantOp::create(b, b.getF32FloatAttr(0x1p-24f));
    return arith::MulFOp::create(b, asFloat, scale);
  }
};
} // namespace

void element::attachRandomModels(MLIRContext *context) {
  nn::RandomUniformOp::attachInterface<RandomUniformElement>(*context);
}
