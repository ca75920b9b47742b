// Names for values, and signatures that fit on lines. MLIR's printer takes the
// names from locations, so they are put there, on a copy: an op's own location
// holds its node's name as the model spells it, which is for messages.

#include "PhaseText.h"

#include "dialects/Accel/ValueName.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace accel;
using namespace accel::driver;

/// Longer signatures are divided, and longer lines of ops.
static constexpr size_t kLineLength = 100;
static constexpr size_t kOpLength = 160;
/// Longer names lose their first parts, which are modules that many share.
static constexpr size_t kNameLength = 32;

namespace {
/// What an op was made for: the first name in its location (of text that was
/// read, the name there), and whether it was made by differentiation.
struct Source {
  std::string name;
  bool isGradient = false;

  std::string getName() const {
    return isGradient && !name.empty() ? "d_" + name : name;
  }
};
} // namespace

/// `/h.0/attn/MatMul` as `h.0_attn_MatMul`.
static std::string shorten(StringRef name) {
  name.consume_front("node_"); // of torch's exporter, on every node
  std::string text;
  for (char c : name) {
    bool isKept = llvm::isAlnum(c) || c == '.';
    if (isKept || (!text.empty() && text.back() != '_'))
      text += isKept ? c : '_';
  }
  while (!text.empty() && text.back() == '_')
    text.pop_back();
  for (size_t start; text.size() > kNameLength; text.erase(0, start + 1)) {
    start = text.find_first_of("._");
    if (start == std::string::npos)
      break;
  }
  // `_3` at the end is what the printer puts behind a name that is taken.
  size_t last = text.find_last_not_of("0123456789");
  if (last != std::string::npos && last + 1 < text.size() && text[last] == '_')
    text[last] = '.';
  return text;
}

static void collectSource(Location location, Source &source) {
  if (StringAttr written = getValueName(location)) {
    if (source.name.empty())
      source.name = written.str();
  } else if (auto name = dyn_cast<NameLoc>(location)) {
    if (name.getName() == "gradient")
      source.isGradient = true;
    else if (source.name.empty())
      source.name = shorten(name.getName());
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location each : fused.getLocations())
      collectSource(each, source);
  } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    collectSource(call.getCallee(), source);
  }
}

static Location nameLoc(MLIRContext *context, StringRef name) {
  if (name.empty())
    return UnknownLoc::get(context);
  return NameLoc::get(StringAttr::get(context, name));
}

/// Puts a short name on every op and argument that has one, and on no other.
static void nameValues(ModuleOp module) {
  MLIRContext *context = module.getContext();
  module->walk([&](Operation *op) {
    Source source;
    collectSource(op->getLoc(), source);
    op->setLoc(nameLoc(context, source.getName()));
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (!function || function.isExternal())
      return;
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      Source source;
      collectSource(argument.getLoc(), source);
      std::string name = source.getName();
      if (auto input =
              function.getArgAttrOfType<StringAttr>(index, nn::kInputAttr))
        name = shorten(input);
      if (auto state = function.getArgAttrOfType<FlatSymbolRefAttr>(
              index, nn::kStateAttr))
        name = shorten(state.getValue());
      argument.setLoc(nameLoc(context, name));
    }
  });
}

/// Where the list in parentheses that opens at `begin` closes; `commas` are its
/// own.
static size_t findEnd(StringRef text, size_t begin,
                      SmallVectorImpl<size_t> &commas) {
  int depth = 0;
  for (size_t at = begin; at < text.size(); ++at) {
    char c = text[at];
    if (c == '"') {
      do
        at += 1 + (text[at] == '\\');
      while (at < text.size() && text[at] != '"');
    } else if (StringRef("([{<").contains(c)) {
      ++depth;
    } else if (StringRef(")]}").contains(c) ||
               (c == '>' && text[at - 1] != '-')) {
      if (--depth == 0)
        return at;
    } else if (c == ',' && depth == 1) {
      commas.push_back(at);
    }
  }
  return StringRef::npos;
}

/// A signature, its arguments and results each on a line of its own where they
/// are several and too long together.
static void printSignature(StringRef line, raw_ostream &os) {
  std::string indent(line.find_first_not_of(' '), ' ');
  size_t done = 0;
  for (size_t open = line.find('('); open != StringRef::npos;) {
    SmallVector<size_t> commas;
    size_t end = findEnd(line, open, commas);
    if (end == StringRef::npos)
      break;
    if (end > open + 1 && line.size() - done > kLineLength) {
      os << line.slice(done, open + 1);
      done = open + 1;
      commas.push_back(end);
      for (size_t comma : commas) {
        os << '\n'
           << indent << "    "
           << line.slice(done, comma + (comma != end)).trim();
        done = comma + (comma != end);
      }
      os << '\n' << indent;
    }
    // The results follow at once, or there are none.
    open = line.substr(end).starts_with(") -> (") ? end + 5 : StringRef::npos;
  }
  os << line.substr(done) << '\n';
}

/// An op, its types on a line of their own, or of a plan's command what stands
/// behind its views. What has neither, or is part of another op, is left alone.
static void printOp(StringRef line, raw_ostream &os) {
  StringRef text = line.ltrim();
  bool isCommand = text.starts_with("plan.");
  int depth = 0;
  size_t types = StringRef::npos;
  bool isString = false;
  for (size_t at = 1; at < line.size(); ++at) {
    char c = line[at];
    if (c == '"' && line[at - 1] != '\\')
      isString = !isString;
    if (isString)
      continue;
    depth += StringRef("([{<").contains(c);
    depth -= StringRef(")]}").contains(c) || (c == '>' && line[at - 1] != '-');
    StringRef rest = line.substr(at);
    if (depth == 0 && !isCommand && rest.starts_with(" : "))
      types = at;
    if (depth == 0 && isCommand && types == StringRef::npos &&
        (rest.starts_with(" releases ") || rest.starts_with(" {plan.")))
      types = at;
  }
  if (types == StringRef::npos ||
      !(text.starts_with("%") || text.starts_with("return ") || isCommand))
    os << line << '\n';
  else
    os << line.take_front(types) << '\n'
       << std::string(line.size() - text.size() + 4, ' ')
       << line.substr(types + 1) << '\n';
}

static void print(ModuleOp module, OpPrintingFlags flags, raw_ostream &os) {
  OwningOpRef<ModuleOp> named = module.clone();
  nameValues(*named);
  std::string text;
  llvm::raw_string_ostream stream(text);
  named->print(stream, flags.printNameLocAsPrefix().assumeVerified());
  for (StringRef rest = text; !rest.empty();) {
    auto [line, after] = rest.split('\n');
    rest = after;
    if (line.size() > kLineLength && line.ltrim().starts_with("func.func"))
      printSignature(line, os);
    else if (line.size() > kOpLength)
      printOp(line, os);
    else
      os << line << '\n';
  }
}

void driver::printPhaseText(ModuleOp module, raw_ostream &os) {
  OpPrintingFlags flags;
  if (flags.shouldPrintDebugInfo() || flags.shouldPrintGenericOpForm())
    return module.print(os);
  print(module, flags, os);
}

void driver::printKeptText(ModuleOp module, raw_ostream &os) {
  // Each flag that the command line sets is set again, to MLIR's default.
  constexpr int64_t noLimit = std::numeric_limits<int64_t>::max();
  OpPrintingFlags flags;
  flags.enableDebugInfo(false)
      .printGenericOpForm(false)
      .skipRegions(false)
      .useLocalScope(false)
      .printValueUsers(false)
      .printUniqueSSAIDs(false)
      .elideLargeElementsAttrs(noLimit)
      .elideLargeResourceString(noLimit)
      .printLargeElementsAttrWithHex();
  print(module, flags, os);
}
