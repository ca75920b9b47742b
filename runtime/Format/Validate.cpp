// Checks the structs of an executable before anything acts on them: a file
// whose numbers were changed (and whose hash was made to fit) is refused here,
// so that the runtime can trust every index and address.

#include "Base/Text.h"
#include "Format/EntryTensors.h"
#include "Format/Runs.h"
#include "Format/Tables.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>

namespace accel::rt {
namespace {

constexpr int64_t kMaxRanks = 1 << 20;
constexpr int64_t kMaxMicroBatches = 1 << 20;

/// As enum StateRole of the nn dialect.
constexpr const char *kStateRoles[] = {"parameter", "moment", "accumulator",
                                       "counter",   "buffer", "residual",
                                       "factor",    "scaler", "quantizer"};

class Validator {
public:
  explicit Validator(const Executable &executable)
      : executable(executable), tables(executable) {}

  Status run() {
    ACCEL_RT_RETURN_IF_ERROR(checkMesh());
    std::unordered_set<std::string_view> names;
    names.reserve(executable.sections.size());
    for (const Section &section : executable.sections)
      if (!names.insert(section.name).second)
        return Status::error("found section " + inQuotes(section.name) +
                             " twice");
    for (const StatePlan &state : executable.states)
      ACCEL_RT_RETURN_IF_ERROR(checkState(state));
    ACCEL_RT_RETURN_IF_ERROR(checkStacks());
    ACCEL_RT_RETURN_IF_ERROR(checkStateNames());
    for (const auto *list : {&executable.inputs, &executable.outputs}) {
      names.clear();
      for (const TensorPlan &tensor : *list) {
        ACCEL_RT_RETURN_IF_ERROR(checkName(tensor.name));
        std::string what = "input or output " + inQuotes(tensor.name);
        if (!names.insert(tensor.name).second)
          return Status::error("found two of " + what);
        if (boundedProduct(tensor.shape, 8) < 0)
          return Status::error("expected a shape, found sizes out of range "
                               "for " +
                               what);
        if (tensor.batchDim &&
            !inRange(*tensor.batchDim, 0,
                     static_cast<int64_t>(tensor.shape.size())))
          return Status::error("expected a dimension along which the samples "
                               "of " +
                               what + " lie, found " +
                               std::to_string(*tensor.batchDim));
      }
    }
    if (!executable.unshiftedLabels.empty() &&
        !tables.input(executable.unshiftedLabels))
      return Status::error("expected the input of labels " +
                           inQuotes(executable.unshiftedLabels) +
                           ", found none of that name");
    ACCEL_RT_RETURN_IF_ERROR(checkSeparateRows());
    ACCEL_RT_RETURN_IF_ERROR(checkRowMask());
    if (executable.programs.empty())
      return Status::error("expected at least one program, found none");
    if (executable.isTraining())
      ACCEL_RT_RETURN_IF_ERROR(checkReports());
    ACCEL_RT_RETURN_IF_ERROR(checkStages());
    for (const Program &program : executable.programs)
      ACCEL_RT_RETURN_IF_ERROR(checkProgram(tables, program));
    ACCEL_RT_RETURN_IF_ERROR(checkTold());
    ACCEL_RT_RETURN_IF_ERROR(checkUses(executable));
    return checkMessages(executable);
  }

private:
  Status checkMesh() {
    int64_t ranks = 1;
    std::set<std::string> names;
    for (const Axis &axis : executable.mesh) {
      if (!names.insert(axis.name).second)
        return Status::error("found mesh axis " + inQuotes(axis.name) +
                             " twice");
      if (!inRange(axis.size, 1, kMaxRanks + 1) ||
          (ranks *= axis.size) > kMaxRanks)
        return Status::error("expected a mesh of 1 to " +
                             std::to_string(kMaxRanks) + " ranks");
      if (axis.name == "mb")
        return Status::error("expected a mesh without the axis 'mb'");
    }
    if (!inRange(executable.microBatches, 1, kMaxMicroBatches + 1))
      return Status::error("expected 1 to " + std::to_string(kMaxMicroBatches) +
                           " micro-batches, found " +
                           std::to_string(executable.microBatches));
    return Status();
  }

  /// Whether a path is one that the compiler writes: relative, up first and
  /// then down. (Weights lie where the model does, which may be another
  /// folder.)
  static bool isPlainPath(const std::string &path) {
    bool down = false;
    for (size_t begin = 0; begin <= path.size();) {
      size_t end = std::min(path.find('/', begin), path.size());
      std::string part = path.substr(begin, end - begin);
      if (part.empty() || part == "." || (part == ".." && down) ||
          part.find('\0') != std::string::npos)
        return false;
      down |= part != "..";
      begin = end + 1;
    }
    return down;
  }

  /// What tensors are called becomes names of files, and is looked up in them.
  static Status checkName(const std::string &name) {
    return isText(name) ? Status()
                        : Status::error("expected a name in UTF-8, without "
                                        "NUL, found " +
                                        inQuotes(name));
  }

  Status checkState(const StatePlan &state) {
    std::string what = "state " + inQuotes(state.name);
    const FirstValue &first = state.first;
    int64_t bytes = boundedProduct(state.shape, dtypeBytes(state.dtype));
    if (bytes < 0)
      return Status::error("expected a shape, found sizes out of range for " +
                           what);
    if (std::find(std::begin(kStateRoles), std::end(kStateRoles), state.role) ==
        std::end(kStateRoles))
      return Status::error("expected the role of a state, found " +
                           inQuotes(state.role) + " for " + what);
    if (!state.logicalShape.empty()) {
      bool within = state.logicalShape.size() == state.shape.size();
      for (size_t i = 0; within && i < state.shape.size(); ++i)
        within = inRange(state.logicalShape[i], 0, state.shape[i] + 1);
      if (!within)
        return Status::error("expected a logical shape within the shape of " +
                             what);
      bytes = boundedProduct(state.logicalShape, dtypeBytes(state.dtype));
    }
    if (!state.axes.empty() && state.axes.size() != state.shape.size())
      return Status::error("expected axes for each dimension of " + what +
                           ", found " + std::to_string(state.axes.size()) +
                           " for " + std::to_string(state.shape.size()));
    if (!state.axes.empty() || state.interleaved)
      ACCEL_RT_RETURN_IF_ERROR(tables.checkPart(state.part(), what));
    if (state.interleaved &&
        state.valueShape()[static_cast<size_t>(state.interleaved->dim)] !=
            state.shape[static_cast<size_t>(state.interleaved->dim)])
      return Status::error("expected no padding where parts are interleaved, "
                           "found some for " +
                           what);
    for (size_t i = 0; i < state.axes.size(); ++i) {
      int64_t pieces = 1;
      for (const std::string &axis : state.axes[i])
        pieces *= tables.axisSize(axis);
      if (state.shape[i] % pieces)
        return Status::error("expected axes that divide dimension " +
                             std::to_string(i) + " of " + what + ", found " +
                             std::to_string(pieces) + " pieces");
    }
    if (!first.path.empty() + !first.section.empty() + !first.fill.empty() != 1)
      return Status::error("expected a file, a section or a fill for " + what);
    if (!first.fill.empty()) {
      bool fits =
          first.fill.size() == static_cast<size_t>(dtypeBytes(state.dtype)) &&
          !first.bytes && !first.stored;
      for (int64_t byte : first.fill)
        fits &= inRange(byte, 0, 256);
      return fits ? Status()
                  : Status::error("expected a fill of one element for " + what);
    }
    if (first.stored) {
      bool isHalf = first.stored == DType::F16 || first.stored == DType::BF16;
      if (!(state.dtype == DType::F64 &&
            (isHalf || first.stored == DType::F32)) &&
          !(state.dtype == DType::F32 && isHalf))
        return Status::error(
            "expected a conversion to a wider float, found one "
            "of " +
            std::string(dtypeName(*first.stored)) + " to " +
            dtypeName(state.dtype) + " for " + what);
      bytes = boundedProduct(state.valueShape(), dtypeBytes(*first.stored));
    }
    if (first.bytes != static_cast<uint64_t>(bytes))
      return Status::error("expected " + std::to_string(bytes) +
                           " bytes of first value, found " +
                           std::to_string(first.bytes) + " for " + what);
    if (!first.path.empty() &&
        (!isPlainPath(first.path) || first.offset > kLimit))
      return Status::error("expected a relative path without detours, found " +
                           inQuotes(first.path) + " for " + what);
    if (!isText(first.path))
      return Status::error("expected a path in UTF-8, found " +
                           inQuotes(first.path) + " for " + what);
    if (!first.section.empty()) {
      const Section *section = tables.section(first.section);
      if (!section || first.offset > section->bytes ||
          first.bytes > section->bytes - first.offset)
        return Status::error("expected a range of a section for " + what);
      if (!first.hash)
        return Status::error("expected a hash of the first value of " + what);
    }
    if (first.permutation.empty())
      return Status();
    std::vector<int64_t> sorted = first.permutation;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i)
      if (sorted[i] != static_cast<int64_t>(i) ||
          sorted.size() != state.shape.size())
        return Status::error("expected a permutation for " + what);
    return Status();
  }

  /// The rows of a stack are alike, and all there, each once; whatever is
  /// behind them is padding.
  Status checkStacks() {
    std::map<std::string_view, std::set<int64_t>> found;
    for (const StatePlan &state : executable.states) {
      if (!state.inStack)
        continue;
      const StackRow &own = *state.inStack;
      std::string what = "row " + inQuotes(state.name) + " of the stack " +
                         inQuotes(own.stack);
      const StatePlan &first = *tables.state(own.stack);
      if (!inRange(own.rows, 1, kLimit) || !inRange(own.row, 0, own.rows) ||
          !found[own.stack].insert(own.row).second)
        return Status::error("expected a place of its own for " + what);
      ACCEL_RT_RETURN_IF_ERROR(tables.checkPart(state.keptPart(), what));
      int64_t pieces = 1;
      for (const std::string &axis : own.axes)
        pieces *= tables.axisSize(axis);
      if (own.rows % pieces)
        return Status::error("expected axes that divide its " +
                             std::to_string(own.rows) + " rows for " + what);
      Part part = state.keptPart(), other = first.keptPart();
      if (!first.inStack || part.shape != other.shape ||
          part.axes != other.axes || !(part.interleaved == other.interleaved) ||
          state.dtype != first.dtype || state.role != first.role ||
          state.frozen != first.frozen ||
          state.logicalShape != first.logicalShape)
        return Status::error("expected what the other rows are for " + what);
    }
    for (const auto &[stack, rows] : found)
      if (*rows.rbegin() != static_cast<int64_t>(rows.size()) - 1)
        return Status::error("expected all rows before the last of the stack " +
                             inQuotes(std::string(stack)));
    return Status();
  }

  Status checkRows(const SeparateRows &rows) {
    auto hasDim = [&](const std::string &name, int64_t dim) {
      const TensorPlan *input = tables.input(name);
      return input && inRange(dim, 0, input->shape.size());
    };
    for (const std::string &name : rows.inputs)
      if (!hasDim(name, 0) || !tables.input(name)->batchDim)
        return Status::error("expected an input of rows, found " +
                             inQuotes(name));
    for (const EqualRows &each : rows.equal)
      if (!hasDim(each.input, each.dim))
        return Status::error("expected an input with a dimension " +
                             std::to_string(each.dim) + ", found " +
                             inQuotes(each.input));
    return Status();
  }

  Status checkRowMask() {
    if (!executable.rowMask)
      return Status();
    const RowMask &mask = *executable.rowMask;
    const TensorPlan *input = tables.input(mask.input);
    if (!executable.isTraining() || !input || input->dtype != DType::I1 ||
        input->shape.size() != 1 || input->batchDim != 0)
      return Status::error("expected an input [batch] of bool of a training "
                           "step as the mask of its rows, found " +
                           inQuotes(mask.input));
    return checkRows(mask.rows);
  }

  Status checkSeparateRows() {
    if (!executable.separateRows)
      return Status();
    if (!executable.hasEntry("eval"))
      return Status::error("expected an entry 'eval' whose rows are separate, "
                           "found none");
    ACCEL_RT_RETURN_IF_ERROR(checkRows(*executable.separateRows));
    std::set<std::string> names;
    for (const ReportPlan &report : executable.reports)
      names.insert(report.name);
    for (const std::string &name : namesOfTerms()) {
      ACCEL_RT_RETURN_IF_ERROR(checkNumber(name, {DType::F32, DType::F64}));
      if (!names.insert(name).second)
        return Status::error("expected outputs of its own for each term of the "
                             "loss, found " +
                             inQuotes(name) + " twice");
    }
    return Status();
  }

  /// Each coordinate of the axis pp has one program.
  Status checkStages() {
    int64_t stages = std::max<int64_t>(1, tables.axisSize("pp"));
    std::set<int64_t> found;
    for (const Program &program : executable.programs)
      if (!inRange(program.stage, 0, stages) ||
          !found.insert(program.stage).second)
        return Status::error(
            "expected one program for each of " + std::to_string(stages) +
            " stages, found one of stage " + std::to_string(program.stage));
    if (static_cast<int64_t>(found.size()) != stages)
      return Status::error("expected a program for each of " +
                           std::to_string(stages) + " stages, found " +
                           std::to_string(found.size()));
    return Status();
  }

  /// A training step says how it went.
  Status checkReports() {
    for (const char *name : {kLossReport, kVerdictReport})
      if (executable.placeOfReport(name) == executable.reports.size())
        return Status::error("expected a training step to report " +
                             inQuotes(name) + ", found no such report");
    if (executable.reports.size() > kMaxReports)
      return Status::error("expected at most " + std::to_string(kMaxReports) +
                           " reports of a step, found " +
                           std::to_string(executable.reports.size()));
    std::set<std::string> names;
    for (const ReportPlan &report : executable.reports) {
      ACCEL_RT_RETURN_IF_ERROR(checkName(report.name));
      if (report.name.size() > kMaxReportName)
        return Status::error("expected a report's name of at most " +
                             std::to_string(kMaxReportName) + " bytes, found " +
                             inQuotes(report.name));
      if (!names.insert(report.name).second)
        return Status::error("found the report " + inQuotes(report.name) +
                             " twice");
      std::vector<DType> types{DType::F32, DType::F64, DType::I32};
      if (report.name == kLossReport)
        types.pop_back();
      if (report.name == kVerdictReport)
        types = {DType::I32};
      ACCEL_RT_RETURN_IF_ERROR(checkNumber(report.name, types));
      if (tables.output(report.name)->dtype != report.dtype)
        return Status::error("expected the report " + inQuotes(report.name) +
                             " to have the type of the output, found another");
    }
    return Status();
  }

  Status checkNumber(const std::string &name, const std::vector<DType> &types) {
    const TensorPlan *output = tables.output(name);
    if (output && boundedProduct(output->shape, 1) == 1 &&
        std::find(types.begin(), types.end(), output->dtype) != types.end())
      return Status();
    std::string list;
    for (size_t i = 0; i < types.size(); ++i)
      list += (i == 0                  ? ""
               : i + 1 == types.size() ? " or "
                                       : ", ") +
              std::string(dtypeName(types[i]));
    return Status::error("expected an output " + inQuotes(name) +
                         ", a number of type " + list);
  }

  /// The numbers of which the loss of an evaluation is made.
  std::vector<std::string> namesOfTerms() const {
    std::vector<std::string> names;
    if (executable.separateRows)
      for (const LossTerm &term : executable.separateRows->terms) {
        names.push_back(term.numerator);
        if (!term.denominator.empty())
          names.push_back(term.denominator);
      }
    return names;
  }

  static bool tells(const Program &program, const std::string &entry,
                    const std::string &output) {
    bool found = false;
    for (const Entry &each : program.entries)
      if (each.name == entry)
        format::forEachRun(each, [&](const Run &run, const Loop &) {
          for (const Command &command : program.bodies[run.body].commands)
            if (auto *write = std::get_if<WriteCommand>(&command.what))
              found |= write->name == output;
        });
    return found;
  }

  /// A call tells what is printed of it: a step its reports, an evaluation its
  /// loss, which is the step's output too. What the first rank has is told.
  Status checkTold() {
    if (executable.hasEntry("eval") && !executable.isTraining())
      return Status::error(
          "expected an entry 'step' beside 'eval', found none");
    auto first =
        std::find_if(executable.programs.begin(), executable.programs.end(),
                     [](const Program &program) { return program.stage == 0; });
    std::vector<std::string> ofStep, ofEval = namesOfTerms();
    for (const ReportPlan &report : executable.reports)
      ofStep.push_back(report.name);
    ofEval.push_back(kLossReport);
    for (auto &[entry, names] :
         {std::pair("step", &ofStep), std::pair("eval", &ofEval)}) {
      if (!executable.hasEntry(entry))
        continue;
      for (const std::string &name : *names)
        if (!tells(*first, entry, name))
          return Status::error("expected the first stage's entry " +
                               inQuotes(entry) + " to write output " +
                               inQuotes(name) + ", found none");
    }
    return Status();
  }

  /// Every name and alias stands for one state: saved weights go by them.
  Status checkStateNames() {
    std::set<std::string> names;
    auto add = [&](const std::string &name) {
      ACCEL_RT_RETURN_IF_ERROR(checkName(name));
      return names.insert(name).second
                 ? Status()
                 : Status::error("found two states called " + inQuotes(name));
    };
    std::set<std::string> stacks;
    for (const StatePlan &state : executable.states) {
      ACCEL_RT_RETURN_IF_ERROR(add(state.name));
      if (state.inStack && stacks.insert(state.inStack->stack).second)
        ACCEL_RT_RETURN_IF_ERROR(add(state.inStack->stack));
      for (const std::string &alias : state.aliases)
        ACCEL_RT_RETURN_IF_ERROR(add(alias));
    }
    for (const FoldedParameter &folded : executable.folded) {
      ACCEL_RT_RETURN_IF_ERROR(add(folded.name));
      if (folded.shape && boundedProduct(*folded.shape, 8) < 0)
        return Status::error("expected a shape, found sizes out of range for " +
                             inQuotes(folded.name));
    }
    return Status();
  }

  const Executable &executable;
  Tables tables;
};

} // namespace

Status validate(const Executable &executable) {
  return Validator(executable).run();
}

} // namespace accel::rt
