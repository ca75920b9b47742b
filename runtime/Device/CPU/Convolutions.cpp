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

  /// Views: a, b, c, scratch: what all threads share, then each one's own.
  Status run(const Address *views, int64_t) override {
    auto *shared = hasScratch ? static_cast<char *>(at(views[3])) : nullptr;
    auto *own = shared ? shared + convolution->sharedBytes() : nullptr;
    int64_t step = convolution->scratchBytes();
    pool.parallelFor(
        convolution->chunks(),
        [&](int64_t chunk, int thread) {
          convolution->run(chunk, thread, at(views[0]), at(views[1]),
                           at(views[2]), shared,
                           own ? own + thread * step : nullptr);
        },
        limit);
    pool.parallelFor(convolution->lastChunks(), [&](int64_t chunk, int) {
      convolution->runLast(chunk, shared, at(views[2]));
    });
    return Status();
  }

private:
  std::unique_ptr<Convolution> convolution;
  bool hasScratch;
  int limit;
  ThreadPool &pool;
};

/// The description of the command. Errors: shapes that do not agree.
Status describeConvolution(const ConvCommand &command, ConvolutionDesc &desc) {
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
  if (!desc.layOut(x->strides.data(), w->strides.data(), y->strides.data(),
                   space))
    return Status::error("expected tensors with channels first or last, and "
                         "positions evenly apart");
  return Status();
}

} // namespace

Status prepareConv(const ConvCommand &command, ThreadPool &pool,
                   std::unique_ptr<Task> &task) {
  ConvolutionDesc desc;
  ACCEL_RT_RETURN_IF_ERROR(describeConvolution(command, desc));
  ConvolutionForm form = getDefaultForm(desc);
  form.columns = getInteger(command.form, "columns", form.columns);
  form.channels = getInteger(command.form, "channels", form.channels);
  form.outChannels = getInteger(command.form, "out_channels", form.outChannels);
  form.samples = getInteger(command.form, "samples", form.samples);
  std::unique_ptr<Convolution> made;
  ACCEL_RT_RETURN_IF_ERROR(Convolution::create(desc, form, pool.size(), made));
  int64_t bytes = made->scratchBytes();
  int limit =
      scratchThreads(command.scratch, bytes, pool.size(), made->sharedBytes());
  if (limit < 1)
    return noScratch(bytes + made->sharedBytes());
  task = std::make_unique<ConvolutionTask>(
      std::move(made), command.scratch.has_value(), limit, pool);
  return Status();
}

} // namespace accel::rt::cpu
