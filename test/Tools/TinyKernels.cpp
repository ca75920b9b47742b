// The kernels of the hand-made training executable (TinyTraining.h), compiled
// as the target's would be: a library that goes into the section code:cpu.so.

#include <cstdint>
#include <unistd.h>

namespace {
bool isFinite(float value) { return value - value == 0; }
} // namespace

extern "C" {

/// (x [2], sum [1]) -> sum: adds the elements of x.
int64_t tiny_accumulate(void *const *arguments, int64_t, int64_t) {
  const float *x = static_cast<const float *>(arguments[0]);
  float *sum = static_cast<float *>(arguments[2]);
  *sum = *static_cast<const float *>(arguments[1]) + x[0] + x[1];
  return 0;
}

/// x [4] -> y [4], with scratch of 64 bytes: each element goes by way of the
/// thread's scratch, and stays there for a while.
int64_t tiny_keep(void *const *arguments, int64_t begin, int64_t end) {
  auto *kept = static_cast<volatile float *>(arguments[2]);
  for (int64_t row = begin; row < end; ++row) {
    *kept = static_cast<const float *>(arguments[0])[row];
    usleep(2000);
    static_cast<float *>(arguments[1])[row] = *kept;
  }
  return 0;
}

/// () -> (): never ends.
int64_t tiny_hang(void *const *, int64_t, int64_t) {
  for (;;)
    pause();
}

/// () -> (): ends its process, as libraries do.
int64_t tiny_leave(void *const *, int64_t, int64_t) { _exit(3); }

/// (g [1], step, w [2, 2], rows [2]) -> (step, w, rows, loss, grad_norm, lr,
/// w.grad, verdict): lr = (step + 1) / 10, w -= lr · g, rows -= g, loss = g +
/// w[0, 0]; a step whose norm |g| or loss is not finite has failed. From the
/// third step on the loss is NaN if g is above 1000; the norm is infinite if g
/// is below -1000. Where g is from 700 to 800, every third step is skipped.
int64_t tiny_update(void *const *arguments, int64_t, int64_t) {
  float g = *static_cast<const float *>(arguments[0]);
  int64_t step = *static_cast<const int64_t *>(arguments[1]);
  const float *w = static_cast<const float *>(arguments[2]);
  const float *rows = static_cast<const float *>(arguments[3]);
  float lr = static_cast<float>(step + 1) / 10, norm = g < 0 ? -g : g;
  float loss = g + w[0];
  if (g > 1000 && step >= 2)
    loss = norm = g - g + __builtin_nanf("");
  if (g < -1000)
    norm = __builtin_inff();
  bool failed = !isFinite(norm) || !isFinite(loss);
  bool skip = failed || (g >= 700 && g <= 800 && step % 3 == 2);
  *static_cast<int64_t *>(arguments[4]) = step + !failed;
  *static_cast<int32_t *>(arguments[11]) = failed ? 2 : skip ? 1 : 0;
  for (int i = 0; i < 4; ++i) {
    static_cast<float *>(arguments[5])[i] = skip ? w[i] : w[i] - lr * g;
    static_cast<float *>(arguments[10])[i] = g;
  }
  for (int i = 0; i < 2; ++i)
    static_cast<float *>(arguments[6])[i] = skip ? rows[i] : rows[i] - g;
  *static_cast<float *>(arguments[7]) = loss;
  *static_cast<float *>(arguments[8]) = norm;
  *static_cast<float *>(arguments[9]) = lr;
  return 0;
}
}
