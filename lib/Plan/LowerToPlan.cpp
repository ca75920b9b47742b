// Lowers an entry of `local` to a plan program: states are read at load, inputs
// before the task, outputs written after it.

#include "Lowering.h"
#include "accel/Plan/Passes.h"
#include "dialects/Dist/Dist.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_LOWERTOPLANPASS
#include "accel/Plan/Passes.h.inc"

namespace {
/// The blocks of commands that every program has.
struct Bodies {
  BodyOp load, inputs, forward, outputs;
};

template <typename Op, typename... Args>
Op createContainer(OpBuilder &builder, Location loc, Args &&...args) {
  auto op = Op::create(builder, loc, std::forward<Args>(args)...);
  op.getBody().emplaceBlock();
  return op;
}

struct LowerToPlanPass : impl::LowerToPlanPassBase<LowerToPlanPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<func::FuncOp> entries;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(nn::kEntryAttr))
        entries.push_back(function);
    if (entries.size() != 1) {
      getOperation().emitError()
          << "expected one function with '" << nn::kEntryAttr << "', found "
          << entries.size();
      return signalPassFailure();
    }
    if (failed(lowerEntry(entries.front())))
      return signalPassFailure();
    entries.front().erase();
    for (auto schedule :
         llvm::make_early_inc_range(getOperation().getOps<dist::ScheduleOp>()))
      schedule.erase();
  }

  LogicalResult lowerEntry(func::FuncOp entry) {
    if (entry.isExternal() || !entry.getBody().hasOneBlock())
      return entry.emitOpError() << "expected a function of one block";
    Location loc = entry.getLoc();
    OpBuilder builder(entry);
    int64_t ranks = 1;
    FlatSymbolRefAttr meshName;
    for (auto mesh : getOperation().getOps<dist::MeshOp>()) {
      meshName = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
      for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
        ranks *= axis.getSize();
    }
    auto program = createContainer<ProgramOp>(builder, loc, entry.getSymName(),
                                              /*stage=*/0, ranks, meshName);
    builder.setInsertionPointToEnd(&program.getBody().front());
    Bodies bodies;
    for (auto [body, name] : {std::pair(&bodies.load, "load_states"),
                              std::pair(&bodies.inputs, "read_inputs"),
                              std::pair(&bodies.forward, "forward"),
                              std::pair(&bodies.outputs, "write_outputs")})
      *body = createContainer<BodyOp>(builder, loc, name, Engine::cpu, 0);
    createEntry(builder, loc, "load", bodies.load);
    createEntry(builder, loc, "main",
                {bodies.inputs, bodies.forward, bodies.outputs});

    OpBuilder commands =
        OpBuilder::atBlockEnd(&bodies.forward.getBody().front());
    Lowering lowering(program, commands);
    for (BlockArgument argument : entry.getArguments())
      if (failed(lowerArgument(entry, argument, lowering, bodies)))
        return failure();
    Block &block = entry.getBody().front();
    for (Operation &op : block.without_terminator())
      if (failed(lowering.lower(&op)))
        return failure();
    return lowerResults(entry, lowering, bodies);
  }

  /// An entry that runs bodies one after another, each a segment of its own:
  /// reading and writing files cannot be captured in a graph.
  void createEntry(OpBuilder &builder, Location loc, StringRef name,
                   ArrayRef<BodyOp> bodies) {
    auto entry = createContainer<EntryOp>(builder, loc, name);
    OpBuilder inner = OpBuilder::atBlockEnd(&entry.getBody().front());
    for (BodyOp body : bodies) {
      auto segment = createContainer<SegmentOp>(
          inner, loc, Engine::cpu,
          /*capturable=*/body.getSymName() == "forward");
      OpBuilder runs = OpBuilder::atBlockEnd(&segment.getBody().front());
      RunOp::create(runs, loc, body.getSymName(),
                    /*micro_batch=*/0, ArrayRef<int64_t>());
    }
  }

  /// Which piece of a logical tensor an argument or result of `type` is.
  PartAttr getPart(RankedTensorType type, Attribute layoutAttr) {
    Builder builder(&getContext());
    if (auto layout = dyn_cast_or_null<dist::LayoutAttr>(layoutAttr)) {
      SmallVector<Attribute> dims;
      for (dist::AxesAttr axes : layout.getDims()) {
        SmallVector<Attribute> names;
        for (StringAttr name : axes.getNames())
          names.push_back(name);
        dims.push_back(builder.getArrayAttr(names));
      }
      return PartAttr::get(&getContext(), layout.getShape(),
                           builder.getArrayAttr(dims));
    }
    SmallVector<Attribute> axes(type.getRank(), builder.getArrayAttr({}));
    return PartAttr::get(&getContext(), type.getShape(),
                         builder.getArrayAttr(axes));
  }

  LogicalResult lowerArgument(func::FuncOp entry, BlockArgument argument,
                              Lowering &lowering, Bodies &bodies) {
    unsigned number = argument.getArgNumber();
    auto type = cast<RankedTensorType>(argument.getType());
    auto state =
        entry.getArgAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr);
    auto input = entry.getArgAttrOfType<StringAttr>(number, nn::kInputAttr);
    if (!state && !input)
      return entry.emitOpError()
             << "expected argument " << number << " to carry '"
             << nn::kStateAttr << "' or '" << nn::kInputAttr << "'";
    PartAttr part = getPart(type, entry.getArgAttr(number, dist::kLayoutAttr));
    StringRef name = state ? state.getValue() : input.getValue();
    BufferOp buffer = lowering.createBuffer(argument.getLoc(), name,
                                            state ? Role::state : Role::input,
                                            Space::device, type);
    buffer.setPartAttr(part);
    if (state)
      buffer.setSourceAttr(state);
    lowering.setPlace(argument, buffer);
    BodyOp body = state ? bodies.load : bodies.inputs;
    OpBuilder builder = OpBuilder::atBlockEnd(&body.getBody().front());
    ReadOp::create(builder, argument.getLoc(),
                   state ? Source::state : Source::input, name, part,
                   Lowering::getView(lowering.getPlace(argument)), "compute");
    return success();
  }

  LogicalResult lowerResults(func::FuncOp entry, Lowering &lowering,
                             Bodies &bodies) {
    auto results =
        cast<func::ReturnOp>(entry.getBody().front().getTerminator());
    OpBuilder builder =
        OpBuilder::atBlockEnd(&bodies.outputs.getBody().front());
    for (auto [number, value] : llvm::enumerate(results.getOperands())) {
      auto output =
          entry.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr);
      if (!output)
        return entry.emitOpError() << "expected result " << number
                                   << " to carry '" << nn::kOutputAttr << "'";
      Location loc = value.getLoc();
      Place place = lowering.getContiguous(value, loc);
      if (place.buffer.getRole() == Role::activation)
        place.buffer.setRole(Role::output);
      WriteOp::create(builder, loc, Source::output, output.getValue(),
                      getPart(cast<RankedTensorType>(value.getType()),
                              entry.getResultAttr(number, dist::kLayoutAttr)),
                      Lowering::getView(place), "compute");
    }
    return success();
  }
};
} // namespace
} // namespace accel::plan
