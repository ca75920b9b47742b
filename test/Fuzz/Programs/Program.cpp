// Programs by seed, and as text.

#include "Program.h"

#include "Model.h"
#include "OnnxForm.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace accel;
using namespace accel::fuzz;

static constexpr StringLiteral kFlags = "// flags: ",
                               kKeepsRows = "// rows: apart",
                               kViaOnnx = "// form: onnx";

Program Program::clone() const {
  Program copy;
  copy.module = module.get().clone();
  copy.keepsRows = keepsRows;
  copy.viaOnnx = viaOnnx;
  copy.update = update;
  copy.sizes = sizes;
  return copy;
}

/// Of as many parts of the batch as rows, or of fewer: what no layout changes.
static void chooseParts(Random &random, Program &program, int64_t rows) {
  bool hasNorm = false;
  program.module.get()->walk([&](nn::BatchNormOp) { hasNorm = true; });
  if (!hasNorm)
    return;
  int64_t parts = random.pick<int64_t>({1, 2, rows});
  program.update.settings.push_back(
      "batch_norm.parts=" + std::to_string(rows % parts == 0 ? parts : 1));
}

Program fuzz::makeProgram(MLIRContext *context, uint64_t seed,
                          uint64_t number) {
  Random random(seed, number);
  Program program;
  program.keepsRows = random.chance(55);
  // Drawn of a copy: the programs of a seed are otherwise what they were.
  Random more(seed + 1, number);
  bool isQuantized = more.chance(15);
  GraphBuilder builder(context, random);
  Model model(builder, program.keepsRows, isQuantized);
  program.module = model.build();
  program.update = makeUpdate(random);
  if (isQuantized)
    program.keepsRows &= quantize(more, program.update, model.rows);
  chooseParts(more, program, model.rows);
  program.update.batchDims = builder.batchDims;
  program.sizes = {model.rows, model.length};
  // Import makes one of equal products, whose gradients are then rounded once.
  program.viaOnnx =
      random.chance(30) && !isQuantized && !writeOnnx(*program.module).empty();
  return program;
}

std::vector<Layout> fuzz::makeLayouts(const Program &program, uint64_t seed,
                                      uint64_t number, unsigned count) {
  Random random(~seed, number);
  std::vector<Layout> layouts;
  for (unsigned each = 0; each < count; ++each)
    layouts.push_back(makeLayout(random, program.sizes));
  return layouts;
}

std::string fuzz::print(const Program &program, const Layout &layout,
                        StringRef comment) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  SmallVector<StringRef> lines;
  comment.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    stream << "// " << line << "\n";
  stream << kFlags << program.update.getFlags();
  if (std::string flags = layout.getFlags(); !flags.empty())
    stream << " " << flags;
  stream << "\n";
  if (program.keepsRows)
    stream << kKeepsRows << "\n";
  if (program.viaOnnx)
    stream << kViaOnnx << "\n";
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(1 << 20);
  program.module.get()->print(stream, flags);
  stream << "\n";
  return text;
}

Program fuzz::parse(StringRef text, Layout &layout, MLIRContext *context) {
  Program program;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    if (line.consume_front(kFlags)) {
      if (failed(parseFlags(line, program.update, layout))) {
        llvm::errs() << "expected flags that this tool writes, found '" << line
                     << "'\n";
        return program;
      }
    } else if (line == kKeepsRows) {
      program.keepsRows = true;
    } else if (line == kViaOnnx) {
      program.viaOnnx = true;
    }
  }
  program.module = parseSourceString<ModuleOp>(text, context);
  return program;
}
