// A random model: a batch of sequences goes through random layers into random
// losses. What a layer is: a function from hidden states to hidden states.

#ifndef ACCEL_TEST_FUZZ_PROGRAMS_MODEL_H
#define ACCEL_TEST_FUZZ_PROGRAMS_MODEL_H

#include "GraphBuilder.h"

namespace accel::fuzz {

class Model {
public:
  /// Of a model that is quantized layers have sides that are multiples of 16.
  Model(GraphBuilder &b, bool keepsRows, bool isQuantized);

  /// Runs layers and losses.
  mlir::OwningOpRef<mlir::ModuleOp> build();

  // What layers and losses are made of; [rows, length, width] is the shape of
  // hidden states.
  GraphBuilder &b;
  Random &random;
  int64_t rows, length, width, heads, words;
  /// Whether no sample meets another one, but for in sums that the loss is: a
  /// program that may run in micro-batches.
  bool keepsRows;

  /// Token ids [rows, length]; the same each time.
  Value ids();
  /// A mask [rows, length] of zeros and ones in float64.
  Value keep();
  /// The embedding's table [words, width].
  Value table();
  /// A parameter that some other layer has already, or a new one.
  Value weight(int64_t from, int64_t to);
  /// Hidden states of before.
  Value earlier() { return random.pickFrom(past); }
  /// [rows, length, from] to [rows, length, to], in one of the ways to write a
  /// product.
  Value linear(Value x, int64_t to, bool bias);
  /// A smooth function of one number.
  Value activation(Value x);
  /// A range [first, first + size) of a dimension, not all of it.
  std::pair<int64_t, int64_t> range(int64_t size);
  /// `value` with `rows` in the place of a range of a dimension, written in
  /// one of the ways to write so.
  Value write(Value value, Value rows, int64_t dim, int64_t first);
  /// What may be written into rows of a hidden state: [|rows, |length, width]
  /// sizes as given, of parameters, zeros, an input or another value.
  Value newRows(llvm::ArrayRef<int64_t> shape);

private:
  Value embed();
  Value addLosses(Value hidden);

  Value knownIds, knownKeep, knownTable;
  llvm::SmallVector<Value> past, weights;
};

/// A way to go on, how often it is taken, and whether samples meet in it.
template <typename Function> struct Family {
  const char *name;
  int frequency;
  bool mixesRows;
  Function make;
};
using Layer = Family<Value (*)(Model &, Value)>;

/// All layers, from one file per kind.
void addProducts(llvm::SmallVectorImpl<Layer> &layers);
void addAttentions(llvm::SmallVectorImpl<Layer> &layers);
void addPointwise(llvm::SmallVectorImpl<Layer> &layers);
void addSequences(llvm::SmallVectorImpl<Layer> &layers);
void addRows(llvm::SmallVectorImpl<Layer> &layers);
void addChoices(llvm::SmallVectorImpl<Layer> &layers);
void addWild(llvm::SmallVectorImpl<Layer> &layers);

/// A scalar out of hidden states.
using Loss = Family<Value (*)(Model &, Value)>;
llvm::ArrayRef<Loss> getLosses();

template <typename T>
const T &pickFamily(Random &random, llvm::ArrayRef<T> families,
                    bool keepsRows) {
  int64_t total = 0;
  for (const T &family : families)
    total += keepsRows && family.mixesRows ? 0 : family.frequency;
  int64_t at = random.below(total);
  for (const T &family : families) {
    at -= keepsRows && family.mixesRows ? 0 : family.frequency;
    if (at < 0)
      return family;
  }
  return families.front();
}

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_PROGRAMS_MODEL_H
