// Whose tensor lies where, counted micro-batch by micro-batch.

#include "EachMicroBatch.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

plan::ViewAttr accel::equivalence::getOwnOf(plan::ViewAttr each) {
  int64_t bytes = each.getStrides().front() * each.getElementBytes();
  SmallVector<plan::AxisStrideAttr> axes(each.getAxes());
  if (bytes > 0)
    axes.push_back(plan::AxisStrideAttr::get(
        each.getContext(), dist::MeshOp::kMicroBatchAxis, bytes));
  return plan::ViewAttr::get(each.getContext(), each.getBuffer(),
                             each.getOffset(), axes, each.getElement(),
                             each.getShape().drop_front(),
                             each.getStrides().drop_front());
}

EachMicroBatch::EachMicroBatch(plan::ProgramOp program) {
  llvm::DenseMap<StringAttr, plan::BufferOp> buffers;
  for (auto buffer : program.getOps<plan::BufferOp>())
    buffers[buffer.getSymNameAttr()] = buffer;
  program.walk([&](plan::WriteOp write) {
    StringAttr name = write.getView().getBuffer().getAttr();
    plan::BufferOp buffer = buffers.lookup(name);
    if (!write.getEachMicroBatch() || !buffer)
      return; // a buffer that is not there is refused where it is named
    int64_t begin = buffer.getOffset();
    plan::ViewAttr own;
    if (write.getView().isContiguous() && buffer.getSlots() == 1)
      own = getOwnOf(write.getView());
    auto [at, isNew] =
        areas.insert({name, Area{buffer.getSpace(),
                                 begin,
                                 begin + int64_t(buffer.getBytes()),
                                 own,
                                 {},
                                 {}}});
    if (at->second.own != own)
      at->second.own = {};
  });
}

void EachMicroBatch::beginEntry() {
  current = {};
  for (auto &[name, area] : areas) {
    area.pieces.clear();
    area.spoiled.clear();
  }
}

bool EachMicroBatch::put(plan::ViewAttr view, MicroBatch microBatch,
                         TermId term) {
  auto found = areas.find(view.getBuffer().getAttr());
  if (found == areas.end() || found->second.own != view)
    return false;
  Area &area = found->second;
  if (!current || !area.spoiled.contains(current))
    area.pieces[microBatch] = {term, current ? int64_t(current.getTrips()) : 1};
  return true;
}

void EachMicroBatch::overwrite(const Place &place) {
  for (auto &[name, area] : areas) {
    if (area.space != place.space || place.first() >= area.end ||
        area.begin >= place.last())
      continue;
    area.pieces.clear();
    if (current)
      area.spoiled.insert(current);
  }
}

EachMicroBatch::Pieces EachMicroBatch::find(plan::ViewAttr each,
                                            int64_t count) const {
  auto found = areas.find(each.getBuffer().getAttr());
  if (found == areas.end())
    return {};
  const Pieces &pieces = found->second.pieces;
  SmallVector<std::pair<int64_t, int64_t>> spans;
  for (auto &[microBatch, piece] : pieces)
    spans.push_back({microBatch.number, microBatch.number + piece.turns});
  llvm::sort(spans);
  int64_t end = 0;
  for (auto [begin, next] : spans) {
    if (begin != end)
      return {};
    end = next;
  }
  return end == count ? pieces : Pieces();
}
