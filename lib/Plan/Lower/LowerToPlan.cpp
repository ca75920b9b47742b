// Lowers the entries of `local` to plan programs, one for each stage: a body
// per task, run as its schedule says. States are read at load, inputs before a
// task, outputs written after it.

#include "EntryLowering.h"
#include "dialects/NN/Entry.h"
#include "lib/Plan/Passes.h"
#include "lib/Target/TargetTable.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_LOWERTOPLANPASS
#include "lib/Plan/Passes.h.inc"

namespace {
struct LowerToPlanPass : impl::LowerToPlanPassBase<LowerToPlanPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> entries = nn::getEntries(module);
    if (entries.empty()) {
      module.emitError() << "expected a function with '" << nn::kEntryAttr
                         << "', found none";
      return signalPassFailure();
    }
    FailureOr<const Target *> chosen = findTarget(module, target);
    if (failed(chosen))
      return signalPassFailure();
    SymbolTable symbols(module); // without the programs
    int64_t stages = 1;
    if (dist::MeshOp mesh = dist::MeshOp::of(module))
      stages = mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1);
    for (int64_t stage = 0; stage < stages; ++stage)
      if ((this->stages.empty() || llvm::is_contained(this->stages, stage)) &&
          failed(lower(entries, **chosen, symbols, stage, stages)))
        return signalPassFailure();
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (function->hasAttr(dist::kTaskAttr) ||
          function->hasAttr(nn::kEntryAttr))
        function.erase();
    for (auto each :
         llvm::make_early_inc_range(module.getOps<dist::ScheduleOp>()))
      each.erase();
  }

  LogicalResult lower(ArrayRef<func::FuncOp> entries, const Target &target,
                      const SymbolTable &symbols, int64_t stage,
                      int64_t stages) {
    ModuleOp module = getOperation();
    OpBuilder builder(entries.front());
    ProgramOp program = createProgram(builder, entries.front(), stage, stages);
    Location loc = program.getLoc();
    builder.setInsertionPointToEnd(&program.getBody().front());
    SmallVector<EntryOp> calls{
        createContainer<EntryOp>(builder, loc, kLoadEntry)};
    llvm::StringSet<> kinds;
    for (func::FuncOp entry : entries) {
      StringRef kind = nn::stringifyEntryKind(*nn::getEntryKind(entry));
      if (!kinds.insert(kind).second)
        return entry.emitOpError()
               << "expected one entry of kind '" << kind << "', found two";
      calls.push_back(createContainer<EntryOp>(builder, entry.getLoc(), kind));
    }
    OpBuilder commands(&getContext());
    Lowering lowering(program, symbols, target, commands);
    SharedProgram shared{module,        target, symbols,  program,
                         calls.front(), {},     commands, lowering};
    shared.loadBody = shared.createBody(loc, "load_states");
    for (auto [number, handle] : llvm::enumerate(entries)) {
      func::FuncOp entry = handle;
      EntryOp call = calls[number + 1];
      dist::ScheduleOp schedule = findSchedule(entry);
      if (!schedule && entry.isExternal())
        return entry.emitOpError() << "expected a schedule that runs it";
      int64_t found =
          schedule ? llvm::range_size(schedule.getOps<dist::StageOp>()) : 1;
      if (found != stages)
        return entry.emitOpError() << "expected a schedule of the " << stages
                                   << " stages of the mesh, found " << found;
      // The first entry's bodies have the plain names.
      std::string prefix = number == 0 ? "" : (call.getKind() + "_").str();
      if (failed(
              EntryLowering(shared, entry, schedule, stage, prefix).run(call)))
        return failure();
    }
    RunListWriter(shared.load, target).run(shared.loadBody, 0);
    // Behind the bodies that they run.
    Block &block = program.getBody().front();
    for (EntryOp call : calls)
      call->moveBefore(&block, block.end());
    return success();
  }

  ProgramOp createProgram(OpBuilder &builder, func::FuncOp entry, int64_t stage,
                          int64_t stages) {
    int64_t ranks = 1;
    FlatSymbolRefAttr mesh;
    if (dist::MeshOp only = dist::MeshOp::of(getOperation())) {
      mesh = FlatSymbolRefAttr::get(only.getSymNameAttr());
      ranks = only.getRankCount();
    }
    std::string name = entry.getSymName().str();
    if (stages > 1)
      name += "_stage_" + std::to_string(stage);
    return createContainer<ProgramOp>(builder, entry.getLoc(), name, stage,
                                      ranks, mesh);
  }

  dist::ScheduleOp findSchedule(func::FuncOp entry) {
    for (auto each : getOperation().getOps<dist::ScheduleOp>())
      if (each.getEntry() == entry.getSymName())
        return each;
    return {};
  }
};
} // namespace
} // namespace accel::plan
