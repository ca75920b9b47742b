// Convolutions on every device: the three kinds of the command by their
// definition, of small whole numbers, whose sums are the same in every order.

#include "Conformance/DeviceFixture.h"
#include "Format/Layout.h"

#include <gmock/gmock.h>
#include <numeric>

using namespace accel::rt;
using namespace accel::rt::test;
using namespace accel::rt::conformance;

namespace {
constexpr int64_t kScratchRoom = 1 << 22;

struct Sizes {
  int64_t batch, groups, channels, outChannels;
  std::vector<int64_t> in, window, strides, dilations, low, out;
};

int64_t count(const std::vector<int64_t> &sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

/// The number'th place in row-major order.
std::vector<int64_t> unravel(int64_t number,
                             const std::vector<int64_t> &sizes) {
  std::vector<int64_t> place(sizes.size());
  for (size_t dim = sizes.size(); dim-- > 0; number /= sizes[dim])
    place[dim] = number % sizes[dim];
  return place;
}

template <class T> class Tensors {
public:
  explicit Tensors(const Sizes &s) : sizes(s) {
    x.resize(s.batch * s.groups * s.channels * count(s.in));
    w.resize(s.groups * s.outChannels * s.channels * count(s.window));
    y.resize(s.batch * s.groups * s.outChannels * count(s.out));
    auto fill = [](std::vector<T> &values, int step, int modulus) {
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<T>(int(i) * step % modulus - modulus / 2);
    };
    fill(x, 7, 11), fill(w, 5, 13), fill(y, 3, 7);
  }

  /// Adds each term's product to what `to` names: "x", "w" or "y".
  std::vector<T> compute(char to) const {
    std::vector<T> result((to == 'x' ? x : to == 'w' ? w : y).size());
    const Sizes &s = sizes;
    for (int64_t n = 0; n < s.batch * s.groups; ++n)
      for (int64_t o = 0; o < s.outChannels; ++o)
        for (int64_t p = 0; p < count(s.out); ++p)
          for (int64_t c = 0; c < s.channels; ++c)
            for (int64_t k = 0; k < count(s.window); ++k) {
              int64_t at = 0;
              bool isInside = true;
              std::vector<int64_t> position = unravel(p, s.out),
                                   place = unravel(k, s.window);
              for (size_t dim = 0; dim < s.in.size(); ++dim) {
                int64_t i = position[dim] * s.strides[dim] +
                            place[dim] * s.dilations[dim] - s.low[dim];
                isInside = isInside && i >= 0 && i < s.in[dim];
                at = at * s.in[dim] + i;
              }
              if (!isInside)
                continue;
              int64_t group = n % s.groups;
              int64_t ofX = (n * s.channels + c) * count(s.in) + at;
              int64_t ofW = ((group * s.outChannels + o) * s.channels + c) *
                                count(s.window) +
                            k;
              int64_t ofY = (n * s.outChannels + o) * count(s.out) + p;
              if (to == 'x')
                result[ofX] += w[ofW] * y[ofY];
              else if (to == 'w')
                result[ofW] += x[ofX] * y[ofY];
              else
                result[ofY] += x[ofX] * w[ofW];
            }
    return result;
  }

  Sizes sizes;
  std::vector<T> x, w, y;
};

/// A view whose elements follow each other with the dimensions in `order`, in
/// which a space stands for all of its own.
View viewOf(int64_t buffer, std::vector<int64_t> leading,
            const std::vector<int64_t> &space, DType dtype,
            const char *order = "012s") {
  leading.insert(leading.end(), space.begin(), space.end());
  View view = contiguousView(buffer, leading, dtype);
  int64_t stride = 1;
  auto place = [&](size_t dim) {
    view.strides[dim] = stride;
    stride *= leading[dim];
  };
  for (size_t at = 4; at-- > 0;)
    if (order[at] != 's')
      place(order[at] - '0');
    else
      for (size_t dim = leading.size(); dim-- > 3;)
        place(dim);
  return view;
}

/// With channels last the weight has the order that each kind can read, where
/// it reads it.
ConvCommand describe(const Sizes &s, const char *kind, DType dtype,
                     bool channelsLast = false) {
  ConvCommand conv;
  conv.convolution = kind;
  bool isForward = conv.convolution == "forward",
       ofWeight = conv.convolution == "weight_grad";
  const char *samples = channelsLast ? "0s12" : "012s",
             *weight = !channelsLast || ofWeight ? "012s"
                       : isForward               ? "01s2"
                                                 : "0s12";
  View x = viewOf(0, {s.batch, s.groups, s.channels}, s.in, dtype, samples),
       w = viewOf(1, {s.groups, s.outChannels, s.channels}, s.window, dtype,
                  weight),
       y = viewOf(2, {s.batch, s.groups, s.outChannels}, s.out, dtype, samples);
  conv.a = isForward || ofWeight ? x : y;
  conv.b = ofWeight ? y : w;
  conv.c = isForward ? y : ofWeight ? w : x;
  conv.strides = s.strides, conv.dilations = s.dilations, conv.low = s.low;
  conv.scratch = contiguousView(3, {kScratchRoom}, DType::I8);
  return conv;
}

/// Calls fn(number, place) for the elements of a view, in row-major order, and
/// where they lie.
template <class Fn> void forEachElement(const View &view, Fn &&fn) {
  for (int64_t number = 0; number < count(view.shape); ++number) {
    std::vector<int64_t> at = unravel(number, view.shape);
    fn(number, std::inner_product(at.begin(), at.end(), view.strides.begin(),
                                  int64_t(0)));
  }
}

const Sizes kCases[] = {
    {2, 1, 3, 5, {9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {9, 8}},
    {2, 1, 4, 6, {9, 8}, {3, 2}, {2, 3}, {2, 1}, {1, 0}, {4, 3}},
    {1, 3, 2, 4, {11}, {4}, {2}, {1}, {3}, {6}},
    {3, 1, 8, 16, {5, 4}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {5, 4}},
    {2,
     2,
     3,
     2,
     {4, 5, 3},
     {2, 3, 2},
     {1, 2, 1},
     {2, 1, 1},
     {1, 0, 1},
     {4, 2, 4}},
    // More positions, and more before and behind, than there are elements.
    {1, 1, 2, 3, {3}, {2}, {1}, {1}, {4}, {12}},
    // Blocks that do not divide what is cut.
    {2, 1, 10, 11, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {7, 9}},
    // One position, one channel, and elements between the windows.
    {3, 2, 4, 6, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {5, 1, 1, 1, {6, 5}, {2, 2}, {3, 2}, {1, 2}, {1, 1}, {2, 2}},
    {3, 1, 5, 4, {7, 7}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {4, 4}},
};

TEST_P(DeviceConformance, Convolves) {
  auto check = [&](auto zero, DType dtype, const Sizes &sizes, const Form &form,
                   bool channelsLast) {
    using T = decltype(zero);
    Tensors<T> given(sizes);
    auto run = [&](const char *kind, const std::vector<T> &a,
                   const std::vector<T> &b, char to) {
      ConvCommand conv = describe(sizes, kind, dtype, channelsLast);
      conv.form = form;
      auto arrange = [](const std::vector<T> &values, const View &view) {
        std::vector<T> laid(values.size());
        forEachElement(view, [&](int64_t number, int64_t place) {
          laid[place] = values[number];
        });
        return laid;
      };
      std::vector<T> expected = given.compute(to),
                     unset(expected.size(), T(77)), found(expected.size());
      Address c = place(unset);
      DeviceConformance::run(command(conv, "Conv"),
                             {place(arrange(a, conv.a)),
                              place(arrange(b, conv.b)), c,
                              allocate(kScratchRoom)});
      std::vector<T> laid = fetch<T>(c, expected.size());
      forEachElement(conv.c, [&](int64_t number, int64_t place) {
        found[number] = laid[place];
      });
      EXPECT_EQ(found, expected) << kind << " channels last " << channelsLast;
    };
    run("forward", given.x, given.w, 'y');
    run("input_grad", given.y, given.w, 'x');
    run("weight_grad", given.x, given.y, 'w');
  };
  for (bool channelsLast : {false, true})
    for (const Sizes &sizes : kCases)
      for (const Form &form : {Form(), Form{{"columns", int64_t(7)},
                                            {"channels", int64_t(3)},
                                            {"out_channels", int64_t(4)},
                                            {"samples", int64_t(1)}}}) {
        check(float(), DType::F32, sizes, form, channelsLast);
        check(double(), DType::F64, sizes, form, channelsLast);
      }
}

TEST_P(DeviceConformance, RefusesConvolutionsOfOtherShapes) {
  auto prepare = [&](auto change) {
    ConvCommand conv = describe(kCases[0], "forward", DType::F32);
    change(conv);
    std::unique_ptr<Task> task;
    return device().prepare(command(conv, "Conv"), task).ok();
  };
  EXPECT_TRUE(prepare([](ConvCommand &) {}));
  EXPECT_FALSE(prepare([](ConvCommand &conv) { conv.convolution = "back"; }));
  EXPECT_FALSE(prepare([](ConvCommand &conv) { conv.strides = {1}; }));
  EXPECT_FALSE(prepare([](ConvCommand &conv) { conv.strides[0] = 0; }));
  EXPECT_FALSE(prepare([](ConvCommand &conv) { conv.low[1] = -1; }));
  EXPECT_FALSE(prepare([](ConvCommand &conv) { conv.a.shape[2] = 4; }));
  EXPECT_FALSE(prepare([](ConvCommand &conv) { conv.c.shape[0] = 3; }));
  EXPECT_FALSE(prepare([](ConvCommand &conv) { conv.a.strides[4] = 2; }));
  EXPECT_FALSE(prepare([](ConvCommand &conv) { conv.b.strides[2] = 10; }));
  EXPECT_FALSE(prepare(
      [](ConvCommand &conv) { conv.a.strides[3] = conv.a.strides[4] = 0; }));
  EXPECT_FALSE(prepare([](ConvCommand &conv) {
    conv.a.strides[3] *= -1, conv.a.strides[4] *= -1;
  }));
  EXPECT_FALSE(prepare([](ConvCommand &conv) { conv.b.dtype = DType::F64; }));
  EXPECT_FALSE(prepare([](ConvCommand &conv) { conv.scratch->shape = {64}; }));
}

} // namespace
