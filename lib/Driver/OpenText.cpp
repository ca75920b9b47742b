// A pass over the characters of IR that knows brackets, strings, comments and
// aliases, and nothing else of it.

#include "OpenText.h"

#include "dialects/Accel/ValueName.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace accel;

/// Programs of ours nest about ten deep; 8 MiB of stack hold some 3,000
/// regions.
static constexpr size_t kMostNesting = 256;
/// Operators of affine maps nest without brackets.
static constexpr size_t kMostAffineBytes = 4096;

namespace {
class NestingCheck {
public:
  explicit NestingCheck(StringRef text) : text(text) {}

  /// Where the text nests too deep; npos: nowhere.
  size_t findTooDeep() {
    while (at < text.size()) {
      char c = text[at];
      if (text.substr(at).starts_with("//")) {
        at = std::min(text.find('\n', at), text.size());
      } else if (c == '"') {
        skipString();
      } else if (c == '!' || c == '#') {
        readAlias();
      } else if (StringRef("([{<").contains(c)) {
        open(c);
      } else if (StringRef(")]}>").contains(c)) {
        close(c);
      } else {
        // Outside of brackets a definition is over where its line is.
        if (c == '\n' && brackets.empty())
          defined = nullptr;
        ++at;
      }
      if (isTooDeep)
        return std::min(at, text.size() - 1);
    }
    return StringRef::npos;
  }

private:
  void skipString() {
    for (++at; at < text.size() && text[at] != '"'; ++at)
      at += text[at] == '\\';
    ++at;
  }

  /// What an alias stands for is nested where it is used.
  void readAlias() {
    size_t end = at + 1;
    while (end < text.size() &&
           (llvm::isAlnum(text[end]) || StringRef("_$.-").contains(text[end])))
      ++end;
    StringRef name = text.slice(at, end);
    if (brackets.empty() && text.substr(end).ltrim().starts_with("="))
      defined = &depths[name];
    else if (auto found = depths.find(name); found != depths.end())
      reach(brackets.size() + found->second);
    at = end;
  }

  void open(char c) {
    bool isComparison = c == '<' && text.substr(at).starts_with("<=");
    if (!isComparison) {
      StringRef before = text.take_front(at);
      if (affineBegin == StringRef::npos && c == '<' &&
          (before.ends_with("affine_map") || before.ends_with("affine_set"))) {
        affineBegin = at;
        affineDepth = brackets.size();
      }
      brackets.push_back(c);
      reach(brackets.size());
    }
    ++at;
  }

  void close(char c) {
    bool isArrow = c == '>' && at > 0 && text[at - 1] == '-';
    bool isComparison = c == '>' && text.substr(at).starts_with(">=");
    char opening = c == ')' ? '(' : c == ']' ? '[' : c == '}' ? '{' : '<';
    if (!isArrow && !isComparison) {
      // What does not match is the parser's to refuse.
      size_t matching = brackets.rfind(opening);
      bool matches = matching != std::string::npos &&
                     (c != '>' || matching + 1 == brackets.size());
      if (matches)
        brackets.resize(matching);
      if (affineBegin != StringRef::npos && brackets.size() <= affineDepth) {
        isTooDeep |= at - affineBegin > kMostAffineBytes;
        affineBegin = StringRef::npos;
      }
    }
    ++at;
  }

  void reach(size_t depth) {
    isTooDeep |= depth > kMostNesting;
    if (defined)
      *defined = std::max(*defined, depth);
  }

  StringRef text;
  size_t at = 0;
  std::string brackets; ///< Those that are open.
  llvm::StringMap<size_t> depths;
  size_t *defined = nullptr; ///< Of the alias whose definition was last.
  size_t affineBegin = StringRef::npos, affineDepth = 0;
  bool isTooDeep = false;
};
} // namespace

std::optional<driver::TooDeep> driver::findTooDeep(llvm::StringRef text) {
  size_t place = NestingCheck(text).findTooDeep();
  if (place == StringRef::npos)
    return std::nullopt;
  StringRef before = text.take_front(place);
  return TooDeep{before.count('\n') + 1, place - (before.rfind('\n') + 1) + 1,
                 ("expected IR that nests at most " + Twine(kMostNesting) +
                  " brackets, and affine maps of at most " +
                  Twine(kMostAffineBytes) +
                  " bytes, found more: the parser could not hold it")
                     .str()};
}

/// Whether a path is a device that gives more than a person types: it need not
/// end.
static bool isEndless(llvm::StringRef path) {
  namespace fs = llvm::sys::fs;
  fs::file_status status;
  if (path == "-" || fs::status(path, status) ||
      status.type() != fs::file_type::character_file)
    return false;
  auto file = fs::openNativeFileForRead(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return false; // who opens it says why not
  }
  std::vector<char> some(1 << 20);
  bool isEndless = false;
  if (!llvm::sys::Process::FileDescriptorIsDisplayed(*file)) {
    auto count = fs::readNativeFile(*file, some);
    isEndless = count && *count == some.size();
    if (!count)
      llvm::consumeError(count.takeError());
  }
  (void)fs::closeFile(*file);
  return isEndless;
}

std::unique_ptr<llvm::MemoryBuffer>
accel::driver::openText(llvm::StringRef path) {
  if (isEndless(path)) {
    llvm::errs() << path << ": error: expected a file, found a device\n";
    return nullptr;
  }
  std::string error;
  auto buffer = openInputFile(path, &error);
  if (!buffer) {
    llvm::errs() << path << ": error: " << error << "\n";
    return nullptr;
  }
  StringRef text = buffer->getBuffer();
  if (text.starts_with("ML\xefR"))
    return buffer; // bytecode
  std::optional<TooDeep> found = findTooDeep(text);
  if (!found)
    return buffer;
  llvm::errs() << path << ":" << found->line << ":" << found->column
               << ": error: " << found->message << "\n";
  return nullptr;
}

/// The location with what the text calls a value, without the number that the
/// printer puts behind the name of a second one; unchanged if that is a number
/// alone.
static Location withName(Location location, llvm::SMRange range) {
  if (!range.isValid())
    return location;
  StringRef name(range.Start.getPointer(),
                 range.End.getPointer() - range.Start.getPointer());
  name.consume_front("%");
  StringRef base = name.rtrim("0123456789");
  if (base.size() != name.size() && base.ends_with("_"))
    name = base.drop_back();
  if (name.empty() || llvm::all_of(name, llvm::isDigit))
    return location;
  Builder builder(location.getContext());
  return FusedLoc::get(builder.getContext(), {location},
                       builder.getDictionaryAttr(builder.getNamedAttr(
                           kValueName, builder.getStringAttr(name))));
}

OwningOpRef<ModuleOp> accel::driver::parseModule(llvm::StringRef path,
                                                 MLIRContext *context,
                                                 bool keepsNames) {
  auto buffer = openText(path);
  if (!buffer)
    return nullptr;
  bool isText = !isBytecode(*buffer);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  if (!keepsNames || !isText)
    return parseSourceFile<ModuleOp>(sources, context);
  AsmParserState state;
  Block block;
  if (failed(parseAsmSourceFile(sources, &block, context, &state)))
    return nullptr;
  for (const AsmParserState::OperationDefinition &each : state.getOpDefs())
    if (!each.resultGroups.empty())
      each.op->setLoc(withName(each.op->getLoc(),
                               each.resultGroups.front().definition.loc));
  for (const AsmParserState::BlockDefinition &each : state.getBlockDefs())
    for (auto [argument, definition] :
         llvm::zip(each.block->getArguments(), each.arguments))
      argument.setLoc(withName(argument.getLoc(), definition.loc));
  return mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
      &block, context, UnknownLoc::get(context));
}
