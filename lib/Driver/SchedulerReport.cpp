// Evaluates a schedule's program step by step, and prints what comes of it.

#include "lib/Driver/SchedulerReport.h"

#include "lib/Autodiff/ScheduleProgram.h"
#include "lib/Driver/Compile.h"
#include "lib/Driver/InitAll.h"
#include "lib/Driver/OutputFile.h"
#include "lib/Evaluate/Interpreter.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::driver;

/// A text chart's plot, in characters, and the rows of its table.
static constexpr int64_t kColumns = 64, kRows = 12, kTableRows = 12;
/// How many steps a picture shows; more would lie on each other. Of JSON, which
/// has all of them, the most.
static constexpr int64_t kDrawn = 800, kListed = 1000000;

/// Steps from 1 to `steps`, evenly spaced where they are more than `most`.
static std::vector<int64_t> chooseSteps(int64_t steps, int64_t most) {
  std::vector<int64_t> at;
  int64_t count = std::min(steps, most);
  for (int64_t index = 0; index < count; ++index)
    // In floating point: the product of two counts may be too large.
    at.push_back(count == 1 ? 1
                            : 1 + int64_t(double(index) * double(steps - 1) /
                                          double(count - 1)));
  return at;
}

static LogicalResult evaluateSteps(ModuleOp module, Curves &curves) {
  FailureOr<evaluate::Signature> signature = evaluate::getSignature(module);
  if (failed(signature))
    return failure();
  for (const evaluate::NamedType &output : signature->outputs)
    curves.curves.push_back({output.name, {}});
  Tensor number(signature->inputs.front().type);
  for (int64_t step : curves.at) {
    number.mutableFloats()[0] = double(step);
    evaluate::TensorsByName inputs, outputs;
    inputs[autodiff::kScheduleInput] = number;
    if (failed(evaluate::evaluateModule(module, inputs, {}, outputs)))
      return failure();
    for (Curves::Curve &curve : curves.curves)
      curve.values.push_back(outputs[curve.name].floats()[0]);
  }
  return success();
}

static std::string spellValue(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.6g", number);
  return text;
}

static void printChart(const Curves &curves, const Curves::Curve &curve,
                       llvm::raw_ostream &os) {
  auto [least, most] =
      std::minmax_element(curve.values.begin(), curve.values.end());
  double low = *least, high = *most;
  os << curve.name << ":";
  if (low == high) {
    os << " " << spellValue(low) << " in all steps\n";
    return;
  }
  os << "\n";
  int64_t columns = std::min<int64_t>(kColumns, curve.values.size());
  std::vector<std::string> rows(kRows, std::string(columns, ' '));
  // A column has all the steps that fall into it, so that a peak is not missed.
  for (size_t index = 0; index < curve.values.size(); ++index) {
    int64_t column = index * columns / curve.values.size();
    double part = (curve.values[index] - low) / (high - low);
    int64_t row = kRows - 1 - std::lround(part * double(kRows - 1));
    rows[row][column] = '*';
  }
  for (int64_t row = 0; row < kRows; ++row) {
    std::string label = row == 0           ? spellValue(high)
                        : row == kRows - 1 ? spellValue(low)
                                           : "";
    os << llvm::format("%12s |", label.c_str()) << StringRef(rows[row]).rtrim()
       << "\n";
  }
  std::string last = std::to_string(curves.steps);
  os << std::string(13, ' ') << "+" << std::string(columns, '-') << "\n"
     << std::string(14, ' ') << "1"
     << std::string(std::max<int64_t>(1, columns - 1 - int64_t(last.size())),
                    ' ')
     << last << "\n";
}

static void printText(const Curves &curves, llvm::raw_ostream &os) {
  os << "schedule " << curves.title << ", steps 1 to " << curves.steps
     << ":\n\n";
  for (const Curves::Curve &curve : curves.curves)
    printChart(curves, curve, os);
  std::vector<size_t> widths;
  os << "\n" << llvm::format("%9s", "step");
  for (const Curves::Curve &curve : curves.curves) {
    widths.push_back(std::max<size_t>(12, curve.name.size()));
    os << "  " << std::string(widths.back() - curve.name.size(), ' ')
       << curve.name;
  }
  os << "\n";
  std::vector<int64_t> shown =
      chooseSteps(int64_t(curves.at.size()), kTableRows);
  for (int64_t place : shown) {
    os << llvm::format("%9lld", static_cast<long long>(curves.at[place - 1]));
    for (auto [curve, width] : llvm::zip(curves.curves, widths)) {
      std::string number = spellValue(curve.values[place - 1]);
      os << "  " << std::string(width - std::min(width, number.size()), ' ')
         << number;
    }
    os << "\n";
  }
}

static void printJson(const Curves &curves, llvm::raw_ostream &os) {
  llvm::json::OStream out(os, 1);
  out.object([&] {
    out.attribute("schedule", curves.title);
    out.attribute("steps", curves.steps);
    out.attributeObject("values", [&] {
      for (const Curves::Curve &curve : curves.curves)
        out.attributeArray(curve.name, [&] {
          for (double value : curve.values)
            out.value(value);
        });
    });
  });
  os << "\n";
}

static LogicalResult failReport(const Twine &message) {
  llvm::errs() << "acc-opt: error: " << message << "\n";
  return failure();
}

LogicalResult driver::reportScheduler(const CompileOptions &options,
                                      int64_t steps) {
  const auto &train = options.phases.train.step;
  llvm::Expected<autodiff::UpdateRule> rule = autodiff::parseUpdateRule(
      train.optimizer,
      SmallVector<std::string>(train.settings.begin(), train.settings.end()));
  if (!rule)
    return failReport(llvm::toString(rule.takeError()));
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module =
      autodiff::buildScheduleProgram(&context, *rule);
  Curves curves;
  curves.title = rule->schedule.kind->name.str();
  curves.steps = steps > 0 ? steps : autodiff::countSteps(*rule);
  if (options.json && curves.steps > kListed)
    return failReport("expected at most " + Twine(kListed) +
                      " steps with --json, which has all of them, found " +
                      Twine(curves.steps) + ": say fewer by --steps");
  bool isPicture = !options.json && StringRef(options.output).ends_with(".svg");
  curves.at = chooseSteps(curves.steps, options.json ? curves.steps : kDrawn);
  if (failed(evaluateSteps(*module, curves)))
    return failure();
  std::string error;
  auto output = mlir::openOutputFile(options.output, &error);
  if (!output)
    return failReport(error);
  if (options.json)
    printJson(curves, output->os());
  else if (isPicture)
    writeCurvesSvg(output->os(), curves);
  else
    printText(curves, output->os());
  std::string why = keepOutput(*output);
  return why.empty()
             ? success()
             : failReport("cannot write '" + options.output + "': " + why);
}
