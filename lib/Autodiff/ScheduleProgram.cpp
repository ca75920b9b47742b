// A function of the step's number, built by what builds a step.

#include "lib/Autodiff/ScheduleProgram.h"

#include "dialects/NN/Entry.h"
#include "lib/Autodiff/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// What the program gives of a group.
static void addOutputs(const NNBuilder &build, const GroupScalars &group,
                       const GroupScalars *all, const Twine &suffix,
                       std::vector<std::pair<std::string, Value>> &outputs) {
  if (!all || group.lr != all->lr)
    outputs.emplace_back(("lr" + suffix).str(), group.lr);
  for (auto &[name, value] : group.driven)
    if (!all || !all->driven.count(name) || all->driven.at(name) != value)
      outputs.emplace_back((name + suffix).str(), value);
}

OwningOpRef<ModuleOp> autodiff::buildScheduleProgram(MLIRContext *context,
                                                     const UpdateRule &rule) {
  OpBuilder builder(context);
  Location loc = NameLoc::get(builder.getStringAttr("learning rate"));
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  auto number = RankedTensorType::get({}, builder.getF64Type());
  auto function = func::FuncOp::create(builder, loc, "schedule",
                                       builder.getFunctionType({number}, {}));
  function.setArgAttr(0, nn::kInputAttr, builder.getStringAttr(kScheduleInput));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  NNBuilder build{builder, loc};
  Schedules schedules(build, rule, body->getArgument(0));
  std::vector<std::pair<std::string, Value>> outputs;
  GroupScalars all = schedules.buildGroup(rule.optimizer);
  addOutputs(build, all, nullptr, "", outputs);
  // All that is said of a pattern is one group here; what several of them make
  // of a parameter --report=parameters knows.
  llvm::MapVector<StringRef, SmallVector<const GroupSetting *>> patterns;
  for (const GroupSetting &setting : rule.groups)
    patterns[setting.pattern].push_back(&setting);
  for (auto &[pattern, said] : patterns) {
    OptimizerRule own = applyGroups(rule.optimizer, said);
    setDriven(rule.schedule, own);
    addOutputs(build, schedules.buildGroup(own), &all,
               " of groups[" + pattern + "]", outputs);
  }
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> attributes;
  for (auto &[name, value] : outputs) {
    results.push_back(value);
    attributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(nn::kOutputAttr, builder.getStringAttr(name))));
  }
  func::ReturnOp::create(builder, loc, results);
  function.setFunctionType(
      builder.getFunctionType({number}, ValueRange(results).getTypes()));
  function.setAllResultAttrs(attributes);
  return module;
}

static double findLength(const ScheduleRule &rule) {
  double length = 0;
  for (const ScheduleKey &key : rule.kind->keys) {
    bool isCount = key.type == ScheduleKey::Type::Count ||
                   key.type == ScheduleKey::Type::Counts;
    if (isCount && rule.values.has(key.name))
      length = std::max(length, rule.values.list(key.name).back());
  }
  for (const ScheduleRule &part : rule.parts)
    length = std::max(length, findLength(part));
  // Cycles and steps of the rate are seen when there are several.
  for (StringRef period : {"step_size", "step_size_up", "T_max", "T_0",
                           "cycle_first_step_size", "lr_range_test_step_size"})
    if (rule.kind->find(period))
      length = std::max(length, 4 * rule.values.get(period));
  return length;
}

int64_t autodiff::countSteps(const UpdateRule &rule) {
  double length = findLength(rule.schedule);
  if (rule.decayCourse)
    length = std::max(length, double(rule.decayCourse->steps));
  // Counts may be as large as their type.
  double most = 1e15;
  return std::max<int64_t>(
      10, int64_t(std::min(length + std::ceil(length / 20), most)));
}
