// What `--report=parameters` prints (lib/Onnx/ParameterReport.cpp), and which
// calls it remarks on (RemarkCalls.cpp).
#include "TracedModel.h"
#include "llvm/Support/raw_ostream.h"

using namespace accel::onnxio;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;

namespace {
class ParameterReportTest : public TracedTest {
protected:
  static std::string print(const ParameterTable &table, bool json = false) {
    std::string text;
    llvm::raw_string_ostream os(text);
    printParameterReport(table, os, json);
    return text;
  }
  static Parameter named(const std::string &name, ParameterKind kind) {
    Parameter parameter;
    parameter.name = name;
    parameter.kind = kind;
    return parameter;
  }
};
} // namespace

TEST_F(ParameterReportTest, aLineForEachParameter) {
  ParameterTable table;
  Parameter held = named("a.weight", ParameterKind::Parameter);
  held.shape = {2, 3};
  held.hasShape = true;
  held.initializers = {{"a", {0, 1}}, {"val_1", {1, 0}}};
  held.aliases = {"b.weight"};
  held.why = "why a";
  Parameter merged = named("m", ParameterKind::Merged);
  merged.hasShape = true;
  merged.initializers = {{"ones", {}}};
  merged.trained = false;
  table.parameters = {held, merged, named("r", ParameterKind::Removed),
                      named("f", ParameterKind::FoldedAway)};
  std::string text = print(table);
  std::vector<std::string> lines;
  for (llvm::StringRef rest = text; !rest.empty();) {
    auto [line, more] = rest.split('\n');
    lines.push_back(line.rtrim().str());
    rest = more;
  }
  EXPECT_THAT(lines,
              ElementsAre(MatchesRegex("parameter +shape +initializers +"
                                       "trained +why"),
                          MatchesRegex("a.weight +2x3 +a, val_1 \\(1,0\\) +yes "
                                       "+why a"),
                          "  also b.weight",
                          MatchesRegex("m +scalar +ones \\(merged\\) +no"),
                          MatchesRegex("r +\\? +\\(a zero that was removed\\) "
                                       "+yes"),
                          MatchesRegex("f +\\? +\\(folded away\\) +yes")));
  // Initializers are listed for what is the parameter's own.
  std::string json = print(table, /*json=*/true);
  EXPECT_THAT(json, HasSubstr("\"val_1\""));
  EXPECT_THAT(json, Not(HasSubstr("\"ones\"")));
}

/// A part that has nothing to say is left out.
TEST_F(ParameterReportTest, partsThatHaveSomethingToSay) {
  onnx::NodeProto node;
  node.set_name("n");
  ParameterTable table;
  const std::string parts[] = {
      "\nno parameters:\n  c: a buffer\n",
      "\nnot what the user wrote:\n  node 'n': was folded\n  is gone\n",
      "\nremarks:\n  believed\n", "\nnotes:\n  said\n"};
  const std::string titles[] = {"no parameters", "not what", "remarks",
                                "notes"};
  for (const std::string &title : titles)
    EXPECT_THAT(print(table), Not(HasSubstr(title)));
  table.constants = {{"c", "a buffer"}};
  EXPECT_THAT(print(table), testing::EndsWith(parts[0]));
  table.doubts = {{&node, {}, "was folded", Doubt::Folded},
                  {nullptr, {}, "is gone", Doubt::Meaning}};
  EXPECT_THAT(print(table), testing::EndsWith(parts[0] + parts[1]));
  table.remarks = {"believed"};
  EXPECT_THAT(print(table), testing::EndsWith(parts[0] + parts[1] + parts[2]));
  table.notes = {"said"};
  EXPECT_THAT(print(table),
              testing::EndsWith(parts[0] + parts[1] + parts[2] + parts[3]));
}

/// Calls that no table knows and a parameter goes into, each operator once.
TEST_F(ParameterReportTest, remarksOnUnknownCalls) {
  auto remarks = [&](const char *op, const char *input, int times = 1) {
    TracedModel traced({"w"});
    traced.use("w");
    for (int i = 0; i < times; ++i)
      traced.add("Neg", {input},
                 call("r_" + std::to_string(i), std::string("aten.") + op,
                      std::string("%") + input));
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    EXPECT_TRUE(succeeded(table));
    return table->remarks;
  };
  for (int times : {1, 2})
    EXPECT_THAT(remarks("frobnicate", "used_w", times),
                ElementsAre(HasSubstr("call 'r_0' (frobnicate) is in no "
                                      "table")));
  EXPECT_THAT(remarks("frobnicate", "x"), IsEmpty());
  // It means what its nodes compute; it has a row of its own.
  EXPECT_THAT(remarks("neg", "used_w"), IsEmpty());
  EXPECT_THAT(remarks("dropout", "used_w"), IsEmpty());
  // Each node is visited once, however many ways lead to it.
  TracedModel deep({"w"});
  deep.use("w");
  std::string last = "used_w";
  for (int i = 0; i < 60; ++i) {
    std::string next = "h_" + std::to_string(i);
    deep.add("Add", {last, last},
             call(next, "aten.add", "%" + last + ", %" + last), next);
    last = next;
  }
  deep.add("Neg", {last}, call("r", "aten.frobnicate", "%" + last));
  mlir::FailureOr<ParameterTable> table = identify(deep.model);
  ASSERT_TRUE(succeeded(table));
  EXPECT_EQ(table->remarks.size(), 1u);
}
