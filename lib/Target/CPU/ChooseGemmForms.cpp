// Gives every product and attention of a plan its form and scratch.

#include "accel/Target/CPU/Passes.h"

#include "Device/CPU/Gemm/Attention.h"
#include "Device/CPU/Gemm/Gemm.h"
#include "accel/Target/CPU/Kernels.h"
#include "dialects/Plan/Plan.h"
#include "mlir/IR/Builders.h"
#include <thread>

using namespace mlir;

namespace accel::cpu {
#define GEN_PASS_DEF_CHOOSEGEMMFORMSPASS
#include "accel/Target/CPU/Passes.h.inc"

namespace {
rt::cpu::GemmType typeOf(Type type) {
  return type.isF64()    ? rt::cpu::GemmType::F64
         : type.isBF16() ? rt::cpu::GemmType::BF16
                         : rt::cpu::GemmType::F32;
}
rt::cpu::GemmDesc::Operand operandOf(plan::ViewAttr view) {
  return {view.getShape().vec(), view.getStrides().vec()};
}
int64_t noop(void *const *, int64_t, int64_t) { return 0; }

struct ChooseGemmFormsPass
    : impl::ChooseGemmFormsPassBase<ChooseGemmFormsPass> {
  using Base::Base;

  plan::ViewAttr addScratch(plan::ProgramOp program, Operation *op,
                            int64_t bytes) {
    OpBuilder builder(&getContext());
    auto body = op->getParentOfType<plan::BodyOp>();
    builder.setInsertionPoint(body);
    std::string name = "scratch_" + std::to_string(count++);
    plan::BufferOp::create(builder, op->getLoc(), name, plan::Role::scratch,
                           plan::Space::device, -1, bytes, 1, bytes, nullptr,
                           nullptr, nullptr, nullptr);
    return plan::ViewAttr::get(&getContext(),
                               FlatSymbolRefAttr::get(&getContext(), name), 0,
                               -1, {}, builder.getI8Type(), {bytes}, {1});
  }

  void runOnOperation() override {
    Builder b(&getContext());
    for (auto program : getOperation().getOps<plan::ProgramOp>()) {
      int64_t n =
          threads ? threads.getValue()
                  : std::max<int64_t>(1, std::thread::hardware_concurrency() /
                                             program.getRanks());
      auto result = program.walk([&](Operation *op) {
        if (auto gemm = dyn_cast<plan::GemmOp>(op)) {
          auto desc = rt::cpu::GemmDesc::ofViews(
              typeOf(gemm.getA().getElement()),
              typeOf(gemm.getC().getElement()), operandOf(gemm.getA()),
              operandOf(gemm.getB()), operandOf(gemm.getC()),
              gemm.getBias().has_value(), gemm.getAccumulate());
          rt::cpu::GemmForm form;
          int64_t parts = n * 2;
          if (desc.batch.empty())
            form.chunkColumns = (desc.n + parts - 1) / parts;
          std::unique_ptr<rt::cpu::Gemm> made;
          if (auto status = rt::cpu::Gemm::create(desc, form, 1, made);
              !status.ok())
            return op->emitOpError() << status.message(),
                   WalkResult::interrupt();
          gemm.setFormAttr(b.getDictionaryAttr(
              {b.getNamedAttr("chunk_columns",
                              b.getI64IntegerAttr(form.chunkColumns)),
               b.getNamedAttr("chunk_rows",
                              b.getI64IntegerAttr(form.chunkRows)),
               b.getNamedAttr("packed", b.getI64IntegerAttr(0))}));
          if (made->scratchBytes())
            gemm.setScratchAttr(
                addScratch(program, op, made->scratchBytes() * n));
        } else if (auto attention = dyn_cast<plan::AttentionOp>(op)) {
          rt::cpu::AttentionDesc desc;
          desc.type = typeOf(attention.getQuery().getElement());
          auto q = attention.getQuery().getShape(),
               k = attention.getKey().getShape(),
               v = attention.getValue().getShape();
          desc.batch = q[0], desc.heads = q[1], desc.queries = q[2],
          desc.width = q[3];
          desc.groups = k[1], desc.keys = k[2], desc.valueWidth = v[3];
          desc.causal = attention.getCausal();
          for (int i = 0; i < 3; ++i) {
            desc.query[i] = attention.getQuery().getStrides()[i];
            desc.key[i] = attention.getKey().getStrides()[i];
            desc.value[i] = attention.getValue().getStrides()[i];
            desc.output[i] = attention.getOutput().getStrides()[i];
          }
          rt::cpu::AttentionForm form{64};
          std::unique_ptr<rt::cpu::Attention> made;
          if (auto status =
                  rt::cpu::Attention::create(desc, form, noop, 1, made);
              !status.ok())
            return op->emitOpError() << status.message(),
                   WalkResult::interrupt();
          attention.setFormAttr(b.getDictionaryAttr(
              {b.getNamedAttr("block_queries", b.getI64IntegerAttr(64))}));
          attention.setScratchAttr(
              addScratch(program, op, made->scratchBytes() * n));
        }
        return WalkResult::advance();
      });
      if (result.wasInterrupted())
        return signalPassFailure();
    }
  }
  int count = 0;
};
} // namespace
} // namespace accel::cpu
