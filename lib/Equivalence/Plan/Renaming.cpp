// Renames what a term is made of before the term itself.

#include "Renaming.h"

#include "dialects/Dist/Dist.h"

using namespace mlir;
using namespace accel::equivalence;

MicroBatch accel::equivalence::getAnyMicroBatch(MLIRContext *context) {
  return {StringAttr::get(context, "any micro-batch"), 0};
}

/// The terms that a term's value, its parts or its choices are made of.
SmallVector<TermId> Renaming::listOperands(TermId id) const {
  SmallVector<TermId> operands;
  const Term &term = terms.get(id);
  for (const Term::Part &part : term.parts)
    operands.push_back(part.term);
  operands.append(term.choices.begin(), term.choices.end());
  if (!term.isOfValue() || values.contains(term.value))
    return operands;
  ValueKey key = terms.getKey(term.value);
  for (unsigned place : key.operands)
    operands.push_back(key.words[place]);
  return operands;
}

/// Deep programs make deep terms: no call within a call.
TermId Renaming::rename(TermId id) {
  SmallVector<TermId> open{id};
  while (!open.empty()) {
    TermId next = open.back();
    size_t size = open.size();
    if (!renamed.contains(next))
      for (TermId operand : listOperands(next))
        if (!renamed.contains(operand))
          open.push_back(operand);
    if (open.size() > size)
      continue;
    open.pop_back();
    if (!renamed.contains(next))
      renamed.insert({next, renameKnown(next)});
  }
  return renamed.lookup(id);
}

TermId Renaming::renameKnown(TermId id) {
  const Term &term = terms.get(id);
  if (!term.parts.empty()) {
    SmallVector<Term::Part> parts;
    for (const Term::Part &part : term.parts)
      parts.push_back({part.width, renamed.lookup(part.term)});
    return terms.join(term.rows, parts);
  }
  if (!term.choices.empty()) {
    SmallVector<TermId> choices;
    for (TermId choice : term.choices)
      choices.push_back(renamed.lookup(choice));
    return terms.choose(term.axis, choices);
  }
  auto [value, isNew] = values.try_emplace(term.value);
  if (isNew)
    value->second = renameValue(term.value);
  IndexMap map = rename(term.map);
  return value->second == term.value && map == term.map
             ? id
             : terms.strided(value->second, std::move(map));
}

ValueId Renaming::renameValue(ValueId id) {
  ValueKey key = terms.getKey(id);
  for (unsigned place : key.operands)
    key.words[place] = renamed.lookup(key.words[place]);
  if (key.isPair) {
    ArrayRef<unsigned> last = ArrayRef(key.operands).take_back(2);
    if (key.words[last[0]] > key.words[last[1]])
      std::swap(key.words[last[0]], key.words[last[1]]);
  }
  for (unsigned place : key.microBatches) {
    if (key.words[place] != uint64_t(from.turn.getAsOpaquePointer()))
      continue;
    key.words[place] = uint64_t(to.turn.getAsOpaquePointer());
    key.words[place + 1] += to.number - from.number;
  }
  Computation value = terms.at(id);
  switch (value.kind) {
  case ValueKind::Cast:
  case ValueKind::Materialized:
  case ValueKind::Packed:
    value.operand = renamed.lookup(value.operand);
    break;
  case ValueKind::Undefined:
  case ValueKind::Given:
  case ValueKind::Computed:
  case ValueKind::Product:
    break;
  }
  return terms.getValue(key, value);
}

IndexMap Renaming::rename(const IndexMap &map) const {
  IndexMap result;
  result.offset = map.offset;
  result.steps = map.steps;
  for (Coordinate coordinate : map.coordinates) {
    auto getAxis = [&](MicroBatch of) {
      return of.turn ? of.turn
                     : StringAttr::get(coordinate.axis.getContext(),
                                       dist::MeshOp::kMicroBatchAxis);
    };
    if (coordinate.microBatch && coordinate.axis == getAxis(from)) {
      coordinate.axis = getAxis(to);
      *coordinate.microBatch += to.number - from.number;
    }
    result.add(coordinate);
  }
  return result;
}
