// The table of devices.

#include "Conformance/Backends.h"

#include "Device/CPU/CpuDevice.h"

#include "../test/Unit/Runtime/TinyExecutable.h"
#include "../test/Unit/Runtime/WalledDevice.h"
#include "test/ModelDevice/ModelDevice.h"

namespace accel::rt::conformance {
namespace {

Status makeCpu(Instance &instance) {
  test::TemporaryFolder folder;
  ACCEL_RT_RETURN_IF_ERROR(writeExecutableFile(
      test::tinyExecutable(), test::tinySections(), folder / "m.accx"));
  ACCEL_RT_RETURN_IF_ERROR(
      ExecutableFile::open(folder / "m.accx", instance.file));
  instance.pool = std::make_unique<ThreadPool>(3, 50);
  return cpu::makeDevice(*instance.file, *instance.pool, nullptr,
                         instance.device);
}

Status makeWalled(Instance &instance) {
  ACCEL_RT_RETURN_IF_ERROR(makeCpu(instance));
  instance.device =
      std::make_unique<test::WalledDevice>(std::move(instance.device));
  return Status();
}

Status makeModel(Instance &instance) {
  ACCEL_RT_RETURN_IF_ERROR(makeWalled(instance));
  instance.device = std::make_unique<model::ModelDevice>(
      std::move(instance.device), model::ModelOptions());
  return Status();
}

Status makeNull(Instance &instance) {
  instance.device = null::makeDevice(&instance.log);
  return Status();
}

} // namespace

std::string Backend::reasonToSkip(const std::string &test) const {
  for (const auto &[name, reason] : skips)
    if (name == test)
      return reason;
  return "";
}

std::ostream &operator<<(std::ostream &stream, const Backend &backend) {
  return stream << backend.name;
}

const std::vector<Backend> &backends() {
  static const std::string computes =
      "it records commands and computes nothing";
  static const std::vector<Backend> table = {
      {"cpu", makeCpu, {}},
      {"walled", makeWalled, {}},
      {"model",
       makeModel,
       {{"EndsItsWaitsWhenTheRunIsOver",
         "it refuses a wait whose record was not enqueued before it"},
        {"TellsOfTheLowestCommandThatFailed",
         "it begins nothing once a command has failed"},
        {"WorksWithoutWhoeverJoins", "it runs nothing before it is joined"}}},
      {"null",
       makeNull,
       {{"KeepsWhatIsUploaded", "its arenas have no memory behind them"},
        {"CopiesStridedViews", computes},
        {"Fills", computes},
        {"Multiplies", computes},
        {"MultipliesRowsByTheirGroupsMatrices", computes},
        {"Convolves", computes},
        {"RefusesConvolutionsOfOtherShapes", computes},
        {"RefusesRowsOfGroupsThatAreNot", computes},
        {"DealsRowsToTheRanksOfTheirGroups", computes},
        {"MovesRows", "its arenas have no memory behind them"},
        {"OrdersStreamsByEvents", computes},
        {"ReplaysWhatItCaptured", computes},
        {"RefusesWhatItDoesNotHave", "it has every command"}}}};
  return table;
}

} // namespace accel::rt::conformance
