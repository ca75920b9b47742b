// Whose forward the frames of a call are: what shows a module's, and what may
// be an autograd function's. The stacks are those that torch 2.13 writes.
#include "TracedModel.h"

using namespace accel::onnxio;

namespace {

/// A line of a stack trace.
struct Frame {
  const char *file;
  int line;
  const char *text;
};

const char kLoss[] = "/site-packages/torch/nn/modules/loss.py";
const char kContainer[] = "/site-packages/torch/nn/modules/container.py";
const char kActivation[] = "/site-packages/torch/nn/modules/activation.py";

std::string traceOf(const std::vector<Frame> &frames) {
  std::string trace;
  for (const Frame &frame : frames)
    trace += std::string("File \"") + frame.file + "\", line " +
             std::to_string(frame.line) + ", in forward\n  " + frame.text +
             "\n";
  return trace;
}

class ForwardFramesTest : public TracedTest {
protected:
  /// A product with a parameter made at `frames`, within registered modules
  /// of the classes `modules`, and one more at `others`, of the same function.
  void expect(bool isDoubted, const std::vector<Frame> &frames,
              const std::vector<std::string> &modules = {},
              const std::vector<Frame> &others = {},
              const std::string &name = "w") {
    SCOPED_TRACE(frames.back().text);
    TracedModel traced({name});
    traced.hold(name, {2, 3});
    onnx::NodeProto *node = addNode(traced.graph(), "Mul", {"x", name}, {"o"});
    std::string placeholder = "%p_" + name;
    std::replace(placeholder.begin(), placeholder.end(), '.', '_');
    setCall(node, call("mul", "aten.mul", "%x, " + placeholder));
    std::string scopes = "['', ", path = ": m.Model/";
    for (size_t i = 0; i < modules.size(); ++i) {
      scopes += "'a" + std::to_string(i) + "', ";
      path += "a" + std::to_string(i) + ": " + modules[i] + "/";
    }
    setProperty(node->add_metadata_props(), "pkg.torch.onnx.name_scopes",
                scopes + "'mul']");
    setProperty(node->add_metadata_props(), "namespace",
                path + "mul: aten.mul.Tensor");
    setTrace(node, traceOf(frames));
    if (!others.empty())
      setTrace(traced.add("Neg", {"x"}, call("neg", "aten.neg", "%x")),
               traceOf(others));
    expectDoubts(traced, isDoubted
                             ? std::vector<WantedDoubt>{{Doubt::Meaning,
                                                         {name},
                                                         "by the forward of an "
                                                         "autograd function"}}
                             : std::vector<WantedDoubt>());
  }
};

const Frame kRoot{"m.py", 7, "y = act(x)"};

TEST_F(ForwardFramesTest, modulesOfPyTorchMayBeMadeInForward) {
  expect(false, {kRoot, {kLoss, 1400, "return F.cross_entropy("}});
  expect(false, {kRoot,
                 {kContainer, 253, "input = module(input)"},
                 {kActivation, 432, "return torch.tanh(input)"}});
  // Their children are modules, whosever.
  expect(false, {kRoot,
                 {kContainer, 253, "input = module(input)"},
                 {"m.py", 3, "return x * 3.0"}});
  expect(true, {kRoot,
                {kContainer, 253, "input = module(input)"},
                {"m.py", 5, "return quantize(x)"},
                {"m.py", 3, "return x.round()"}});
  // PyTorch's own functions, and one that calls a module.
  expect(true, {kRoot,
                {"/site-packages/torch/nn/modules/_functions.py", 9,
                 "return input * scale"}});
  expect(true, {kRoot,
                {"m.py", 3, "return nn.Softplus()(x)"},
                {kActivation, 1000, "return F.softplus(input, self.beta)"}});
}

TEST_F(ForwardFramesTest, parametrizationsAreModules) {
  const char conv[] = "/site-packages/torch/nn/modules/conv.py";
  const std::vector<Frame> frames{
      kRoot,
      {conv, 385, "return self._conv_forward(input, self.weight, self.bias)"},
      {"/site-packages/torch/nn/utils/parametrize.py", 334,
       "x = self[0](*originals)"},
      {"/site-packages/torch/nn/utils/parametrizations.py", 327,
       "return torch._weight_norm(weight_v, weight_g, self.dim)"}};
  const std::string utilities = "torch.nn.utils.";
  expect(false, frames,
         {utilities + "parametrize.ParametrizedConv1d",
          utilities + "parametrize.ParametrizationList",
          utilities + "parametrizations._WeightNorm"});
  expect(true, frames,
         {utilities + "parametrize.ParametrizedConv1d",
          utilities + "parametrize.ParametrizationList"});
}

TEST_F(ForwardFramesTest, activationsOfTransformersAreMadeInFunctions) {
  expect(false, {kRoot,
                 {"/site-packages/transformers/activations.py", 103,
                  "return nn.functional.silu(input)"}});
  expect(true, {kRoot,
                {"/site-packages/transformers/integrations/moe.py", 103,
                 "return nn.functional.silu(input)"}});
}

TEST_F(ForwardFramesTest, registeredModulesTakeAFrameEach) {
  expect(true, {kRoot, {"m.py", 3, "return x * w"}});
  expect(false, {kRoot, {"m.py", 3, "return x * w"}}, {"m.Scale"});
  expect(true, {kRoot, {"m.py", 9, "return f(x)"}, {"m.py", 3, "return x * w"}},
         {"m.Scale"});
  expect(false,
         {kRoot, {"m.py", 9, "return f(x)"}, {"m.py", 3, "return x * w"}},
         {"m.Block", "m.Scale"});
  // Not a frame of the user's in one of PyTorch's: a hook calls it.
  expect(true, {kRoot, {"m.py", 3, "return x * w"}},
         {"torch.nn.modules.linear.Linear"});
  // A module that has used its frame explains no other.
  expect(true,
         {kRoot,
          {"m.py", 9, "return twice(self.k(x))"},
          {"m.py", 3, "return x * w"}},
         {"m.Scale"});
}

TEST_F(ForwardFramesTest, aForwardThatIsCalledByNameIsNoFunctions) {
  expect(false, {{"m.py", 7, "return super().forward(x)"},
                 {"m.py", 3, "return x * w"}});
  expect(true, {{"m.py", 7, "return forward(x)"}, {"m.py", 3, "return x * w"}});
}

TEST_F(ForwardFramesTest, aModuleOfTheUsersShowsItsState) {
  expect(false, {kRoot, {"m.py", 3, "return self.a(x) * w"}});
  // An autograd function may call its context `self`.
  expect(true, {kRoot, {"m.py", 3, "return x * self.k"}});
  expect(true, {kRoot, {"m.py", 3, "self.save_for_backward(x * w)"}});
  expect(true, {kRoot, {"m.py", 3, "return myself.a(x)"}});
  // One that is made on the line that calls it, with state in another of its
  // lines, called from the same.
  const Frame root{"m.py", 7, "loss = losses.Focal(gamma=(2))(h, y)"};
  const std::vector<Frame> state{root, {"m.py", 5, "return p ** self.gamma"}};
  expect(false, {root, {"m.py", 3, "p = x * w"}}, {}, state);
  expect(true, {root, {"m.py", 3, "p = x * w"}});
  expect(true, {root, {"f.py", 3, "p = x * w"}}, {}, state);
  const Frame helper{"m.py", 7, "loss = make(2)(h, y)"};
  expect(true, {helper, {"m.py", 3, "p = x * w"}}, {},
         {helper, {"m.py", 5, "return p ** self.gamma"}});
}

TEST_F(ForwardFramesTest, compiledModulesKeepNoScope) {
  const Frame root{"m.py", 7, "return self.block(x)"};
  expect(false, {root, {"m.py", 3, "h = x * w"}}, {}, {},
         "block._orig_mod.weight");
  expect(true, {root, {"m.py", 3, "h = x * w"}}, {}, {}, "block.weight");
}

TEST_F(ForwardFramesTest, codeThatFxTracedIsAModules) {
  expect(
      false,
      {kRoot, {"<eval_with_key>.7 from m.py:48 in forward", 5, "mul = x * w"}});
}

} // namespace
