// What a product is, from the shapes and strides of its three views.

#include "Device/CPU/Gemm/Gemm.h"

#include "Device/CPU/Gemm/ConvertRows.h"
#include "Device/CPU/Gemm/GemmForms.h"

using namespace accel::rt;
using namespace accel::rt::cpu;

Gemm::~Gemm() = default;

int64_t accel::rt::cpu::getBytes(GemmType type) {
  switch (type) {
  case GemmType::F8E4M3FN:
  case GemmType::F8E5M2:
    return 1;
  case GemmType::F16:
  case GemmType::BF16:
    return 2;
  case GemmType::F32:
    return 4;
  case GemmType::F64:
    return 8;
  }
  return 0;
}

GemmDesc GemmDesc::ofViews(GemmType type, GemmType outType, const Operand &a,
                           const Operand &b, const Operand &c, bool bias,
                           bool accumulate) {
  GemmDesc desc;
  desc.type = type;
  desc.outType = outType;
  desc.bias = bias;
  desc.accumulate = accumulate;
  size_t dims = a.shape.size() - 2;
  desc.m = a.shape[dims];
  desc.k = a.shape[dims + 1];
  desc.n = c.shape[dims + 1];
  desc.aRow = a.strides[dims];
  desc.aCol = a.strides[dims + 1];
  desc.bRow = b.strides[b.strides.size() - 2];
  desc.bCol = b.strides[b.strides.size() - 1];
  desc.cRow = c.strides[dims];
  for (size_t dim = 0; dim < dims; ++dim) {
    if (a.shape[dim] == 1)
      continue;
    desc.batch.push_back(a.shape[dim]);
    desc.aBatch.push_back(a.strides[dim]);
    desc.bBatch.push_back(b.shape.size() == 2 ? 0 : b.strides[dim]);
    desc.cBatch.push_back(c.strides[dim]);
  }
  desc.simplify();
  return desc;
}

void GemmDesc::simplify() {
  while (!batch.empty() && bBatch.back() == 0 &&
         (m == 1 || (aBatch.back() == m * aRow && cBatch.back() == m * cRow))) {
    if (m == 1) {
      aRow = aBatch.back();
      cRow = cBatch.back();
    }
    m *= batch.back();
    for (auto *list : {&batch, &aBatch, &bBatch, &cBatch})
      list->pop_back();
  }
}

Status Gemm::create(const GemmDesc &desc, const GemmForm &form, int threads,
                    std::unique_ptr<Gemm> &gemm) {
  if (desc.m < 1 || desc.n < 1 || desc.k < 1)
    return Status::error("expected a matrix product of at least one element, "
                         "found sizes " +
                         std::to_string(desc.m) + ", " +
                         std::to_string(desc.n) + ", " +
                         std::to_string(desc.k));
  if (desc.otherType &&
      (getBytes(desc.type) != 1 || getBytes(*desc.otherType) != 1))
    return Status::error("expected operands of one type, or of 8 bits");
  if (desc.type == GemmType::F64)
    return createLoopGemm(desc, form, gemm);
  if (getWideType(desc.type) != desc.type)
    return createWidenedGemm(desc, form, threads, gemm);
  if (form.bf16x6)
    return createBf16x6Gemm(desc, form, gemm);
  Status status = createDnnlGemm(desc, form, threads, gemm);
  if (status.ok() || form.packed)
    return status;
  // oneDNN has no form without allocations for this product on this machine.
  return createLoopGemm(desc, form, gemm);
}

Chunks::Chunks(const GemmDesc &desc, const GemmForm &form)
    : desc(desc),
      rows(form.chunkRows > 0 ? std::min(form.chunkRows, desc.m) : desc.m),
      columns(form.chunkColumns > 0 ? std::min(form.chunkColumns, desc.n)
                                    : desc.n) {
  rows = std::max<int64_t>(rows, 1);
  columns = std::max<int64_t>(columns, 1);
  rowChunks = (desc.m + rows - 1) / rows;
  columnChunks = (desc.n + columns - 1) / columns;
  count = rowChunks * columnChunks;
  for (int64_t size : desc.batch)
    count *= size;
}

Chunk Chunks::get(int64_t index) const {
  Chunk chunk;
  chunk.column = index % columnChunks;
  index /= columnChunks;
  chunk.row = index % rowChunks;
  index /= rowChunks;
  int64_t firstRow = chunk.row * rows, firstColumn = chunk.column * columns;
  chunk.rows = std::min(rows, desc.m - firstRow);
  chunk.columns = std::min(columns, desc.n - firstColumn);
  chunk.a = firstRow * desc.aRow;
  chunk.b = firstColumn * desc.bCol;
  chunk.c = firstRow * desc.cRow + firstColumn;
  chunk.bias = firstColumn;
  for (size_t dim = desc.batch.size(); dim-- > 0;) {
    int64_t at = index % desc.batch[dim];
    index /= desc.batch[dim];
    chunk.a += at * desc.aBatch[dim];
    chunk.b += at * desc.bBatch[dim];
    chunk.c += at * desc.cBatch[dim];
  }
  return chunk;
}
