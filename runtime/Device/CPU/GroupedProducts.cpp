// plan.grouped_gemm and plan.grouped_gemm_grad over Gemm/GroupedGemm.h.

#include "Device/CPU/CpuDevice.h"
#include "Device/CPU/Gemm/GroupedGemm.h"
#include "Device/CPU/ProductForms.h"

namespace accel::rt::cpu {
namespace {

class GroupedTask : public HostTask {
public:
  GroupedTask(std::unique_ptr<GroupedGemm> gemm, bool wide, int limit,
              ThreadPool &pool)
      : gemm(std::move(gemm)), wide(wide), limit(limit), pool(pool) {}

  /// Views: a, b, groups, c, order, scratch.
  Status run(const Address *views, int64_t) override {
    void *order = at(views[4]);
    ACCEL_RT_RETURN_IF_ERROR(gemm->sort(at(views[2]), wide, order));
    auto *scratch = static_cast<char *>(at(views[5]));
    int64_t step = gemm->scratchBytes();
    pool.parallelFor(
        gemm->chunks(order),
        [&](int64_t chunk, int thread) {
          gemm->run(chunk, thread, at(views[0]), at(views[1]), at(views[3]),
                    order, scratch + thread * step);
        },
        limit);
    return Status();
  }

private:
  std::unique_ptr<GroupedGemm> gemm;
  bool wide;
  int limit;
  ThreadPool &pool;
};

Status wrongShapes() {
  return Status::error("expected operands whose shapes agree");
}

/// What both commands say alike.
template <class Command>
Status describeRows(const Command &command, GroupedGemmDesc &desc) {
  const View &a = command.a, &c = command.c;
  if (a.shape.size() != 2 ||
      command.groups.shape != std::vector<int64_t>{a.shape[0]})
    return wrongShapes();
  if (command.groups.dtype != DType::I64 && command.groups.dtype != DType::I32)
    return Status::error(std::string("expected groups of i64 or i32, found ") +
                         dtypeName(command.groups.dtype));
  if (command.b.dtype != a.dtype)
    return Status::error("expected operands of one element type");
  auto hasGaps = [](const View &view) {
    return view.shape.back() != 1 && view.strides.back() != 1;
  };
  if (hasGaps(a) || hasGaps(c) ||
      (command.groups.shape[0] != 1 && command.groups.strides[0] != 1))
    return Status::error("expected rows without gaps");
  ACCEL_RT_RETURN_IF_ERROR(getType(a.dtype, desc.type));
  ACCEL_RT_RETURN_IF_ERROR(getType(c.dtype, desc.outType));
  desc.rows = a.shape[0];
  desc.k = a.shape[1];
  desc.n = c.shape.back();
  desc.aRow = a.strides[0];
  desc.cRow = c.strides[c.strides.size() - 2];
  return Status();
}

template <class Command>
Status prepare(const Command &command, const GroupedGemmDesc &desc,
               bool isGradient, ThreadPool &pool, std::unique_ptr<Task> &task) {
  GroupedGemmForm form{getInteger(command.form, "chunk_columns", 0)};
  std::unique_ptr<GroupedGemm> gemm;
  ACCEL_RT_RETURN_IF_ERROR(
      GroupedGemm::create(desc, form, isGradient, pool.size(), gemm));
  if (!command.order || spanBytes(*command.order) < gemm->orderBytes())
    return Status::error("expected " + std::to_string(gemm->orderBytes()) +
                         " bytes for the order of rows, found less in the "
                         "plan");
  int64_t bytes = gemm->scratchBytes();
  int limit = scratchThreads(command.scratch, bytes, pool.size());
  if (limit < 1)
    return noScratch(bytes);
  task = std::make_unique<GroupedTask>(
      std::move(gemm), command.groups.dtype == DType::I64, limit, pool);
  return Status();
}

} // namespace

Status prepareGroupedGemm(const GroupedGemmCommand &command, ThreadPool &pool,
                          std::unique_ptr<Task> &task) {
  const View &a = command.a, &b = command.b, &c = command.c;
  GroupedGemmDesc desc;
  if (b.shape.size() != 3 || c.shape.size() != 2)
    return wrongShapes();
  ACCEL_RT_RETURN_IF_ERROR(describeRows(command, desc));
  if (b.shape[1] != a.shape[1] || b.shape[2] != c.shape[1] ||
      c.shape[0] != a.shape[0])
    return wrongShapes();
  desc.groups = b.shape[0];
  desc.bGroup = b.strides[0], desc.bRow = b.strides[1];
  desc.bCol = b.strides[2];
  return prepare(command, desc, /*isGradient=*/false, pool, task);
}

Status prepareGroupedGemmGrad(const GroupedGemmGradCommand &command,
                              ThreadPool &pool, std::unique_ptr<Task> &task) {
  const View &a = command.a, &b = command.b, &c = command.c;
  GroupedGemmDesc desc;
  if (b.shape.size() != 2 || c.shape.size() != 3)
    return wrongShapes();
  ACCEL_RT_RETURN_IF_ERROR(describeRows(command, desc));
  if (b.shape[0] != a.shape[0] || c.shape[1] != a.shape[1] ||
      c.shape[2] != b.shape[1])
    return wrongShapes();
  if (b.shape[1] != 1 && b.strides[1] != 1)
    return Status::error("expected rows without gaps");
  desc.groups = c.shape[0];
  desc.bRow = b.strides[0];
  desc.cGroup = c.strides[0];
  desc.accumulate = command.accumulate;
  return prepare(command, desc, /*isGradient=*/true, pool, task);
}

} // namespace accel::rt::cpu
