// The functions of accel-c/Run.h.

#include "Client/Caller.h"

#include <cstring>
#include <new>

using namespace accel::rt;

struct AccelRun : Caller {
  using Caller::Caller;
};

static_assert(ACCEL_STEP == static_cast<int>(CallKind::Step) &&
              ACCEL_EVALUATE == static_cast<int>(CallKind::Eval) &&
              ACCEL_FORWARD == static_cast<int>(CallKind::Forward) &&
              ACCEL_GET_WEIGHTS == static_cast<int>(CallKind::GetWeights) &&
              ACCEL_SET_WEIGHTS == static_cast<int>(CallKind::SetWeights) &&
              ACCEL_SAVE == static_cast<int>(CallKind::Save));
static_assert(ACCEL_INPUT == static_cast<int>(TensorRow::Input) &&
              ACCEL_OUTPUT == static_cast<int>(TensorRow::Output) &&
              ACCEL_WEIGHT == static_cast<int>(TensorRow::Weight));

static AccelStatus call(AccelRun *run, AccelCall kind, int outputs, int goesOn,
                        const char *folder) {
  AccelStatus status = accelRunStart(run, kind, outputs, goesOn, folder);
  return status == ACCEL_DONE ? accelRunWait(run, -1) : status;
}

AccelStatus accelRunOpen(const char *executable, const AccelOptions *options,
                         AccelRun **run) {
  *run = new (std::nothrow) AccelRun(options);
  return *run ? (*run)->open(executable, options) : ACCEL_ENDED;
}

AccelStatus accelRunLoad(const char *executable, const AccelOptions *options,
                         AccelRun **run) {
  AccelStatus status = accelRunOpen(executable, options, run);
  return status == ACCEL_DONE ? accelRunWait(*run, -1) : status;
}

void accelRunClose(AccelRun *run) { delete run; }

const char *accelRunMessage(const AccelRun *run) {
  return run->message().c_str();
}

size_t accelRunNumTensors(const AccelRun *run, AccelTensorKind kind) {
  return run->tensors(kind).size();
}

const AccelTensor *accelRunTensor(const AccelRun *run, AccelTensorKind kind,
                                  size_t index) {
  return &run->tensors(kind)[index];
}

const AccelTensor *accelRunFind(const AccelRun *run, AccelTensorKind kind,
                                const char *name) {
  for (const AccelTensor &tensor : run->tensors(kind))
    if (std::strcmp(tensor.name, name) == 0)
      return &tensor;
  return nullptr;
}

int accelRunMemory(const AccelRun *run, int which, uint64_t *bytes) {
  return run->memory(which, bytes);
}

uint64_t accelRunOffset(const AccelRun *run, const AccelTensor *tensor) {
  return run->offset(*tensor);
}

AccelInfo accelRunInfo(const AccelRun *run) { return run->info(); }

AccelStatus accelRunStep(AccelRun *run, int outputs, AccelStep *result) {
  AccelStatus status = call(run, ACCEL_STEP, outputs, 0, nullptr);
  if (result && status == ACCEL_DONE)
    *result = run->result();
  return status;
}

AccelStatus accelRunEvaluate(AccelRun *run, int goesOn, int outputs,
                             double *loss) {
  AccelStatus status = call(run, ACCEL_EVALUATE, outputs, goesOn, nullptr);
  if (loss && status == ACCEL_DONE)
    *loss = run->result().loss;
  return status;
}

AccelStatus accelRunForward(AccelRun *run) {
  return call(run, ACCEL_FORWARD, 1, 0, nullptr);
}

AccelStatus accelRunGetWeights(AccelRun *run) {
  return call(run, ACCEL_GET_WEIGHTS, 0, 0, nullptr);
}

AccelStatus accelRunSetWeights(AccelRun *run) {
  return call(run, ACCEL_SET_WEIGHTS, 0, 0, nullptr);
}

void accelRunDropWeights(AccelRun *run) { run->dropWeights(); }

AccelStatus accelRunSave(AccelRun *run, const char *folder) {
  return call(run, ACCEL_SAVE, 0, 0, folder);
}

AccelStatus accelRunStart(AccelRun *run, AccelCall kind, int outputs,
                          int goesOn, const char *folder) {
  return run->start(static_cast<CallKind>(kind),
                    (outputs ? kWantsOutputs : 0u) | (goesOn ? kGoesOn : 0u),
                    folder);
}

AccelStatus accelRunWait(AccelRun *run, double seconds) {
  return run->wait(seconds);
}

AccelStep accelRunResult(const AccelRun *run) { return run->result(); }

size_t accelRunNumReports(const AccelRun *run) { return run->numReports(); }

AccelReport accelRunReport(const AccelRun *run, size_t index) {
  return run->report(index);
}
