// Who shares states: the one list that all passes on states go by.

#include "SharingAxes.h"
#include "dialects/Dist/GroupsAxis.h"

using namespace mlir;
using namespace accel;

SmallVector<StringRef> parallel::getSharingAxes(dist::MeshOp mesh) {
  SmallVector<StringRef> axes;
  for (StringRef axis :
       {StringRef(dist::MeshOp::kShardAxis),
        StringRef(dist::MeshOp::kContextAxis),
        StringRef(dist::MeshOp::kUlyssesAxis), StringRef(dist::kGroupsAxis)})
    if (mesh && mesh.findAxisSize(axis).value_or(1) > 1)
      axes.push_back(axis);
  return axes;
}

int64_t parallel::countSharers(dist::MeshOp mesh) {
  int64_t ranks = 1;
  for (StringRef axis : getSharingAxes(mesh))
    ranks *= *mesh.findAxisSize(axis);
  return ranks;
}
