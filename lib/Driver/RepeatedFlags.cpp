// Finds the flags that were given twice by reading the arguments once more: of
// an option llvm::cl keeps the last value alone, and how many there were.

#include "RepeatedFlags.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"

using namespace llvm;

/// Whether each value counts: lists keep all of them.
static bool keepsAll(const cl::Option &option) {
  return option.getNumOccurrencesFlag() == cl::ZeroOrMore ||
         option.getNumOccurrencesFlag() == cl::OneOrMore;
}

/// What stands before a flag.
static StringRef dashesOf(StringRef name) {
  return name.size() == 1 ? "-" : "--";
}

Error accel::driver::checkRepeatedFlags(ArrayRef<char *> arguments) {
  auto &known = cl::getRegisteredOptions();
  // As the user wrote them, with '=' before a value that is another argument.
  MapVector<cl::Option *, SmallVector<std::string>> given;
  for (size_t i = 1; i < arguments.size(); ++i) {
    StringRef argument = arguments[i];
    if (argument == "--")
      break;
    StringRef text = argument;
    if (!text.consume_front("-"))
      continue;
    (void)text.consume_front("-");
    auto [name, value] = text.split('=');
    auto found = known.find(name);
    if (found == known.end())
      continue;
    cl::Option *option = found->second;
    std::string written = (dashesOf(name) + text).str();
    bool attached = text.contains('=');
    if (!attached && option->getValueExpectedFlag() == cl::ValueRequired &&
        i + 1 < arguments.size())
      written += "=" + std::string(arguments[++i]);
    given[option].push_back(std::move(written));
  }
  Error errors = Error::success();
  for (auto &entry : given) {
    StringRef first = entry.second.front();
    auto other =
        find_if(entry.second, [&](StringRef text) { return text != first; });
    if (keepsAll(*entry.first) || other == entry.second.end())
      continue;
    // One of words that are flags themselves has no name.
    StringRef name = entry.first->ArgStr;
    std::string what =
        name.empty() ? "one" : ("'" + dashesOf(name) + name + "' once").str();
    errors =
        joinErrors(std::move(errors),
                   createStringError(inconvertibleErrorCode(),
                                     "expected " + what + ", found '" + first +
                                         "' and '" + *other + "'"));
  }
  return errors;
}
