// A command is described in the dialect (PlanCommands.td) and in the file's
// format (CommandFormat.h). What the two say of the same command must agree:
// its fields, and which bytes it reads and writes.

#include "FakeTarget.h"
#include "Format/Describe.h"
#include "Format/Views.h"
#include "dialects/Dist/Dist.h"
#include "lib/Emit/AttributeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SetVector.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace accel;
using ::testing::HasSubstr;

namespace {

constexpr const char *kEveryOp = ACCEL_SOURCE_DIR "/test/Dialect/Plan/ops.mlir";

/// Buffer, first byte, and whether it is read and written.
using Touched = std::tuple<int64_t, int64_t, bool, bool>;

class Commands : public ::testing::Test {
protected:
  Commands() {
    names.target = &target;
    context
        .loadDialect<func::FuncDialect, dist::DistDialect, plan::PlanDialect>();
    module = parseSourceFile<ModuleOp>(kEveryOp, &context);
    module->walk([&](plan::BufferOp buffer) {
      names.buffers.try_emplace(FlatSymbolRefAttr::get(buffer.getSymNameAttr()),
                                names.buffers.size());
    });
    module->walk([&](plan::BodyOp body) {
      for (Operation &op : body.getBody().front())
        commands.push_back(&op);
    });
  }

  /// What `convert` says as it fails.
  std::string refuse(llvm::function_ref<LogicalResult()> convert) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str() + "\n";
      return success();
    });
    EXPECT_TRUE(failed(convert()));
    return message;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  FakeTarget target;
  emit::ProgramNames names;
  std::vector<Operation *> commands;
};

TEST_F(Commands, TouchTheSameBytesInTheDialectAndInTheFile) {
  for (Operation *op : commands) {
    FailureOr<rt::Command> command = emit::convertCommand(op, names);
    ASSERT_TRUE(succeeded(command));
    std::vector<Touched> dialect, file;
    op->walk([&](plan::CommandOpInterface one) {
      one.forEachView([&](plan::ViewAttr view, plan::Access access) {
        dialect.emplace_back(
            names.buffers.at(view.getBuffer()), view.getOffset(),
            access == plan::Access::Read || access == plan::Access::Both,
            access == plan::Access::Write || access == plan::Access::Both);
      });
    });
    rt::format::visitViews(
        *command, [&](const rt::View &view, rt::Access access) {
          file.emplace_back(
              view.buffer, view.offset,
              access == rt::Access::Read || access == rt::Access::Both,
              access == rt::Access::Write || access == rt::Access::Both);
        });
    llvm::sort(dialect);
    llvm::sort(file);
    EXPECT_EQ(dialect, file) << op->getName().getStringRef().str();
  }
}

// Whoever adds a command adds it to the file of every op, and so to this test.
TEST_F(Commands, AreAllThere) {
  llvm::SetVector<StringRef> seen;
  module->walk(
      [&](Operation *op) { seen.insert(op->getName().getStringRef()); });
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.hasInterface<plan::CommandOpInterface>())
      EXPECT_TRUE(seen.contains(name.getStringRef()))
          << name.getStringRef().str();
  for (StringRef kind : rt::format::kCommandKinds)
    EXPECT_TRUE(seen.contains(("plan." + kind).str())) << kind.str();
}

TEST_F(Commands, MustBeOfTheFormat) {
  auto program = *module->getOps<plan::ProgramOp>().begin();
  plan::BufferOp buffer = *program.getOps<plan::BufferOp>().begin();
  EXPECT_THAT(refuse([&] { return emit::convertCommand(buffer, names); }),
              HasSubstr("is no command that the executable format has"));
}

// As if a field had been added on one side only.
TEST_F(Commands, MustHaveTheFieldsOfTheFormat) {
  auto copy = llvm::find_if(
      commands, [](Operation *op) { return isa<plan::CopyOp>(op); });
  rt::FillCommand fill;
  std::string message = refuse(
      [&] { return emit::AttributeReader(*copy, names).readKind(fill); });
  EXPECT_THAT(message, HasSubstr("has no attribute 'value' for a field of the "
                                 "executable format"));
  EXPECT_THAT(message, HasSubstr("has an attribute 'source' for which the "
                                 "executable format has no field"));
}

} // namespace
