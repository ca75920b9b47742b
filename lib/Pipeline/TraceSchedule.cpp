// A simulated step as a trace.

#include "DrawSchedule.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace accel::pipeline;

namespace {

/// A transfer as one of its ranks sees it.
struct Message {
  const TimedTransfer *timed;
  bool isSent;
};

class TraceWriter {
public:
  TraceWriter(llvm::raw_ostream &out, const DrawnStep &step)
      : json(out), step(step) {}

  void write() {
    json.objectBegin();
    json.attribute("displayTimeUnit", "ms");
    json.attributeArray("traceEvents", [&] {
      for (int64_t rank = 0; rank < step.schedule.placement.ranks; ++rank)
        writeRank(rank);
    });
    json.objectEnd();
  }

private:
  void writeRank(int64_t rank) {
    // As acc-run calls the ranks of the mesh pp=….
    std::string number = std::to_string(rank);
    name("process_name", rank, 0, "rank " + number + " · pp " + number);
    name("thread_name", rank, 0, "compute");
    static constexpr llvm::StringLiteral names[] = {
        "forward", "backward", "backward_input", "backward_weight"};
    for (size_t i = 0; i < step.schedule.ranks[rank].size(); ++i) {
      const Task &task = step.schedule.ranks[rank][i];
      span(names[static_cast<int>(task.kind)], "body", rank, 0,
           step.simulation.tasks[rank][i], [&] {
             json.attribute("micro_batch", task.microBatch);
             json.attribute("chunk", task.chunk);
           });
    }
    std::vector<std::vector<Message>> lanes = layOut(rank);
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      std::string called = "comm";
      if (lane > 0)
        called += " " + std::to_string(lane + 1);
      name("thread_name", rank, lane + 1, called);
      for (const Message &message : lanes[lane])
        span(message.isSent ? "send" : "recv", "communication", rank, lane + 1,
             message.timed->span, [&] {
               json.attribute("micro_batch",
                              message.timed->transfer.microBatch);
               json.attribute("transfer",
                              toString(message.timed->transfer, step.edges));
             });
    }
  }

  /// The rank's messages by their beginning, in as few rows as they need to
  /// follow each other in each.
  std::vector<std::vector<Message>> layOut(int64_t rank) const {
    const Placement &placement = step.schedule.placement;
    std::vector<Message> all;
    for (const TimedTransfer &timed : step.simulation.transfers) {
      if (placement.rankOfChunk[getSender(timed.transfer, step.edges)] == rank)
        all.push_back({&timed, true});
      if (placement.rankOfChunk[getReceiver(timed.transfer, step.edges)] ==
          rank)
        all.push_back({&timed, false});
    }
    llvm::stable_sort(all, [](const Message &one, const Message &other) {
      return one.timed->span.begin < other.timed->span.begin;
    });
    std::vector<std::vector<Message>> lanes(1);
    for (const Message &message : all) {
      auto isFree = [&](const std::vector<Message> &lane) {
        return lane.empty() ||
               lane.back().timed->span.end <= message.timed->span.begin;
      };
      auto lane = llvm::find_if(lanes, isFree);
      if (lane == lanes.end())
        lane = lanes.insert(lane, std::vector<Message>());
      lane->push_back(message);
    }
    return lanes;
  }

  void name(llvm::StringRef what, int64_t rank, size_t row,
            llvm::StringRef called) {
    json.object([&] {
      json.attribute("ph", "M");
      json.attribute("name", what);
      place(rank, row);
      json.attributeObject("args", [&] { json.attribute("name", called); });
    });
  }

  /// Times are rounded to nanoseconds at both ends, so that what follows each
  /// other does so in the file.
  template <class F>
  void span(llvm::StringRef called, llvm::StringRef category, int64_t rank,
            size_t row, const Span &span, F &&arguments) {
    auto micros = [](double seconds) {
      return std::round(seconds * 1e9) / 1e3;
    };
    json.object([&] {
      json.attribute("ph", "X");
      json.attribute("name", called);
      json.attribute("cat", category);
      json.attribute("ts", micros(span.begin));
      json.attribute(
          "dur",
          (std::round(span.end * 1e9) - std::round(span.begin * 1e9)) / 1e3);
      place(rank, row);
      json.attributeObject("args", arguments);
    });
  }

  void place(int64_t rank, size_t row) {
    json.attribute("pid", rank);
    json.attribute("tid", static_cast<int64_t>(row));
  }

  llvm::json::OStream json;
  const DrawnStep &step;
};

} // namespace

void accel::pipeline::writeScheduleTrace(llvm::raw_ostream &out,
                                         const DrawnStep &step) {
  TraceWriter(out, step).write();
}
