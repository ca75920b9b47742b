// Adds up a finished plan: what a user asks of it first, and what budgets are
// held against.

#include "Summary.h"

#include "dialects/Interfaces/Cost.h"
#include "lib/Cost/Flops.h"
#include "lib/Plan/Order/CommandOrder.h"
#include "lib/Target/TargetTable.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"
#include <numeric>

using namespace mlir;

namespace accel::plan {
/// Buffers named one by one in a summary.
static constexpr size_t kLargestBuffers = 5;

/// Of attention or its gradient.
template <auto count, class AttentionLike>
static int64_t countAttention(AttentionLike op) {
  ArrayRef<int64_t> query = op.getQuery().getShape();
  return count(cost::countScores(op, query, op.getKey().getShape()[2]),
               query[3], op.getValue().getShape()[3]);
}

int64_t countFlops(CommandOpInterface command, SymbolTableCollection &symbols) {
  return llvm::TypeSwitch<Operation *, int64_t>(command.getOperation())
      .Case([](GemmOp op) {
        return cost::countProductFlops(op.getA().getShape().back(),
                                       op.getC().getNumElements());
      })
      .Case([](GroupedGemmOp op) {
        return cost::countProductFlops(op.getA().getShape().back(),
                                       op.getC().getNumElements());
      })
      .Case([](GroupedGemmGradOp op) {
        return cost::countProductFlops(op.getA().getShape().back(),
                                       op.getB().getNumElements());
      })
      .Case([](ConvOp op) {
        bool isForward = op.getConvolution() == Convolution::forward,
             ofWeight = op.getConvolution() == Convolution::weight_grad;
        ViewAttr weight = ofWeight ? op.getC() : op.getB(),
                 output = isForward  ? op.getC()
                          : ofWeight ? op.getB()
                                     : op.getA();
        return cost::countProductFlops(
            ShapedType::getNumElements(weight.getShape().drop_front(2)),
            output.getNumElements());
      })
      .Case([](AttentionOp op) {
        return countAttention<cost::countAttentionFlops>(op);
      })
      .Case([](AttentionGradOp op) {
        return countAttention<cost::countAttentionGradFlops>(op);
      })
      .Case([&](KernelOp op) {
        int64_t flops = 0;
        if (auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(
                op->getParentOfType<ModuleOp>(), op.getFunctionAttr()))
          kernel.walk([&](CostOpInterface cost) { flops += cost.getFlops(); });
        return flops;
      })
      .Default([](Operation *) { return int64_t(0); });
}

static int64_t getAllBytes(BufferOp buffer) {
  return (buffer.getSlots() - 1) * buffer.getSlotStride() + buffer.getBytes();
}

void CommandCounts::add(const CommandCounts &other, int64_t times) {
  commands += times * other.commands;
  bytesRead += times * other.bytesRead;
  bytesWritten += times * other.bytesWritten;
  flops += times * other.flops;
}

std::map<StringRef, CommandCounts>
countCommands(EntryOp entry, const BufferTable &buffers,
              SymbolTableCollection &symbols) {
  std::map<StringRef, CommandCounts> kinds;
  entry.walk([&](RunOp run) {
    buffers.getBody(run).walk([&](CommandOpInterface command) {
      CommandCounts one{1, 0, 0, countFlops(command, symbols)};
      command.forEachView([&](ViewAttr view, Access access) {
        if (buffers.lookup(view).getRole() == Role::scratch)
          return;
        int64_t bytes = view.getNumElements() * view.getElementBytes();
        if (access == Access::Read || access == Access::Both)
          one.bytesRead += bytes;
        if (access == Access::Write || access == Access::Both)
          one.bytesWritten += bytes;
      });
      kinds[command->getName().stripDialect()].add(one, run.getTrips());
    });
  });
  return kinds;
}

CommandCounts countStored(EntryOp entry, const BufferTable &buffers) {
  CommandCounts all;
  entry.walk([&](RunOp run) {
    buffers.getBody(run).walk([&](CopyOp copy) {
      auto isStored = [&](ViewAttr view) {
        return buffers.lookup(view).getSpace() == Space::nvme;
      };
      bool reads = isStored(copy.getSource()),
           writes = isStored(copy.getTarget());
      int64_t bytes = copy.getTarget().getNumElements() *
                      copy.getTarget().getElementBytes();
      all.add({reads || writes, reads * bytes, writes * bytes, 0},
              run.getTrips());
    });
  });
  return all;
}

namespace {
/// Follows a run list as the executor joins it
/// (runtime/Execute/UnrollLoops.cpp).
class CaptureFinder {
public:
  CaptureFinder(EntryOp entry, const BufferTable &buffers)
      : module(entry->getParentOfType<ModuleOp>()), buffers(buffers) {}

  LogicalResult add(SegmentOp segment, int64_t trips = 1) {
    if (!segment.getCapturable()) {
      for (auto run : segment.getOps<RunOp>())
        between.push_back(tellWhy(run));
      open = {};
      return success();
    }
    FailureOr<int64_t> most = getMost(segment);
    if (failed(most))
      return failure();
    int64_t commands = trips * countCommands(segment);
    if (open && open.getEngine() == segment.getEngine() &&
        inOpen + commands <= *most) {
      inOpen += commands;
      return success();
    }
    if (open && open.getEngine() != segment.getEngine())
      between.push_back("the engines '" +
                        stringifyEngine(open.getEngine()).str() + "' and '" +
                        stringifyEngine(segment.getEngine()).str() + "'");
    else if (open)
      between.push_back(*most ? tellMost(*most) : "the end of a segment");
    if (captures.count++ > 0)
      for (const std::string &split : between)
        if (!llvm::is_contained(captures.splits, split))
          captures.splits.push_back(split);
    between.clear();
    open = segment;
    inOpen = commands;
    return success();
  }

  LogicalResult add(LoopOp loop) {
    auto trips = static_cast<int64_t>(loop.getTrips());
    auto segments = llvm::to_vector(loop.getOps<SegmentOp>());
    int64_t commands = 0, most = INT64_MAX;
    bool isWhole = true;
    for (SegmentOp segment : segments) {
      FailureOr<int64_t> own = getMost(segment);
      if (failed(own))
        return failure();
      most = std::min(most, *own);
      commands += trips * countCommands(segment);
      isWhole &= segment.getCapturable() &&
                 segment.getEngine() == segments.front().getEngine();
    }
    isWhole &= most > 0; // a loop with files is split by these
    std::string why = "a loop of " + std::to_string(trips) + " turns";
    if (isWhole && commands > most)
      why += " of " + std::to_string(commands / trips) + " commands, " +
             tellMost(most) + ": one a turn, for each of " +
             std::to_string(countCopies(loop)) + " copies of its buffers";
    isWhole &= commands <= most;
    if (!isWhole) {
      between.push_back(why);
      open = {};
    }
    for (SegmentOp segment : segments)
      if (failed(add(segment, isWhole ? trips : 1)))
        return failure();
    if (!isWhole) {
      between.push_back(why);
      open = {};
    }
    return success();
  }

  Captures captures;

private:
  static std::string tellMost(int64_t most) {
    return "where a capture holds " + std::to_string(most);
  }
  std::string tellWhy(RunOp run) const {
    BodyOp body = buffers.getBody(run);
    StringRef why = !body.getOps<ReadOp>().empty()    ? "reads files"
                    : !body.getOps<WriteOp>().empty() ? "writes files"
                                                      : "its target cannot "
                                                        "capture";
    return ("@" + body.getSymName() + ", which " + why).str();
  }
  FailureOr<int64_t> getMost(SegmentOp segment) const {
    FailureOr<const Target *> target =
        findTarget(module, stringifyEngine(segment.getEngine()));
    if (failed(target))
      return failure();
    return (*target)->getMostCaptured();
  }
  int64_t countCommands(SegmentOp segment) const {
    int64_t commands = 0;
    for (auto run : segment.getOps<RunOp>())
      commands += llvm::range_size(buffers.getBody(run).getBody().front());
    return commands;
  }
  /// After how many micro-batches a body's addresses come back.
  int64_t countCopies(LoopOp loop) const {
    int64_t copies = 1;
    loop.walk([&](RunOp run) {
      buffers.getBody(run).walk([&](CommandOpInterface command) {
        command.forEachView([&](ViewAttr view, Access) {
          copies = std::lcm(
              copies, static_cast<int64_t>(buffers.lookup(view).getSlots()));
        });
      });
    });
    return copies;
  }

  ModuleOp module;
  const BufferTable &buffers;
  SmallVector<std::string> between; // since the last capture
  SegmentOp open;                   // that the last capture began with
  int64_t inOpen = 0;               // commands of the last capture
};
} // namespace

FailureOr<Captures> findCaptures(EntryOp entry, const BufferTable &buffers) {
  CaptureFinder finder(entry, buffers);
  for (Operation &part : entry.getBody().front()) {
    auto loop = dyn_cast<LoopOp>(part);
    if (failed(loop ? finder.add(loop) : finder.add(cast<SegmentOp>(part))))
      return failure();
  }
  return std::move(finder.captures);
}

/// Bytes of the buffers of a space by role; an alias has none of its own.
static llvm::MapVector<Role, int64_t> addUpRoles(ProgramOp program,
                                                 Space space) {
  llvm::MapVector<Role, int64_t> roles;
  for (auto buffer : program.getOps<BufferOp>())
    if (buffer.getSpace() == space && !buffer.getAliasOf())
      roles[buffer.getRole()] += getAllBytes(buffer);
  return roles;
}

static SmallVector<BufferOp> getLargestBuffers(ProgramOp program) {
  SmallVector<BufferOp> buffers;
  for (auto buffer : program.getOps<BufferOp>())
    if (!buffer.getAliasOf())
      buffers.push_back(buffer);
  llvm::stable_sort(buffers, [](BufferOp lhs, BufferOp rhs) {
    return getAllBytes(lhs) > getAllBytes(rhs);
  });
  buffers.resize(std::min(buffers.size(), kLargestBuffers));
  return buffers;
}

static void printText(ProgramOp program, llvm::raw_ostream &os) {
  os << "program @" << program.getSymName() << ": stage " << program.getStage()
     << ", ranks " << program.getRanks() << "\n";
  for (auto arena : program.getOps<ArenaOp>()) {
    os << "  " << stringifySpace(arena.getSpace()) << ": " << arena.getBytes()
       << " bytes, " << arena.getReserve() << " reserved\n";
    for (auto [role, bytes] : addUpRoles(program, arena.getSpace()))
      os << "    " << stringifyRole(role) << ": " << bytes << " bytes\n";
  }
  os << "  largest buffers:\n";
  for (BufferOp buffer : getLargestBuffers(program))
    os << "    @" << buffer.getSymName() << ": " << getAllBytes(buffer)
       << " bytes, " << stringifyRole(buffer.getRole()) << "\n";
  BufferTable buffers(program);
  SymbolTableCollection symbols;
  for (EntryOp entry : getEntriesInOrder(program)) {
    os << "  entry @" << entry.getKind() << ":\n";
    for (auto &[kind, counts] : countCommands(entry, buffers, symbols))
      os << "    " << kind << ": " << counts.commands << ", " << counts.flops
         << " flops\n";
  }
}

static void printJson(ProgramOp program, llvm::raw_ostream &os) {
  BufferTable buffers(program);
  SymbolTableCollection symbols;
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("program", program.getSymName());
    json.attribute("stage", int64_t(program.getStage()));
    json.attribute("ranks", int64_t(program.getRanks()));
    json.attributeArray("arenas", [&] {
      for (auto arena : program.getOps<ArenaOp>())
        json.object([&] {
          json.attribute("space", stringifySpace(arena.getSpace()));
          json.attribute("bytes", int64_t(arena.getBytes()));
          json.attribute("reserve", int64_t(arena.getReserve()));
          json.attributeObject("roles", [&] {
            for (auto [role, bytes] : addUpRoles(program, arena.getSpace()))
              json.attribute(stringifyRole(role), bytes);
          });
        });
    });
    json.attributeArray("largest", [&] {
      for (BufferOp buffer : getLargestBuffers(program))
        json.object([&] {
          json.attribute("buffer", buffer.getSymName());
          json.attribute("bytes", getAllBytes(buffer));
          json.attribute("role", stringifyRole(buffer.getRole()));
        });
    });
    json.attributeObject("entries", [&] {
      for (EntryOp entry : getEntriesInOrder(program))
        json.attributeObject(entry.getKind(), [&] {
          for (const auto &kind : countCommands(entry, buffers, symbols))
            json.attributeObject(kind.first, [&] {
              json.attribute("count", kind.second.commands);
              json.attribute("flops", kind.second.flops);
            });
        });
    });
  });
  os << "\n";
}

void printPlanSummary(ModuleOp module, llvm::raw_ostream &os, bool json) {
  for (auto program : module.getOps<ProgramOp>()) {
    if (json)
      printJson(program, os);
    else
      printText(program, os);
  }
}
} // namespace accel::plan
