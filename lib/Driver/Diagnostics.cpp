// Locations in words, and the handler that prints diagnostics with them.

#include "Diagnostics.h"

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

static void collect(Location location, Origin &origin) {
  TypeSwitch<LocationAttr>(location)
      .Case([&](NameLoc name) {
        if (name.getName() == kGradient)
          origin.gradient = true;
        else if (origin.node.empty())
          origin.node = name.getName();
        else
          ++origin.others;
        if (!isa<UnknownLoc>(name.getChildLoc()))
          collect(name.getChildLoc(), origin);
      })
      .Case([&](FusedLoc fused) {
        if (auto module = dyn_cast_or_null<StringAttr>(fused.getMetadata()))
          if (origin.module.empty())
            origin.module = module;
        for (Location child : fused.getLocations())
          collect(child, origin);
      })
      .Case([&](CallSiteLoc call) {
        // The user's own line comes first.
        auto library = dyn_cast<FileLineColLoc>(call.getCallee());
        if (library && origin.file.empty()) {
          origin.library = library.getFilename();
          origin.libraryLine = library.getLine();
        }
        if (!library)
          collect(call.getCallee(), origin);
        collect(call.getCaller(), origin);
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
  collect(location, origin);
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

DiagnosticPrinter::DiagnosticPrinter(MLIRContext *context)
    : ScopedDiagnosticHandler(context) {
  setHandler([](Diagnostic &diagnostic) {
    static constexpr StringLiteral kSeverities[] = {"note", "warning", "error",
                                                    "remark"};
    auto print = [](Diagnostic &one) {
      llvm::errs() << describeLocation(one.getLocation()) << ": "
                   << kSeverities[static_cast<int>(one.getSeverity())] << ": "
                   << one.str() << "\n";
    };
    print(diagnostic);
    for (Diagnostic &note : diagnostic.getNotes())
      print(note);
    return success();
  });
}
