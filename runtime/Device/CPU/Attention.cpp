// plan.attention and plan.attention_grad over Gemm/Attention.h and
// Gemm/AttentionGrad.h.

#include "Device/CPU/CpuDevice.h"
#include "Device/CPU/Gemm/AttentionGrad.h"
#include "Device/CPU/ProductForms.h"

namespace accel::rt::cpu {
namespace {

class AttentionTask : public HostTask {
public:
  AttentionTask(std::unique_ptr<Attention> attention,
                const AttentionCommand &command, ThreadPool &pool)
      : attention(std::move(attention)), pool(pool), mask(-1), logSumExp(-1),
        scratch(-1) {
    int next = 4; // query, key, value, output
    if (command.mask)
      mask = next++;
    if (command.logSumExp)
      logSumExp = next++;
    if (command.scratch)
      scratch = next++;
    limit = scratchThreads(command.scratch, this->attention->scratchBytes(),
                           pool.size());
  }
  int threads() const { return limit; }

  Status run(const Address *addresses, int64_t) override {
    Attention::Addresses views{
        at(addresses[0]), at(addresses[1]),
        at(addresses[2]), mask >= 0 ? at(addresses[mask]) : nullptr,
        at(addresses[3]), logSumExp >= 0 ? at(addresses[logSumExp]) : nullptr};
    char *scratchAt =
        scratch >= 0 ? static_cast<char *>(at(addresses[scratch])) : nullptr;
    int64_t step = attention->scratchBytes();
    pool.parallelFor(
        attention->chunks(),
        [&](int64_t chunk, int thread) {
          attention->run(chunk, thread, views,
                         scratchAt ? scratchAt + thread * step : nullptr);
        },
        limit);
    return Status();
  }

private:
  std::unique_ptr<Attention> attention;
  ThreadPool &pool;
  int mask, logSumExp, scratch, limit;
};

/// The same of the gradient.
class AttentionGradTask : public HostTask {
public:
  AttentionGradTask(std::unique_ptr<AttentionGrad> grad,
                    const AttentionGradCommand &command, ThreadPool &pool)
      : grad(std::move(grad)), pool(pool), logSumExpGradient(-1), mask(-1),
        scratch(-1) {
    // query, key, value, output, log-sum-exp, gradient, then the gradients of
    // the first three
    int next = 9;
    if (command.logSumExpGradient)
      logSumExpGradient = next++;
    if (command.mask)
      mask = next++;
    if (command.scratch)
      scratch = next++;
    limit = scratchThreads(command.scratch, this->grad->scratchBytes(),
                           pool.size());
  }
  int threads() const { return limit; }

  Status run(const Address *addresses, int64_t) override {
    AttentionGrad::Addresses views{
        at(addresses[0]),
        at(addresses[1]),
        at(addresses[2]),
        at(addresses[3]),
        at(addresses[4]),
        at(addresses[5]),
        logSumExpGradient >= 0 ? at(addresses[logSumExpGradient]) : nullptr,
        mask >= 0 ? at(addresses[mask]) : nullptr,
        at(addresses[6]),
        at(addresses[7]),
        at(addresses[8])};
    char *scratchAt =
        scratch >= 0 ? static_cast<char *>(at(addresses[scratch])) : nullptr;
    int64_t step = grad->scratchBytes();
    pool.parallelFor(
        grad->chunks(),
        [&](int64_t chunk, int thread) {
          grad->run(chunk, thread, views,
                    scratchAt ? scratchAt + thread * step : nullptr);
        },
        limit);
    return Status();
  }

private:
  std::unique_ptr<AttentionGrad> grad;
  ThreadPool &pool;
  int logSumExpGradient, mask, scratch, limit;
};

/// Checks that rows have no gaps, and copies the other strides.
Status getStrides(const View &view, std::array<int64_t, 3> &strides) {
  if (view.shape.size() != 4)
    return Status::error("expected views of 4 dimensions");
  std::copy_n(view.strides.begin(), 3, strides.begin());
  if (view.strides[3] != 1 && view.shape[3] != 1)
    return Status::error("expected rows without gaps");
  return Status();
}

/// Checks that a view holds a number for each row of the result, in the type of
/// sums, and copies its strides.
Status getRowStrides(const View &view, const AttentionDesc &desc,
                     std::array<int64_t, 2> &strides) {
  DType expected = desc.type == GemmType::F64 ? DType::F64 : DType::F32;
  if (view.dtype != expected ||
      view.shape !=
          std::vector<int64_t>{desc.batch, desc.heads, desc.queries} ||
      (view.strides[2] != 1 && view.shape[2] != 1))
    return Status::error("expected a log-sum-exp for each row, in " +
                         std::string(dtypeName(expected)) + ", side by side");
  std::copy_n(view.strides.begin(), 2, strides.begin());
  return Status();
}

/// What both commands say alike; `output` has the result's shape, and
/// `logSumExp` may be null.
template <class AnyCommand>
Status describeAttention(const AnyCommand &command, const View &output,
                         const View *logSumExp, AttentionDesc &desc) {
  ACCEL_RT_RETURN_IF_ERROR(getType(command.query.dtype, desc.type));
  ACCEL_RT_RETURN_IF_ERROR(getStrides(command.query, desc.query));
  ACCEL_RT_RETURN_IF_ERROR(getStrides(command.key, desc.key));
  ACCEL_RT_RETURN_IF_ERROR(getStrides(command.value, desc.value));
  ACCEL_RT_RETURN_IF_ERROR(getStrides(output, desc.output));
  const auto &q = command.query.shape, &k = command.key.shape,
             &v = command.value.shape, &o = output.shape;
  desc.batch = q[0], desc.heads = q[1], desc.queries = q[2], desc.width = q[3];
  desc.groups = k[1], desc.keys = k[2], desc.valueWidth = v[3];
  if (k[0] != q[0] || v[0] != q[0] || v[1] != k[1] || v[2] != k[2] ||
      k[3] != q[3] || o[0] != q[0] || o[1] != q[1] || o[2] != q[2] ||
      o[3] != v[3] || k[1] < 1 || q[1] % k[1])
    return Status::error("expected operands whose shapes agree");
  for (const View *view : {&command.key, &command.value, &output})
    if (view->dtype != command.query.dtype)
      return Status::error("expected operands of one element type");
  desc.causal = command.causal;
  desc.diagonal = command.rowOffset - command.columnOffset;
  if (logSumExp)
    ACCEL_RT_RETURN_IF_ERROR(getRowStrides(*logSumExp, desc, desc.logSumExp));
  if (!command.mask)
    return Status();
  const View &mask = *command.mask;
  if (mask.shape.size() != 4)
    return Status::error("expected a mask of 4 dimensions");
  for (size_t d = 0; d < 3; ++d) {
    if (mask.shape[d] != 1 && mask.shape[d] != q[d])
      return Status::error("expected a mask that fits the scores");
    desc.mask[d] =
        mask.shape[d] == 1 ? 0 : mask.strides[d] * dtypeBytes(mask.dtype);
  }
  return Status();
}

} // namespace

Status prepareAttention(const AttentionCommand &command, ThreadPool &pool,
                        const KernelLibrary &kernels,
                        std::unique_ptr<Task> &task) {
  AttentionDesc desc;
  ACCEL_RT_RETURN_IF_ERROR(describeAttention(
      command, command.output,
      command.logSumExp ? &*command.logSumExp : nullptr, desc));
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

Status prepareAttentionGrad(const AttentionGradCommand &command,
                            ThreadPool &pool, const KernelLibrary &kernels,
                            std::unique_ptr<Task> &task) {
  AttentionGradDesc desc;
  ACCEL_RT_RETURN_IF_ERROR(describeAttention(command, command.gradient,
                                             &command.logSumExp, desc.forward));
  if (command.logSumExpGradient)
    ACCEL_RT_RETURN_IF_ERROR(getRowStrides(
        *command.logSumExpGradient, desc.forward, desc.logSumExpGradient));
  ACCEL_RT_RETURN_IF_ERROR(getStrides(command.output, desc.result));
  desc.zeroMaskedRows = command.zeroMaskedRows;
  ACCEL_RT_RETURN_IF_ERROR(
      getStrides(command.queryGradient, desc.queryGradient));
  ACCEL_RT_RETURN_IF_ERROR(getStrides(command.keyGradient, desc.keyGradient));
  ACCEL_RT_RETURN_IF_ERROR(
      getStrides(command.valueGradient, desc.valueGradient));
  for (auto [view, result] :
       {std::pair(&command.gradient, &command.output),
        std::pair(&command.query, &command.queryGradient),
        std::pair(&command.key, &command.keyGradient),
        std::pair(&command.value, &command.valueGradient)})
    if (view->shape != result->shape || view->dtype != result->dtype)
      return Status::error("expected gradients like what they are of");
  KernelFunction rows = nullptr;
  ACCEL_RT_RETURN_IF_ERROR(kernels.find(command.kernel, rows));
  AttentionForm form{getInteger(command.form, "block_queries", 0)};
  std::unique_ptr<AttentionGrad> grad;
  ACCEL_RT_RETURN_IF_ERROR(
      AttentionGrad::create(desc, form, rows, pool.size(), grad));
  int64_t scratchBytes = grad->scratchBytes();
  auto made =
      std::make_unique<AttentionGradTask>(std::move(grad), command, pool);
  if (made->threads() < 1)
    return noScratch(scratchBytes);
  task = std::move(made);
  return Status();
}

} // namespace accel::rt::cpu
