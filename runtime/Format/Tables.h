// The tables of an executable by name, and the arithmetic that every check of
// it needs. Built once, so that checks are linear in the file.

#ifndef ACCEL_RUNTIME_FORMAT_TABLES_H
#define ACCEL_RUNTIME_FORMAT_TABLES_H

#include "accel-rt/PlanFormat.h"

#include <set>
#include <unordered_map>

namespace accel::rt {

/// Sizes and offsets above this are refused, which keeps sums from overflowing.
inline constexpr int64_t kLimit = int64_t(1) << 56;

inline bool inRange(int64_t value, int64_t low, int64_t end) {
  return value >= low && value < end;
}

/// Product of `sizes` · `factor`; -1 where it leaves the limit.
int64_t boundedProduct(const std::vector<int64_t> &sizes, int64_t factor);

class Tables {
public:
  /// `executable` must outlive this.
  explicit Tables(const Executable &executable);

  /// Null where there is none of that name.
  const Section *section(const std::string &name) const;
  /// By what keeps it (StatePlan::keptAs): of a stack, its first row.
  const StatePlan *state(const std::string &name) const;
  const TensorPlan *input(const std::string &name) const;
  const TensorPlan *output(const std::string &name) const;
  /// 0 for an axis that the mesh lacks; "mb" is the micro-batches.
  int64_t axisSize(const std::string &name) const;
  /// Whether the file's kernels were compiled for that.
  bool hasKernel(const KernelPlan &kernel) const;

  /// Each axis is there, and named once.
  Status checkAxes(const std::vector<std::string> &axes, bool microBatch) const;
  Status checkPart(const Part &part, const std::string &what) const;

  const Executable &executable;

private:
  template <class T> using Names = std::unordered_map<std::string, const T *>;
  Names<Section> sections;
  Names<StatePlan> states;
  Names<TensorPlan> inputs, outputs;
  Names<Axis> axes;
  std::set<std::pair<std::string, uint64_t>> kernels;
};

/// Checks one program: its arenas and buffers, each command and each run, then
/// their order (Replay.h).
Status checkProgram(const Tables &tables, const Program &program);

/// Checks what one command says of itself, its views being in range.
Status checkCommand(const Tables &tables, const Program &program,
                    const Command &command);

/// Every message that is sent is received, as what it was sent.
Status checkMessages(const Executable &executable);

/// Whatever the file declares is of use: bodies run, inputs are read, outputs
/// written, kernels called, sections named. What is not betrays a command that
/// was meant to use it and uses another.
Status checkUses(const Executable &executable);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FORMAT_TABLES_H
