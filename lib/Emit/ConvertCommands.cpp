// One function per command kind, named after the struct it fills.

#include "ConvertCommands.h"

#include "accel/Plan/Summary.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::emit;

namespace {
class CommandConverter {
public:
  CommandConverter(Operation *op, ProgramNames &names)
      : loc(op->getLoc()), names(names) {}

  FailureOr<rt::Command> convert(Operation *op);

private:
  // Views and parts that cannot be converted leave a default and are counted;
  // the error has been emitted.
  rt::View view(plan::ViewAttr attr) {
    FailureOr<rt::View> result = convertView(loc, attr, names.buffers);
    failures += failed(result);
    return succeeded(result) ? *result : rt::View();
  }
  std::optional<rt::View> view(std::optional<plan::ViewAttr> attr) {
    return attr && *attr ? std::optional(view(*attr)) : std::nullopt;
  }
  std::vector<rt::View> views(ArrayAttr attrs) {
    std::vector<rt::View> result;
    for (auto attr : attrs.getAsRange<plan::ViewAttr>())
      result.push_back(view(attr));
    return result;
  }
  rt::Part part(plan::PartAttr attr) {
    FailureOr<rt::Part> result = convertPart(loc, attr);
    failures += failed(result);
    return succeeded(result) ? *result : rt::Part();
  }
  rt::Form form(std::optional<DictionaryAttr> attr) {
    FailureOr<rt::Form> result =
        convertForm(loc, attr ? *attr : DictionaryAttr());
    failures += failed(result);
    return succeeded(result) ? *result : rt::Form();
  }
  static std::vector<std::string> strings(ArrayAttr attrs) {
    std::vector<std::string> result;
    for (auto attr : attrs.getAsRange<StringAttr>())
      result.push_back(attr.str());
    return result;
  }

  rt::GemmCommand gemm(plan::GemmOp op) {
    return {view(op.getA()),    view(op.getB()),      view(op.getC()),
            view(op.getBias()), view(op.getPacked()), view(op.getScratch()),
            op.getAccumulate(), form(op.getForm())};
  }
  rt::AttentionCommand attention(plan::AttentionOp op) {
    rt::AttentionCommand result;
    result.query = view(op.getQuery());
    result.key = view(op.getKey());
    result.value = view(op.getValue());
    result.mask = view(op.getMask());
    result.output = view(op.getOutput());
    result.logSumExp = view(op.getLogSumExp());
    result.scratch = view(op.getScratch());
    result.scale = op.getScale().convertToDouble();
    result.causal = op.getCausal();
    result.zeroMaskedRows = op.getZeroMaskedRows();
    result.rowOffset = op.getRowOffset();
    result.columnOffset = op.getColumnOffset();
    // The target makes the softmax of an attention, unless one is named.
    result.kernel = op.getKernel() ? op.getKernel()->str()
                                   : names.target.getSymbol(op, names.symbols);
    result.form = form(op.getForm());
    return result;
  }
  rt::AttentionGradCommand attentionGrad(plan::AttentionGradOp op) {
    rt::AttentionGradCommand result;
    result.query = view(op.getQuery());
    result.key = view(op.getKey());
    result.value = view(op.getValue());
    result.output = view(op.getOutput());
    result.logSumExp = view(op.getLogSumExp());
    result.gradient = view(op.getGradient());
    result.logSumExpGradient = view(op.getLogSumExpGradient());
    result.mask = view(op.getMask());
    result.queryGradient = view(op.getQueryGradient());
    result.keyGradient = view(op.getKeyGradient());
    result.valueGradient = view(op.getValueGradient());
    result.scratch = view(op.getScratch());
    result.scale = op.getScale().convertToDouble();
    result.causal = op.getCausal();
    result.zeroMaskedRows = op.getZeroMaskedRows();
    result.rowOffset = op.getRowOffset();
    result.columnOffset = op.getColumnOffset();
    result.kernel = op.getKernel() ? op.getKernel()->str()
                                   : names.target.getSymbol(op, names.symbols);
    result.form = form(op.getForm());
    return result;
  }
  rt::KernelCommand kernel(plan::KernelOp op) {
    return {names.target.getSymbol(op, names.symbols),
            views(op.getInputs()),
            views(op.getOutputs()),
            static_cast<int64_t>(op.getRows()),
            static_cast<int64_t>(op.getGrid()),
            inputNames(op)};
  }
  /// The program's inputs that lie in the buffers of a kernel's integers.
  std::vector<std::string> inputNames(plan::KernelOp op) {
    std::vector<std::string> inputs(op.getInputs().size());
    bool any = false;
    for (auto [index, attribute] : llvm::enumerate(op.getInputs())) {
      auto view = cast<plan::ViewAttr>(attribute);
      if (!view.getElement().isInteger() || view.getElement().isInteger(1))
        continue;
      inputs[index] = names.inputs.lookup(view.getBuffer());
      any |= !inputs[index].empty();
    }
    return any ? inputs : std::vector<std::string>();
  }
  rt::CollectiveCommand collective(plan::CollectiveOp op) {
    rt::CollectiveCommand result;
    result.kind = plan::stringifyCollective(op.getKind()).str();
    result.axes = strings(op.getAxes());
    result.inputs = views(op.getInputs());
    result.outputs = views(op.getOutputs());
    if (op.getCombine())
      result.combine = plan::stringifyCombine(*op.getCombine()).str();
    result.dim = op.getDim();
    result.splitDim = op.getSplitDim();
    if (auto permutation = op.getPermutation())
      result.permutation = permutation->vec();
    if (auto wire = op.getWire()) {
      FailureOr<rt::DType> dtype = convertType(loc, *wire);
      failures += failed(dtype);
      if (succeeded(dtype))
        result.wire = *dtype;
    }
    return result;
  }
  rt::SendCommand send(plan::SendOp op) {
    return {view(op.getView()), op.getAxis().str(),
            static_cast<int64_t>(op.getDelta()),
            static_cast<int64_t>(op.getTag())};
  }
  rt::RecvCommand recv(plan::RecvOp op) {
    return {view(op.getView()), op.getAxis().str(),
            static_cast<int64_t>(op.getDelta()),
            static_cast<int64_t>(op.getTag())};
  }
  rt::GroupCommand group(plan::GroupOp op) {
    rt::GroupCommand result;
    for (auto inner : op.getOps<plan::SendOp>())
      result.sends.push_back(send(inner));
    for (auto inner : op.getOps<plan::RecvOp>())
      result.recvs.push_back(recv(inner));
    return result;
  }
  rt::FillCommand fill(plan::FillOp op) {
    rt::FillCommand result;
    result.target = view(op.getTarget());
    APInt bits;
    if (auto number = dyn_cast<FloatAttr>(op.getValue()))
      bits = number.getValue().bitcastToAPInt();
    else if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
      bits = integer.getValue();
    else
      failures += (emitError(loc) << "expected a number to fill with, found "
                                  << op.getValue(),
                   1);
    if (op.getValue().getType() != op.getTarget().getElement())
      failures += (emitError(loc) << "expected a value of type "
                                  << op.getTarget().getElement() << ", found "
                                  << op.getValue(),
                   1);
    int64_t bytes = op.getTarget().getElementBytes();
    bits = bits.zextOrTrunc(8 * bytes);
    for (int64_t i = 0; i < bytes; ++i)
      result.value.push_back(bits.extractBitsAsZExtValue(8, 8 * i));
    return result;
  }

  Location loc;
  ProgramNames &names;
  int failures = 0;
};
} // namespace

FailureOr<rt::Command> CommandConverter::convert(Operation *op) {
  rt::Command command;
  auto set = [&](auto what) {
    command.what = std::move(what);
    return true;
  };
  bool known =
      llvm::TypeSwitch<Operation *, bool>(op)
          .Case([&](plan::GemmOp op) { return set(gemm(op)); })
          .Case([&](plan::AttentionOp op) { return set(attention(op)); })
          .Case(
              [&](plan::AttentionGradOp op) { return set(attentionGrad(op)); })
          .Case([&](plan::KernelOp op) { return set(kernel(op)); })
          .Case([&](plan::CollectiveOp op) { return set(collective(op)); })
          .Case([&](plan::SendOp op) { return set(send(op)); })
          .Case([&](plan::RecvOp op) { return set(recv(op)); })
          .Case([&](plan::GroupOp op) { return set(group(op)); })
          .Case([&](plan::CopyOp op) {
            return set(
                rt::CopyCommand{view(op.getSource()), view(op.getTarget())});
          })
          .Case([&](plan::FillOp op) { return set(fill(op)); })
          .Case([&](plan::PackOp op) {
            return set(rt::PackCommand{view(op.getSource()),
                                       view(op.getTarget()),
                                       form(op.getForm())});
          })
          .Case([&](plan::CoordinateOp op) {
            return set(rt::CoordinateCommand{strings(op.getAxes()),
                                             view(op.getTarget())});
          })
          .Case([&](plan::ReadOp op) {
            return set(rt::ReadCommand{
                plan::stringifySource(op.getSource()).str(), op.getName().str(),
                part(op.getPart()), view(op.getTarget())});
          })
          .Case([&](plan::WriteOp op) {
            return set(rt::WriteCommand{
                plan::stringifySource(op.getTarget()).str(), op.getName().str(),
                part(op.getPart()), view(op.getView())});
          })
          .Case([&](plan::RecordOp op) {
            return set(rt::RecordCommand{op.getEvent().str()});
          })
          .Case([&](plan::WaitOp op) {
            return set(rt::WaitCommand{op.getEvent().str()});
          })
          .Default([](Operation *) { return false; });
  if (!known)
    return op->emitOpError() << "is no command that the executable format has";
  if (auto interface = dyn_cast<plan::CommandOpInterface>(op)) {
    command.stream = interface.getStreamName().str();
    if (int64_t flops = plan::countFlops(interface, names.symbols))
      command.flops = flops;
  } else if (auto group = dyn_cast<plan::GroupOp>(op))
    // A group is queued where its members are.
    for (auto inner : group.getOps<plan::CommandOpInterface>())
      command.stream = inner.getStreamName().str();
  command.node = getNodeNames(op);
  if (auto releases = op->getAttrOfType<ArrayAttr>("plan.releases"))
    command.releases = views(releases);
  if (failures)
    return failure();
  return command;
}

FailureOr<rt::Command> emit::convertCommand(Operation *op,
                                            ProgramNames &names) {
  return CommandConverter(op, names).convert(op);
}
