// Roles by the states, and by what commands leave in buffers.

#include "Roles.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

std::string plan::describeRole(BufferOp buffer, Content content,
                               const SymbolTable &symbols) {
  if (buffer.getRole() == Role::state) {
    auto state = symbols.lookup<nn::StateOp>(buffer.getSourceAttr().getAttr());
    if (state && state.getFrozen())
      return "frozen parameters";
    return state ? nn::stringifyStateRole(state.getRole()).str() + "s"
                 : "states";
  }
  switch (content) {
  case Content::GatheredWeight:
    return "gathered weights";
  case Content::SecondaryCopy:
    return "secondary copies of weights";
  case Content::WholeGradient:
    return "whole gradients";
  case Content::Gradient:
    return "gradients";
  case Content::Own:
    break;
  }
  return stringifyRole(buffer.getRole()).str() +
         (buffer.getRole() == Role::activation ? "s" : "");
}

SmallVector<std::pair<std::string, int64_t>>
plan::addRoles(ProgramOp program, const Liveness &liveness,
               const SymbolTable &symbols,
               llvm::function_ref<bool(Space)> isCounted) {
  llvm::MapVector<StringAttr, int64_t> roles;
  for (auto arena : program.getOps<ArenaOp>()) {
    if (!isCounted(arena.getSpace()))
      continue;
    for (auto [buffer, content] : liveness.getPeak(arena.getSpace()))
      roles[StringAttr::get(program.getContext(),
                            describeRole(buffer, content, symbols))] +=
          Liveness::getBytes(buffer);
  }
  SmallVector<std::pair<std::string, int64_t>> sorted;
  for (auto [role, bytes] : roles)
    sorted.push_back({role.str(), bytes});
  llvm::stable_sort(sorted, [](const auto &one, const auto &other) {
    return one.second > other.second;
  });
  return sorted;
}
