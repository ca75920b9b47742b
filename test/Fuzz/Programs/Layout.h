// How a training step is laid out: what acc-opt's flags say of it.

#ifndef ACCEL_TEST_FUZZ_PROGRAMS_LAYOUT_H
#define ACCEL_TEST_FUZZ_PROGRAMS_LAYOUT_H

#include "Random.h"
#include "lib/Driver/Passes.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace accel::fuzz {

struct Layout {
  struct Axis {
    std::string name;
    int64_t size;
  };
  std::vector<Axis> axes;
  int64_t microBatches = 1;
  std::string schedule;              ///< empty: the default
  std::vector<std::string> settings; ///< `--set`

  /// As acc-opt takes them; "" of one rank.
  std::string getFlags() const;
  std::string getMesh() const;
  int64_t countRanks() const;
  int64_t sizeOf(llvm::StringRef axis) const;
  /// Into how many parts the batch is cut, of micro-batches and ranks.
  int64_t countParts() const;
};

/// What a random layout has to fit.
struct Sizes {
  int64_t rows = 1, length = 1;
};

/// Up to eight ranks, every axis, ZeRO stage and schedule; seldom one that the
/// sizes do not fit.
Layout makeLayout(Random &random, Sizes sizes);

/// What a program says in all layouts, by flags: the step's optimizer, and
/// where the batch is in its inputs.
struct Update {
  std::string optimizer = "sgd";
  std::vector<std::string> settings = {"optimizer.lr=1"};
  std::vector<std::string> batchDims;
  std::string mixedPrecision; ///< fp8, bf16 or empty
  std::string metrics;        ///< precision, or empty

  /// Whether a setting says how gradients are sent.
  static bool isOfWire(llvm::StringRef setting) {
    return setting.starts_with("comm_hook=");
  }
  bool sendsRounded() const { return llvm::any_of(settings, isOfWire); }
  std::string getFlags() const;
};
Update makeUpdate(Random &random);
/// Adds linear layers in fp8, by a recipe that no layout changes. `rows` are
/// those of the batch. Whether the recipe leaves them apart.
bool quantize(Random &random, Update &update, int64_t rows);

/// Reads what `getFlags` of both wrote. Fails on any other flag.
llvm::LogicalResult parseFlags(llvm::StringRef text, Update &update,
                               Layout &layout);

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_PROGRAMS_LAYOUT_H
