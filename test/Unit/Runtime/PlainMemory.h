// The test's own memory as a device's: an address is the host's.

#ifndef ACCEL_TEST_UNIT_RUNTIME_PLAINMEMORY_H
#define ACCEL_TEST_UNIT_RUNTIME_PLAINMEMORY_H

#include "Format/Layout.h"

namespace accel::rt::test {

struct PlainMemory : Memory {
  static Address of(void *host) { return {reinterpret_cast<uint64_t>(host)}; }
  Status allocate(const ArenaPlan &, Address &) override {
    return Status::error("there are no arenas");
  }
  uint64_t allocatedBytes() const override { return 0; }
  Status share(void *host, uint64_t, Address &address) override {
    address = of(host);
    return Status();
  }
  Status upload(Address target, const void *source, const Rows &rows) override {
    uploadRows(find(target), source, rows);
    return Status();
  }
  Status download(void *target, Address source, const Rows &rows) override {
    downloadRows(target, find(source), rows);
    return Status();
  }
  Status fill(Address target, int byte, const Rows &rows) override {
    fillRows(find(target), byte, rows);
    return Status();
  }
  bool isHostMemory(Address) const override { return true; }
};

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_PLAINMEMORY_H
