// Writes down how each product, attention and kernel of a plan is computed, and
// asks for the scratch and the packed weights which that takes.

#include "PlanParts.h"

#include "Device/CPU/Gemm/AttentionGrad.h"
#include "Device/CPU/Gemm/Convolution.h"
#include "Device/CPU/Gemm/GroupedGemm.h"
#include "Device/CPU/Kernel.h"
#include "GemmForms.h"
#include "Kernels.h"
#include "dialects/NN/Causal.h"
#include "dialects/Plan/Offloaded.h"
#include "dialects/Plan/Plan.h"
#include "lib/Plan/BufferTable.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <mutex>

using namespace mlir;

namespace accel::cpu {
namespace {
/// Queries per block of attention: their scores stay in the second level of
/// cache, and a causal mask hides whole blocks of keys.
constexpr int64_t kBlockQueries = 64;

std::optional<rt::cpu::GemmType> getType(Type type) {
  if (type.isF32())
    return rt::cpu::GemmType::F32;
  if (type.isBF16())
    return rt::cpu::GemmType::BF16;
  if (type.isF64())
    return rt::cpu::GemmType::F64;
  if (type.isF16())
    return rt::cpu::GemmType::F16;
  if (isa<Float8E4M3FNType>(type))
    return rt::cpu::GemmType::F8E4M3FN;
  if (isa<Float8E5M2Type>(type))
    return rt::cpu::GemmType::F8E5M2;
  return std::nullopt;
}

rt::cpu::GemmDesc::Operand getOperand(plan::ViewAttr view) {
  return {view.getShape().vec(), view.getStrides().vec()};
}

/// What a preparation depends on, as numbers: products of equal shape, as the
/// blocks of a model have, are prepared once.
class Key {
public:
  template <class... Numbers> Key &add(Numbers... numbers) {
    (values.push_back(static_cast<int64_t>(numbers)), ...);
    return *this;
  }
  template <class List> Key &addList(const List &list) {
    values.push_back(static_cast<int64_t>(list.size()));
    values.insert(values.end(), list.begin(), list.end());
    return *this;
  }
  bool operator<(const Key &other) const { return values < other.values; }

private:
  std::vector<int64_t> values;
};

Key keyOf(const rt::cpu::GemmDesc &desc, const GemmUse &use) {
  return Key()
      .add(desc.type, desc.getTypeOfB(), desc.outType, desc.m, desc.n, desc.k,
           desc.aRow, desc.aCol, desc.bRow, desc.bCol, desc.cRow, desc.bias,
           desc.accumulate, use.constantWeights, use.threads)
      .addList(desc.batch)
      .addList(desc.aBatch)
      .addList(desc.bBatch)
      .addList(desc.cBatch);
}

Key keyOf(const rt::cpu::ConvolutionDesc &desc) {
  return Key()
      .add(desc.kind, desc.type, desc.batch, desc.groups, desc.channels,
           desc.outChannels)
      .addList(desc.in)
      .addList(desc.window)
      .addList(desc.out)
      .addList(desc.stride)
      .addList(desc.dilation)
      .addList(desc.low)
      .addList(desc.x)
      .addList(desc.y)
      .addList(desc.w);
}

Key keyOf(const rt::cpu::AttentionDesc &desc) {
  return Key()
      .add(desc.type, desc.batch, desc.heads, desc.groups, desc.queries,
           desc.keys, desc.width, desc.valueWidth, desc.causal, desc.diagonal)
      .addList(desc.query)
      .addList(desc.key)
      .addList(desc.value)
      .addList(desc.output)
      .addList(desc.mask);
}

Key keyOf(const rt::cpu::AttentionGradDesc &desc) {
  return keyOf(desc.forward)
      .addList(desc.queryGradient)
      .addList(desc.keyGradient)
      .addList(desc.valueGradient)
      .addList(desc.result)
      .add(desc.zeroMaskedRows);
}

/// Preparing an attention asks for its softmax; only running it calls it.
int64_t neverCalled(void *const *, int64_t, int64_t) { return 0; }

} // namespace

class PreparedForms {
public:
  std::mutex mutex; ///< of all else
  std::map<Key, std::unique_ptr<rt::cpu::Gemm>> gemms;
  std::map<Key, std::unique_ptr<rt::cpu::Convolution>> convolutions;
  std::map<Key, std::unique_ptr<rt::cpu::Attention>> attentions;
  std::map<Key, std::unique_ptr<rt::cpu::AttentionGrad>> attentionGrads;
};

std::shared_ptr<PreparedForms> createPreparedForms() {
  return std::make_shared<PreparedForms>();
}

namespace {
/// Adds to one program. Buffers have no offsets yet.
class FormChooser {
public:
  FormChooser(plan::ProgramOp program, int64_t threads, bool measure,
              PreparedForms &prepared)
      : prepared(prepared), program(program), buffers(program),
        builder(program.getContext()), threads(threads), measure(measure),
        memory(getCacheFolder(),
               [loc = program.getLoc()](const llvm::Twine &message) {
                 mlir::emitWarning(loc) << message;
               }) {
    findStateReads();
  }

  LogicalResult choose(plan::GemmOp gemm);
  LogicalResult choose(plan::GroupedGemmOp gemm);
  LogicalResult choose(plan::GroupedGemmGradOp grad);
  LogicalResult choose(plan::ConvOp conv);
  LogicalResult choose(plan::AttentionOp attention);
  LogicalResult choose(plan::AttentionGradOp grad);
  LogicalResult choose(plan::KernelOp kernel);
  /// Weights that only packed products read are not kept beside the packed
  /// ones.
  void releaseWeights();
  /// Says what was measured, if somebody waited for it.
  void reportMeasured();

private:
  void findStateReads();
  plan::ReadOp findStateRead(plan::ViewAttr view);
  plan::ViewAttr addBuffer(Location loc, StringRef name, plan::Role role,
                           int64_t bytes);
  template <class AttentionLike, class Made>
  void record(AttentionLike attention, const Made &made);
  template <class Grouped>
  LogicalResult chooseGrouped(Grouped gemm, rt::cpu::GroupedGemmDesc &desc,
                              bool isGradient);
  LogicalResult pack(plan::GemmOp gemm, plan::ReadOp read,
                     const rt::cpu::GemmDesc &desc, const rt::cpu::Gemm &made);

  PreparedForms &prepared;
  plan::ProgramOp program;
  plan::BufferTable buffers;
  OpBuilder builder;
  int64_t threads;
  bool measure;
  FormMemory memory;
  llvm::StringMap<int64_t> kernelScratch; ///< of a thread, by symbol
  SymbolTableCollection symbols;
  /// The commands that read states which nothing else writes, by buffer.
  llvm::DenseMap<Attribute, plan::ReadOp> stateReads;
  llvm::MapVector<Operation *, plan::ReadOp> packedStates; ///< by buffer
};
} // namespace

plan::ViewAttr FormChooser::addBuffer(Location loc, StringRef name,
                                      plan::Role role, int64_t bytes) {
  OpBuilder detached(program.getContext()); // inserted below
  auto buffer = plan::BufferOp::create(
      detached, loc, builder.getStringAttr(name), role, plan::Space::device,
      /*offset=*/-1, bytes, /*slots=*/1, /*slot_stride=*/bytes,
      /*alias_of=*/nullptr, /*value=*/nullptr, /*source=*/nullptr,
      /*part=*/nullptr);
  buffers.insert(buffer);
  return plan::ViewAttr::get(
      builder.getContext(), FlatSymbolRefAttr::get(buffer.getSymNameAttr()),
      /*offset=*/0, /*axes=*/{}, builder.getI8Type(), {bytes}, {1});
}

/// The command that reads the state which is the whole of `view`'s buffer, if
/// nothing else writes there: a weight that is trained is another in each step,
/// and what was packed at load would be its first value. Nor does a weight that
/// the host keeps have a packed one on the device.
plan::ReadOp FormChooser::findStateRead(plan::ViewAttr view) {
  plan::BufferOp buffer = buffers.lookup(view);
  if (!buffer || buffer.getRole() != plan::Role::state ||
      buffer->hasAttr(plan::kOffloadedAttr) || !view.getAxes().empty())
    return {};
  return stateReads.lookup(view.getBuffer());
}

void FormChooser::findStateReads() {
  llvm::DenseSet<Attribute> changed;
  program.walk([&](plan::CommandOpInterface command) {
    auto read = dyn_cast<plan::ReadOp>(*command);
    for (plan::ViewAttr written : command.getWrites()) {
      if (read && read.getSource() == plan::Source::state)
        stateReads[written.getBuffer()] = read;
      else
        changed.insert(written.getBuffer());
    }
  });
  for (Attribute buffer : changed)
    stateReads.erase(buffer);
}

LogicalResult FormChooser::choose(plan::GemmOp gemm) {
  auto type = getType(gemm.getA().getElement());
  auto outType = getType(gemm.getC().getElement());
  if (!type || !outType)
    return gemm.emitOpError() << "expected a product of floats, found "
                              << gemm.getA().getElement();
  auto desc = rt::cpu::GemmDesc::ofViews(
      *type, *outType, getOperand(gemm.getA()), getOperand(gemm.getB()),
      getOperand(gemm.getC()), gemm.getBias().has_value(),
      gemm.getAccumulate());
  if (gemm.getB().getElement() != gemm.getA().getElement())
    desc.otherType = getType(gemm.getB().getElement());
  plan::ReadOp read = findStateRead(gemm.getB());
  GemmUse use;
  use.constantWeights = read != nullptr;
  use.threads = threads;
  std::unique_ptr<rt::cpu::Gemm> &made = prepared.gemms[keyOf(desc, use)];
  if (!made) {
    rt::cpu::GemmForm form =
        measure ? chooseForm(desc, use, memory) : getDefaultForm(desc, use);
    // One thread's worth is asked for here; its scratch is the same for all.
    if (auto status = rt::cpu::Gemm::create(desc, form, 1, made); !status.ok())
      return gemm.emitOpError() << status.message();
  }
  NamedAttrList attrs;
  const rt::cpu::GemmForm &form = made->form();
  // The library's own choice where nothing is said.
  auto setSize = [&](StringRef name, int64_t size) {
    if (size != 0)
      attrs.set(name, builder.getI64IntegerAttr(size));
  };
  setSize("chunk_rows", form.chunkRows);
  setSize("chunk_columns", form.chunkColumns);
  if (form.bf16x6)
    attrs.set("bf16x6", builder.getUnitAttr());
  if (form.packed) {
    attrs.set("packed", builder.getUnitAttr());
    attrs.set("layout", builder.getDenseI64ArrayAttr(form.layout));
  }
  if (!attrs.empty())
    gemm.setFormAttr(attrs.getDictionary(builder.getContext()));
  if (int64_t bytes = made->scratchBytes())
    gemm.setScratchAttr(addBuffer(gemm.getLoc(), "scratch", plan::Role::scratch,
                                  bytes * threads));
  return form.packed ? pack(gemm, read, desc, *made) : success();
}

LogicalResult FormChooser::pack(plan::GemmOp gemm, plan::ReadOp read,
                                const rt::cpu::GemmDesc &desc,
                                const rt::cpu::Gemm &made) {
  plan::ViewAttr packed = addBuffer(
      gemm.getLoc(), (gemm.getB().getBuffer().getValue() + ".packed").str(),
      plan::Role::packed, made.packedBytes());
  gemm.setPackedAttr(packed);
  NamedAttrList attrs(gemm.getFormAttr());
  attrs.set("m", builder.getI64IntegerAttr(desc.m));
  builder.setInsertionPointAfter(read);
  plan::PackOp::create(builder, gemm.getLoc(), gemm.getB(), packed,
                       attrs.getDictionary(builder.getContext()), "compute");
  packedStates[buffers.lookup(gemm.getB())] = read;
  return success();
}

void FormChooser::releaseWeights() {
  if (packedStates.empty())
    return;
  llvm::DenseSet<StringAttr> staying;
  program.walk([&](plan::CommandOpInterface command) {
    if (!isa<plan::PackOp>(command))
      for (plan::ViewAttr view : command.getReads())
        staying.insert(view.getBuffer().getAttr());
  });
  for (auto [op, read] : packedStates) {
    auto buffer = cast<plan::BufferOp>(op);
    if (staying.contains(buffer.getSymNameAttr()))
      continue;
    // What is read at load, packed and never seen again need not last.
    buffer.setRole(plan::Role::activation);
    buffer.removeSourceAttr();
    buffer.removePartAttr();
  }
}

/// Seconds that nobody asks about.
static constexpr double kUnnoticed = 1;

void FormChooser::reportMeasured() {
  auto [products, seconds, kept, skipped] = memory.getMeasured();
  if (seconds >= kUnnoticed)
    program.emitRemark() << "measured " << products << " products for "
                         << llvm::formatv("{0:F1}", seconds).str()
                         << " s to find the fastest form of each: "
                         << (kept ? "known now to every compilation on this "
                                    "machine"
                                  : "kept nowhere, so that the next "
                                    "compilation measures them again");
  if (skipped > 0)
    program.emitRemark() << "took the default form of " << skipped
                         << " products more, for which measuring had no time "
                            "left: the next compilation measures them";
}

/// Records a form that gives every thread something to do, and asks for the
/// order of rows and for scratch.
template <class Grouped>
LogicalResult FormChooser::chooseGrouped(Grouped gemm,
                                         rt::cpu::GroupedGemmDesc &desc,
                                         bool isGradient) {
  auto type = getType(gemm.getA().getElement());
  auto outType = getType(gemm.getC().getElement());
  if (!type || !outType)
    return gemm.emitOpError() << "expected a product of floats, found "
                              << gemm.getA().getElement();
  desc.type = *type, desc.outType = *outType;
  ArrayRef<int64_t> a = gemm.getA().getShape(),
                    strides = gemm.getC().getStrides();
  desc.rows = a[0], desc.k = a[1], desc.n = gemm.getC().getShape().back();
  desc.aRow = gemm.getA().getStrides()[0];
  desc.cRow = strides[strides.size() - 2];
  rt::cpu::GroupedGemmForm form = rt::cpu::getDefaultForm(desc, threads);
  std::unique_ptr<rt::cpu::GroupedGemm> made;
  if (auto status =
          rt::cpu::GroupedGemm::create(desc, form, isGradient, 1, made);
      !status.ok())
    return gemm.emitOpError() << status.message();
  if (form.chunkColumns)
    gemm.setFormAttr(builder.getDictionaryAttr(builder.getNamedAttr(
        "chunk_columns", builder.getI64IntegerAttr(form.chunkColumns))));
  gemm.setOrderAttr(addBuffer(gemm.getLoc(), "order", plan::Role::scratch,
                              made->orderBytes()));
  gemm.setScratchAttr(addBuffer(gemm.getLoc(), "scratch", plan::Role::scratch,
                                made->scratchBytes() * threads));
  return success();
}

LogicalResult FormChooser::choose(plan::GroupedGemmOp gemm) {
  ArrayRef<int64_t> strides = gemm.getB().getStrides();
  rt::cpu::GroupedGemmDesc desc;
  desc.groups = gemm.getB().getShape()[0];
  desc.bGroup = strides[0], desc.bRow = strides[1], desc.bCol = strides[2];
  return chooseGrouped(gemm, desc, /*isGradient=*/false);
}

LogicalResult FormChooser::choose(plan::GroupedGemmGradOp grad) {
  rt::cpu::GroupedGemmDesc desc;
  desc.groups = grad.getC().getShape()[0];
  desc.bRow = grad.getB().getStrides()[0];
  desc.cGroup = grad.getC().getStrides()[0];
  desc.accumulate = grad.getAccumulate();
  return chooseGrouped(grad, desc, /*isGradient=*/true);
}

/// The description of a command whose views its verifier has checked.
static FailureOr<rt::cpu::ConvolutionDesc> describe(plan::ConvOp conv,
                                                    rt::cpu::GemmType type) {
  plan::ViewAttr x = conv.getA(), w = conv.getB(), y = conv.getC();
  rt::cpu::ConvolutionDesc desc;
  desc.type = type;
  switch (conv.getConvolution()) {
  case plan::Convolution::forward:
    desc.kind = rt::cpu::ConvolutionKind::Forward;
    break;
  case plan::Convolution::input_grad:
    desc.kind = rt::cpu::ConvolutionKind::InputGrad;
    std::swap(x, y);
    break;
  case plan::Convolution::weight_grad:
    desc.kind = rt::cpu::ConvolutionKind::WeightGrad;
    std::swap(w, y);
    break;
  }
  desc.batch = x.getShape()[0], desc.groups = x.getShape()[1];
  desc.channels = x.getShape()[2], desc.outChannels = y.getShape()[2];
  size_t space = conv.getStrides().size();
  for (size_t dim = 0; dim < space; ++dim) {
    size_t at = 3 - space + dim; // the first ones stay of size 1
    desc.in[at] = x.getShape()[3 + dim], desc.out[at] = y.getShape()[3 + dim];
    desc.window[at] = w.getShape()[3 + dim];
    desc.stride[at] = conv.getStrides()[dim];
    desc.dilation[at] = conv.getDilations()[dim];
    desc.low[at] = conv.getLow()[dim];
  }
  if (!desc.layOut(x.getStrides().data(), w.getStrides().data(),
                   y.getStrides().data(), space))
    return conv.emitOpError()
           << "expected tensors with channels first or last, and positions "
              "evenly apart, found "
           << x << ", " << w << " and " << y;
  return desc;
}

LogicalResult FormChooser::choose(plan::ConvOp conv) {
  Type element = conv.getA().getElement();
  auto type = getType(element);
  if (!type || conv.getB().getElement() != element ||
      conv.getC().getElement() != element)
    return conv.emitOpError()
           << "expected a convolution of floats of one type, found " << element
           << ", " << conv.getB().getElement() << " and "
           << conv.getC().getElement();
  FailureOr<rt::cpu::ConvolutionDesc> desc = describe(conv, *type);
  if (failed(desc))
    return failure();
  rt::cpu::ConvolutionForm form = rt::cpu::getDefaultForm(*desc);
  std::unique_ptr<rt::cpu::Convolution> &made =
      prepared.convolutions[keyOf(*desc)];
  if (!made)
    if (auto status = rt::cpu::Convolution::create(*desc, form, 1, made);
        !status.ok())
      return conv.emitOpError() << status.message();
  auto named = [&](StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  conv.setFormAttr(builder.getDictionaryAttr(
      {named("columns", form.columns), named("channels", form.channels),
       named("out_channels", form.outChannels),
       named("samples", form.samples)}));
  if (int64_t bytes = made->sharedBytes() + made->scratchBytes() * threads)
    conv.setScratchAttr(
        addBuffer(conv.getLoc(), "scratch", plan::Role::scratch, bytes));
  return success();
}

static void copyStrides(plan::ViewAttr view, std::array<int64_t, 3> &strides) {
  std::copy_n(view.getStrides().begin(), 3, strides.begin());
}

/// What both commands say alike; `output` is of the result's shape.
template <class AttentionLike>
static FailureOr<rt::cpu::AttentionDesc> describe(AttentionLike attention,
                                                  plan::ViewAttr output) {
  rt::cpu::AttentionDesc desc;
  auto type = getType(attention.getQuery().getElement());
  if (!type)
    return attention.emitOpError() << "expected attention of floats, found "
                                   << attention.getQuery().getElement();
  desc.type = *type;
  ArrayRef<int64_t> query = attention.getQuery().getShape(),
                    key = attention.getKey().getShape();
  desc.batch = query[0], desc.heads = query[1], desc.queries = query[2];
  desc.width = query[3], desc.groups = key[1], desc.keys = key[2];
  desc.valueWidth = attention.getValue().getShape()[3];
  desc.causal = attention.getCausal();
  // One form serves all ranks: that of those whose rows see all keys.
  desc.diagonal = hasSteps(attention) ? desc.keys : attention.getDiagonal();
  copyStrides(attention.getQuery(), desc.query);
  copyStrides(attention.getKey(), desc.key);
  copyStrides(attention.getValue(), desc.value);
  copyStrides(output, desc.output);
  return desc;
}

/// Records the form that was made, and asks for its scratch.
template <class AttentionLike, class Made>
void FormChooser::record(AttentionLike attention, const Made &made) {
  attention.setFormAttr(builder.getDictionaryAttr(builder.getNamedAttr(
      "block_queries", builder.getI64IntegerAttr(made.form().blockQueries))));
  if (int64_t bytes = made.scratchBytes())
    attention.setScratchAttr(addBuffer(attention.getLoc(), "scratch",
                                       plan::Role::scratch, bytes * threads));
}

LogicalResult FormChooser::choose(plan::AttentionOp attention) {
  auto desc = describe(attention, attention.getOutput());
  if (failed(desc))
    return failure();
  std::unique_ptr<rt::cpu::Attention> &made = prepared.attentions[keyOf(*desc)];
  if (!made)
    if (auto status = rt::cpu::Attention::create(*desc, {kBlockQueries},
                                                 neverCalled, 1, made);
        !status.ok())
      return attention.emitOpError() << status.message();
  record(attention, *made);
  return success();
}

LogicalResult FormChooser::choose(plan::AttentionGradOp grad) {
  auto forward = describe(grad, grad.getGradient());
  if (failed(forward))
    return failure();
  rt::cpu::AttentionGradDesc desc;
  desc.forward = *forward;
  copyStrides(grad.getOutput(), desc.result);
  copyStrides(grad.getQueryGradient(), desc.queryGradient);
  copyStrides(grad.getKeyGradient(), desc.keyGradient);
  copyStrides(grad.getValueGradient(), desc.valueGradient);
  desc.zeroMaskedRows = grad.getZeroMaskedRows();
  std::unique_ptr<rt::cpu::AttentionGrad> &made =
      prepared.attentionGrads[keyOf(desc)];
  if (!made)
    if (auto status = rt::cpu::AttentionGrad::create(desc, {kBlockQueries},
                                                     neverCalled, 1, made);
        !status.ok())
      return grad.emitOpError() << status.message();
  record(grad, *made);
  return success();
}

LogicalResult FormChooser::choose(plan::KernelOp kernel) {
  KernelInstance instance = getInstance(kernel, symbols);
  if (!instance.function)
    return kernel.emitOpError() << "expected a kernel function, found '"
                                << kernel.getFunction() << "'";
  if (failed(verifyKernel(instance.function)))
    return failure();
  auto [place, isNew] = kernelScratch.try_emplace(instance.symbol);
  if (isNew)
    place->second = measureScratch(instance);
  int64_t bytes = place->second;
  if (bytes == 0)
    return success();
  kernel.setFormAttr(builder.getDictionaryAttr(builder.getNamedAttr(
      rt::cpu::kThreadScratch, builder.getI64IntegerAttr(bytes))));
  kernel.setScratchAttr(addBuffer(kernel.getLoc(), "scratch",
                                  plan::Role::scratch, bytes * threads));
  return success();
}

void addFormFeatures(ModuleOp plans, CpuTarget &target) {
  WalkResult found = plans.walk([](plan::GemmOp gemm) {
    DictionaryAttr form = gemm.getFormAttr();
    return isOfCpu(gemm) && form && form.contains("bf16x6")
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (!found.wasInterrupted())
    return;
  target.features.insert(target.features.end(), {"amx_bf16", "amx_tile"});
  llvm::sort(target.features);
}

LogicalResult chooseForms(plan::ProgramOp program, const CpuTarget &target,
                          int64_t threads, PreparedForms &prepared) {
  std::lock_guard<std::mutex> lock(prepared.mutex);
  if (!target.isHost)
    if (auto status = rt::cpu::limitInstructions(target.vectorBits == 512);
        !status.ok())
      return program.emitError() << status.message();
  FormChooser chooser(program, threads, target.isHost, prepared);
  SmallVector<Operation *> commands;
  program.walk([&](Operation *op) {
    if (isa<plan::GemmOp, plan::GroupedGemmOp, plan::GroupedGemmGradOp,
            plan::ConvOp, plan::AttentionOp, plan::AttentionGradOp,
            plan::KernelOp>(op))
      commands.push_back(op);
  });
  for (Operation *op : commands)
    if (failed(
            llvm::TypeSwitch<Operation *, LogicalResult>(op)
                .Case<plan::GemmOp, plan::GroupedGemmOp,
                      plan::GroupedGemmGradOp, plan::ConvOp, plan::AttentionOp,
                      plan::AttentionGradOp, plan::KernelOp>(
                    [&](auto command) { return chooser.choose(command); })))
      return failure();
  chooser.releaseWeights();
  chooser.reportMeasured();
  return success();
}
} // namespace accel::cpu
