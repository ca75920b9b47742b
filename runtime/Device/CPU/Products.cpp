// plan.gemm and plan.pack over the interface of Gemm.h: the form comes from the
// plan, nothing is chosen here.

#include "Device/CPU/CpuDevice.h"
#include "Device/CPU/ProductForms.h"

namespace accel::rt::cpu {
namespace {

GemmForm getGemmForm(const Form &form) {
  GemmForm result;
  result.packed = getInteger(form, "packed", 0) != 0;
  result.bf16x6 = getInteger(form, "bf16x6", 0) != 0;
  result.chunkRows = getInteger(form, "chunk_rows", 0);
  result.chunkColumns = getInteger(form, "chunk_columns", 0);
  if (auto found = form.find("layout"); found != form.end())
    if (auto *layout = std::get_if<std::vector<int64_t>>(&found->second))
      result.layout = *layout;
  return result;
}

class GemmTask : public HostTask {
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

  Status run(const Address *addresses, int64_t) override {
    const void *b = at(addresses[packed >= 0 ? packed : 1]);
    const void *biasAt = bias >= 0 ? at(addresses[bias]) : nullptr;
    char *scratchAt =
        scratch >= 0 ? static_cast<char *>(at(addresses[scratch])) : nullptr;
    int64_t step = gemm->scratchBytes();
    pool.parallelFor(
        gemm->chunks(),
        [&](int64_t chunk, int thread) {
          gemm->run(chunk, thread, at(addresses[0]), b, biasAt,
                    at(addresses[2]),
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

class PackTask : public HostTask {
public:
  explicit PackTask(std::unique_ptr<Gemm> gemm) : gemm(std::move(gemm)) {}
  Status run(const Address *addresses, int64_t) override {
    return gemm->pack(at(addresses[0]), at(addresses[1]));
  }

private:
  std::unique_ptr<Gemm> gemm;
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
  if (!fits ||
      (command.bias && command.bias->shape != std::vector<int64_t>{c.back()}))
    return Status::error("expected operands whose shapes agree");
  // What the library is not told: it takes them to be so.
  auto isOctet = [](DType dtype) {
    return dtype == DType::F8E4M3FN || dtype == DType::F8E5M2;
  };
  bool hasOctets = isOctet(command.a.dtype) && isOctet(command.b.dtype);
  if ((command.b.dtype != command.a.dtype && !hasOctets) ||
      (command.bias && command.bias->dtype != command.c.dtype))
    return Status::error("expected operands of one element type");
  if ((c.back() != 1 && command.c.strides.back() != 1) ||
      (command.bias && c.back() != 1 && command.bias->strides[0] != 1))
    return Status::error("expected rows without gaps");
  if ((getInteger(command.form, "packed", 0) != 0) !=
      command.packed.has_value())
    return Status::error("expected packed weights where the form says so, and "
                         "nowhere else");
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
  if (command.b.dtype != command.a.dtype)
    ACCEL_RT_RETURN_IF_ERROR(
        getType(command.b.dtype, desc.otherType.emplace()));
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

} // namespace accel::rt::cpu
