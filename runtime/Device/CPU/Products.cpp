// plan.gemm, plan.pack and plan.attention over the interface of Gemm.h: the
// form comes from the plan, nothing is chosen here.

#include "Device/CPU/CpuDevice.h"
#include "Device/CPU/Gemm/Attention.h"
#include "Device/CPU/Gemm/Gemm.h"

namespace accel::rt::cpu {
namespace {

Status getType(DType dtype, GemmType &type) {
  switch (dtype) {
  case DType::F32:
    type = GemmType::F32;
    return Status();
  case DType::BF16:
    type = GemmType::BF16;
    return Status();
  case DType::F64:
    type = GemmType::F64;
    return Status();
  default:
    return Status::error(std::string("expected f32, bf16 or f64, found ") +
                         dtypeName(dtype));
  }
}

/// An integer of a form; `otherwise` where the form has none of that name.
int64_t getInteger(const Form &form, const char *name, int64_t otherwise) {
  auto found = form.find(name);
  if (found == form.end())
    return otherwise;
  auto *value = std::get_if<int64_t>(&found->second);
  return value ? *value : otherwise;
}

GemmForm getGemmForm(const Form &form) {
  GemmForm result;
  result.packed = getInteger(form, "packed", 0) != 0;
  result.chunkRows = getInteger(form, "chunk_rows", 0);
  result.chunkColumns = getInteger(form, "chunk_columns", 0);
  if (auto found = form.find("layout"); found != form.end())
    if (auto *layout = std::get_if<std::vector<int64_t>>(&found->second))
      result.layout = *layout;
  return result;
}

/// How many threads the planned scratch serves.
int scratchThreads(const std::optional<View> &scratch, int64_t bytesPerThread,
                   int threads) {
  if (bytesPerThread == 0)
    return threads;
  int64_t planned = scratch ? spanBytes(*scratch) / bytesPerThread : 0;
  return static_cast<int>(std::min<int64_t>(planned, threads));
}

Status noScratch(int64_t needed) {
  return Status::error("expected " + std::to_string(needed) +
                       " bytes of scratch a thread, found less in the plan");
}

class GemmTask : public Task {
public:
  GemmTask(std::unique_ptr<Gemm> gemm, const GemmCommand &command,
           ThreadPool &pool)
      : gemm(std::move(gemm)), pool(pool), bias(-1), packed(-1), scratch(-1) {
    // The order of forEachView: a, b, c, then what is there.
    int next = 3;
    if (command.bias)
      bias = next++;
    if (command.packed)
      packed = next++;
    if (command.scratch)
      scratch = next++;
    limit = scratchThreads(command.scratch, this->gemm->scratchBytes(),
                           pool.size());
  }
  int threads() const { return limit; }

  Status run(void *const *addresses, int64_t) override {
    const void *b = addresses[packed >= 0 ? packed : 1];
    const void *biasAt = bias >= 0 ? addresses[bias] : nullptr;
    char *scratchAt =
        scratch >= 0 ? static_cast<char *>(addresses[scratch]) : nullptr;
    int64_t step = gemm->scratchBytes();
    pool.parallelFor(
        gemm->chunks(),
        [&](int64_t chunk, int thread) {
          gemm->run(chunk, thread, addresses[0], b, biasAt, addresses[2],
                    scratchAt ? scratchAt + thread * step : nullptr);
        },
        limit);
    return Status();
  }

private:
  std::unique_ptr<Gemm> gemm;
  ThreadPool &pool;
  int bias, packed, scratch, limit;
};

class PackTask : public Task {
public:
  explicit PackTask(std::unique_ptr<Gemm> gemm) : gemm(std::move(gemm)) {}
  Status run(void *const *addresses, int64_t) override {
    return gemm->pack(addresses[0], addresses[1]);
  }

private:
  std::unique_ptr<Gemm> gemm;
};

class AttentionTask : public Task {
public:
  AttentionTask(std::unique_ptr<Attention> attention,
                const AttentionCommand &command, ThreadPool &pool)
      : attention(std::move(attention)), pool(pool), mask(-1), scratch(-1) {
    int next = 4; // query, key, value, output
    if (command.mask)
      mask = next++;
    if (command.scratch)
      scratch = next++;
    limit = scratchThreads(command.scratch, this->attention->scratchBytes(),
                           pool.size());
  }
  int threads() const { return limit; }

  Status run(void *const *addresses, int64_t) override {
    const void *maskAt = mask >= 0 ? addresses[mask] : nullptr;
    char *scratchAt =
        scratch >= 0 ? static_cast<char *>(addresses[scratch]) : nullptr;
    int64_t step = attention->scratchBytes();
    pool.parallelFor(
        attention->chunks(),
        [&](int64_t chunk, int thread) {
          attention->run(chunk, thread, addresses[0], addresses[1],
                         addresses[2], maskAt, addresses[3],
                         scratchAt ? scratchAt + thread * step : nullptr);
        },
        limit);
    return Status();
  }

private:
  std::unique_ptr<Attention> attention;
  ThreadPool &pool;
  int mask, scratch, limit;
};

Status checkShapes(const GemmCommand &command) {
  const auto &a = command.a.shape, &b = command.b.shape, &c = command.c.shape;
  bool fits = a.size() >= 2 && c.size() == a.size() &&
              (b.size() == 2 || b.size() == a.size());
  if (fits) {
    fits = b[b.size() - 2] == a.back() && b.back() == c.back();
    for (size_t i = 0; i + 1 < a.size(); ++i)
      fits = fits && a[i] == c[i];
    for (size_t i = 0; b.size() > 2 && i + 2 < b.size(); ++i)
      fits = fits && a[i] == b[i];
  }
  if (!fits || (command.bias && numElements(command.bias->shape) < c.back()))
    return Status::error("expected operands whose shapes agree");
  return Status();
}

} // namespace

Status prepareGemm(const GemmCommand &command, ThreadPool &pool,
                   std::unique_ptr<Task> &task) {
  ACCEL_RT_RETURN_IF_ERROR(checkShapes(command));
  GemmType type, outType;
  ACCEL_RT_RETURN_IF_ERROR(getType(command.a.dtype, type));
  ACCEL_RT_RETURN_IF_ERROR(getType(command.c.dtype, outType));
  GemmDesc desc =
      GemmDesc::ofViews(type, outType, {command.a.shape, command.a.strides},
                        {command.b.shape, command.b.strides},
                        {command.c.shape, command.c.strides},
                        command.bias.has_value(), command.accumulate);
  GemmForm form = getGemmForm(command.form);
  std::unique_ptr<Gemm> gemm;
  ACCEL_RT_RETURN_IF_ERROR(Gemm::create(desc, form, pool.size(), gemm));
  if (form.packed &&
      (!command.packed || spanBytes(*command.packed) < gemm->packedBytes()))
    return Status::error("expected " + std::to_string(gemm->packedBytes()) +
                         " bytes of packed weights");
  int64_t scratchBytes = gemm->scratchBytes();
  auto made = std::make_unique<GemmTask>(std::move(gemm), command, pool);
  if (made->threads() < 1)
    return noScratch(scratchBytes);
  task = std::move(made);
  return Status();
}

Status preparePack(const PackCommand &command, std::unique_ptr<Task> &task) {
  GemmType type;
  ACCEL_RT_RETURN_IF_ERROR(getType(command.source.dtype, type));
  if (command.source.shape.size() != 2)
    return Status::error("expected a matrix to pack");
  // The layout was recorded by the compiler for b alone: the product's other
  // sizes do not matter.
  GemmDesc desc;
  desc.type = desc.outType = type;
  desc.k = command.source.shape[0];
  desc.n = command.source.shape[1];
  desc.m = getInteger(command.form, "m", 1);
  desc.aRow = desc.k;
  desc.cRow = desc.n;
  desc.bRow = command.source.strides[0];
  desc.bCol = command.source.strides[1];
  std::unique_ptr<Gemm> gemm;
  ACCEL_RT_RETURN_IF_ERROR(
      Gemm::create(desc, getGemmForm(command.form), 1, gemm));
  if (gemm->packedBytes() > spanBytes(command.target))
    return Status::error("expected " + std::to_string(gemm->packedBytes()) +
                         " bytes for packed weights, found " +
                         std::to_string(spanBytes(command.target)));
  task = std::make_unique<PackTask>(std::move(gemm));
  return Status();
}

Status prepareAttention(const AttentionCommand &command, ThreadPool &pool,
                        const KernelLibrary &kernels,
                        std::unique_ptr<Task> &task) {
  for (const View *view :
       {&command.query, &command.key, &command.value, &command.output})
    if (view->shape.size() != 4)
      return Status::error("expected views of 4 dimensions");
  AttentionDesc desc;
  ACCEL_RT_RETURN_IF_ERROR(getType(command.query.dtype, desc.type));
  const auto &q = command.query.shape, &k = command.key.shape,
             &v = command.value.shape, &o = command.output.shape;
  desc.batch = q[0], desc.heads = q[1], desc.queries = q[2], desc.width = q[3];
  desc.groups = k[1], desc.keys = k[2], desc.valueWidth = v[3];
  if (k[0] != q[0] || v[0] != q[0] || v[1] != k[1] || v[2] != k[2] ||
      k[3] != q[3] || o[0] != q[0] || o[1] != q[1] || o[2] != q[2] ||
      o[3] != v[3] || k[1] < 1 || q[1] % k[1])
    return Status::error("expected operands whose shapes agree");
  for (auto [view, strides] : {std::pair(&command.query, &desc.query),
                               std::pair(&command.key, &desc.key),
                               std::pair(&command.value, &desc.value),
                               std::pair(&command.output, &desc.output)}) {
    std::copy_n(view->strides.begin(), 3, strides->begin());
    if (view->strides[3] != 1 && view->shape[3] != 1)
      return Status::error("expected rows without gaps");
  }
  desc.causal = command.causal;
  if (command.mask) {
    const View &mask = *command.mask;
    if (mask.shape.size() != 4)
      return Status::error("expected a mask of 4 dimensions");
    for (size_t d = 0; d < 3; ++d) {
      if (mask.shape[d] != 1 && mask.shape[d] != (d == 0 ? q[0] : q[d]))
        return Status::error("expected a mask that fits the scores");
      desc.mask[d] =
          mask.shape[d] == 1 ? 0 : mask.strides[d] * dtypeBytes(mask.dtype);
    }
  }
  KernelFunction softmax = nullptr;
  ACCEL_RT_RETURN_IF_ERROR(kernels.find(command.kernel, softmax));
  AttentionForm form{getInteger(command.form, "block_queries", 0)};
  std::unique_ptr<Attention> attention;
  ACCEL_RT_RETURN_IF_ERROR(
      Attention::create(desc, form, softmax, pool.size(), attention));
  int64_t scratchBytes = attention->scratchBytes();
  auto made =
      std::make_unique<AttentionTask>(std::move(attention), command, pool);
  if (made->threads() < 1)
    return noScratch(scratchBytes);
  task = std::move(made);
  return Status();
}

} // namespace accel::rt::cpu
