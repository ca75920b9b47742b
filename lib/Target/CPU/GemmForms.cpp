// Tries the few legal forms of a product and keeps the fastest.

#include "GemmForms.h"

#include "lib/Cost/Flops.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include <atomic>
#include <chrono>
#include <dnnl.h>
#include <thread>

using namespace llvm;
using namespace accel;
using namespace accel::cpu;
using rt::cpu::Gemm;
using rt::cpu::GemmDesc;
using rt::cpu::GemmForm;

/// Products of fewer flops take microseconds in any form.
static constexpr int64_t kWorthMeasuring = 1 << 23;
/// Rows, columns or inner elements of a product that stand for all of them when
/// it is measured, and the flops and bytes of such a part: a run of it
/// takes some tenths of a second.
static constexpr int64_t kMeasuredSize = 6144;
static constexpr double kMeasuredFlops = 1LL << 33;
static constexpr double kMeasuredBytes = 1LL << 31;
/// Seconds that a compilation may take for measuring. Whatever is new after
/// them takes the default.
static constexpr double kMostSeconds = 60;
/// Widths of chunks whose columns of b stay in the first levels of cache: rows
/// of a b that is not transposed are often a multiple of a page apart, which
/// oneDNN's own copy of b suffers from and ours does not.
static constexpr int64_t kNarrowChunks[] = {64, 128};

static int64_t getBatch(const GemmDesc &desc) {
  int64_t count = 1;
  for (int64_t size : desc.batch)
    count *= size;
  return count;
}

/// Of sizes that a file may claim: more than an integer holds.
static double countFlops(const GemmDesc &desc) {
  return cost::countProductFlops(
      double(desc.k), double(desc.m) * double(desc.n) * double(getBatch(desc)));
}

static int64_t divideUp(int64_t size, int64_t parts, int64_t multiple) {
  int64_t part = (size + parts - 1) / parts;
  return std::min(size, (part + multiple - 1) / multiple * multiple);
}

GemmForm cpu::getDefaultForm(const GemmDesc &desc, const GemmUse &use) {
  GemmForm form;
  bool small = countFlops(desc) < kWorthMeasuring / 64;
  if (getBatch(desc) < use.threads && !small)
    form.chunkRows = divideUp(desc.m, use.threads, 8);
  return form;
}

static std::vector<GemmForm> getCandidates(const GemmDesc &desc,
                                           const GemmUse &use) {
  std::vector<GemmForm> forms;
  std::vector<GemmForm> kinds(1);
  if (use.constantWeights && desc.batch.empty())
    kinds.emplace_back().packed = true;
  if (desc.type == rt::cpu::GemmType::F32 && rt::cpu::hasBf16Tiles())
    kinds.emplace_back().bf16x6 = true;
  for (const GemmForm &kind : kinds)
    for (int64_t parts : {use.threads, 2 * use.threads, 4 * use.threads}) {
      GemmForm rows = kind, columns = kind;
      rows.chunkRows = divideUp(desc.m, parts, kind.bf16x6 ? 32 : 8);
      columns.chunkColumns = divideUp(desc.n, parts, 64);
      forms.push_back(rows);
      if (columns.chunkColumns < desc.n)
        forms.push_back(columns);
    }
  for (int64_t width : kNarrowChunks) {
    GemmForm narrow;
    narrow.chunkColumns = width;
    if (desc.bCol == 1 && width < desc.n / (4 * use.threads))
      forms.push_back(narrow);
  }
  return forms;
}

namespace {
/// Memory that the measured products read and write, of the largest size asked
/// for so far.
class Arena {
public:
  char *get(int64_t bytes) {
    if (bytes > size) {
      memory.reset(static_cast<char *>(std::aligned_alloc(64, bytes)));
      // Zeros would do for the results, but cost less current: the clock is
      // higher on them. As f32 and as bf16 these are between 1 and 2.
      auto *words = reinterpret_cast<uint16_t *>(memory.get());
      for (int64_t i = 0; i < bytes / 2; ++i)
        words[i] = 0x3f80 + i * 37 % 128;
      size = bytes;
    }
    return memory.get();
  }

private:
  struct Free {
    void operator()(char *pointer) const { std::free(pointer); }
  };
  std::unique_ptr<char, Free> memory;
  int64_t size = 0;
};
} // namespace

/// Bytes between an operand's first element and its end, in multiples of 64.
static int64_t getSpan(ArrayRef<int64_t> batch, ArrayRef<int64_t> strides,
                       int64_t rows, int64_t rowStride, int64_t columns,
                       int64_t columnStride, int64_t elementBytes) {
  int64_t last = (rows - 1) * rowStride + (columns - 1) * columnStride;
  for (auto [size, stride] : llvm::zip(batch, strides))
    last += (size - 1) * stride;
  return ((last + 1) * elementBytes + 63) / 64 * 64;
}

/// Seconds after which one more run of a form would tell nothing new.
static constexpr double kEnough = 0.02;

/// Seconds of one run of a form: the least of a few, unless `limit` is passed
/// by the first. Infinity where the form is not legal.
static double measure(const GemmDesc &desc, const GemmForm &form,
                      int64_t threads, double limit, Arena &arena) {
  std::unique_ptr<Gemm> gemm;
  double best = std::numeric_limits<double>::infinity();
  if (!Gemm::create(desc, form, threads, gemm).ok())
    return best;
  int64_t element = rt::cpu::getBytes(desc.type);
  int64_t a = getSpan(desc.batch, desc.aBatch, desc.m, desc.aRow, desc.k,
                      desc.aCol, element);
  int64_t b = getSpan(desc.batch, desc.bBatch, desc.k, desc.bRow, desc.n,
                      desc.bCol, element);
  int64_t c = getSpan(desc.batch, desc.cBatch, desc.m, desc.cRow, desc.n, 1,
                      rt::cpu::getBytes(desc.outType));
  int64_t packed = (gemm->packedBytes() + 63) / 64 * 64;
  int64_t bias = (desc.n * 8 + 63) / 64 * 64;
  int64_t bytes = a + b + c + packed + bias + gemm->scratchBytes() * threads;
  if (double(bytes) > kMeasuredBytes)
    return best;
  char *memory = arena.get(bytes);
  char *atB = memory + a, *atC = atB + b, *atPacked = atC + c,
       *atBias = atPacked + packed, *atScratch = atBias + bias;
  if (form.packed) {
    if (!gemm->pack(atB, atPacked).ok())
      return best;
    atB = atPacked;
  }
  double total = 0;
  for (int run = 0; run < 4; ++run) {
    std::atomic<int64_t> next{0};
    auto work = [&](int thread) {
      for (int64_t chunk; (chunk = next++) < gemm->chunks();)
        gemm->run(chunk, thread, memory, atB, desc.bias ? atBias : nullptr, atC,
                  atScratch + thread * gemm->scratchBytes());
    };
    auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int64_t thread = 1; thread < threads; ++thread)
      others.emplace_back(work, thread);
    work(0);
    for (std::thread &other : others)
      other.join();
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    best = std::min(best, seconds);
    total += seconds;
    // The first run is cold: it must be far off to say that all would be.
    if (best > limit * (run > 0 ? 1.0 : 1.5) || (run > 0 && total > kEnough))
      break;
  }
  return best;
}

static std::string getKey(const GemmDesc &desc, const GemmUse &use) {
  const dnnl_version_t *version = dnnl_version();
  std::string key;
  raw_string_ostream os(key);
  os << sys::getHostCPUName() << ";dnnl" << version->major << "."
     << version->minor << "." << version->patch
     << (rt::cpu::hasBf16Tiles() ? "amx" : "") << ";t" << use.threads << ";"
     << int(desc.type) << int(desc.getTypeOfB()) << int(desc.outType)
     << int(use.constantWeights) << int(desc.bias) << int(desc.accumulate)
     << ";" << desc.m << "x" << desc.n << "x" << desc.k << ";" << desc.aRow
     << "," << desc.aCol << "," << desc.bRow << "," << desc.bCol << ","
     << desc.cRow;
  for (auto list : {&desc.batch, &desc.aBatch, &desc.bBatch, &desc.cBatch}) {
    os << ";";
    llvm::interleave(*list, os, ",");
  }
  return key;
}

/// The size of chunks that cuts `part` into as many as `size` is cut into.
static int64_t scale(int64_t chunk, int64_t size, int64_t part,
                     int64_t multiple) {
  if (chunk == 0 || part == size)
    return chunk;
  return divideUp(part, (size + chunk - 1) / chunk, multiple);
}

/// A part that stands for a very large product: first fewer matrices of a
/// batch, as long as all threads have some, then fewer rows, columns and inner
/// elements, of which the most are left out.
static GemmDesc getMeasuredPart(const GemmDesc &desc, int64_t threads) {
  GemmDesc part = desc;
  if (part.batch.empty())
    for (int64_t *size : {&part.m, &part.n, &part.k})
      if (*size > 2 * kMeasuredSize)
        *size = kMeasuredSize;
  while (countFlops(part) > kMeasuredFlops) {
    auto largest = std::max_element(part.batch.begin(), part.batch.end());
    int64_t *size = std::max({&part.m, &part.n, &part.k},
                             [](int64_t *x, int64_t *y) { return *x < *y; });
    if (largest != part.batch.end() && *largest > 1 &&
        getBatch(part) / 2 >= threads * 4)
      size = &*largest;
    *size = (*size + 1) / 2;
  }
  return part;
}

GemmForm cpu::chooseForm(const GemmDesc &desc, const GemmUse &use,
                         FormMemory &memory) {
  if (desc.type == rt::cpu::GemmType::F64 || countFlops(desc) < kWorthMeasuring)
    return getDefaultForm(desc, use);
  std::string key = getKey(desc, use);
  std::vector<GemmForm> candidates = getCandidates(desc, use);
  // oneDNN packs for processors of some kinds only; all else it has everywhere.
  auto isLegal = [&](const GemmForm &form) {
    std::unique_ptr<Gemm> made;
    return !form.packed || Gemm::create(desc, form, 1, made).ok();
  };
  if (std::optional<GemmForm> known = memory.find(key, candidates, isLegal))
    return *known;
  if (memory.getMeasured().seconds > kMostSeconds) {
    memory.skip();
    return getDefaultForm(desc, use);
  }
  // Of a very large product a part is measured, in as many chunks.
  GemmDesc measured = getMeasuredPart(desc, use.threads);
  auto begin = std::chrono::steady_clock::now();
  Arena arena;
  GemmForm best = candidates.front();
  double bestSeconds = std::numeric_limits<double>::infinity();
  for (const GemmForm &form : candidates) {
    GemmForm tried = form;
    if (form.chunkColumns > kNarrowChunks[1])
      tried.chunkColumns = scale(form.chunkColumns, desc.n, measured.n, 64);
    tried.chunkRows = scale(form.chunkRows, desc.m, measured.m, 8);
    double handicap = form.packed && !best.packed ? 1.05 : 1.0;
    double seconds = handicap * measure(measured, tried, use.threads,
                                        bestSeconds * 1.15, arena);
    if (seconds < bestSeconds) {
      bestSeconds = seconds / handicap;
      best = form;
    }
  }
  std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - begin;
  if (std::isinf(bestSeconds)) // none could be, in so much memory
    return getDefaultForm(desc, use);
  memory.insert(key, best, taken.count());
  return best;
}
