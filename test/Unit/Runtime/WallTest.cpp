// Whole runs on a device that the host cannot reach into (WalledDevice.h): what
// they compute, write, save and go on from is the CPU's, bit for bit. A host
// that reads or writes an arena by itself ends by a signal.

#include "Conformance/SocketControl.h"
#include "Files.h"
#include "RunFixture.h"
#include "TinyTraining.h"
#include "WalledDevice.h"

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

class Wall : public RunTest {
protected:
  Wall() {
    options.step = [this](const StepResult &step) {
      losses.push_back(step.find("loss")->value);
      return Status();
    };
  }
  /// Runs on the CPU and behind the wall, and gives what each left: every file
  /// that is not the program's, by name, and the losses.
  using Left = std::map<std::string, std::string>;
  Left runOn(const DeviceKind *device) {
    losses.clear();
    options.ownDevice = device;
    options.outputs = folder / "out";
    options.saveWeights = folder / "w.safetensors";
    std::string kept = folder / "kept";
    std::filesystem::remove_all(kept);
    EXPECT_EQ(train(2, kept, ""), "");
    EXPECT_EQ(train(4, kept, kept), "");
    Left left;
    for (const auto &entry :
         std::filesystem::recursive_directory_iterator(folder.path))
      if (entry.is_regular_file() && entry.path().extension() != ".accx")
        left[entry.path().string().substr(folder.path.size())] =
            slurp(entry.path());
    for (double loss : losses)
      left["losses"] += std::to_string(loss) + " ";
    return left;
  }
  std::string train(int64_t steps, const std::string &to,
                    const std::string &from) {
    options.steps = steps;
    options.checkpoint = to;
    options.resume = from;
    return run();
  }

  std::vector<double> losses;
};

TEST_F(Wall, TrainsSavesAndResumes) {
  // Two ranks of two micro-batches, tokens, padded and transposed states.
  Executable executable = tinyTraining(2, 2, /*length=*/6);
  executable.states[1].logicalShape = {3};
  std::string kernels;
  write(executable, tinyTrainingSections(kernels));
  std::ofstream tokens(folder / "t.bin", std::ios::binary);
  for (uint16_t i = 0; i < 600; ++i)
    tokens.write(reinterpret_cast<const char *>(&i), sizeof i);
  tokens.close();
  options.data = folder / "t.bin";
  options.dataType = "uint16";
  options.dataLabels = "same";
  options.poison = true;
  Left cpu = runOn(nullptr);
  EXPECT_GT(cpu.size(), 10u);
  EXPECT_EQ(losses.size(), 4u);
  auto compare = [&](const DeviceKind &device) {
    Left other = runOn(&device);
    for (const auto &[name, bytes] : cpu)
      EXPECT_TRUE(other[name] == bytes) << name << " differs";
    EXPECT_EQ(other.size(), cpu.size());
  };
  compare(walledDevice());
  // Behind the wall, too, and whatever order events allow.
  for (const char *order : {"seed:1", "last", "starve:1"}) {
    model::ModelOptions asked;
    ASSERT_TRUE(model::Order::parse(order, asked.order).ok());
    compare(model::modelDevice(asked));
  }
}

TEST_F(Wall, TrainsWithoutSharedControl) {
  // Control by messages, data by memory: the two are apart.
  std::string kernels;
  write(tinyTraining(2, 2), tinyTrainingSections(kernels));
  Left shared = runOn(nullptr);
  options.ownControl = [](const ControlSize &size,
                          std::unique_ptr<ControlCenter> &center) {
    auto made = std::make_unique<conformance::SocketControl>();
    ACCEL_RT_RETURN_IF_ERROR(made->create(size, 0));
    center = std::move(made);
    return Status();
  };
  Left messages = runOn(nullptr);
  EXPECT_EQ(losses.size(), 4u);
  EXPECT_TRUE(messages == shared);
}

TEST_F(Wall, EndsAHostThatReachesIn) {
  std::unique_ptr<ExecutableFile> file;
  write(tinyExecutable());
  ASSERT_TRUE(ExecutableFile::open(folder / "m.accx", file).ok());
  ThreadPool pool(1, 50);
  std::unique_ptr<Device> device;
  ASSERT_TRUE(walledDevice().make(*file, pool, nullptr, device).ok());
  Address address;
  ASSERT_TRUE(device->allocate({"device", 4096, 64, 0}, address).ok());
  EXPECT_EQ(device->find(address), nullptr);
  EXPECT_DEATH(*reinterpret_cast<volatile char *>(address.value) = 1, "");
}

} // namespace
