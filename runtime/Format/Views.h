// Calls a function on every view of a command, const or not: what checks,
// address resolution and printing share.

#ifndef ACCEL_RUNTIME_FORMAT_VIEWS_H
#define ACCEL_RUNTIME_FORMAT_VIEWS_H

#include "accel-rt/PlanFormat.h"

namespace accel::rt::format {

template <class F> void forEachView(const GemmCommand &gemm, F &&f) {
  f(gemm.a), f(gemm.b), f(gemm.c);
  for (const auto *view : {&gemm.bias, &gemm.packed, &gemm.scratch})
    if (*view)
      f(**view);
}
template <class F> void forEachView(const AttentionCommand &attention, F &&f) {
  f(attention.query), f(attention.key), f(attention.value), f(attention.output);
  for (const auto *view : {&attention.mask, &attention.scratch})
    if (*view)
      f(**view);
}
template <class F> void forEachView(const AttentionGradCommand &grad, F &&f) {
  f(grad.query), f(grad.key), f(grad.value), f(grad.gradient);
  f(grad.queryGradient), f(grad.keyGradient), f(grad.valueGradient);
  for (const auto *view : {&grad.mask, &grad.scratch})
    if (*view)
      f(**view);
}
template <class F> void forEachView(const KernelCommand &kernel, F &&f) {
  for (const View &view : kernel.inputs)
    f(view);
  for (const View &view : kernel.outputs)
    f(view);
}
template <class F>
void forEachView(const CollectiveCommand &collective, F &&f) {
  for (const View &view : collective.inputs)
    f(view);
  for (const View &view : collective.outputs)
    f(view);
}
template <class F> void forEachView(const SendCommand &send, F &&f) {
  f(send.view);
}
template <class F> void forEachView(const RecvCommand &recv, F &&f) {
  f(recv.view);
}
template <class F> void forEachView(const GroupCommand &group, F &&f) {
  for (const SendCommand &send : group.sends)
    f(send.view);
  for (const RecvCommand &recv : group.recvs)
    f(recv.view);
}
template <class F> void forEachView(const CopyCommand &copy, F &&f) {
  f(copy.source), f(copy.target);
}
template <class F> void forEachView(const FillCommand &fill, F &&f) {
  f(fill.target);
}
template <class F> void forEachView(const PackCommand &pack, F &&f) {
  f(pack.source), f(pack.target);
}
template <class F>
void forEachView(const CoordinateCommand &coordinate, F &&f) {
  f(coordinate.target);
}
template <class F> void forEachView(const ReadCommand &read, F &&f) {
  f(read.target);
}
template <class F> void forEachView(const WriteCommand &write, F &&f) {
  f(write.view);
}
template <class F> void forEachView(const RecordCommand &, F &&) {}
template <class F> void forEachView(const WaitCommand &, F &&) {}
template <class F> void forEachView(const Command &command, F &&f) {
  std::visit([&](const auto &what) { forEachView(what, f); }, command.what);
}

} // namespace accel::rt::format

#endif // ACCEL_RUNTIME_FORMAT_VIEWS_H
