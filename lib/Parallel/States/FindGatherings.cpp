// Finds what a step will gather by placing the gathers of a copy of it.

#include "GradientOps.h"
#include "PlaceGathers.h"
#include "lib/Parallel/Gathers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace accel;

/// What a rank has of a value.
static int64_t countBytes(Type type, dist::MeshOp mesh) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t elements = 1;
  for (auto [size, axes] :
       llvm::zip(tensor.getShape(), dist::ShardingAttr::of(type).getDims()))
    elements *= llvm::divideCeil(size, mesh.getGroupSize(axes));
  return elements * llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

SmallVector<parallel::Gathering> parallel::findGatherings(func::FuncOp entry) {
  dist::MeshOp mesh = dist::MeshOp::of(entry->getParentOfType<ModuleOp>());
  OwningOpRef<func::FuncOp> placed(entry.clone());
  placeGathers(*placed, /*once=*/false);
  GradientOps ops(*placed);
  llvm::MapVector<int64_t, Gathering> found; // by instance
  for (auto gather : placed->front().getOps<dist::ReshardOp>()) {
    auto instance = gather->getAttrOfType<IntegerAttr>(dist::kInstanceAttr);
    auto unit = gather->getAttrOfType<StringAttr>(dist::kUnitAttr);
    if (!instance || !unit)
      continue;
    Gathering &gathering = found[instance.getInt()];
    gathering.unit = unit.str();
    gathering.bytes += countBytes(gather.getType(), mesh) -
                       countBytes(gather.getInput().getType(), mesh);
    for (Operation *reader : gather->getUsers()) {
      gathering.inForward |= ops.forward.contains(reader);
      gathering.inBackward |= ops.backward.contains(reader);
    }
  }
  SmallVector<Gathering> gatherings;
  for (auto &[instance, gathering] : found)
    gatherings.push_back(std::move(gathering));
  return gatherings;
}
