// The gradient of attention with its generated row kernel, against plain loops
// in double.

#include "AttentionCases.h"

using namespace accel;
using namespace accel::test;

namespace {
const float infinity = std::numeric_limits<float>::infinity();

/// One case: its memory, the reference, and what was found. q, k and v lie side
/// by side in rows, as a fused projection leaves them; their gradients too. The
/// result and the log-sum-exp are the forward's, rounded; with `ofSums` there
/// is a gradient of the log-sum-exp as well.
template <typename T> struct Problem {
  using Sum = typename Types<T>::Sum;

  AttentionCase which;
  bool ofSums;
  int64_t B, H, G, S, N, D, row, length;
  std::vector<T> qkv, out, result;
  std::vector<Sum> sums, sumGradients;
  std::vector<T> found;
  std::vector<float> added, numbers; ///< with levels, if there are any
  std::vector<uint8_t> through;
  std::vector<double> expected;
  std::vector<bool> mayBeNan;

  Problem(const AttentionCase &which, bool ofSums)
      : which(which), ofSums(ofSums), B(which.batch), H(which.heads),
        G(which.groups), S(which.queries), N(which.keys), D(which.width),
        row((H + 2 * G) * D), length(std::max(S, N)),
        qkv(randoms<T>(B * length * row)), out(randoms<T>(B * length * H * D)),
        result(out.size()), sums(B * H * S),
        sumGradients(randoms<Sum>(B * H * S)), found(B * length * row, T(-7)),
        added(randoms<float>(B * S * N)), through(B * S * N),
        expected(B * length * row, -7), mayBeNan(expected.size()) {
    for (size_t i = 0; i < through.size(); ++i) {
      through[i] = added[i] > 0;
      if (added[i] < -1)
        added[i] = -infinity;
      if (i % (S * N) < static_cast<size_t>(N)) { // the first sees nothing
        through[i] = 0;
        added[i] = which.farDown();
      }
    }
    numbers = which.addLevels(added);
  }

  const void *mask() const {
    return which.mask == 'i' ? static_cast<const void *>(through.data())
           : which.isAdded() ? numbers.data()
                             : nullptr;
  }

  void addRow(int64_t b, int64_t h, int64_t s) {
    int64_t g = h / (H / G);
    auto at = [&](int64_t t, int64_t first) {
      return (b * length + t) * row + first * D;
    };
    int64_t q = at(s, h), dOut = ((b * length + s) * H + h) * D;
    std::vector<double> weights(N, -infinity), slopes(N, 0);
    double maximum = -infinity, sum = 0;
    for (int64_t t = 0; t < N; ++t) {
      int64_t k = at(t, H + g), v = at(t, H + G + g);
      double x = 0;
      for (int64_t d = 0; d < D; ++d) {
        x += double(qkv[q + d]) * double(qkv[k + d]) * 0.5;
        slopes[t] += double(out[dOut + d]) * double(qkv[v + d]);
      }
      int64_t place = (b * S + s) * N + t;
      if (which.isAdded())
        x = x + added[place] - which.getLevel(&added[place - t]);
      if ((which.mask == 'i' && !through[place]) || which.hides(s, t))
        x = -infinity;
      weights[t] = x;
      maximum = std::max(maximum, x);
    }
    // What the forward gives.
    Sum &logSumExp = sums[(b * H + h) * S + s];
    for (double weight : weights)
      sum += std::exp(weight - maximum);
    logSumExp = maximum == -infinity ? maximum : maximum + std::log(sum);
    for (double &weight : weights)
      weight = maximum == -infinity ? std::nan("")
                                    : std::exp(weight - maximum) / sum;
    double common =
        ofSums ? -double(sumGradients[(b * H + h) * S + s]) : double(0);
    for (int64_t d = 0; d < D; ++d) {
      double value = 0;
      for (int64_t t = 0; t < N; ++t)
        value += weights[t] * double(qkv[at(t, H + G + g) + d]);
      if (maximum == -infinity && which.zeroRows)
        value = 0;
      result[dOut + d] = value;
      common += double(result[dOut + d]) * double(out[dOut + d]);
    }
    if (maximum == -infinity && which.zeroRows) {
      // Of nothing a combination may make anything.
      sumGradients[(b * H + h) * S + s] = std::nan("");
      return;
    }
    // NaN of a row that sees nothing reaches the keys that `causal` lets
    // through, and may reach the others of its block.
    bool none = maximum == -infinity;
    int64_t end = which.causal
                      ? std::clamp<int64_t>(
                            s + which.rowOffset - which.columnOffset + 1, 0, N)
                      : N;
    for (int64_t t = 0; t < N; ++t) {
      int64_t k = at(t, H + g), v = at(t, H + G + g);
      if (none && end > 0 && t >= end) {
        for (int64_t d = 0; d < D; ++d)
          mayBeNan[k + d] = mayBeNan[v + d] = true;
        continue;
      }
      double slope = 0.5 * weights[t] * (slopes[t] - common);
      for (int64_t d = 0; d < D; ++d) {
        expected[q + d] += slope * double(qkv[k + d]);
        expected[k + d] += slope * double(qkv[q + d]);
        expected[v + d] += weights[t] * double(out[dOut + d]);
      }
    }
  }

  void computeExpected() {
    for (int64_t b = 0; b < B; ++b) {
      // What no head reads keeps its old value.
      for (int64_t t = 0; t < length; ++t)
        for (int64_t c = 0; c < row; ++c)
          if (t < (c < H * D ? S : N))
            expected[(b * length + t) * row + c] = 0;
      for (int64_t h = 0; h < H; ++h)
        for (int64_t s = 0; s < S; ++s)
          addRow(b, h, s);
    }
  }

  /// A plan with the command alone.
  std::string text() const {
    auto view = [&](const char *buffer, int64_t first, int64_t heads,
                    int64_t rows, int64_t stride) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      stream << "@" << buffer << "[" << B << "x" << heads << "x" << rows << "x"
             << D << "x" << Types<T>::name << " at " << first * sizeof(T)
             << " strides [" << length * stride << ", " << D << ", " << stride
             << ", 1]]";
      return text;
    };
    auto three = [&](const char *buffer) {
      return view(buffer, 0, H, S, row) + ", " +
             view(buffer, H * D, G, N, row) + ", " +
             view(buffer, (H + G) * D, G, N, row);
    };
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << "plan.program @p stage 0 ranks 1 {\n";
    for (const char *name : {"qkv", "o", "r", "l", "m", "d"})
      stream << "plan.buffer @" << name
             << " : activation device at 0, 1000000 bytes\n";
    std::string rows;
    llvm::raw_string_ostream(rows)
        << "@l[" << B << "x" << H << "x" << S << "x" << Types<T>::sum << "]";
    stream << "plan.body @b engine cpu {\n plan.attention_grad " << three("qkv")
           << " output " << view("r", 0, H, S, H * D) << ", " << rows
           << " gradient " << view("o", 0, H, S, H * D)
           << (ofSums ? ", " + rows : "");
    if (which.mask)
      stream << " mask @m[" << B << "x1x" << S << "x" << which.maskColumns()
             << "x" << (which.mask == 'i' ? "i1" : "f32") << " strides ["
             << S * which.maskColumns() << ", 0, " << which.maskColumns()
             << ", 1]]";
    stream << " -> " << three("d") << " scale 0.5 " << which.attributes()
           << "\n}\n}\n";
    return text;
  }

  rt::cpu::AttentionGradDesc desc() const {
    rt::cpu::AttentionGradDesc grad;
    rt::cpu::AttentionDesc &desc = grad.forward;
    desc.type = Types<T>::type;
    desc.batch = B, desc.heads = H, desc.groups = G, desc.queries = S;
    desc.keys = N, desc.width = D, desc.valueWidth = D;
    desc.query = desc.key = desc.value = {length * row, D, row};
    desc.output = {length * H * D, D, H * D};
    desc.causal = which.causal;
    desc.diagonal = which.rowOffset - which.columnOffset;
    desc.logSumExp = grad.logSumExpGradient = {H * S, S};
    grad.result = desc.output;
    grad.zeroMaskedRows = which.zeroRows;
    grad.queryGradient = grad.keyGradient = grad.valueGradient = desc.query;
    int64_t maskBytes = which.mask == 'i' ? 1 : 4;
    if (which.mask)
      desc.mask = {S * which.maskColumns() * maskBytes, 0,
                   which.maskColumns() * maskBytes};
    return grad;
  }
};

/// Runs the command twice, chunks in both orders and on two threads: the same
/// bits.
template <typename T> void run(Problem<T> &problem, int64_t blockQueries) {
  Context context;
  auto module = context.parse(problem.text());
  ASSERT_TRUE(module) << problem.text();
  plan::AttentionGradOp op;
  module->walk([&](plan::AttentionGradOp found) { op = found; });
  auto bytes = cpu::compileKernels(*module, Context::target());
  ASSERT_TRUE(succeeded(bytes));
  Library library(*bytes);

  std::vector<T> first;
  for (int round = 0; round < 2; ++round) {
    std::unique_ptr<rt::cpu::AttentionGrad> grad;
    rt::Status status = rt::cpu::AttentionGrad::create(
        problem.desc(), {blockQueries}, library.get(cpu::getKernelSymbol(op)),
        2, grad);
    ASSERT_TRUE(status.ok()) << status.message();
    auto *scratch = static_cast<char *>(
        std::aligned_alloc(64, 2 * grad->scratchBytes() + 64));
    std::memset(scratch, 0xff, 2 * grad->scratchBytes());
    T *qkv = problem.qkv.data(), *found = problem.found.data();
    int64_t H = problem.H, G = problem.G, D = problem.D;
    rt::cpu::AttentionGrad::Addresses at{
        qkv,
        qkv + H * D,
        qkv + (H + G) * D,
        problem.result.data(),
        problem.sums.data(),
        problem.out.data(),
        problem.ofSums ? problem.sumGradients.data() : nullptr,
        problem.mask(),
        found,
        found + H * D,
        found + (H + G) * D};
    for (int64_t i = 0; i < grad->chunks(); ++i) {
      int64_t chunk = round ? grad->chunks() - 1 - i : i;
      int thread = (chunk + round) % 2;
      grad->run(chunk, thread, at, scratch + thread * grad->scratchBytes());
    }
    std::free(scratch);
    if (round == 0)
      first = problem.found;
  }
  EXPECT_EQ(
      std::memcmp(first.data(), problem.found.data(), first.size() * sizeof(T)),
      0);
}

template <typename T>
void checkGrad(const AttentionCase &which, int64_t blockQueries,
               double tolerance) {
  Problem<T> problem(which, /*ofSums=*/blockQueries > 0);
  problem.computeExpected();
  run(problem, blockQueries);
  if (::testing::Test::HasFatalFailure())
    return;
  std::vector<double> found(problem.found.begin(), problem.found.end());
  for (size_t i = 0; i < found.size(); ++i)
    if (std::isnan(found[i]) && problem.mayBeNan[i])
      found[i] = problem.expected[i];
  expectNear(found, problem.expected, tolerance);
}
} // namespace

TEST(AttentionGrad, AgreesWithPlainLoops) {
  for (const AttentionCase &which : attentionCases())
    for (int64_t block : {0, 8})
      checkGrad<float>(which, block, 2e-5);
}

TEST(AttentionGrad, AgreesWithPlainLoopsInDouble) {
  for (const AttentionCase &which : attentionCases())
    for (int64_t block : {0, 8})
      checkGrad<double>(which, block, 1e-12);
}

TEST(AttentionGrad, AgreesWithPlainLoopsInBf16) {
  for (const AttentionCase &which : attentionCases())
    for (int64_t block : {0, 8}) {
      checkGrad<BFloat16>(which, block, 5e-2);
      checkGrad<Float16>(which, block, 1e-2);
    }
}

/// Scores above their log-sum-exp: what rounds products otherwise than the
/// forward did may leave them there.
TEST(AttentionGrad, ProbabilitiesAreAtMostOne) {
  Problem<float> problem({1, 1, 1, 4, 4, 8}, /*ofSums=*/false);
  std::fill(problem.sums.begin(), problem.sums.end(), -1000);
  run(problem, 0);
  for (int64_t t = 0; t < problem.N; ++t)
    for (int64_t d = 0; d < problem.D; ++d) {
      double expected = 0;
      for (int64_t s = 0; s < problem.S; ++s)
        expected += problem.out[s * problem.D + d];
      EXPECT_NEAR(problem.found[t * problem.row + 2 * problem.D + d], expected,
                  1e-5);
    }
}
