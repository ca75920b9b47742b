// What the CPU answers, but for engine, files and sections.

#include "ModelTarget.h"

#include "lib/Target/CPU/Target.h"
#include "test/ModelDevice/ModelSection.h"

using namespace mlir;
using namespace accel;

namespace {
class OfModel final : public Target {
public:
  OfModel(std::string text, std::unique_ptr<Target> cpu)
      : text(std::move(text)), cpu(std::move(cpu)) {}

  std::string getText() const override { return text; }
  plan::Engine getEngine() const override { return plan::Engine::cuda; }
  /// So that a whole step can be one capture.
  std::optional<plan::Space> getFileSpace() const override {
    return plan::Space::pinned;
  }

  int64_t getMostCaptured() const override { return rt::model::kMostCaptured; }
  bool copiesBesideComputation() const override { return true; }

  FusionLimits getFusionLimits() const override {
    return cpu->getFusionLimits();
  }
  bool hasEpilogue(Epilogue epilogue) const override {
    return cpu->hasEpilogue(epilogue);
  }
  int64_t chooseGrid(func::FuncOp kernel, int64_t rows,
                     int64_t bytes) const override {
    return cpu->chooseGrid(kernel, rows, bytes);
  }
  bool isCapturable(Operation *command) const override {
    return cpu->isCapturable(command);
  }
  plan::Space getSpace(plan::Role role) const override {
    return cpu->getSpace(role);
  }
  int64_t getAlignment(plan::Space space) const override {
    return cpu->getAlignment(space);
  }
  plan::Space getExchangeSpace() const override {
    return cpu->getExchangeSpace();
  }
  int64_t getExchangeQueues() const override {
    return cpu->getExchangeQueues();
  }
  LogicalResult chooseForms(plan::ProgramOp program) const override {
    return cpu->chooseForms(program);
  }
  int64_t estimateReserve(plan::ProgramOp program,
                          plan::Space space) const override {
    return cpu->estimateReserve(program, space);
  }
  std::string getSymbol(Operation *command,
                        SymbolTableCollection &symbols) const override {
    return cpu->getSymbol(command, symbols);
  }

  /// What the CPU makes of these bodies, in a section of its own name: beside
  /// it there may be one of the CPU's bodies.
  FailureOr<Code> compile(ModuleOp plans) const override {
    OwningOpRef<ModuleOp> own(plans.clone());
    SmallVector<plan::BodyOp> others;
    own->walk([&](plan::BodyOp body) {
      if (body.getEngine() == getEngine())
        body.setEngine(plan::Engine::cpu);
      else
        others.push_back(body);
    });
    for (plan::BodyOp body : others)
      body.erase();
    FailureOr<Code> code = cpu->compile(*own);
    if (succeeded(code))
      code->sections.front().name = rt::model::kLibrarySection;
    return code;
  }

private:
  std::string text;
  std::unique_ptr<Target> cpu;
};

FailureOr<std::unique_ptr<Target>> create(const TargetOptions &options,
                                          TargetTable::EmitError emitError) {
  auto [name, machine] = StringRef(options.text).split(':');
  TargetOptions ofCpu = options;
  ofCpu.text = machine.empty() ? "cpu" : ("cpu:" + machine).str();
  FailureOr<std::unique_ptr<Target>> cpu =
      cpu::getTargetRow().create(ofCpu, emitError);
  if (failed(cpu))
    return failure();
  return std::unique_ptr<Target>(
      std::make_unique<OfModel>(options.text, std::move(*cpu)));
}
} // namespace

TargetTable::Row model::getTargetRow() {
  return {"cuda", "'cuda' or 'cuda:NAME'", create};
}
