// Attention with its generated softmax, against plain loops in double.

#include "AttentionCases.h"

using namespace accel;
using namespace accel::test;

namespace {
/// In blocks the log-sum-exp is asked for as well.
template <typename T>
void check(const AttentionCase &which, int64_t blockQueries, double tolerance) {
  const int64_t B = which.batch, H = which.heads, G = which.groups,
                S = which.queries, N = which.keys, D = which.width,
                columns = which.maskColumns();
  const bool zeroRows = which.zeroRows, wantsSum = blockQueries > 0;
  const char maskKind = which.mask;
  // q, k and v lie side by side in rows, as a fused projection leaves them.
  int64_t row = (H + 2 * G) * D, length = std::max(S, N);
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
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "plan.program @p stage 0 ranks 1 {\n";
  for (const char *name : {"qkv", "o", "m", "l"})
    stream << "plan.buffer @" << name
           << " : activation device at 0, 1000000 bytes\n";
  stream << "plan.body @b engine cpu {\n plan.attention "
         << view("qkv", 0, H, S, row) << ", " << view("qkv", H * D, G, N, row)
         << ", " << view("qkv", (H + G) * D, G, N, row);
  if (maskKind)
    stream << " mask @m[" << B << "x1x" << S << "x" << columns << "x"
           << (maskKind == 'i' ? "i1" : "f32") << " strides [" << S * columns
           << ", 0, " << columns << ", 1]]";
  stream << " -> " << view("o", 0, H, S, H * D);
  if (wantsSum)
    stream << ", @l[" << B << "x" << H << "x" << S << "x" << Types<T>::sum
           << "]";
  stream << " scale 0.5 " << which.attributes() << "\n}\n}\n";
  Context context;
  auto module = context.parse(text);
  ASSERT_TRUE(module) << text;
  plan::AttentionOp op;
  module->walk([&](plan::AttentionOp found) { op = found; });
  auto bytes = cpu::compileKernels(*module, Context::target());
  ASSERT_TRUE(succeeded(bytes));
  Library library(*bytes);

  rt::cpu::AttentionDesc desc;
  desc.type = Types<T>::type;
  desc.batch = B, desc.heads = H, desc.groups = G, desc.queries = S;
  desc.keys = N, desc.width = D, desc.valueWidth = D;
  desc.query = desc.key = desc.value = {length * row, D, row};
  desc.output = {length * H * D, D, H * D};
  desc.causal = which.causal;
  desc.diagonal = op.getDiagonal();
  desc.logSumExp = {H * S, S};
  size_t maskBytes = maskKind == 'i' ? 1 : 4;
  if (maskKind)
    desc.mask = {static_cast<int64_t>(S * columns * maskBytes), 0,
                 static_cast<int64_t>(columns * maskBytes)};
  std::unique_ptr<rt::cpu::Attention> attention;
  rt::Status status = rt::cpu::Attention::create(
      desc, {blockQueries}, library.get(cpu::getKernelSymbol(op)), 1,
      attention);
  ASSERT_TRUE(status.ok()) << status.message();

  auto qkv = randoms<T>(B * length * row);
  std::vector<T> out(B * length * H * D, -7);
  std::vector<typename Types<T>::Sum> sums(B * H * S, -7);
  std::vector<float> added = randoms<float>(B * S * N);
  std::vector<uint8_t> through(B * S * N);
  const float infinity = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < through.size(); ++i) {
    through[i] = added[i] > 0;
    if (added[i] < -1)
      added[i] = -infinity;
    if (i % (S * N) < static_cast<size_t>(N)) { // the first query sees nothing
      through[i] = 0;
      added[i] = which.farDown();
    }
  }
  std::vector<float> numbers = which.addLevels(added);
  const void *mask = maskKind == 'i'   ? static_cast<void *>(through.data())
                     : which.isAdded() ? numbers.data()
                                       : nullptr;
  auto *scratch = static_cast<char *>(
      std::aligned_alloc(64, attention->scratchBytes() + 64));
  for (int64_t chunk = 0; chunk < attention->chunks(); ++chunk)
    attention->run(chunk, 0,
                   {qkv.data(), qkv.data() + H * D, qkv.data() + (H + G) * D,
                    mask, out.data(), wantsSum ? sums.data() : nullptr},
                   scratch);
  std::free(scratch);

  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t s = 0; s < S; ++s) {
        int64_t g = h / (H / G);
        std::vector<double> scores(N, -infinity);
        double maximum = -infinity, sum = 0;
        for (int64_t t = 0; t < N; ++t) {
          if (which.hides(s, t))
            continue;
          double x = 0;
          for (int64_t d = 0; d < D; ++d)
            x += static_cast<double>(qkv[(b * length + s) * row + h * D + d]) *
                 qkv[(b * length + t) * row + (H + g) * D + d];
          x *= 0.5;
          int64_t at = (b * S + s) * N + t;
          if (which.isAdded())
            x = x + added[at] - which.getLevel(&added[at - t]);
          if (maskKind == 'i' && !through[at])
            x = -infinity;
          scores[t] = x;
          maximum = std::max(maximum, x);
        }
        for (double &x : scores) {
          x = std::exp(x - maximum);
          sum += x;
        }
        double found = sums[(b * H + h) * S + s];
        if (wantsSum && maximum == -infinity)
          ASSERT_EQ(found, maximum) << b << " " << h << " " << s;
        else if (wantsSum)
          ASSERT_NEAR(found, maximum + std::log(sum), 10 * tolerance)
              << b << " " << h << " " << s;
        for (int64_t d = 0; d < D; ++d) {
          double expected = 0;
          for (int64_t t = 0; t < N; ++t)
            expected += scores[t] / sum *
                        qkv[(b * length + t) * row + (H + G + g) * D + d];
          if (maximum == -infinity)
            expected = zeroRows ? 0 : std::nan("");
          double found = out[(b * length + s) * H * D + h * D + d];
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(found)) << b << " " << h << " " << s;
            continue;
          }
          ASSERT_LE(std::abs(found - expected),
                    tolerance * (1 + std::abs(expected)))
              << b << " " << h << " " << s << " " << d;
        }
      }
}

} // namespace

TEST(Attention, AgreesWithPlainLoops) {
  for (const AttentionCase &which : attentionCases())
    for (int64_t block : {0, 8})
      check<float>(which, block, 1e-5);
}

TEST(Attention, AgreesWithPlainLoopsInDouble) {
  for (const AttentionCase &which : attentionCases())
    for (int64_t block : {0, 8})
      check<double>(which, block, 1e-12);
}

TEST(Attention, AgreesWithPlainLoopsInBf16) {
  for (const AttentionCase &which : attentionCases())
    for (int64_t block : {0, 8}) {
      check<BFloat16>(which, block, 2e-2);
      check<Float16>(which, block, 3e-3);
    }
}
