// `--report=memory`.

#include "Liveness.h"
#include "Table.h"
#include "accel/Report/Reports.h"
#include "dialects/NN/NN.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;
using namespace accel::report;

/// Tensors named one by one.
static constexpr size_t kLargest = 8;
static constexpr StringLiteral kGaps = "alignment and gaps";

/// What a buffer is for, in the words of who trains a model.
static std::string describeRole(BufferOp buffer, const Liveness &liveness) {
  if (buffer.getRole() == Role::state) {
    auto state = buffer->getParentOfType<ModuleOp>().lookupSymbol<nn::StateOp>(
        buffer.getSourceAttr());
    if (state && state.getFrozen())
      return "frozen parameters";
    return state ? nn::stringifyStateRole(state.getRole()).str() + "s"
                 : "states";
  }
  if (liveness.getUnit(buffer))
    return "gathered weights";
  return stringifyRole(buffer.getRole()).str() +
         (buffer.getRole() == Role::activation ? "s" : "");
}

namespace {
/// An arena at the moment when most of it is alive.
struct Peak {
  ArenaOp arena;
  llvm::MapVector<StringAttr, int64_t> roles; ///< adds up to the arena
  SmallVector<BufferOp> largest;
};

struct StateBytes {
  int64_t bytes = 0, padding = 0, tensors = 0;
};
} // namespace

static Peak measure(ArenaOp arena, const Liveness &liveness) {
  Peak peak{arena, {}, liveness.getPeak(arena.getSpace())};
  int64_t gaps = arena.getBytes();
  for (BufferOp buffer : peak.largest) {
    auto role =
        StringAttr::get(arena.getContext(), describeRole(buffer, liveness));
    peak.roles[role] += Liveness::getBytes(buffer);
    gaps -= Liveness::getBytes(buffer);
  }
  if (gaps != 0)
    peak.roles[StringAttr::get(arena.getContext(), kGaps)] = gaps;
  llvm::stable_sort(peak.largest, [](BufferOp lhs, BufferOp rhs) {
    return Liveness::getBytes(lhs) > Liveness::getBytes(rhs);
  });
  if (peak.largest.size() > kLargest)
    peak.largest.resize(kLargest);
  return peak;
}

/// Of all ranks together, what pads a state; of one rank, its bytes.
static llvm::MapVector<StringAttr, StateBytes> addStates(ProgramOp program,
                                                         const Liveness &live) {
  llvm::MapVector<StringAttr, StateBytes> roles;
  for (auto buffer : program.getOps<BufferOp>()) {
    if (buffer.getRole() != Role::state)
      continue;
    StateBytes &total = roles[StringAttr::get(program.getContext(),
                                              describeRole(buffer, live))];
    total.bytes += Liveness::getBytes(buffer);
    ++total.tensors;
    auto state = program->getParentOfType<ModuleOp>().lookupSymbol<nn::StateOp>(
        buffer.getSourceAttr());
    if (!state)
      continue;
    auto type = cast<RankedTensorType>(state.getType());
    total.padding +=
        (type.getNumElements() - state.getLogicalType().getNumElements()) *
        llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  return roles;
}

static void printJson(ProgramOp program, ArrayRef<Peak> peaks,
                      const Liveness &live, llvm::raw_ostream &os) {
  llvm::json::OStream out(os, 1);
  int64_t planned = 0;
  for (const Peak &peak : peaks)
    planned += const_cast<Peak &>(peak).arena.getBytes();
  out.object([&] {
    out.attribute("ranks", int64_t(program.getRanks()));
    out.attribute("planned_peak_bytes", planned);
    out.attributeArray("arenas", [&] {
      for (Peak peak : peaks)
        out.object([&] {
          out.attribute("space", stringifySpace(peak.arena.getSpace()));
          out.attribute("bytes", int64_t(peak.arena.getBytes()));
          out.attribute("reserve", int64_t(peak.arena.getReserve()));
          out.attributeObject("roles", [&] {
            for (auto [role, bytes] : peak.roles)
              out.attribute(role.getValue(), bytes);
          });
          out.attributeArray("largest", [&] {
            for (BufferOp buffer : peak.largest)
              out.object([&] {
                out.attribute("buffer", buffer.getSymName());
                out.attribute("bytes", Liveness::getBytes(buffer));
                out.attribute("role", describeRole(buffer, live));
                out.attribute("node", describeNode(buffer));
              });
          });
        });
    });
    out.attributeObject("states", [&] {
      for (auto &[role, total] : addStates(program, live))
        out.attributeObject(role.getValue(), [&, &total = total] {
          out.attribute("bytes", total.bytes);
          out.attribute("padding_bytes_of_all_ranks", total.padding);
          out.attribute("tensors", total.tensors);
        });
    });
    out.attribute("gather_units_in_flight", live.getUnitsInFlight());
  });
  os << "\n";
}

static void printText(ProgramOp program, ArrayRef<Peak> peaks,
                      const Liveness &live, llvm::raw_ostream &os) {
  int64_t planned = 0;
  for (Peak peak : peaks)
    planned += peak.arena.getBytes();
  os << "planned peak of each of " << program.getRanks()
     << " ranks: " << formatBytes(planned) << "\n";
  for (Peak peak : peaks) {
    os << "arena '" << stringifySpace(peak.arena.getSpace())
       << "': " << formatBytes(peak.arena.getBytes());
    if (peak.arena.getReserve())
      os << ", and " << formatBytes(peak.arena.getReserve())
         << " reserved for libraries";
    os << "\n";
    Table roles({"at the peak", "bytes"});
    for (auto [role, bytes] : peak.roles)
      roles.add({role.str(), formatBytes(bytes)});
    roles.print(os);
    Table largest({"largest", "bytes", "role", "node"});
    for (BufferOp buffer : peak.largest)
      largest.add({buffer.getSymName().str(),
                   formatBytes(Liveness::getBytes(buffer)),
                   describeRole(buffer, live), describeNode(buffer)});
    largest.print(os);
  }
  os << "states of a rank:\n";
  Table states({"role", "tensors", "bytes", "padding of all ranks"});
  for (auto &[role, total] : addStates(program, live))
    states.add({role.str(), std::to_string(total.tensors),
                formatBytes(total.bytes), formatBytes(total.padding)});
  states.print(os);
  if (int64_t units = live.getUnitsInFlight())
    os << "units of gathered weights alive at once: " << units << " at most\n";
}

LogicalResult report::printMemory(ModuleOp module, llvm::raw_ostream &os,
                                  bool json) {
  for (auto program : module.getOps<ProgramOp>()) {
    FailureOr<Liveness> liveness = Liveness::compute(program);
    if (failed(liveness))
      return failure();
    SmallVector<Peak> peaks;
    for (auto arena : program.getOps<ArenaOp>())
      peaks.push_back(measure(arena, *liveness));
    if (json)
      printJson(program, peaks, *liveness, os);
    else
      printText(program, peaks, *liveness, os);
  }
  return success();
}
