// What the CPU's device reads in the form of a kernel, and what it refuses: the
// form and the scratch go through a file to prepare(), and from there to the
// kernel.

#include "RunFixture.h"
#include "TinyTraining.h"

#include <functional>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

class KernelForms : public RunTest {
protected:
  enum { X, W, Y, Scratch };

  KernelForms() : executable(tinyExecutable()) {
    Program &program = executable.programs[0];
    program.arenas[0].bytes = 320;
    program.buffers[Y].offset = 256;
    program.buffers.push_back(
        {"rows", "scratch", "device", 128, 128, 1, 128, "", ""});
    kernel.scratch = contiguousView(Scratch, {128}, DType::I8);
    kernel.form = {{"thread_scratch", int64_t(64)}};
    options.threads = 2;
  }
  /// What is wrong with a run whose kernel `change` has changed.
  std::string runWith(const std::function<void(KernelCommand &)> &change) {
    Executable changed = executable;
    KernelCommand own = kernel;
    change(own);
    changed.programs[0].bodies[1].commands[1] = command(own, "Softmax");
    std::string library;
    write(changed, tinyTrainingSections(library));
    return run();
  }

  Executable executable;
  KernelCommand kernel{
      "tiny_keep", {contiguousView(X, {4})}, {contiguousView(Y, {4})}, 4, 1};
};

TEST_F(KernelForms, GiveEachThreadScratchOfItsOwn) {
  ASSERT_EQ(runWith([](KernelCommand &) {}), "");
  EXPECT_EQ(readNpy(folder / "out/y.npy"), readNpy(folder / "x.npy"));
  // Of one thread, in front of what the kernel writes.
  BufferPlan &rows = executable.programs[0].buffers[Scratch];
  rows.offset = 192, rows.bytes = rows.slotStride = 64;
  ASSERT_EQ(runWith([](KernelCommand &k) {
              k.scratch = contiguousView(Scratch, {64}, DType::I8);
            }),
            "");
  EXPECT_EQ(readNpy(folder / "out/y.npy"), readNpy(folder / "x.npy"));
}

TEST_F(KernelForms, AreRefusedIfTheDeviceDoesNotKnowThem) {
  auto form = [&](Form form) {
    return runWith([&](KernelCommand &k) { k.form = form; });
  };
  EXPECT_THAT(form({{"blocks", int64_t(8)}}),
              HasSubstr("node 'Softmax': expected nothing but "
                        "'thread_scratch' in the form of a kernel, found "
                        "'blocks'"));
  const char *multiple =
      "expected a positive multiple of 64 as 'thread_scratch' of a kernel";
  EXPECT_THAT(form({{"thread_scratch", int64_t(60)}}),
              HasSubstr(multiple + std::string(", found 60")));
  EXPECT_THAT(form({{"thread_scratch", int64_t(-64)}}),
              HasSubstr(multiple + std::string(", found -64")));
  EXPECT_THAT(form({{"thread_scratch", "64"}}),
              HasSubstr(multiple + std::string(", found no integer")));
  EXPECT_THAT(form({}), HasSubstr("expected scratch of a kernel only where its "
                                  "form gives threads any"));
}

TEST_F(KernelForms, AreRefusedWithLessScratchThanAThreadNeeds) {
  const char *less = "expected 128 bytes of scratch a thread, found less in "
                     "the plan";
  EXPECT_THAT(runWith([](KernelCommand &k) {
                k.form = {{"thread_scratch", int64_t(128)}};
                k.scratch = contiguousView(Scratch, {127}, DType::I8);
              }),
              HasSubstr(less));
  EXPECT_THAT(runWith([](KernelCommand &k) {
                k.form = {{"thread_scratch", int64_t(128)}};
                k.scratch.reset();
              }),
              HasSubstr(less));
}

} // namespace
