// Reading equations of Einsum.

#include "Equation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace llvm;
using namespace accel::import;

/// What "..." is before it is expanded.
static constexpr Label kEllipsis = '.';

std::string accel::import::spellLabel(Label label) {
  return label < 0 ? "..." : std::string(1, static_cast<char>(label));
}

/// The labels of one operand or of the result; none if it is not well-formed.
static std::optional<Labels> readLabels(StringRef text) {
  Labels labels;
  while (!text.empty()) {
    if (text.consume_front("...")) {
      if (is_contained(labels, kEllipsis))
        return std::nullopt;
      labels.push_back(kEllipsis);
      continue;
    }
    if (!isAlpha(text[0]))
      return std::nullopt;
    labels.push_back(text[0]);
    text = text.drop_front();
  }
  return labels;
}

/// Labels with `hidden` dimensions in place of "...".
static Labels expandEllipsis(ArrayRef<Label> labels, int64_t hidden) {
  Labels expanded;
  for (Label label : labels) {
    if (label != kEllipsis)
      expanded.push_back(label);
    else
      for (int64_t left = hidden; left > 0; --left)
        expanded.push_back(-static_cast<Label>(left));
  }
  return expanded;
}

/// Without "->" the result has the dimensions of "...", then in alphabetical
/// order the labels that are written once.
static Labels findResult(ArrayRef<Labels> operands, int64_t hidden) {
  std::map<Label, int> written;
  for (const Labels &labels : operands)
    for (Label label : labels)
      if (label >= 0)
        ++written[label];
  Labels result = expandEllipsis(kEllipsis, hidden);
  for (auto [label, times] : written)
    if (times == 1)
      result.push_back(label);
  return result;
}

std::optional<Equation> accel::import::readEquation(StringRef text,
                                                    ArrayRef<int64_t> ranks) {
  std::string dense = text.str();
  erase(dense, ' ');
  auto [left, right] = StringRef(dense).split("->");
  SmallVector<StringRef> parts;
  left.split(parts, ',');
  if (parts.size() != ranks.size())
    return std::nullopt;
  Equation equation;
  int64_t mostHidden = 0;
  for (auto [part, rank] : zip_equal(parts, ranks)) {
    std::optional<Labels> labels = readLabels(part);
    if (!labels)
      return std::nullopt;
    int64_t letters =
        count_if(*labels, [](Label each) { return each != kEllipsis; });
    bool hides = letters != static_cast<int64_t>(labels->size());
    if (hides ? letters > rank : letters != rank)
      return std::nullopt;
    mostHidden = std::max(mostHidden, rank - letters);
    equation.operands.push_back(expandEllipsis(*labels, rank - letters));
  }
  if (!StringRef(dense).contains("->")) {
    equation.result = findResult(equation.operands, mostHidden);
    return equation;
  }
  std::optional<Labels> result = readLabels(right);
  if (!result)
    return std::nullopt;
  equation.result = expandEllipsis(*result, mostHidden);
  for (auto [place, label] : enumerate(equation.result)) {
    auto hasLabel = [label = label](ArrayRef<Label> labels) {
      return is_contained(labels, label);
    };
    if (hasLabel(ArrayRef(equation.result).take_front(place)) ||
        none_of(equation.operands, hasLabel))
      return std::nullopt;
  }
  return equation;
}
