// What --data and --eval-data say: one file of tokens, a blend of several, or a
// file for each of some inputs, and the order in which samples are read.

#ifndef ACCEL_RUNTIME_FEED_DATASOURCE_H
#define ACCEL_RUNTIME_FEED_DATASOURCE_H

#include "Data/MegatronIndex.h"
#include "Data/SampleOrder.h"
#include "accel-rt/PlanFormat.h"

namespace accel::rt {

struct DataSource {
  /// FILE, INPUT=FILE,INPUT=FILE, or WEIGHT FILE WEIGHT FILE.
  std::string text;
  std::string type;   ///< Of a raw file's integers (Data/TokenFile.h).
  std::string labels; ///< "same" as the tokens (or empty), or the "next" one.
  SampleOrder::Kind order = SampleOrder::Once;
  uint64_t seed = 0;
  int64_t firstStep = 0; ///< Steps that were finished when the data began.
  SampleOrder::Last last = SampleOrder::Next;
  /// Of SampleOrder::Keep: the input of labels that rows which do not count get
  /// as -100.
  std::string ignoredIn = "";
  /// The input [batch] of bool that says which rows count; empty: none does.
  std::string rowMask = "";
  std::optional<DataSplit> split = std::nullopt; ///< Of Megatron-LM datasets.
};

/// The file of an input.
struct InputFile {
  std::string input, path;
};

/// The files that `text` names for `inputs`; none: it is one file of tokens. A
/// part of it without '=' belongs to the name of the file before it, which has
/// a comma. Errors: an input that there is not, or that is named twice, and no
/// file.
Status filesOf(const std::string &text, const std::vector<TensorPlan> &inputs,
               std::vector<InputFile> &files);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FEED_DATASOURCE_H
