// The executable file `.accx`: what the compiler writes and the runtime reads,
// and all that both include. In memory it is the structs below, and commands
// (CommandFormat.h); on disk it is
//
//   u64 length | JSON header of that length | u64 XXH3-64 of the JSON | padding
//   | sections, each starting on a multiple of 4096 bytes
//
// The header is safetensors-shaped: `__metadata__` holds format and version, a
// key `section:NAME` its {dtype, shape, data_offsets, hash} (offsets count from
// the first section's place), and the key `accx` the structs. The structs say
// what dialects/Plan says; its descriptions are not repeated here.

#ifndef ACCEL_RT_PLANFORMAT_H
#define ACCEL_RT_PLANFORMAT_H

#include "accel-rt/CommandFormat.h"
#include "accel-rt/Status.h"

#include <memory>
#include <string_view>
#include <unordered_map>

namespace accel::rt {

/// Raised by every change that an older reader would misread.
inline constexpr int64_t kFormatVersion = 21;
inline constexpr uint64_t kSectionAlignment = 4096;
/// What the names of sections that hold a target's code begin with; what
/// follows is the target's own.
inline constexpr const char *kCodePrefix = "code:";

struct Axis {
  std::string name;
  int64_t size = 1;
};

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Where the file of an arena of space nvme lies, and how it is moved: in
/// blocks, of which so many are under way at once.
struct StoragePlan {
  std::string path; ///< A folder of the machine that runs.
  int64_t blockBytes = 1 << 20, queueDepth = 8;
};
/// What such a file is read and written in where the cache of pages is passed
/// by: no two buffers of it share one.
inline constexpr int64_t kStorageSector = 4096;
/// The space that is a file.
inline constexpr const char *kStorageSpace = "nvme";

struct ArenaPlan {
  std::string space; ///< device, pinned, host, shared, nvme.
  int64_t bytes = 0, alignment = 64, reserve = 0;
  std::optional<StoragePlan> storage = std::nullopt; ///< Of space nvme alone.

  bool isStored() const { return space == kStorageSpace; }
};
struct BufferPlan {
  std::string name, role, space;
  /// A run on micro-batch m uses the copy m mod `slots`, `slotStride` bytes
  /// behind the one before.
  int64_t offset = 0, bytes = 0, slots = 1, slotStride = 0;
  /// Section that holds a constant's value; empty otherwise.
  std::string section;
  /// The state of a state buffer; empty otherwise.
  std::string source;
  /// The buffer whose bytes it shares on purpose; empty: none.
  std::string aliasOf = {};
};
struct Body {
  std::string name, engine;
  std::vector<Command> commands;
};
struct Run {
  int64_t body = 0; ///< Index into Program::bodies.
  /// In turn 0 of the loop; in each later turn the next.
  int64_t microBatch = 0;
};
struct Segment {
  std::string engine;
  bool capturable = false;
  std::vector<Run> runs;
};
/// Segments that repeat, `trips` times; what runs once is a loop of one turn.
struct Loop {
  int64_t trips = 1;
  std::vector<Segment> segments;
};
/// Something that a file can be called for: `load`, once and before all others,
/// then `step`, `eval` and `forward`, each at most once in a program.
struct Entry {
  std::string name;
  std::vector<Loop> loops;
};
struct Program {
  std::string name;
  int64_t stage = 0;
  std::vector<ArenaPlan> arenas;
  std::vector<BufferPlan> buffers;
  std::vector<Body> bodies;
  std::vector<Entry> entries;
};

/// Where a state's first value is: a byte range of a file (path relative to the
/// .accx) or of a section, or nowhere, every element being `fill` (the bytes of
/// one, in memory order). `permutation` not the identity: the bytes hold the
/// transposed value (file dimension d = state dimension permutation[d]).
/// `stored` is the elements' type in the file where it is not the state's.
/// `hash` is that of the range: always of a section, of a file where the
/// compiler has read it.
struct FirstValue {
  std::string path, section;
  uint64_t offset = 0, bytes = 0;
  std::optional<uint64_t> hash = std::nullopt;
  std::vector<int64_t> permutation;
  std::vector<int64_t> fill = {};
  std::optional<DType> stored = std::nullopt;
};
/// Which row of a stack a state is. Ranks keep the stack, in one buffer that
/// has its name; `rows` is the size of its dimension 0, with padding, and
/// `axes` are what splits it.
struct StackRow {
  std::string stack;
  int64_t row = 0, rows = 0;
  std::vector<std::string> axes = {};
};
/// A rank's piece of a state stays in the buffer whose `source` names it (of a
/// row, the stack that it is of), in the view that the entry `load` reads it
/// into.
struct StatePlan {
  std::string name;
  std::vector<std::string> aliases;
  /// parameter, moment, accumulator, counter, buffer: as nn.state has it.
  std::string role = "parameter";
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  /// The value's own shape where `shape` pads it with zeros at the end of
  /// dimensions, so that ranks can split it; empty: no padding. Files know this
  /// shape alone.
  std::vector<int64_t> logicalShape = {};
  /// Axes of every dimension, as in Part; empty: replicated.
  std::vector<std::vector<std::string>> axes;
  std::optional<Interleaved> interleaved = std::nullopt; ///< As in Part.
  bool frozen = false; ///< Never written: it keeps its first value.
  FirstValue first;
  /// Where it is one of those that ranks keep as rows of one tensor; `shape`,
  /// `axes` and the rest are the row's own.
  std::optional<StackRow> inStack = std::nullopt;

  /// What commands that read it, and the buffer that keeps it, call it.
  const std::string &keptAs() const { return inStack ? inStack->stack : name; }

  /// The shape without padding: that of the first value.
  const std::vector<int64_t> &valueShape() const {
    return logicalShape.empty() ? shape : logicalShape;
  }
  /// How ranks share the value, padding included.
  Part part() const {
    Part part{shape, axes, interleaved};
    part.axes.resize(shape.size());
    return part;
  }
  /// How they share what `keptAs` names: of a row, the stack.
  Part keptPart() const;
};
/// A parameter of the user's program that the exporter folded into others: the
/// program has no such state. `shape` where it is known.
struct FoldedParameter {
  std::string name;
  std::optional<std::vector<int64_t>> shape;
};
/// What a kernel was compiled for: its symbol, and the signature
/// (kernelSignature) of a command that calls it.
struct KernelPlan {
  std::string function;
  uint64_t signature = 0;
};

/// An input or output, whole: each entry shares it among ranks in its own way,
/// which its reads and writes say.
struct TensorPlan {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  /// Of an input: the dimension along which the samples of a batch lie; absent:
  /// every batch has the same.
  std::optional<int64_t> batchDim = std::nullopt;
};

struct Section {
  std::string name;
  DType dtype = DType::UI8;
  std::vector<int64_t> shape;
  uint64_t offset = 0, bytes = 0, hash = 0;
};

/// A number by which a training step says how it went: an output of the name
/// and type (f32, f64 or i32).
struct ReportPlan {
  std::string name;
  DType dtype = DType::F32;
};
/// The two that every training step reports: its loss (f32 or f64), and what
/// became of it (i32).
inline constexpr const char *kLossReport = "loss", *kVerdictReport = "verdict",
                            *kLossScaleReport = "loss_scale";
/// What the names of outputs begin with that measure a step, and how many f32
/// each has: the largest magnitude of what is rounded, the smallest and the
/// largest scale, elements that overflow, elements that vanish.
inline constexpr const char *kMetricPrefix = "metrics/";
inline constexpr size_t kMetricSize = 5;
/// Of a step that is skipped no state changes but what counts calls; of one
/// that failed none does, and the run ends.
enum class Verdict : int32_t { Done, Skipped, Failed };
/// The most that a step reports, and the bytes of their names.
inline constexpr size_t kMaxReports = 16, kMaxReportName = 63;
/// The state (of the role counter, an i64) that counts calls of the entry step,
/// skipped ones too: by it data go on, and checkpoints are numbered.
inline constexpr const char *kCallCounter = "counter/call";

/// An input whose rows along a dimension must be equal.
struct EqualRows {
  std::string input;
  int64_t dim = 0;
};

/// A term of a loss: `numerator` over max(`denominator` + plus, least), outputs
/// that are sums over rows. Without a denominator it is a mean over rows.
struct LossTerm {
  std::string numerator, denominator;
  double plus = 0;
  std::optional<double> least = std::nullopt;
};

/// That the loss of the entry eval is made of sums of what each row of a batch
/// comes to by itself: that of more rows, and of fewer, then follows from those
/// of whole batches.
struct SeparateRows {
  /// Inputs [batch, …] of which each row belongs to one sample.
  std::vector<std::string> inputs;
  /// What it takes: rows of these are equal …
  std::vector<EqualRows> equal;
  /// … and no element of `inputs` is one of these, which a loss does not count.
  std::vector<int64_t> ignored;
  /// What the loss is the sum of; none: it is a mean over rows.
  std::vector<LossTerm> terms = {};
};

/// That a step takes a mask [batch] of the rows that count, and is as if the
/// others were not there.
struct RowMask {
  std::string input;
  SeparateRows rows; ///< Without terms, and without labels that are ignored.
};

/// Everything in the header.
struct Executable {
  /// As given to the compiler: "cpu:x86-64-v3". Up to a ':' it is the name of
  /// the device that the plan was made for.
  std::string target;
  /// What the code needs of the machine, in words of that device; of another
  /// engine's with its name before them (FeatureFormat.h).
  std::vector<std::string> features;
  std::vector<Axis> mesh;   ///< Major to minor; rank 0 has all coordinates 0.
  int64_t microBatches = 1; ///< Size of the axis mb, which `mesh` leaves out.
  int64_t seed = 0;         ///< Of everything random, the data's order too.
  std::vector<Program> programs;
  std::vector<StatePlan> states;
  std::vector<FoldedParameter> folded;
  std::vector<TensorPlan> inputs, outputs;
  /// What a training step reports, in the order in which it is told.
  std::vector<ReportPlan> reports;
  /// Every way in which a command calls a kernel. Filled by the writer, from
  /// the plan that the kernels were compiled for.
  std::vector<KernelPlan> kernels = {};
  /// The input of labels that `--loss cross_entropy:` added, which the program
  /// compares with the logits of the same place; empty: none was added.
  std::string unshiftedLabels;
  /// Of the entry eval; absent: rows are known to be separate in no such way.
  std::optional<SeparateRows> separateRows = std::nullopt;
  /// Of the entry step; absent: all rows count.
  std::optional<RowMask> rowMask = std::nullopt;
  /// Filled by the writer and the reader.
  std::vector<Section> sections;

  /// Number of ranks: the product of the mesh's sizes.
  int64_t numRanks() const;
  /// Whether it can be called for `name`: all of its programs can, or none.
  bool hasEntry(const std::string &name) const;
  bool isTraining() const { return hasEntry("step"); }
  /// The place of a report among `reports`; their number if there is none.
  size_t placeOfReport(std::string_view name) const;
};

/// A section to be written. `data` must outlive the call.
struct SectionData {
  std::string name;
  DType dtype = DType::UI8;
  std::vector<int64_t> shape;
  const void *data = nullptr;
  uint64_t bytes = 0;
};

/// XXH3-64 of a range: the hash of sections, weights and `#nn.file`.
uint64_t hashBytes(const void *data, uint64_t bytes);

/// The hash of all that the code of a command's kernel relies on: rows, and
/// element types, shapes, strides and sharing of its views. Nothing for
/// commands without a kernel.
std::optional<KernelPlan> kernelSignature(const Program &program,
                                          const Command &command);

/// Checks `executable` as a program, so that the runtime need not: every index,
/// view, section and name is in range, entries are there, streams are ordered,
/// and what is read was written. `executable.sections` and `kernels` must be
/// filled. Takes time n log n in the commands of the runs that entries list,
/// however many turns their loops have.
Status validate(const Executable &executable);

/// Writes `path` atomically: a temporary beside it, fsync, rename. On an error
/// (disk full, folder not writable, invalid structs) nothing is left behind.
Status writeExecutableFile(Executable executable,
                           const std::vector<SectionData> &sections,
                           const std::string &path);

/// An open `.accx`. The file stays open and is read by byte range.
class ExecutableFile {
public:
  /// Reads and checks the header: length, hash, version, fields, ranges.
  /// Errors: one sentence that starts with the file's name.
  static Status open(const std::string &path,
                     std::unique_ptr<ExecutableFile> &file);
  ~ExecutableFile();
  ExecutableFile(const ExecutableFile &) = delete;
  ExecutableFile &operator=(const ExecutableFile &) = delete;

  const Executable &plan() const { return executable; }
  const std::string &path() const { return filePath; }
  int descriptor() const { return fd; }
  /// Byte offset in the file of a section's first byte.
  uint64_t fileOffset(const Section &section) const {
    return payloadStart + section.offset;
  }
  /// The section of that name; null if there is none.
  const Section *find(const std::string &name) const;
  /// Reads a whole section into `target` (section.bytes long) and checks its
  /// hash.
  Status read(const Section &section, void *target) const;

private:
  ExecutableFile() = default;
  Executable executable;
  std::string filePath;
  uint64_t payloadStart = 0;
  int fd = -1;
  /// By the names in `executable`: each state and constant asks for its own.
  std::unordered_map<std::string_view, const Section *> sections;
};

} // namespace accel::rt

#endif // ACCEL_RT_PLANFORMAT_H
