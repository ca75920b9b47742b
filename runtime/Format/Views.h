// Calls a function on every view of a command: what checks and address
// resolution share. Of each view, whether it is read, written or both.

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
  for (const auto *view :
       {&attention.mask, &attention.logSumExp, &attention.scratch})
    if (*view)
      f(**view);
}
template <class F> void forEachView(const AttentionGradCommand &grad, F &&f) {
  f(grad.query), f(grad.key), f(grad.value);
  f(grad.output), f(grad.logSumExp), f(grad.gradient);
  f(grad.queryGradient), f(grad.keyGradient), f(grad.valueGradient);
  for (const auto *view : {&grad.logSumExpGradient, &grad.mask, &grad.scratch})
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

enum class Access { Read, Write, Both };

// What the plan dialect's getReads and getWrites say, of the structs.
template <class F> void forEachAccess(const GemmCommand &gemm, F &&f) {
  f(gemm.a, Access::Read);
  f(gemm.packed ? *gemm.packed : gemm.b, Access::Read);
  if (gemm.bias)
    f(*gemm.bias, Access::Read);
  f(gemm.c, gemm.accumulate ? Access::Both : Access::Write);
  if (gemm.scratch)
    f(*gemm.scratch, Access::Both);
}
template <class F>
void forEachAccess(const AttentionCommand &attention, F &&f) {
  f(attention.query, Access::Read), f(attention.key, Access::Read);
  f(attention.value, Access::Read);
  if (attention.mask)
    f(*attention.mask, Access::Read);
  f(attention.output, Access::Write);
  if (attention.logSumExp)
    f(*attention.logSumExp, Access::Write);
  if (attention.scratch)
    f(*attention.scratch, Access::Both);
}
template <class F> void forEachAccess(const AttentionGradCommand &grad, F &&f) {
  f(grad.query, Access::Read), f(grad.key, Access::Read);
  f(grad.value, Access::Read), f(grad.output, Access::Read);
  f(grad.logSumExp, Access::Read), f(grad.gradient, Access::Read);
  for (const auto *view : {&grad.logSumExpGradient, &grad.mask})
    if (*view)
      f(**view, Access::Read);
  f(grad.queryGradient, Access::Write), f(grad.keyGradient, Access::Write);
  f(grad.valueGradient, Access::Write);
  if (grad.scratch)
    f(*grad.scratch, Access::Both);
}
template <class Lists, class F>
void forEachAccessInLists(const Lists &lists, F &&f) {
  for (const View &view : lists.inputs)
    f(view, Access::Read);
  for (const View &view : lists.outputs)
    f(view, Access::Write);
}
template <class F> void forEachAccess(const KernelCommand &kernel, F &&f) {
  forEachAccessInLists(kernel, f);
}
template <class F>
void forEachAccess(const CollectiveCommand &collective, F &&f) {
  forEachAccessInLists(collective, f);
}
template <class F> void forEachAccess(const SendCommand &send, F &&f) {
  f(send.view, Access::Read);
}
template <class F> void forEachAccess(const RecvCommand &recv, F &&f) {
  f(recv.view, Access::Write);
}
template <class F> void forEachAccess(const GroupCommand &group, F &&f) {
  for (const SendCommand &send : group.sends)
    f(send.view, Access::Read);
  for (const RecvCommand &recv : group.recvs)
    f(recv.view, Access::Write);
}
template <class F> void forEachAccess(const CopyCommand &copy, F &&f) {
  f(copy.source, Access::Read), f(copy.target, Access::Write);
}
template <class F> void forEachAccess(const FillCommand &fill, F &&f) {
  f(fill.target, Access::Write);
}
template <class F> void forEachAccess(const PackCommand &pack, F &&f) {
  f(pack.source, Access::Read), f(pack.target, Access::Write);
}
template <class F>
void forEachAccess(const CoordinateCommand &coordinate, F &&f) {
  f(coordinate.target, Access::Write);
}
template <class F> void forEachAccess(const ReadCommand &read, F &&f) {
  f(read.target, Access::Write);
}
template <class F> void forEachAccess(const WriteCommand &write, F &&f) {
  f(write.view, Access::Read);
}
template <class F> void forEachAccess(const RecordCommand &, F &&) {}
template <class F> void forEachAccess(const WaitCommand &, F &&) {}
/// Calls f(view, access), what is read before what is written where a view is
/// not both.
template <class F> void forEachAccess(const Command &command, F &&f) {
  std::visit([&](const auto &what) { forEachAccess(what, f); }, command.what);
}

} // namespace accel::rt::format

#endif // ACCEL_RUNTIME_FORMAT_VIEWS_H
