// Small programs with what placement can get wrong, placed in every way.

#include "MutantsFixture.h"

#include "lib/Driver/InitAll.h"
#include "lib/Driver/Passes.h"
#include "lib/Equivalence/Equivalence.h"
#include "lib/Parallel/Passes.h"
#include "lib/Tasks/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;

/// Embedding, two layers with dropout and halves exchanged between them,
/// squared error over a count, what each sample's id picks of its logits, and a
/// term of weights alone; square shapes, so that a wrong dimension has the
/// right type.
static constexpr const char *kProgram = R"(
module attributes {accel.phase = "nn"} {
nn.state @table : tensor<16x16xf32> = #init_table
nn.state @w1 : tensor<16x16xf32> = #init_w1
nn.state @b1 : tensor<16xf32> = #init_b1
nn.state @w2 : tensor<16x16xf32> = #init_w2
func.func @main(%ids: tensor<16xi64> {nn.input = "ids"}, %t: tensor<16x16xf32> {nn.input = "t"},
    %table: tensor<16x16xf32> {nn.state = @table}, %w1: tensor<16x16xf32> {nn.state = @w1},
    %b1: tensor<16xf32> {nn.state = @b1}, %w2: tensor<16x16xf32> {nn.state = @w2})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %x = nn.gather %table, %ids dim 0 : (tensor<16x16xf32>, tensor<16xi64>) -> tensor<16x16xf32>
  %z = nn.matmul %x, %w1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %bb = nn.broadcast %b1 : (tensor<16xf32>) -> tensor<16x16xf32>
  %zb = nn.add %z, %bb : tensor<16x16xf32>
  %a = nn.tanh %zb : tensor<16x16xf32>
  %d1 = nn.dropout %a ratio 2.5e-01 site 0 : tensor<16x16xf32>
  %left = nn.slice %d1 starts [0, 0] sizes [16, 8] steps [1, 1] : (tensor<16x16xf32>) -> tensor<16x8xf32>
  %right = nn.slice %d1 starts [0, 8] sizes [16, 8] steps [1, 1] : (tensor<16x16xf32>) -> tensor<16x8xf32>
  %h = nn.concat %right, %left dim 1 : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
  %y = nn.matmul %h, %w2 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %logits = nn.matmul %y, %table {transpose_rhs} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %d = nn.sub %logits, %t : tensor<16x16xf32>
  %q = nn.mul %d, %d : tensor<16x16xf32>
  %s = nn.reduce sum %q dims [0, 1] : (tensor<16x16xf32>) -> tensor<f32>
  %places = nn.reshape %ids : (tensor<16xi64>) -> tensor<16x1xi64>
  %picked = nn.gather_nd %logits, %places {batch_dims = 1 : i64} : (tensor<16x16xf32>, tensor<16x1xi64>) -> tensor<16xf32>
  %p = nn.reduce sum %picked dims [0] : (tensor<16xf32>) -> tensor<f32>
  %sp = nn.add %s, %p : tensor<f32>
  %c = nn.constant dense<0.00390625> : tensor<f32>
  %data = nn.mul %sp, %c : tensor<f32>
  %ww = nn.mul %w1, %w1 : tensor<16x16xf32>
  %r = nn.reduce sum %ww dims [0, 1] : (tensor<16x16xf32>) -> tensor<f32>
  %loss = nn.add %data, %r : tensor<f32>
  return %loss : tensor<f32>
}
}
)";

/// A tied embedding and a layer whose rows are counted position by position, a
/// penalty on a transposed weight; sizes that two ranks cannot split.
static constexpr const char *kUnevenStep = R"(
module attributes {accel.phase = "nn"} {
nn.state @table : tensor<7x5xf32> = #init_table
nn.state @w1 : tensor<5x5xf32> = #init_w1
nn.state @b1 : tensor<5xf32> = #init_b1
func.func @main(%ids: tensor<8x3xi64> {nn.input = "ids"}, %t: tensor<8x3x7xf32> {nn.input = "t"},
    %table: tensor<7x5xf32> {nn.state = @table}, %w1: tensor<5x5xf32> {nn.state = @w1},
    %b1: tensor<5xf32> {nn.state = @b1}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %e = nn.gather %table, %ids dim 0 : (tensor<7x5xf32>, tensor<8x3xi64>) -> tensor<8x3x5xf32>
  %et = nn.transpose %e [1, 0, 2] : (tensor<8x3x5xf32>) -> tensor<3x8x5xf32>
  %rows = nn.reshape %et : (tensor<3x8x5xf32>) -> tensor<24x5xf32>
  %z = nn.matmul %rows, %w1 : (tensor<24x5xf32>, tensor<5x5xf32>) -> tensor<24x5xf32>
  %bb = nn.broadcast %b1 : (tensor<5xf32>) -> tensor<24x5xf32>
  %zb = nn.add %z, %bb : tensor<24x5xf32>
  %a = nn.tanh %zb : tensor<24x5xf32>
  %l0 = nn.matmul %a, %table {transpose_rhs} : (tensor<24x5xf32>, tensor<7x5xf32>) -> tensor<24x7xf32>
  %l1 = nn.reshape %l0 : (tensor<24x7xf32>) -> tensor<3x8x7xf32>
  %l = nn.transpose %l1 [1, 0, 2] : (tensor<3x8x7xf32>) -> tensor<8x3x7xf32>
  %d = nn.sub %l, %t : tensor<8x3x7xf32>
  %q = nn.mul %d, %d : tensor<8x3x7xf32>
  %s = nn.reduce sum %q dims [0, 1, 2] : (tensor<8x3x7xf32>) -> tensor<f32>
  %c = nn.constant dense<0.0078125> : tensor<f32>
  %data = nn.mul %s, %c : tensor<f32>
  %wt = nn.transpose %w1 [1, 0] : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %ww = nn.mul %wt, %wt : tensor<5x5xf32>
  %r = nn.reduce sum %ww dims [0, 1] : (tensor<5x5xf32>) -> tensor<f32>
  %loss = nn.add %data, %r : tensor<f32>
  return %loss : tensor<f32>
}
}
)";

/// A step as `train` leaves it: a tied table whose rows ranks do not divide,
/// and one whose rows they do; squares of both gradients.
static constexpr const char *kRowsStep = R"(
module attributes {accel.phase = "train"} {
nn.state @table : tensor<401x32xf64> = #init_table
nn.state @types : tensor<400x32xf64> = #init_types
func.func @step(%ids: tensor<8x2xi64> {nn.input = "ids"}, %y: tensor<8x401xf64> {nn.input = "y"},
    %table: tensor<401x32xf64> {nn.state = @table}, %types: tensor<400x32xf64> {nn.state = @types})
    -> (tensor<f64> {nn.output = "loss"}, tensor<401x32xf64> {nn.state = @table}, tensor<400x32xf64> {nn.state = @types}) attributes {nn.entry = #nn<entry step>} {
  %a = nn.gather %table, %ids dim 0 : (tensor<401x32xf64>, tensor<8x2xi64>) -> tensor<8x2x32xf64>
  %b = nn.gather %types, %ids dim 0 : (tensor<400x32xf64>, tensor<8x2xi64>) -> tensor<8x2x32xf64>
  %c = nn.mul %a, %b : tensor<8x2x32xf64>
  %loss = nn.reduce sum %c dims [0, 1, 2] : (tensor<8x2x32xf64>) -> tensor<f64>
  %x = nn.reduce sum %c dims [1] : (tensor<8x2x32xf64>) -> tensor<8x32xf64>
  %none = nn.constant dense<0.0> : tensor<401x32xf64>
  %zero = nn.constant dense<0.0> : tensor<400x32xf64>
  %d1 = nn.matmul %y, %x {transpose_lhs} : (tensor<8x401xf64>, tensor<8x32xf64>) -> tensor<401x32xf64>
  %d0 = nn.scatter_add %none, %ids, %b dim 0 : (tensor<401x32xf64>, tensor<8x2xi64>, tensor<8x2x32xf64>) -> tensor<401x32xf64>
  %d = nn.add %d1, %d0 : tensor<401x32xf64>
  %e = nn.scatter_add %zero, %ids, %a dim 0 : (tensor<400x32xf64>, tensor<8x2xi64>, tensor<8x2x32xf64>) -> tensor<400x32xf64>
  %g = nn.gradient %d of @table : tensor<401x32xf64>
  %h = nn.gradient %e of @types : tensor<400x32xf64>
  %g2 = nn.mul %g, %g : tensor<401x32xf64>
  %h2 = nn.mul %h, %h : tensor<400x32xf64>
  %t1 = nn.sub %table, %g2 : tensor<401x32xf64>
  %p1 = nn.sub %types, %h2 : tensor<400x32xf64>
  return %loss, %t1, %p1 : tensor<f64>, tensor<401x32xf64>, tensor<400x32xf64>
}
}
)";

/// A layer of a decoder: tokens and their positions looked up, a norm, causal
/// attention of two heads, two products, what a tied table makes of them, and
/// cross-entropy; square weights.
static constexpr const char *kDecoder = R"(
module attributes {accel.phase = "nn"} {
nn.state @table : tensor<16x8xf32> = #init_table
nn.state @places : tensor<4x8xf32> = #init_places
nn.state @scale : tensor<8xf32> = #init_scale
nn.state @shift : tensor<8xf32> = #init_shift
nn.state @wq : tensor<8x8xf32> = #init_wq
nn.state @wk : tensor<8x8xf32> = #init_wk
nn.state @wv : tensor<8x8xf32> = #init_wv
nn.state @wo : tensor<8x8xf32> = #init_wo
nn.state @w1 : tensor<8x8xf32> = #init_w1
nn.state @w2 : tensor<8x8xf32> = #init_w2
func.func @main(%ids: tensor<8x4xi64> {nn.input = "ids"}, %labels: tensor<8x4xi64> {nn.input = "labels"},
    %table: tensor<16x8xf32> {nn.state = @table}, %places: tensor<4x8xf32> {nn.state = @places},
    %scale: tensor<8xf32> {nn.state = @scale}, %shift: tensor<8xf32> {nn.state = @shift},
    %wq: tensor<8x8xf32> {nn.state = @wq}, %wk: tensor<8x8xf32> {nn.state = @wk},
    %wv: tensor<8x8xf32> {nn.state = @wv}, %wo: tensor<8x8xf32> {nn.state = @wo},
    %w1: tensor<8x8xf32> {nn.state = @w1}, %w2: tensor<8x8xf32> {nn.state = @w2})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %tokens = nn.gather %table, %ids dim 0 : (tensor<16x8xf32>, tensor<8x4xi64>) -> tensor<8x4x8xf32>
  %numbers = nn.iota {dim = 0 : i64, start = 0 : i64} : tensor<4xi64>
  %at = nn.gather %places, %numbers dim 0 : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %all = nn.broadcast %at : (tensor<4x8xf32>) -> tensor<8x4x8xf32>
  %x = nn.add %tokens, %all : tensor<8x4x8xf32>
  %n = nn.layer_norm %x, %scale, %shift dim 2 epsilon 1.0e-05 : (tensor<8x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8x4x8xf32>
  %q0 = nn.matmul %n, %wq : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
  %k0 = nn.matmul %n, %wk : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
  %v0 = nn.matmul %n, %wv : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
  %q1 = nn.reshape %q0 : (tensor<8x4x8xf32>) -> tensor<8x4x2x4xf32>
  %k1 = nn.reshape %k0 : (tensor<8x4x8xf32>) -> tensor<8x4x2x4xf32>
  %v1 = nn.reshape %v0 : (tensor<8x4x8xf32>) -> tensor<8x4x2x4xf32>
  %q = nn.transpose %q1 [0, 2, 1, 3] : (tensor<8x4x2x4xf32>) -> tensor<8x2x4x4xf32>
  %k = nn.transpose %k1 [0, 2, 1, 3] : (tensor<8x4x2x4xf32>) -> tensor<8x2x4x4xf32>
  %v = nn.transpose %v1 [0, 2, 1, 3] : (tensor<8x4x2x4xf32>) -> tensor<8x2x4x4xf32>
  %a:2 = nn.attention %q, %k, %v {causal, scale = 0.5 : f64} : (tensor<8x2x4x4xf32>, tensor<8x2x4x4xf32>, tensor<8x2x4x4xf32>) -> (tensor<8x2x4x4xf32>, tensor<8x2x4xf32>)
  %a1 = nn.transpose %a#0 [0, 2, 1, 3] : (tensor<8x2x4x4xf32>) -> tensor<8x4x2x4xf32>
  %a2 = nn.reshape %a1 : (tensor<8x4x2x4xf32>) -> tensor<8x4x8xf32>
  %o = nn.matmul %a2, %wo : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
  %h = nn.add %x, %o : tensor<8x4x8xf32>
  %u = nn.matmul %h, %w1 : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
  %g = nn.gelu erf %u : tensor<8x4x8xf32>
  %d = nn.matmul %g, %w2 : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
  %y = nn.add %h, %d : tensor<8x4x8xf32>
  %logits = nn.matmul %y, %table {transpose_rhs} : (tensor<8x4x8xf32>, tensor<16x8xf32>) -> tensor<8x4x16xf32>
  %losses = nn.cross_entropy %logits, %labels : (tensor<8x4x16xf32>, tensor<8x4xi64>) -> tensor<8x4xf32>
  %s = nn.reduce sum %losses dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  %c = nn.constant dense<0.03125> : tensor<f32>
  %loss = nn.mul %s, %c : tensor<f32>
  return %loss : tensor<f32>
}
}
)";

/// Attention of four query heads and two key heads, which ranks share.
static constexpr const char *kGroupedStep = R"(
module attributes {accel.phase = "nn"} {
nn.state @wq : tensor<8x8xf32> = #init_wq
nn.state @wk : tensor<8x4xf32> = #init_wk
nn.state @wv : tensor<8x4xf32> = #init_wv
nn.state @wo : tensor<8x8xf32> = #init_wo
func.func @main(%x: tensor<8x4x8xf32> {nn.input = "x"},
    %wq: tensor<8x8xf32> {nn.state = @wq}, %wk: tensor<8x4xf32> {nn.state = @wk},
    %wv: tensor<8x4xf32> {nn.state = @wv}, %wo: tensor<8x8xf32> {nn.state = @wo})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %n = nn.tanh %x : tensor<8x4x8xf32>
  %q0 = nn.matmul %n, %wq : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
  %k0 = nn.matmul %n, %wk : (tensor<8x4x8xf32>, tensor<8x4xf32>) -> tensor<8x4x4xf32>
  %v0 = nn.matmul %n, %wv : (tensor<8x4x8xf32>, tensor<8x4xf32>) -> tensor<8x4x4xf32>
  %q1 = nn.reshape %q0 : (tensor<8x4x8xf32>) -> tensor<8x4x4x2xf32>
  %k1 = nn.reshape %k0 : (tensor<8x4x4xf32>) -> tensor<8x4x2x2xf32>
  %v1 = nn.reshape %v0 : (tensor<8x4x4xf32>) -> tensor<8x4x2x2xf32>
  %q = nn.transpose %q1 [0, 2, 1, 3] : (tensor<8x4x4x2xf32>) -> tensor<8x4x4x2xf32>
  %k = nn.transpose %k1 [0, 2, 1, 3] : (tensor<8x4x2x2xf32>) -> tensor<8x2x4x2xf32>
  %v = nn.transpose %v1 [0, 2, 1, 3] : (tensor<8x4x2x2xf32>) -> tensor<8x2x4x2xf32>
  %a:2 = nn.attention %q, %k, %v {causal, scale = 0.5 : f64} : (tensor<8x4x4x2xf32>, tensor<8x2x4x2xf32>, tensor<8x2x4x2xf32>) -> (tensor<8x4x4x2xf32>, tensor<8x4x4xf32>)
  %a1 = nn.transpose %a#0 [0, 2, 1, 3] : (tensor<8x4x4x2xf32>) -> tensor<8x4x4x2xf32>
  %a2 = nn.reshape %a1 : (tensor<8x4x4x2xf32>) -> tensor<8x4x8xf32>
  %o = nn.matmul %a2, %wo : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
  %h = nn.add %x, %o : tensor<8x4x8xf32>
  %s = nn.mul %h, %h : tensor<8x4x8xf32>
  %m = nn.reduce sum %s dims [0, 1, 2] : (tensor<8x4x8xf32>) -> tensor<f32>
  %c = nn.constant dense<0.03125> : tensor<f32>
  %loss = nn.mul %m, %c : tensor<f32>
  return %loss : tensor<f32>
}
}
)";

static std::string randomElements(std::mt19937 &random,
                                  ArrayRef<int64_t> shape) {
  std::string text = "dense<";
  auto number = [&] {
    return std::to_string(static_cast<int>(random() % 33) - 16) + ".0e-2";
  };
  auto row = [&](int64_t size) {
    std::string list = "[";
    for (int64_t i = 0; i < size; ++i)
      list += (i ? ", " : "") + number();
    return list + "]";
  };
  if (shape.size() == 1) {
    text += row(shape[0]);
  } else {
    text += "[";
    for (int64_t i = 0; i < shape[0]; ++i)
      text += (i ? ", " : "") + row(shape[1]);
    text += "]";
  }
  return text + ">";
}

int Tally::count(StringRef prefix) const {
  int sum = 0;
  for (auto &[change, number] : differing)
    if (StringRef(change).starts_with(prefix))
      sum += number;
  return sum;
}

Tally &Tally::operator+=(const Tally &other) {
  for (auto &[change, number] : other.differing)
    differing[change] += number;
  same += other.same;
  strict += other.strict;
  return *this;
}

void Tally::print() const {
  std::cout << "  " << count() << " mutants compute something else, "
            << count("mb: ") << " of them of micro-batches:";
  for (auto &[change, number] : differing)
    std::cout << " " << change << " " << number << ",";
  std::cout << " and " << same << " the same (" << strict << " refused)\n";
}

unsigned test::countSeeds(unsigned seeds) {
  const char *times = std::getenv("ACCEL_MUTANTS");
  return seeds * (times ? std::max(1, std::atoi(times)) : 1);
}

llvm::iota_range<unsigned> test::getSeeds(const Setting &setting,
                                          unsigned count) {
  unsigned first = setting.firstSeed + setting.constraints * 1000;
  return llvm::seq(first, first + count);
}

MutantsTest::MutantsTest() {
  DialectRegistry registry;
  registerAllDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.disableMultithreading();
}

OwningOpRef<ModuleOp> MutantsTest::parse(const Setting &setting) {
  std::mt19937 random(7);
  const char *programs[] = {kProgram, kUnevenStep, kRowsStep, kDecoder,
                            kGroupedStep};
  std::string text = programs[static_cast<int>(setting.program)];
  const std::string dropout = "nn.dropout %a ratio 2.5e-01 site 0";
  // Draws in training alone.
  if (size_t at = text.find(dropout); at != std::string::npos && !setting.train)
    text.replace(at, dropout.size(), "nn.abs %a");
  using Shape = SmallVector<int64_t>;
  std::vector<std::pair<const char *, Shape>> states;
  if (setting.program == Program::Rows) {
    states = {{"#init_table", {401, 32}}, {"#init_types", {400, 32}}};
  } else if (setting.program == Program::Decoder) {
    for (const char *name : {"#init_wq", "#init_wk", "#init_wv", "#init_wo",
                             "#init_w1", "#init_w2"})
      states.push_back({name, {8, 8}});
    states.push_back({"#init_table", {16, 8}});
    states.push_back({"#init_places", {4, 8}});
    states.push_back({"#init_scale", {8}});
    states.push_back({"#init_shift", {8}});
  } else if (setting.program == Program::Grouped) {
    states = {{"#init_wq", {8, 8}},
              {"#init_wk", {8, 4}},
              {"#init_wv", {8, 4}},
              {"#init_wo", {8, 8}}};
  } else {
    bool isUneven = setting.program == Program::Uneven;
    int64_t rows = isUneven ? 7 : 16, width = isUneven ? 5 : 16;
    states = {{"#init_table", {rows, width}},
              {"#init_w1", {width, width}},
              {"#init_b1", {width}},
              {"#init_w2", {width, width}}};
  }
  for (auto &[name, shape] : states)
    if (size_t at = text.find(name); at != std::string::npos)
      text.replace(at, strlen(name), randomElements(random, shape));
  return parseSourceString<ModuleOp>(text, &context);
}

/// Asks for values to be split over "sp" or "tp", and gives the module the mesh
/// for it.
static void constrainStep(ModuleOp module, const Setting &setting) {
  std::mt19937 random(setting.constraints);
  MLIRContext *context = module.getContext();
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  SmallVector<Attribute> axes;
  if (setting.microBatches > 1)
    axes.push_back(dist::AxisAttr::get(context, "mb", setting.microBatches));
  for (StringRef axis :
       {setting.stage ? "dp_shard" : "dp_replicate", "sp", "tp"})
    axes.push_back(dist::AxisAttr::get(context, axis, 2));
  auto mesh =
      dist::MeshOp::create(builder, module.getLoc(), "mesh",
                           builder.getArrayAttr(axes), nullptr, nullptr);
  auto ask = [&](Value value, StringRef axis) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<dist::AxesAttr> dims;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      dims.push_back(
          dist::AxesAttr::get(context, ArrayRef<StringRef>(), /*open=*/true));
    if (dims.empty())
      return;
    size_t dim = random() % dims.size();
    if (type.getDimSize(dim) % 2 == 0)
      dims[dim] = dist::AxesAttr::get(context, ArrayRef(axis), /*open=*/true);
    builder.setInsertionPointAfterValue(value);
    auto made = dist::ConstraintOp::create(
        builder, value.getLoc(), value,
        dist::ShardingAttr::get(
            context, FlatSymbolRefAttr::get(mesh.getSymNameAttr()), dims));
    value.replaceAllUsesExcept(made, made);
  };
  for (auto step : module.getOps<func::FuncOp>())
    for (Operation &op :
         llvm::make_early_inc_range(step.front().without_terminator())) {
      if (isa<nn::GradientOp>(op))
        break; // the update is split as the states are
      if (op.getNumResults() == 1 && random() % 6 == 0)
        ask(op.getResult(0), random() % 3 ? "tp" : "sp");
    }
}

OwningOpRef<ModuleOp> MutantsTest::makeLogical(const Setting &setting) {
  OwningOpRef<ModuleOp> module = parse(setting);
  if (!module || failed(compile(*module, setting, "train")))
    return nullptr;
  if (setting.constraints)
    constrainStep(*module, setting);
  return module;
}

bool MutantsTest::canBePlaced(ModuleOp module, const Setting &setting) {
  OwningOpRef<ModuleOp> placed(module.clone());
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  return succeeded(compile(*placed, setting, "decided")) &&
         succeeded(split(*placed));
}

OwningOpRef<ModuleOp> MutantsTest::parseGpt2() {
  std::string file = ACCEL_BUILD_DIR "/test/equivalence-gpt2.mlir";
  std::string command = ACCEL_BUILD_DIR
                        "/bin/acc-opt " ACCEL_SOURCE_DIR
                        "/test/Fixtures/gpt2_train/default_dynamic/model.onnx "
                        "--dim batch=8 --dim sequence=12 --compile-to=nn -o " +
                        file;
  if (std::system(command.c_str()) != 0)
    return nullptr;
  return parseSourceFile<ModuleOp>(file, &context);
}

/// Whether a setting is obeyed in phase `train`, and refused after it.
static bool isOfTrain(StringRef set) {
  return set.starts_with("comm_hook=") || set.starts_with("power_sgd.");
}

/// What training has left out of compressed gradients so far, as two ranks'
/// terms, or as their sum: of zeros nobody could tell what is done to them.
static void addResiduals(ModuleOp module, evaluate::TensorsByName &inputs) {
  for (auto state : module.getOps<nn::StateOp>()) {
    if (state.getRole() != nn::StateRole::residual)
      continue;
    auto type = cast<RankedTensorType>(state.getType());
    Tensor terms(type.getShape(), type.getElementType());
    int64_t size = type.getNumElements() / type.getDimSize(0);
    auto numberOf = [](int64_t rank, int64_t at) {
      return ((at + 5) * (rank * 4 + 7) % 33 - 16) * 1e-2;
    };
    for (int64_t at = 0; at < terms.getNumElements(); ++at)
      terms.mutableFloats()[at] = type.getDimSize(0) == 1
                                      ? numberOf(0, at) + numberOf(1, at)
                                      : numberOf(at / size, at % size);
    inputs[("@" + state.getSymName()).str()] = terms;
  }
}

LogicalResult MutantsTest::compile(ModuleOp module, const Setting &setting,
                                   StringRef phase) {
  PassManager pm(&context);
  driver::RunPhasesPassOptions options;
  options.to = phase.str();
  options.train = setting.train;
  options.loss = setting.train ? "loss" : "";
  options.optimizer = setting.train ? setting.optimizer : "";
  if (setting.train)
    options.settings = {"optimizer.lr=0.1", "gradient_clipping=0.5"};
  // Of what is constrained it is in the module.
  options.mesh = setting.constraints ? "" : setting.mesh;
  options.microBatches = setting.microBatches;
  options.mixedPrecision = setting.precision;
  options.settings.push_back("zero_stage=" + std::to_string(setting.stage));
  SmallVector<StringRef> sets;
  StringRef(setting.set).split(sets, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef set : sets)
    if (phase == "train" || !isOfTrain(set))
      options.settings.push_back(set.str());
  if (setting.once)
    options.settings.push_back("zero.gather_once=true");
  pm.addPass(driver::createRunPhasesPass(options));
  return pm.run(module);
}

LogicalResult MutantsTest::split(ModuleOp module) {
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  PassManager pm(&context);
  pm.enableVerifier(false);
  pm.addPass(parallel::createPlanReshardsPass());
  pm.addPass(parallel::createLocalizePass());
  pm.addPass(tasks::createSplitTasksPass());
  pm.addPass(tasks::createMergeScatterAddsPass());
  return pm.run(module);
}

MutantsTest::Result
MutantsTest::evaluate(ModuleOp module,
                      const evaluate::TensorsByName &expected) {
  evaluate::TensorsByName outputs;
  bool isOther = false;
  ScopedDiagnosticHandler quiet(&context, [&](Diagnostic &diagnostic) {
    std::string text = diagnostic.str();
    isOther |= StringRef(text).starts_with("expected equal copies") ||
               StringRef(text).contains("expected 0 after the step");
    return success();
  });
  if (failed(mlir::verify(module)))
    return Result::NoProgram;
  evaluate::TensorsByName all = inputs;
  addResiduals(module, all);
  if (failed(evaluate::evaluateModule(module, all, {}, outputs)))
    return isOther ? Result::Other : Result::NoProgram;
  evaluate::sumTerms(module, outputs);
  for (auto &entry : expected) {
    auto found = outputs.find(entry.getKey());
    if (found == outputs.end() ||
        !(evaluate::getMaxDifference(found->second, entry.second) <= 1e-9))
      return Result::Other;
  }
  return Result::Same;
}

LogicalResult MutantsTest::prove(ModuleOp logical, ModuleOp local) {
  return equivalence::verifyEquivalence(logical, local);
}

bool MutantsTest::accepts(ModuleOp logical, ModuleOp local,
                          std::string *message) {
  ScopedDiagnosticHandler quiet(&context, [&](Diagnostic &diagnostic) {
    if (message && message->empty())
      *message = diagnostic.str();
    return success();
  });
  return succeeded(prove(logical, local));
}

void MutantsTest::tryLocal(ModuleOp logical, const Setting &setting,
                           unsigned seeds, Tally &tally,
                           std::string (Mutator::*change)()) {
  SCOPED_TRACE(setting.name + (" " + std::to_string(setting.constraints)));
  OwningOpRef<ModuleOp> local(logical.clone());
  ASSERT_TRUE(succeeded(compile(*local, setting, "local")));
  std::string message;
  ASSERT_TRUE(accepts(logical, *local, &message)) << message;
  inputs = *evaluate::makeRandomInputs(logical, 3);
  evaluate::TensorsByName expected, all = inputs;
  addResiduals(logical, all);
  ASSERT_TRUE(succeeded(evaluate::evaluateModule(logical, all, {}, expected)));
  ASSERT_TRUE(evaluate(*local, expected) == Result::Same);
  for (unsigned seed : getSeeds(setting, seeds)) {
    OwningOpRef<ModuleOp> mutant(local->clone());
    Mutator mutator(*mutant, seed);
    std::string what = (mutator.*change)();
    if (!what.empty())
      count(logical, *mutant, expected, what, seed, tally);
  }
}

void MutantsTest::count(ModuleOp logical, ModuleOp mutant,
                        const evaluate::TensorsByName &expected,
                        StringRef change, unsigned seed, Tally &tally) {
  Result result = evaluate(mutant, expected);
  if (result == Result::NoProgram)
    return;
  bool accepted = accepts(logical, mutant);
  if (result == Result::Same) {
    ++tally.same;
    tally.strict += !accepted;
    return;
  }
  ++tally.differing[change.str()];
  EXPECT_FALSE(accepted) << "seed " << seed << ": " << change.str();
}
