// Elements are combined in tiles that stay in the first level of cache, source
// after source, so that every source is read once and in order.

#include "Comm/Reduce.h"

#include "accel-rt/NumberFormat.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace accel::rt {
namespace {

constexpr int64_t kTile = 1024;

/// An element of a format that is narrower than f32, and summed in that.
template <const NumberFormat &F> struct Narrow { uint16_t code; };

template <const NumberFormat &F> float load(Narrow<F> value) {
  return widenNumber<F>(value.code);
}
template <const NumberFormat &F> void store(float value, Narrow<F> &target) {
  target.code = static_cast<uint16_t>(narrowNumber<F>(value));
}

template <class T> T load(T value) { return value; }
template <class T> void store(T value, T &target) { target = value; }

template <class A> A combineTwo(Combine combine, A a, A b) {
  switch (combine) {
  case Combine::Max: // NaN wins: a lost one would hide a fault
    return a != a || a > b ? a : b;
  case Combine::Min:
    return a != a || a < b ? a : b;
  default:
    return a + b;
  }
}

template <class T, class A, Combine C>
void reduceTyped(const PairLayout &layout, void *target,
                 const void *const *sources, size_t count, int64_t begin,
                 int64_t end) {
  layout.forRange(begin, end,
                  [&](int64_t to, int64_t from, int64_t toStride,
                      int64_t fromStride, int64_t elements) {
                    A tile[kTile];
                    for (int64_t first = 0; first < elements; first += kTile) {
                      int64_t size = std::min(kTile, elements - first);
                      for (size_t s = 0; s < count; ++s) {
                        const T *in = static_cast<const T *>(sources[s]) +
                                      from + first * fromStride;
                        if (s == 0)
                          for (int64_t i = 0; i < size; ++i)
                            tile[i] = load(in[i * fromStride]);
                        else if (fromStride == 1)
                          for (int64_t i = 0; i < size; ++i)
                            tile[i] = combineTwo<A>(C, tile[i], load(in[i]));
                        else
                          for (int64_t i = 0; i < size; ++i)
                            tile[i] = combineTwo<A>(C, tile[i],
                                                    load(in[i * fromStride]));
                      }
                      T *out = static_cast<T *>(target) + to + first * toStride;
                      for (int64_t i = 0; i < size; ++i)
                        store(tile[i], out[i * toStride]);
                    }
                  });
}

/// The two tensors whose elements from `done` on a fold combines, in order, if
/// it is of just two and in their own type: then no tile is needed.
template <class T>
bool findPair(const Fold &fold, int64_t done, int64_t from,
              const T *(&pair)[2]) {
  size_t count = 0;
  auto add = [&](const void *data, int64_t at) {
    if (count < 2)
      pair[count] = static_cast<const T *>(data) + at;
    ++count;
  };
  if (fold.beforeIs != Fold::None)
    add(fold.before, done);
  for (size_t s = 0; s < fold.count; ++s)
    add(fold.sources[s], from);
  if (fold.afterIs != Fold::None)
    add(fold.after, done);
  return count == 2;
}

template <class T, class A, Combine C>
void foldTyped(const PairLayout &layout, const Fold &fold, void *target,
               int64_t begin, int64_t end) {
  int64_t done = 0;
  auto inner = [&](int64_t, int64_t from, int64_t, int64_t stride,
                   int64_t elements) {
    if constexpr (std::is_same_v<T, A>)
      if (const T * pair[2]; stride == 1 && findPair(fold, done, from, pair)) {
        T *out = static_cast<T *>(target) + done;
        for (int64_t i = 0; i < elements; ++i)
          out[i] = combineTwo<A>(C, pair[0][i], pair[1][i]);
        done += elements;
        return;
      }
    A tile[kTile];
    for (int64_t first = 0; first < elements; first += kTile) {
      int64_t size = std::min(kTile, elements - first);
      bool isEmpty = true;
      auto add = [&](auto *in, int64_t step) {
        if (isEmpty)
          for (int64_t i = 0; i < size; ++i)
            tile[i] = load(in[i * step]);
        else if (step == 1)
          for (int64_t i = 0; i < size; ++i)
            tile[i] = combineTwo<A>(C, tile[i], load(in[i]));
        else
          for (int64_t i = 0; i < size; ++i)
            tile[i] = combineTwo<A>(C, tile[i], load(in[i * step]));
        isEmpty = false;
      };
      auto addPlain = [&](Fold::Kind kind, const void *data) {
        if (kind == Fold::Partial)
          add(static_cast<const A *>(data) + done + first, 1);
        else if (kind == Fold::Term)
          add(static_cast<const T *>(data) + done + first, 1);
      };
      addPlain(fold.beforeIs, fold.before);
      for (size_t s = 0; s < fold.count; ++s)
        add(static_cast<const T *>(fold.sources[s]) + from + first * stride,
            stride);
      addPlain(fold.afterIs, fold.after);
      if (fold.isLast) {
        T *out = static_cast<T *>(target) + done + first;
        for (int64_t i = 0; i < size; ++i)
          store(tile[i], out[i]);
      } else {
        std::memcpy(static_cast<A *>(target) + done + first, tile,
                    static_cast<size_t>(size) * sizeof(A));
      }
    }
    done += elements;
  };
  layout.forRange(begin, end, inner);
}

/// Calls f(element, accumulator) with values of the two types; sums of integers
/// wrap, as everywhere.
template <class F> void withTypes(DType dtype, Combine combine, F &&f) {
  bool wraps = combine == Combine::Sum;
  switch (dtype) {
  case DType::I32:
    return wraps ? f(uint32_t(), uint32_t()) : f(int32_t(), int32_t());
  case DType::I64:
    return wraps ? f(uint64_t(), uint64_t()) : f(int64_t(), int64_t());
  case DType::F16:
    return f(Narrow<kF16>(), float());
  case DType::BF16:
    return f(Narrow<kBF16>(), float());
  case DType::F32:
    return f(float(), float());
  case DType::F64:
    return f(double(), double());
  default:
    return; // makeTransfers has refused it
  }
}

/// The same with the way to combine as a constant.
template <class F> void withCombine(Combine combine, F &&f) {
  switch (combine) {
  case Combine::Sum:
    return f(std::integral_constant<Combine, Combine::Sum>());
  case Combine::Max:
    return f(std::integral_constant<Combine, Combine::Max>());
  case Combine::Min:
    return f(std::integral_constant<Combine, Combine::Min>());
  }
}

} // namespace

std::optional<Combine> combineFromName(const std::string &name) {
  if (name == "sum")
    return Combine::Sum;
  if (name == "max")
    return Combine::Max;
  if (name == "min")
    return Combine::Min;
  return std::nullopt;
}

bool canReduce(DType dtype) {
  switch (dtype) {
  case DType::I32:
  case DType::I64:
  case DType::F16:
  case DType::BF16:
  case DType::F32:
  case DType::F64:
    return true;
  default:
    return false;
  }
}

int64_t accumulatorBytes(DType dtype) {
  return std::max<int64_t>(dtypeBytes(dtype), 4);
}

void reduceElements(const PairLayout &layout, DType dtype, Combine combine,
                    void *target, const void *const *sources, size_t count,
                    int64_t begin, int64_t end) {
  withTypes(dtype, combine, [&](auto element, auto accumulator) {
    withCombine(combine, [&](auto way) {
      reduceTyped<decltype(element), decltype(accumulator), way.value>(
          layout, target, sources, count, begin, end);
    });
  });
}

void foldElements(const PairLayout &layout, DType dtype, Combine combine,
                  const Fold &fold, void *target, int64_t begin, int64_t end) {
  withTypes(dtype, combine, [&](auto element, auto accumulator) {
    withCombine(combine, [&](auto way) {
      foldTyped<decltype(element), decltype(accumulator), way.value>(
          layout, fold, target, begin, end);
    });
  });
}

} // namespace accel::rt
