// A test of every device of the table: how it is made, and how values come into
// its arenas and back.

#ifndef ACCEL_RUNTIME_CONFORMANCE_DEVICEFIXTURE_H
#define ACCEL_RUNTIME_CONFORMANCE_DEVICEFIXTURE_H

#include "../test/Unit/Runtime/TinyExecutable.h"
#include "Conformance/Backends.h"
#include "Conformance/CalmWatcher.h"

#include <gmock/gmock.h>

namespace accel::rt::conformance {

/// 1, 2, 3, …
template <class T> std::vector<T> counting(size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(i + 1);
  return values;
}

class DeviceConformance : public ::testing::TestWithParam<Backend> {
protected:
  void SetUp() override {
    std::string test =
        ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::string reason =
        GetParam().reasonToSkip(test.substr(0, test.find('/')));
    if (!reason.empty())
      GTEST_SKIP() << GetParam().name << ": " << reason;
    Status status = GetParam().make(instance);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  Device &device() { return *instance.device; }

  Address allocate(int64_t bytes, int64_t alignment = 64) {
    Address address;
    EXPECT_TRUE(
        device().allocate({"device", bytes, alignment, 0}, address).ok());
    return address;
  }
  template <class T> Address place(const std::vector<T> &values) {
    Address address = allocate(static_cast<int64_t>(values.size() * sizeof(T)));
    EXPECT_TRUE(device()
                    .upload(address, values.data(), {values.size() * sizeof(T)})
                    .ok());
    return address;
  }
  template <class T> std::vector<T> fetch(Address address, size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(
        device().download(values.data(), address, {count * sizeof(T)}).ok());
    return values;
  }
  void run(const Command &command, std::vector<Address> addresses) {
    Status status = tryToRun(command, std::move(addresses));
    EXPECT_TRUE(status.ok()) << status.message();
  }
  Status tryToRun(const Command &command, std::vector<Address> addresses) {
    Work work;
    ACCEL_RT_RETURN_IF_ERROR(device().prepare(command, work.task));
    for (Address address : addresses)
      work.places.push_back({address});
    CalmWatcher watcher;
    std::unique_ptr<Streams> streams;
    ACCEL_RT_RETURN_IF_ERROR(device().makeStreams(
        {{"compute"}, nullptr, 0, 1, addresses.size()}, watcher, streams));
    Step step;
    step.work = &work;
    streams->enqueue(step, {1, 0});
    return streams->join().status;
  }

  Instance instance;
};

} // namespace accel::rt::conformance

#endif // ACCEL_RUNTIME_CONFORMANCE_DEVICEFIXTURE_H
