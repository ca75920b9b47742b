// Cuts the updates of large offloaded states into tiles of rows, so that the
// device holds a few tiles of a state and not all: kernels on parts of their
// buffers, one after another. What some command of the body needs all of is
// staged as a whole.

#include "KernelTiles.h"

#include "dialects/Plan/Offloaded.h"
#include "lib/Plan/Passes.h"
#include "lib/Target/TargetTable.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_TILEUPDATESPASS
#include "lib/Plan/Passes.h.inc"

namespace {
/// A kernel that touches more of some offloaded states than a tile.
struct Update {
  KernelTiles tiles;
  llvm::SetVector<BufferOp> states;
  std::optional<Tiling> tiling = {};
};

struct TileUpdatesPass : impl::TileUpdatesPassBase<TileUpdatesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (tile < 0) {
      getOperation().emitError() << "expected tiles of at least one element, "
                                    "or 0 (whole states), found "
                                 << int64_t(tile);
      return signalPassFailure();
    }
    FailureOr<const Target *> chosen = findTarget(getOperation(), target);
    if (failed(chosen))
      return signalPassFailure();
    if (tile == 0)
      return;
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>()) {
      BufferTable buffers(program);
      for (auto body : program.getOps<BodyOp>())
        runOnBody(body, buffers, **chosen, symbols);
    }
    eraseUnused();
  }

  void runOnBody(BodyOp body, const BufferTable &buffers, const Target &chosen,
                 SymbolTable &symbols) {
    SmallVector<Update> updates;
    llvm::DenseMap<BufferOp, Operation *> wholes; ///< and who needs them so
    body.walk([&](CommandOpInterface command) {
      llvm::SetVector<BufferOp> states;
      int64_t count = 0;
      command.forEachView([&](ViewAttr view, Access access) {
        BufferOp buffer = buffers.lookup(view);
        if (access == Access::None || !buffer->hasAttr(kOffloadedAttr) ||
            view.getNumElements() <= tile)
          return;
        states.insert(buffer);
        count = std::max(count, view.getNumElements());
      });
      if (states.empty() || isStraight(command, buffers))
        return;
      auto kernel = dyn_cast<KernelOp>(*command);
      auto function = kernel
                          ? symbols.lookup<func::FuncOp>(kernel.getFunction())
                          : func::FuncOp();
      std::optional<std::string> obstacle;
      if (function) {
        Update update{KernelTiles(kernel, function, count), states};
        obstacle = update.tiles.findObstacle(buffers);
        update.tiling = chooseRows(update.tiles, buffers);
        if (!obstacle && !update.tiling)
          obstacle = "it has no rows of one length that are a tile at most";
        if (!obstacle)
          return updates.push_back(std::move(update));
        explain(kernel, states, *obstacle);
      }
      for (BufferOp state : states)
        wholes.try_emplace(state, command);
    });
    // What needs all of a state has it there anyway.
    llvm::MapVector<Operation *, llvm::SetVector<BufferOp>> others;
    llvm::erase_if(updates, [&](Update &update) {
      update.states.remove_if([&](BufferOp state) {
        Operation *other = wholes.lookup(state);
        if (other && !other->hasAttr(kStagedWholeAttr))
          others[other].insert(state);
        return other != nullptr;
      });
      return update.states.empty();
    });
    for (auto &[other, states] : others)
      explain(other, states,
              ("'" + other->getName().getStringRef() +
               "' beside its update needs it so")
                  .str());
    for (size_t first = 0; first < updates.size();) {
      size_t end = first + 1;
      while (end < updates.size() &&
             goesOn(ArrayRef(updates).slice(first, end - first), updates[end],
                    buffers))
        ++end;
      replace(ArrayRef(updates).slice(first, end - first), chosen, symbols);
      first = end;
    }
  }

  /// What reads a state's first value, or replaces all of one, does so where it
  /// lies.
  static bool isStraight(CommandOpInterface command,
                         const BufferTable &buffers) {
    auto copy = dyn_cast<CopyOp>(*command);
    return isa<ReadOp>(*command) ||
           (copy && copy.getTarget().getAxes().empty() &&
            copy.getTarget().getSpanBytes() ==
                int64_t(buffers.lookup(copy.getTarget()).getBytes()) &&
            !buffers.lookup(copy.getSource())->hasAttr(kOffloadedAttr));
  }

  std::optional<Tiling> chooseRows(const KernelTiles &tiles,
                                   const BufferTable &buffers) {
    return tiles.choose(tile, [&](ViewAttr view) {
      auto place =
          buffers.lookup(view)->getAttrOfType<SpaceAttr>(kOffloadedAttr);
      return place && place.getValue() == Space::nvme;
    });
  }

  /// Whether an update behind others is of the same tiles: each is fetched once
  /// for all of them.
  static bool goesOn(ArrayRef<Update> updates, const Update &next,
                     const BufferTable &buffers) {
    const Update &last = updates.back();
    KernelOp kernel = next.tiles.getKernel();
    if (last.tiles.getKernel()->getNextNode() != kernel ||
        last.tiles.getKernel().getStream() != kernel.getStream() ||
        !(last.tiling == next.tiling) ||
        llvm::none_of(next.states, [&](BufferOp state) {
          return last.states.contains(state);
        }))
      return false;
    SmallVector<KernelOp> kernels{kernel};
    for (const Update &update : updates)
      kernels.push_back(update.tiles.getKernel());
    return !writeElsewhere(kernels, buffers);
  }

  void explain(Operation *command, const llvm::SetVector<BufferOp> &states,
               StringRef why) {
    SmallVector<StringRef> names;
    for (BufferOp state : states)
      names.push_back(state.getSymName());
    Builder builder(&getContext());
    command->setAttr(
        kStagedWholeAttr,
        builder.getDictionaryAttr(
            {builder.getNamedAttr("states", builder.getStrArrayAttr(names)),
             builder.getNamedAttr("why", builder.getStringAttr(why))}));
  }

  void replace(ArrayRef<Update> updates, const Target &chosen,
               SymbolTable &symbols) {
    Tiling tiling = *updates.front().tiling;
    Operation *before = updates.front().tiles.getKernel();
    for (int64_t first = 0; first < tiling.rows; first += tiling.rowsOfTile)
      for (const Update &update : updates) {
        int64_t rows = std::min(tiling.rowsOfTile, tiling.rows - first);
        func::FuncOp ofTile = getFunction(update.tiles, tiling, rows, symbols);
        KernelOp made = update.tiles.create(
            before, tiling, first, ofTile,
            chosen.chooseGrid(ofTile, rows, countBytes(ofTile)));
        SmallVector<Attribute> states;
        for (BufferOp state : update.states)
          states.push_back(FlatSymbolRefAttr::get(state.getSymNameAttr()));
        made->setAttr(kTileAttr, ArrayAttr::get(&getContext(), states));
      }
    for (const Update &update : updates) {
      replaced.insert(update.tiles.getFunction());
      update.tiles.getKernel().erase();
    }
  }

  func::FuncOp getFunction(const KernelTiles &tiles, const Tiling &tiling,
                           int64_t rows, SymbolTable &symbols) {
    func::FuncOp function = tiles.getFunction();
    func::FuncOp &ofTile = functions[{function, {tiling.width, rows}}];
    if (!ofTile) {
      ofTile = tiles.makeFunction(tiling, rows);
      symbols.insert(ofTile, std::next(function->getIterator()));
    }
    return ofTile;
  }

  static int64_t countBytes(func::FuncOp function) {
    int64_t bytes = 0;
    for (Type type : llvm::concat<const Type>(function.getArgumentTypes(),
                                              function.getResultTypes())) {
      auto tensor = cast<RankedTensorType>(type);
      bytes += tensor.getNumElements() *
               llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
    }
    return bytes;
  }

  /// Kernels that nothing runs any more.
  void eraseUnused() {
    llvm::DenseSet<StringAttr> used;
    getOperation().walk([&](Operation *op) {
      op->getAttrDictionary().walk(
          [&](FlatSymbolRefAttr symbol) { used.insert(symbol.getAttr()); });
    });
    for (func::FuncOp function : replaced)
      if (!used.contains(function.getSymNameAttr()))
        function.erase();
  }

  using Key = std::pair<Operation *, std::pair<int64_t, int64_t>>;
  llvm::DenseMap<Key, func::FuncOp> functions; ///< of tiles, by their shapes
  llvm::SetVector<func::FuncOp> replaced;
};
} // namespace
} // namespace accel::plan
