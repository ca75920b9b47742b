// plan.conv over Gemm/Convolution.h.

#include "Device/CPU/CpuDevice.h"
#include "Device/CPU/Gemm/Convolution.h"
#include "Device/CPU/ProductForms.h"

namespace accel::rt::cpu {
namespace {

class ConvolutionTask : public HostTask {
public:
  ConvolutionTask(std::unique_ptr<Convolution> convolution, bool hasScratch,
                  int limit, ThreadPool &pool)
      : convolution(std::move(convolution)), hasScratch(hasScratch),
        limit(limit), pool(pool) {}

  /// Views: a, b, c, scratch.
  Status run(const Address *views, int64_t) override {
    auto *scratch = hasScratch ? static_cast<char *>(at(views[3])) : nullptr;
    int64_t step = convolution->scratchBytes();
    pool.parallelFor(
        convolution->chunks(),
        [&](int64_t chunk, int thread) {
          convolution->run(chunk, thread, at(views[0]), at(views[1]),
                           at(views[2]),
                           scratch ? scratch + thread * step : nullptr);
        },
        limit);
    return Status();
  }

private:
  std::unique_ptr<Convolution> convolution;
  bool hasScratch;
  int limit;
  ThreadPool &pool;
};

bool hasGaps(const View &view, size_t dims) {
  int64_t stride = 1;
  for (size_t back = 1; back <= dims; ++back) {
    size_t dim = view.shape.size() - back;
    if (view.shape[dim] != 1 && view.strides[dim] != stride)
      return true;
    stride *= view.shape[dim];
  }
  return false;
}

/// The description of the command. Errors: shapes that do not agree.
Status describe(const ConvCommand &command, ConvolutionDesc &desc) {
  const View *x = &command.a, *w = &command.b, *y = &command.c;
  if (command.convolution == "forward") {
    desc.kind = ConvolutionKind::Forward;
  } else if (command.convolution == "input_grad") {
    desc.kind = ConvolutionKind::InputGrad;
    std::swap(x, y);
  } else if (command.convolution == "weight_grad") {
    desc.kind = ConvolutionKind::WeightGrad;
    std::swap(w, y);
  } else {
    return Status::error("expected 'forward', 'input_grad' or 'weight_grad', "
                         "found '" +
                         command.convolution + "'");
  }
  size_t space = command.strides.size(), rank = space + 3;
  bool fits = space >= 1 && space <= 3 && command.dilations.size() == space &&
              command.low.size() == space && x->shape.size() == rank &&
              w->shape.size() == rank && y->shape.size() == rank &&
              x->shape[0] == y->shape[0] && x->shape[1] == y->shape[1] &&
              x->shape[1] == w->shape[0] && x->shape[2] == w->shape[2] &&
              y->shape[2] == w->shape[1];
  for (size_t dim = 0; fits && dim < space; ++dim)
    fits = command.strides[dim] >= 1 && command.dilations[dim] >= 1 &&
           command.low[dim] >= 0;
  for (const View *view : {x, w, y})
    for (int64_t size : view->shape)
      fits = fits && size >= 1;
  if (!fits)
    return Status::error("expected operands whose shapes agree");
  if (w->dtype != x->dtype || y->dtype != x->dtype)
    return Status::error("expected operands of one element type");
  if (hasGaps(*x, space) || hasGaps(*y, space) || hasGaps(*w, space + 1))
    return Status::error("expected space without gaps");
  ACCEL_RT_RETURN_IF_ERROR(getType(x->dtype, desc.type));
  desc.batch = x->shape[0], desc.groups = x->shape[1];
  desc.channels = x->shape[2], desc.outChannels = y->shape[2];
  for (size_t dim = 0; dim < space; ++dim) {
    size_t at = 3 - space + dim; // the first ones stay of size 1
    desc.in[at] = x->shape[3 + dim], desc.window[at] = w->shape[3 + dim];
    desc.out[at] = y->shape[3 + dim];
    desc.stride[at] = command.strides[dim];
    desc.dilation[at] = command.dilations[dim];
    desc.low[at] = command.low[dim];
  }
  std::copy_n(x->strides.begin(), 3, desc.x.begin());
  std::copy_n(y->strides.begin(), 3, desc.y.begin());
  std::copy_n(w->strides.begin(), 2, desc.w.begin());
  return Status();
}

} // namespace

Status prepareConv(const ConvCommand &command, ThreadPool &pool,
                   std::unique_ptr<Task> &task) {
  ConvolutionDesc desc;
  ACCEL_RT_RETURN_IF_ERROR(describe(command, desc));
  ConvolutionForm form = getDefaultForm(desc);
  form.columns = getInteger(command.form, "columns", form.columns);
  form.channels = getInteger(command.form, "channels", form.channels);
  form.outChannels = getInteger(command.form, "out_channels", form.outChannels);
  form.samples = getInteger(command.form, "samples", form.samples);
  std::unique_ptr<Convolution> made;
  ACCEL_RT_RETURN_IF_ERROR(Convolution::create(desc, form, pool.size(), made));
  int64_t bytes = made->scratchBytes();
  int limit = scratchThreads(command.scratch, bytes, pool.size());
  if (limit < 1)
    return noScratch(bytes);
  task = std::make_unique<ConvolutionTask>(
      std::move(made), command.scratch.has_value(), limit, pool);
  return Status();
}

} // namespace accel::rt::cpu
