// What the compiler keeps in the cache: libraries of kernels and forms of
// products. Damaged ones are made again, and the same comes out.

#include "CacheFixture.h"
#include "KernelHarness.h"
#include "lib/Target/CPU/GemmForms.h"

#include <gmock/gmock.h>

using namespace accel;
using namespace accel::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {
/// Compiles one small kernel with the cache in a folder of the test's own.
class KernelMaker {
public:
  KernelMaker() {
    if (const char *set = getenv("ACCEL_CACHE"))
      before = set;
    setenv("ACCEL_CACHE", folder.path.c_str(), 1);
  }
  ~KernelMaker() {
    if (before)
      setenv("ACCEL_CACHE", before->c_str(), 1);
    else
      unsetenv("ACCEL_CACHE");
  }

  std::string make() {
    Context context;
    mlir::ScopedDiagnosticHandler handler(
        &context.context, [&](mlir::Diagnostic &diagnostic) {
          EXPECT_EQ(diagnostic.getSeverity(),
                    mlir::DiagnosticSeverity::Warning);
          folder.warnings.push_back(diagnostic.str());
        });
    auto module = context.parse(R"(
      func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32>
          attributes {plan.kernel, plan.rows = 1 : i64} {
        %y = nn.neg %x : tensor<8xf32>
        return %y : tensor<8xf32>
      })");
    auto function = *module->getOps<mlir::func::FuncOp>().begin();
    cpu::KernelInstance instance{function, {{1}, {1}}, {-1}, "k"};
    auto bytes = cpu::compileInstances({instance}, {}, Context::target(),
                                       function.getLoc());
    return mlir::succeeded(bytes) ? *bytes : "";
  }

  CacheFolder folder;

private:
  std::optional<std::string> before;
};
} // namespace

TEST(CachedKernels, AreMadeAgainWhereABitIsFlipped) {
  KernelMaker maker;
  std::string library = maker.make();
  ASSERT_THAT(library, testing::StartsWith("\x7f"
                                           "ELF"));
  EXPECT_EQ(maker.make(), library);
  EXPECT_THAT(maker.folder.warnings, IsEmpty());
  // The library, and the object of its one kernel, which is read where there is
  // no library.
  std::vector<std::string> files = maker.folder.files();
  ASSERT_EQ(files.size(), 2u);
  bool isOfLibrary = fs::path(files[0]).extension() == ".kernels";
  std::string kept[] = {files[!isOfLibrary], files[isOfLibrary]};
  for (const std::string &file : kept) {
    std::string whole = readAll(file);
    auto make = [&](const std::string &content) {
      fs::remove(kept[0]);
      writeAll(file, content);
      maker.folder.warnings.clear();
      return maker.make();
    };
    for (size_t bit = 5; bit < whole.size() * 8; bit += whole.size() * 8 / 60) {
      std::string damaged = whole;
      damaged[bit / 8] ^= 1 << bit % 8;
      ASSERT_EQ(make(damaged), library) << "bit " << bit;
      ASSERT_THAT(maker.folder.warnings, ElementsAre(HasSubstr("damaged")));
      ASSERT_EQ(readAll(file), whole) << "kept again";
    }
    EXPECT_EQ(make(whole.substr(0, whole.size() / 2)), library);
  }
}

TEST(CachedForms, MustBeAmongTheLegalOnes) {
  CacheFolder folder;
  rt::cpu::GemmForm rows, packed, other;
  rows.chunkRows = 8;
  packed.chunkColumns = 64;
  packed.packed = true;
  other.chunkRows = 9;
  auto all = [](const rt::cpu::GemmForm &) { return true; };
  auto plain = [](const rt::cpu::GemmForm &form) { return !form.packed; };
  auto find = [&](const char *key, std::vector<rt::cpu::GemmForm> forms) {
    return cpu::FormMemory(folder.path, folder.warn()).find(key, forms, all);
  };
  cpu::FormMemory memory(folder.path, folder.warn());
  EXPECT_FALSE(memory.find("p", {rows, packed}, all));
  memory.insert("p", packed, 0.5);
  EXPECT_EQ(memory.getMeasured().products, 1);
  EXPECT_EQ(memory.getMeasured().seconds, 0.5);
  auto found = find("p", {rows, packed});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->packed);
  EXPECT_EQ(found->chunkColumns, 64);
  EXPECT_THAT(folder.warnings, IsEmpty());
  EXPECT_FALSE(find("q", {rows, packed}));
  EXPECT_FALSE(find("p", {rows, other})) << "packed is not legal any more";
  EXPECT_THAT(
      folder.warnings,
      ElementsAre(HasSubstr("one of 2 forms of 'p', found 'p 1 0 0 64'")));
  EXPECT_FALSE(find("p", {rows, packed})) << "and was thrown away";
  found = memory.find("p", {rows, packed}, all);
  ASSERT_TRUE(found) << "but one compilation keeps to its choice";
  EXPECT_TRUE(found->packed);
  memory.insert("r", packed, 0.5);
  EXPECT_FALSE(cpu::FormMemory(folder.path, folder.warn())
                   .find("r", {rows, packed}, plain))
      << "this machine has no such form";
  EXPECT_FALSE(find("r", {rows, packed})) << "and was thrown away";
}
