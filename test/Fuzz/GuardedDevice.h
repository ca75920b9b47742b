// A device and its communication that compute nothing: every view that a
// command is run on must lie in one of the arenas, which have exactly their
// size, so that a sanitizer sees whatever else is written past them.

#ifndef ACCEL_TEST_FUZZ_GUARDEDDEVICE_H
#define ACCEL_TEST_FUZZ_GUARDEDDEVICE_H

#include "Format/Layout.h"
#include "Format/Views.h"
#include "Target.h"
#include "accel-rt/Comm.h"

#include <memory>
#include <vector>

namespace accel::fuzz {

/// The memory of one rank.
class Arenas {
public:
  void *add(const rt::ArenaPlan &plan) {
    size_t bytes = static_cast<size_t>(plan.bytes);
    auto &arena = arenas.emplace_back(std::make_unique<char[]>(bytes), bytes);
    total += bytes;
    return arena.first.get();
  }
  bool hold(const void *address, int64_t bytes) const {
    auto *begin = static_cast<const char *>(address);
    for (const auto &[memory, size] : arenas)
      if (begin >= memory.get() && begin <= memory.get() + size &&
          static_cast<uint64_t>(bytes) <=
              static_cast<uint64_t>(memory.get() + size - begin))
        return true;
    return false;
  }
  uint64_t bytes() const { return total; }

private:
  std::vector<std::pair<std::unique_ptr<char[]>, size_t>> arenas;
  uint64_t total = 0;
};

class CheckTask : public rt::Task {
public:
  CheckTask(const rt::Command &command, const Arenas &arenas) : arenas(arenas) {
    rt::format::forEachView(command, [&](const rt::View &view) {
      spans.push_back(rt::spanBytes(view));
    });
  }
  rt::Status run(void *const *addresses, int64_t) override {
    for (size_t i = 0; i < spans.size(); ++i)
      require(spans[i] >= 0 && arenas.hold(addresses[i], spans[i]),
              "a command's view lies in its arena");
    return rt::Status();
  }

private:
  const Arenas &arenas;
  std::vector<int64_t> spans;
};

class GuardedDevice : public rt::Device {
public:
  explicit GuardedDevice(Arenas &arenas) : arenas(arenas) {}
  const char *name() const override { return "guarded"; }
  rt::Status allocate(const rt::ArenaPlan &arena, void **address) override {
    *address = arenas.add(arena);
    return rt::Status();
  }
  uint64_t allocatedBytes() const override { return arenas.bytes(); }
  rt::Status prepare(const rt::Command &command,
                     std::unique_ptr<rt::Task> &task) override {
    task = std::make_unique<CheckTask>(command, arenas);
    return rt::Status();
  }
  rt::Status upload(void *device, const void *, uint64_t bytes) override {
    require(arenas.hold(device, static_cast<int64_t>(bytes)),
            "a constant lies in its arena");
    return rt::Status();
  }
  rt::Status download(void *, const void *, uint64_t) override {
    return rt::Status();
  }

private:
  Arenas &arenas;
};

class GuardedComm : public rt::Comm {
public:
  GuardedComm(Arenas &arenas, int64_t rank, int64_t ranks)
      : arenas(arenas), number(rank), ranks(ranks) {}
  int64_t rank() const override { return number; }
  int64_t numRanks() const override { return ranks; }
  rt::Status allocate(const rt::ArenaPlan &arena, void **address) override {
    *address = arenas.add(arena);
    return rt::Status();
  }
  rt::Status prepare(const rt::Program &, const rt::Command &command,
                     std::unique_ptr<rt::Task> &task) override {
    task = std::make_unique<CheckTask>(command, arenas);
    return rt::Status();
  }
  rt::Status barrier() override { return rt::Status(); }

private:
  Arenas &arenas;
  int64_t number, ranks;
};

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_GUARDEDDEVICE_H
