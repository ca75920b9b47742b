// Locations in words, and the handler that prints diagnostics with them.

#include "Diagnostics.h"

#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace accel::driver;

namespace {
/// What a location tells, gathered over its nesting; the first of each counts.
struct Origin {
  StringRef node, module, file;
  unsigned line = 0, column = 0;
  StringRef library; ///< the file of a library that `file` called
  unsigned libraryLine = 0;
  unsigned others = 0;   ///< further nodes of a fused location
  bool gradient = false; ///< built by differentiation
};
} // namespace

/// The name that differentiation puts beside that of a node.
static constexpr StringLiteral kGradient = "gradient";

static void collectOrigin(Location location, Origin &origin) {
  TypeSwitch<LocationAttr>(location)
      .Case([&](NameLoc name) {
        if (name.getName() == kGradient)
          origin.gradient = true;
        else if (origin.node.empty())
          origin.node = name.getName();
        else
          ++origin.others;
        if (!isa<UnknownLoc>(name.getChildLoc()))
          collectOrigin(name.getChildLoc(), origin);
      })
      .Case([&](FusedLoc fused) {
        if (auto module = dyn_cast_or_null<StringAttr>(fused.getMetadata()))
          if (origin.module.empty())
            origin.module = module;
        for (Location child : fused.getLocations())
          collectOrigin(child, origin);
      })
      .Case([&](CallSiteLoc call) {
        // The user's own line comes first.
        auto library = dyn_cast<FileLineColLoc>(call.getCallee());
        if (library && origin.file.empty()) {
          origin.library = library.getFilename();
          origin.libraryLine = library.getLine();
        }
        if (!library)
          collectOrigin(call.getCallee(), origin);
        collectOrigin(call.getCaller(), origin);
      })
      .Case([&](FileLineColLoc file) {
        if (!origin.file.empty())
          return;
        origin.file = file.getFilename();
        origin.line = file.getLine();
        origin.column = file.getColumn();
      });
}

std::string accel::driver::describeLocation(Location location) {
  Origin origin;
  collectOrigin(location, origin);
  std::string text;
  llvm::raw_string_ostream os(text);
  auto printFile = [&] {
    os << origin.file;
    if (origin.line)
      os << ":" << origin.line;
    if (origin.column)
      os << ":" << origin.column;
    if (origin.library.empty())
      return;
    // Where packages are installed is no news.
    StringRef inside = origin.library.rsplit("-packages/").second;
    os << ", in " << (inside.empty() ? origin.library : inside) << ":"
       << origin.libraryLine;
  };
  if (origin.node.empty()) {
    if (origin.file.empty())
      os << "acc";
    else
      printFile();
    return text;
  }
  os << (origin.gradient ? "gradient of node '" : "node '") << origin.node
     << "'";
  if (origin.others)
    os << " and " << origin.others << " fused with it";
  if (origin.module.empty() && origin.file.empty())
    return text;
  os << " (" << origin.module;
  if (!origin.module.empty() && !origin.file.empty())
    os << ", ";
  if (!origin.file.empty())
    printFile();
  os << ")";
  return text;
}

/// Bytes of a message that are printed. A name may be as long as its file.
static constexpr size_t kMostBytes = 4096, kLastBytes = 512;

namespace {
/// The first character of a text; hostile is one that a terminal obeys, or that
/// is no UTF-8.
struct Character {
  explicit Character(StringRef text);
  size_t length = 1;
  bool isHostile;
};
} // namespace

Character::Character(StringRef text) {
  unsigned char first = text.front();
  if (first < 0x80) {
    isHostile = first < 0x20 || first == 0x7f;
    return;
  }
  size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data());
  isHostile =
      text.size() < bytes || !llvm::isLegalUTF8Sequence(begin, begin + bytes);
  if (isHostile)
    return;
  length = bytes;
  text = text.take_front(bytes);
  // Controls; what turns the direction of writing, and ends of lines: U+061C,
  // U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069.
  isHostile = (first == 0xc2 && uint8_t(text[1]) < 0xa0) ||
              text == "\xd8\x9c" || text == "\xe2\x80\x8e" ||
              text == "\xe2\x80\x8f" ||
              (text >= "\xe2\x80\xa8" && text <= "\xe2\x80\xae") ||
              (text >= "\xe2\x81\xa6" && text <= "\xe2\x81\xa9");
}

std::string accel::driver::makePrintable(StringRef text, bool keepsLines) {
  std::string result;
  llvm::raw_string_ostream os(result);
  auto print = [&](StringRef part) {
    while (!part.empty()) {
      Character next(part);
      if (next.isHostile && !(keepsLines && part.front() == '\n'))
        for (char byte : part.take_front(next.length))
          os << "\\x" << llvm::format_hex_no_prefix(uint8_t(byte), 2);
      else
        os << part.take_front(next.length);
      part = part.drop_front(next.length);
    }
  };
  if (text.size() <= kMostBytes) {
    print(text);
    return result;
  }
  print(text.take_front(kMostBytes - kLastBytes));
  os << " … " << text.size() - kMostBytes << " bytes … ";
  print(text.take_back(kLastBytes));
  return result;
}

DiagnosticPrinter::DiagnosticPrinter(MLIRContext *context)
    : ScopedDiagnosticHandler(context) {
  setHandler([](Diagnostic &diagnostic) {
    static constexpr StringLiteral kSeverities[] = {"note", "warning", "error",
                                                    "remark"};
    auto print = [](Diagnostic &one) {
      // Ops that notes show are of many lines.
      bool isNote = one.getSeverity() == DiagnosticSeverity::Note;
      llvm::errs() << makePrintable(describeLocation(one.getLocation()), false)
                   << ": " << kSeverities[static_cast<int>(one.getSeverity())]
                   << ": " << makePrintable(one.str(), isNote) << "\n";
    };
    print(diagnostic);
    for (Diagnostic &note : diagnostic.getNotes())
      print(note);
    return success();
  });
}
