// Fills the struct of a command (accel-rt/CommandFormat.h) from the attributes
// of its op: `describe` names each field, and the attribute of that name is
// read as what the field's type says.

#ifndef ACCEL_LIB_EMIT_ATTRIBUTEREADER_H
#define ACCEL_LIB_EMIT_ATTRIBUTEREADER_H

#include "ConvertCommands.h"

namespace accel::emit {

class AttributeReader {
public:
  AttributeReader(mlir::Operation *op, ProgramNames &names)
      : op(op), names(names) {}

  /// Reads the command whose kind is the op's name. Emits an error if there is
  /// none, and for every attribute that the format lacks.
  mlir::LogicalResult read(rt::Command &command);
  /// The same of one kind. Emits errors too for fields that the op lacks.
  template <class T> mlir::LogicalResult readKind(T &command) {
    describe(*this, command);
    return finish();
  }

  // What `describe` calls.
  template <class T> void field(llvm::StringRef name, T &value) {
    if (mlir::Attribute attribute = take(name))
      readAs(attribute, value);
  }
  template <class T> void view(llvm::StringRef name, T &views, rt::Access) {
    field(name, views);
  }
  /// Commands within the command are ops in its region.
  template <class T, const char *const * = &T::kKind>
  void field(llvm::StringRef, std::vector<T> &commands) {
    for (mlir::Operation &inner : op->getRegion(0).front())
      if (inner.getName().stripDialect() == T::kKind)
        failed |= mlir::failed(
            AttributeReader(&inner, names).readKind(commands.emplace_back()));
  }
  void code(llvm::StringRef name, std::string &symbol);
  void origins(llvm::StringRef name, std::vector<std::string> &inputs,
               llvm::ArrayRef<rt::View> views);

private:
  template <class... Ts>
  mlir::LogicalResult choose(std::variant<Ts...> &command);
  mlir::LogicalResult finish();

  /// The attribute of that name, null if it is not there. An error if the op
  /// has none such.
  mlir::Attribute take(llvm::StringRef name);
  mlir::InFlightDiagnostic refuse() {
    failed = true;
    return op->emitOpError();
  }
  /// An attribute of a kind that the field cannot hold.
  void refuse(mlir::Attribute attribute, const char *expected);

  void readAs(mlir::Attribute attribute, rt::View &view);
  void readAs(mlir::Attribute attribute, rt::Part &part);
  void readAs(mlir::Attribute attribute, rt::Form &form);
  void readAs(mlir::Attribute attribute, rt::DType &dtype);
  /// Texts, and cases of enums by their names.
  void readAs(mlir::Attribute attribute, std::string &text);
  /// Integers, and bodies by their numbers.
  void readAs(mlir::Attribute attribute, int64_t &number);
  void readAs(mlir::Attribute attribute, double &number);
  void readAs(mlir::Attribute attribute, bool &flag);
  /// Integers; of a number its bytes, in memory order.
  void readAs(mlir::Attribute attribute, std::vector<int64_t> &numbers);
  template <class T>
  void readAs(mlir::Attribute attribute, std::vector<T> &list) {
    auto array = llvm::dyn_cast<mlir::ArrayAttr>(attribute);
    if (!array)
      return refuse(attribute, "a list");
    for (mlir::Attribute element : array)
      readAs(element, list.emplace_back());
  }
  template <class T>
  void readAs(mlir::Attribute attribute, std::optional<T> &value) {
    readAs(attribute, value.emplace());
  }

  mlir::Operation *op;
  ProgramNames &names;
  llvm::SmallVector<llvm::StringRef> taken;
  bool failed = false;
};

} // namespace accel::emit

#endif // ACCEL_LIB_EMIT_ATTRIBUTEREADER_H
