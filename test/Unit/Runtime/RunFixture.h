// What tests of whole runs share: files in a folder that vanishes, and a run.

#ifndef ACCEL_TEST_UNIT_RUNTIME_RUNFIXTURE_H
#define ACCEL_TEST_UNIT_RUNTIME_RUNFIXTURE_H

#include "Conformance/SocketNetwork.h"
#include "Data/OpenTensor.h"
#include "TinyExecutable.h"
#include "accel-rt/Runtime.h"
#include "test/ModelDevice/ModelDevice.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fcntl.h>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

namespace accel::rt::test {

using ::testing::HasSubstr;

inline void writeNpy(const std::string &path, const std::vector<int64_t> &shape,
                     const std::vector<float> &values) {
  std::ofstream stream(path, std::ios::binary);
  std::string header = npyHeader(DType::F32, shape);
  stream.write(header.data(), static_cast<std::streamsize>(header.size()));
  stream.write(reinterpret_cast<const char *>(values.data()),
               static_cast<std::streamsize>(values.size() * 4));
}

inline std::vector<float> readNpy(const std::string &path) {
  FileHandle file(open(path.c_str(), O_RDONLY));
  TensorRange range;
  EXPECT_TRUE(openNpy(file.get(), path, range).ok()) << path;
  std::vector<float> values(
      static_cast<size_t>(file ? numElements(range.shape) : 0));
  EXPECT_TRUE(readRange(file.get(), path, range.offset, values.data(),
                        values.size() * 4)
                  .ok());
  return values;
}

inline size_t countFiles(const std::string &path) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(path), {}));
}

/// A tiny executable on disk with its input, and what running it says.
/// On the CPU, or on the model device where the environment says so
/// (test/ModelDevice/ModelDevice.h).
class RunTest : public ::testing::Test {
protected:
  RunTest() { options.ownDevice = model::modelDeviceOfEnvironment(); }
  void write(const Executable &executable,
             const std::vector<SectionData> &sections = tinySections()) {
    Status status =
        writeExecutableFile(executable, sections, folder / "m.accx");
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<float> x;
    for (int64_t i = 0; i < numElements(executable.inputs[0].shape); ++i)
      x.push_back(static_cast<float>(i) + 0.5f);
    writeNpy(folder / "x.npy", executable.inputs[0].shape, x);
    options.executable = folder / "m.accx";
    options.inputs = folder.path;
    options.outputs = folder / "out";
  }
  std::string run() {
    Status status = runExecutable(options, result);
    return status.ok() ? "" : status.message();
  }
  /// The same by a process for each rank, on machines of these names.
  std::string runOn(const std::vector<std::string> &machines) {
    conformance::SocketMesh mesh;
    int64_t ranks = static_cast<int64_t>(machines.size());
    EXPECT_TRUE(conformance::SocketMesh::create(ranks, mesh).ok());
    RunOptions before = options;
    auto join = [&](int64_t rank) {
      options.ownNetwork = [&, rank](std::unique_ptr<Network> &network,
                                     std::string &machine) {
        network = mesh.join(rank);
        machine = machines[static_cast<size_t>(rank)];
        return Status();
      };
    };
    std::vector<pid_t> others;
    for (int64_t rank = 1; rank < ranks; ++rank) {
      others.push_back(fork());
      if (others.back() != 0)
        continue;
      join(rank);
      (void)run();
      _exit(result.silentExit.value_or(99));
    }
    join(0);
    std::string message = run();
    int code = message.empty() ? 0 : 1;
    if (result.leave)
      result.leave(code);
    for (pid_t other : others) {
      int status = 0;
      waitpid(other, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == code)
          << message << ", " << status;
    }
    options = before;
    result = RunResult();
    return message;
  }
  TemporaryFolder folder;
  RunOptions options;
  RunResult result;
};

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_RUNFIXTURE_H
