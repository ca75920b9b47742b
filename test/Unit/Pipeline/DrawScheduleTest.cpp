// Pictures and traces of steps: that all is there, once, where its time says.

#include "lib/Pipeline/DrawSchedule.h"
#include "PipelineFixture.h"
#include "llvm/Support/JSON.h"
#include "gtest/gtest.h"

#include <map>
#include <regex>

using namespace accel::pipeline;

namespace {

/// A rectangle of the picture.
struct Box {
  double x, y, width;
  std::string style;
};

struct Drawing {
  std::string svg;
  std::vector<Box> tasks, rows;
};

Drawing draw(const Synthesis &step) {
  Drawing got;
  int64_t chunks = step.schedule.placement.countChunks();
  Edges edges = makeChain(chunks);
  llvm::raw_string_ostream out(got.svg);
  writeScheduleSvg(out,
                   {step.name, step.schedule, edges, step.simulation, "F"});
  std::regex rect("<rect class=\"(box )?([fbiw][0-9]+|idle)\" x=\"([0-9.]+)\" "
                  "y=\"([0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"");
  for (std::sregex_iterator at(got.svg.begin(), got.svg.end(), rect), end;
       at != end; ++at) {
    Box box{std::stod((*at)[3]), std::stod((*at)[4]), std::stod((*at)[5]),
            (*at)[2]};
    if ((*at)[1].matched)
      got.tasks.push_back(box);
    else if (box.width > 100) // not of the legend
      got.rows.push_back(box);
  }
  return got;
}

size_t countOf(llvm::StringRef text, llvm::StringRef word) {
  return text.count(word);
}

} // namespace

TEST(DrawScheduleTest, BoxesStandWhereTheirTimeIs) {
  for (llvm::StringRef name :
       {"gpipe", "1f1b", "interleaved:2", "zb-h2", "zbv", "dualpipev"}) {
    Synthesis step = makeNamed(name, 4, 8);
    Drawing got = draw(step);
    ASSERT_EQ(got.rows.size(), 4u) << name.str();
    size_t next = 0;
    for (int64_t rank = 0; rank < 4; ++rank) {
      const Box &row = got.rows[rank];
      double perSecond = row.width / step.simulation.seconds, end = row.x;
      for (size_t i = 0; i < step.schedule.ranks[rank].size(); ++i) {
        ASSERT_LT(next, got.tasks.size());
        const Box &box = got.tasks[next++];
        const Span &span = step.simulation.tasks[rank][i];
        EXPECT_EQ(box.y, row.y);
        EXPECT_NEAR(box.x, row.x + span.begin * perSecond, 0.006);
        EXPECT_NEAR(box.width, (span.end - span.begin) * perSecond, 0.006);
        EXPECT_GE(box.x, end - 0.011) << "boxes overlap";
        end = box.x + box.width;
        const Task &task = step.schedule.ranks[rank][i];
        EXPECT_EQ(box.style[0], "fbiw"[static_cast<int>(task.kind)]);
        EXPECT_EQ(box.style.substr(1), task.chunk < 4 ? "0" : "1");
      }
      EXPECT_LE(end, row.x + row.width + 0.011);
    }
    EXPECT_EQ(next, got.tasks.size());
    // A number in each box, and a line for each transfer.
    EXPECT_EQ(countOf(got.svg, "class=\"label\""), got.tasks.size());
    EXPECT_EQ(countOf(got.svg, "<line class=\"value\"") +
                  countOf(got.svg, "<line class=\"gradient\""),
              step.simulation.transfers.size() + 2); // of the legend
    EXPECT_EQ(countOf(got.svg, "paler: later chunks"),
              step.schedule.placement.countChunks() > 4 ? 1u : 0u);
  }
}

TEST(DrawScheduleTest, FiguresAreThoseOfTheSimulation) {
  Synthesis step = makeNamed("1f1b", 4, 8);
  step.name = "1f1b <&>";
  std::string svg = draw(step).svg;
  EXPECT_NE(svg.find("<title>1f1b &lt;&amp;&gt;</title>"), std::string::npos);
  EXPECT_NE(svg.find("step 33 F, 27.3 % of it idle; bubble 9 F"),
            std::string::npos);
  for (const char *activations : {">4<", ">3<", ">2<", ">1<"})
    EXPECT_NE(svg.find("text-anchor=\"end\"" + std::string(activations)),
              std::string::npos);
  EXPECT_NE(svg.find("<title>B3[7]: "), std::string::npos);
  // What does not occur has no place in the legend.
  EXPECT_EQ(svg.find("gradient of the weights"), std::string::npos);
}

TEST(DrawScheduleTest, ManyBoxesHaveNoNumbers) {
  Drawing got = draw(makeNamed("zb-h1", 16, 64));
  EXPECT_EQ(got.tasks.size(), 16u * 64 * 3);
  EXPECT_EQ(countOf(got.svg, "class=\"label\""), 0u);
  EXPECT_LT(got.svg.size(), 600000u);
}

TEST(DrawScheduleTest, NoTasksAreAPictureToo) {
  Schedule schedule{Placement::linear(1), 0, {{}}};
  Simulation nothing =
      cantFail(simulate(schedule, {}, Slots(1), nullptr, Costs::makeEven(1)));
  std::string svg;
  llvm::raw_string_ostream out(svg);
  writeScheduleSvg(out, {"none", schedule, {}, nothing});
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(DrawScheduleTest, TransfersEndWhenTheirTaskMayBegin) {
  Costs costs = Costs::makeEven(2);
  costs.secondsPerTransfer = 0.5;
  Synthesis step = makeNamed("gpipe", 2, 1, costs);
  ASSERT_EQ(step.simulation.transfers.size(), 2u);
  const TimedTransfer &value = step.simulation.transfers[0];
  EXPECT_FALSE(value.transfer.gradient);
  EXPECT_DOUBLE_EQ(value.span.begin, 1);
  EXPECT_DOUBLE_EQ(value.span.end, 1.5);
  EXPECT_DOUBLE_EQ(step.simulation.transfers[1].span.begin, 4.5);
}

TEST(DrawScheduleTest, TracesHaveRowsAsRuns) {
  Costs costs = Costs::makeEven(4);
  costs.secondsPerTransfer = 0.4;
  Synthesis step = makeNamed("zb-h1", 4, 8, costs);
  Edges edges = makeChain(4);
  std::string text;
  llvm::raw_string_ostream out(text);
  writeScheduleTrace(out, {step.name, step.schedule, edges, step.simulation});
  llvm::json::Value json = cantFail(llvm::json::parse(text));
  std::map<int64_t, std::string> processes;
  std::map<std::pair<int64_t, int64_t>, std::string> threads;
  std::map<std::pair<int64_t, int64_t>, double> ends;
  std::map<std::string, size_t> counts;
  for (const llvm::json::Value &value :
       *json.getAsObject()->getArray("traceEvents")) {
    const llvm::json::Object &event = *value.getAsObject();
    int64_t rank = *event.getInteger("pid");
    std::pair<int64_t, int64_t> row(rank, *event.getInteger("tid"));
    std::string name = event.getString("name")->str();
    const llvm::json::Object &arguments = *event.getObject("args");
    if (*event.getString("ph") == "M") {
      std::string called = arguments.getString("name")->str();
      if (name == "process_name")
        processes[rank] = called;
      else
        threads[row] = called;
      continue;
    }
    EXPECT_EQ(*event.getString("ph"), "X");
    double begin = *event.getNumber("ts"),
           end = begin + *event.getNumber("dur");
    EXPECT_GE(begin, ends[row] - 1e-3) << "spans overlap in " << threads[row];
    ends[row] = end;
    EXPECT_LE(end, step.simulation.seconds * 1e6 + 1e-3);
    EXPECT_GE(*arguments.getInteger("micro_batch"), 0);
    ++counts[name];
  }
  for (int64_t rank = 0; rank < 4; ++rank) {
    std::string number = std::to_string(rank);
    EXPECT_EQ(processes[rank], "rank " + number + " · pp " + number);
    EXPECT_EQ((threads[{rank, 0}]), "compute");
    EXPECT_EQ((threads[{rank, 1}]), "comm");
  }
  // What is sent and received at once needs a second row.
  EXPECT_EQ((threads[{1, 2}]), "comm 2");
  EXPECT_EQ(counts["forward"], 32u);
  EXPECT_EQ(counts["backward_input"], 32u);
  EXPECT_EQ(counts["backward_weight"], 32u);
  EXPECT_EQ(counts["send"], step.simulation.transfers.size());
  EXPECT_EQ(counts["recv"], step.simulation.transfers.size());
}
