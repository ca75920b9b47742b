// A thread between the editor and the server: reads messages, changes those
// with a text that nests too deep, and hands them on through a pipe.

#include "CheckNesting.h"

#include "lib/Driver/OpenText.h"
#include "mlir/IR/Dialect.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LSP/Transport.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <cstdio>
#include <thread>
#include <unistd.h>

using namespace mlir;
namespace json = llvm::json;

namespace {
/// `text.refused = "why"` on an op is an error at it that says why.
class TextDialect : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TextDialect)
  explicit TextDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<TextDialect>()) {}
  static constexpr StringLiteral getDialectNamespace() { return "text"; }
  LogicalResult verifyOperationAttribute(Operation *op,
                                         NamedAttribute attribute) override {
    auto why = dyn_cast<StringAttr>(attribute.getValue());
    return op->emitError() << (why ? why.getValue() : "expected a string");
  }
};
} // namespace

static void checkText(json::Object &holder) {
  std::optional<llvm::StringRef> text = holder.getString("text");
  if (!text)
    return;
  auto found = accel::driver::findTooDeep(*text);
  if (!found)
    return;
  holder["text"] =
      std::string(found->line - 1, '\n') + std::string(found->column - 1, ' ') +
      "module attributes {text.refused = \"" + found->message + "\"} {}\n";
}

/// The message, with an error for what nests too deep.
static std::string check(std::string message) {
  llvm::Expected<json::Value> value = json::parse(message);
  if (!value) { // the server says what is wrong
    llvm::consumeError(value.takeError());
    return message;
  }
  json::Object *object = value->getAsObject();
  json::Object *params = object ? object->getObject("params") : nullptr;
  if (!params)
    return message;
  if (json::Object *document = params->getObject("textDocument"))
    checkText(*document);
  if (json::Array *changes = params->getArray("contentChanges"))
    for (json::Value &change : *changes)
      if (json::Object *each = change.getAsObject())
        checkText(*each);
  return llvm::formatv("{0}", *value).str();
}

void checkNestingOfInput(DialectRegistry &registry, bool isDelimited) {
  registry.insert<TextDialect>();
  int ends[2];
  int input = dup(STDIN_FILENO);
  if (input < 0 || pipe(ends) != 0) {
    llvm::errs() << "acc-lsp-server: error: no file descriptor is left\n";
    exit(EXIT_FAILURE);
  }
  dup2(ends[0], STDIN_FILENO);
  close(ends[0]);
  signal(SIGPIPE, SIG_IGN); // a server that has ended reads no more
  std::thread([=, from = fdopen(input, "rb"), to = fdopen(ends[1], "wb")] {
    auto style = isDelimited ? llvm::lsp::JSONStreamStyle::Delimited
                             : llvm::lsp::JSONStreamStyle::Standard;
    llvm::lsp::JSONTransportInputOverFile messages(from, style);
    while (!messages.hasError() && !messages.isEndOfInput()) {
      std::string message;
      if (failed(messages.readMessage(message)))
        continue;
      message = check(std::move(message));
      if (isDelimited)
        message += "\n// -----\n";
      else
        message = llvm::formatv("Content-Length: {0}\r\n\r\n{1}",
                                message.size(), message);
      if (fwrite(message.data(), 1, message.size(), to) != message.size() ||
          fflush(to) != 0)
        break;
    }
    fclose(to);
  }).detach();
}
