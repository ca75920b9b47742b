// `--report=parameters`.
#include "ParameterReport.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace accel::onnxio {

static void printJson(const ParameterTable &table, raw_ostream &os,
                      const StringMap<json::Object> &updates) {
  json::OStream out(os, 1);
  auto integers = [&](ArrayRef<int64_t> values) {
    out.array([&] {
      for (int64_t value : values)
        out.value(value);
    });
  };
  out.array([&] {
    for (const Parameter &parameter : table.parameters)
      out.object([&] {
        out.attribute("name", parameter.name);
        out.attributeArray("aliases", [&] {
          for (const std::string &alias : parameter.aliases)
            out.value(alias);
        });
        out.attributeBegin("shape");
        if (parameter.hasShape)
          integers(parameter.shape);
        else
          out.value(nullptr);
        out.attributeEnd();
        out.attributeArray("initializers", [&] {
          if (parameter.kind != ParameterKind::Parameter)
            return;
          for (const ParameterInitializer &held : parameter.initializers)
            out.object([&] {
              out.attribute("initializer", held.initializer);
              out.attributeBegin("permutation");
              integers(held.permutation);
              out.attributeEnd();
            });
        });
        out.attribute("trained", parameter.trained);
        out.attribute("why", parameter.why);
        if (auto update = updates.find(parameter.name); update != updates.end())
          out.attribute("update", json::Object(update->second));
      });
  });
  os << "\n";
}

static std::string describe(const Parameter &parameter) {
  switch (parameter.kind) {
  case ParameterKind::Removed:
    return "(a zero that was removed)";
  case ParameterKind::FoldedAway:
    return "(folded away)";
  case ParameterKind::Unfolded:
  case ParameterKind::Merged:
  case ParameterKind::Parameter:
    break;
  }
  std::string text;
  for (const ParameterInitializer &held : parameter.initializers) {
    text += (text.empty() ? "" : ", ") + held.initializer;
    if (!llvm::is_sorted(held.permutation))
      text += " (" +
              join(map_range(held.permutation,
                             [](int64_t dim) { return std::to_string(dim); }),
                   ",") +
              ")";
  }
  if (parameter.kind == ParameterKind::Unfolded)
    return text + " (computed from it)";
  return parameter.kind == ParameterKind::Merged ? text + " (merged)" : text;
}

static void printText(const ParameterTable &table, raw_ostream &os) {
  size_t nameWidth = 9, shapeWidth = 5, heldWidth = 12;
  std::vector<std::string> shapes, held;
  for (const Parameter &parameter : table.parameters) {
    std::string shape =
        join(map_range(parameter.shape,
                       [](int64_t dim) { return std::to_string(dim); }),
             "x");
    shapes.push_back(!parameter.hasShape       ? "?"
                     : parameter.shape.empty() ? "scalar"
                                               : shape);
    held.push_back(describe(parameter));
    nameWidth = std::max(nameWidth, parameter.name.size());
    shapeWidth = std::max(shapeWidth, shapes.back().size());
    heldWidth = std::max(heldWidth, held.back().size());
  }
  auto row = [&](StringRef name, StringRef shape, StringRef holds,
                 StringRef trained, StringRef why) {
    os << left_justify(name, nameWidth) << "  "
       << left_justify(shape, shapeWidth) << "  "
       << left_justify(holds, heldWidth) << "  " << left_justify(trained, 7)
       << "  " << why << "\n";
  };
  row("parameter", "shape", "initializers", "trained", "why");
  for (auto [i, parameter] : llvm::enumerate(table.parameters)) {
    row(parameter.name, shapes[i], held[i], parameter.trained ? "yes" : "no",
        parameter.why);
    for (const std::string &alias : parameter.aliases)
      os << "  also " << alias << "\n";
  }
  if (!table.constants.empty())
    os << "\nno parameters:\n";
  for (const auto &[name, reason] : table.constants)
    os << "  " << name << ": " << reason << "\n";
  for (bool isPossible : {false, true}) {
    const char *title = isPossible ? "\nmay not be what the user wrote:\n"
                                   : "\nnot what the user wrote:\n";
    for (const Doubt &doubt : table.doubts) {
      if ((doubt.kind == Doubt::Possible) != isPossible)
        continue;
      os << std::exchange(title, "") << "  ";
      if (doubt.node)
        os << "node '" << doubt.node->name() << "': ";
      os << doubt.message << "\n";
    }
  }
  if (!table.remarks.empty())
    os << "\nremarks:\n";
  for (const std::string &remark : table.remarks)
    os << "  " << remark << "\n";
  if (!table.notes.empty())
    os << "\nnotes:\n";
  for (const std::string &note : table.notes)
    os << "  " << note << "\n";
}

void printParameterReport(const ParameterTable &table, raw_ostream &os,
                          bool json) {
  printParameterReport(table, os, json, {});
}

void printParameterReport(const ParameterTable &table, raw_ostream &os,
                          bool json, const StringMap<json::Object> &updates) {
  if (json)
    printJson(table, os, updates);
  else
    printText(table, os);
}

} // namespace accel::onnxio
