// Collectives between forked ranks, against a reference that is written as the
// dialect's descriptions say it: every kind, several sizes, groups along one
// and several axes, outputs in shared and private memory, in place.

#include "RunFixture.h"
#include "WalledDevice.h"

#include <filesystem>
#include <functional>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

/// A matrix of one rank.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<float> values;
  float &at(int64_t r, int64_t c) { return values[r * columns + c]; }
};

struct CollectiveCase {
  std::vector<Axis> mesh;
  CollectiveCommand collective;
  int64_t rows, columns;
  bool sharedOutput, inPlace = false;
};

/// On the CPU, and behind a wall, where private outputs are staged.
class Collectives : public RunTest, public ::testing::WithParamInterface<bool> {
protected:
  Collectives() {
    if (GetParam())
      options.ownDevice = &walledDevice();
  }
  /// Ranks of the group of `rank` along the case's axes, in its order.
  static std::vector<int64_t> groupOf(const CollectiveCase &test,
                                      int64_t rank) {
    Coordinates mine = Coordinates::of(test.mesh, rank);
    std::vector<int64_t> group(mine.count(test.collective.axes));
    for (int64_t other = 0; other < ranks(test); ++other) {
      Coordinates theirs = Coordinates::of(test.mesh, other);
      bool member = true;
      for (size_t i = 0; i < test.mesh.size(); ++i)
        member &= theirs.values[i] == mine.values[i] ||
                  std::count(test.collective.axes.begin(),
                             test.collective.axes.end(), test.mesh[i].name);
      if (member)
        group[theirs.index(test.collective.axes)] = other;
    }
    return group;
  }
  static int64_t ranks(const CollectiveCase &test) {
    int64_t count = 1;
    for (const Axis &axis : test.mesh)
      count *= axis.size;
    return count;
  }

  static Matrix reference(const CollectiveCase &test,
                          std::vector<Matrix> &inputs, int64_t rank) {
    const CollectiveCommand &what = test.collective;
    std::vector<int64_t> group = groupOf(test, rank);
    int64_t p = group.size(),
            me = std::find(group.begin(), group.end(), rank) - group.begin();
    int64_t rows = test.rows, columns = test.columns;
    auto chunk = [&](Matrix &from, int64_t dim, int64_t index) {
      int64_t r = dim == 0 ? from.rows / p : from.rows,
              c = dim == 1 ? from.columns / p : from.columns;
      Matrix part{r, c, std::vector<float>(r * c)};
      for (int64_t i = 0; i < r; ++i)
        for (int64_t j = 0; j < c; ++j)
          part.at(i, j) = from.at(i + (dim == 0 ? index * r : 0),
                                  j + (dim == 1 ? index * c : 0));
      return part;
    };
    auto join = [&](std::vector<Matrix> parts, int64_t dim) {
      int64_t r = parts[0].rows, c = parts[0].columns;
      Matrix whole{dim == 0 ? r * p : r, dim == 1 ? c * p : c, {}};
      whole.values.resize(whole.rows * whole.columns);
      for (int64_t q = 0; q < p; ++q)
        for (int64_t i = 0; i < r; ++i)
          for (int64_t j = 0; j < c; ++j)
            whole.at(i + (dim == 0 ? q * r : 0), j + (dim == 1 ? q * c : 0)) =
                parts[q].at(i, j);
      return whole;
    };
    Matrix reduced{rows, columns, inputs[group[0]].values};
    for (int64_t q = 1; q < p; ++q)
      for (size_t i = 0; i < reduced.values.size(); ++i) {
        float a = reduced.values[i], b = inputs[group[q]].values[i];
        reduced.values[i] = what.combine == "max"   ? std::max(a, b)
                            : what.combine == "min" ? std::min(a, b)
                                                    : a + b;
      }
    std::vector<Matrix> parts;
    if (what.kind == "all_reduce")
      return reduced;
    if (what.kind == "reduce_scatter")
      return chunk(reduced, what.dim, me);
    if (what.kind == "broadcast")
      return inputs[group[what.permutation[0]]];
    if (what.kind == "permute")
      return inputs[group[what.permutation[me]]];
    for (int64_t q = 0; q < p; ++q)
      parts.push_back(what.kind == "all_gather"
                          ? inputs[group[q]]
                          : chunk(inputs[group[q]], what.splitDim, me));
    return join(parts, what.dim);
  }

  void check(const CollectiveCase &test) {
    int64_t n = ranks(test);
    std::vector<Matrix> inputs(n), expected(n);
    for (int64_t rank = 0; rank < n; ++rank) {
      Matrix &x = inputs[rank];
      x = {test.rows, test.columns, {}};
      // Sums of these depend on their order: a wrong one shows.
      for (int64_t i = 0; i < test.rows * test.columns; ++i)
        x.values.push_back(std::sin(float(i * 7 + rank * 131)) *
                           (rank % 2 ? 1e4f : 1.f));
    }
    for (int64_t rank = 0; rank < n; ++rank)
      expected[rank] = reference(test, inputs, rank);
    int64_t outRows = expected[0].rows, outColumns = expected[0].columns;

    std::vector<std::string> all;
    for (const Axis &axis : test.mesh)
      all.push_back(axis.name);
    Executable executable;
    executable.target = "cpu";
    executable.mesh = test.mesh;
    Part in{{n, test.rows, test.columns}, {all, {}, {}}},
        out{{n, outRows, outColumns}, {all, {}, {}}};
    executable.inputs = {{"x", DType::F32, in.shape}};
    executable.outputs = {{"y", DType::F32, out.shape}};
    int64_t inBytes = test.rows * test.columns * 4,
            outBytes = outRows * outColumns * 4;
    int64_t outAt = (inBytes + 63) / 64 * 64;
    Program program;
    program.name = "main";
    int64_t sharedBytes = !test.sharedOutput ? inBytes
                          : test.inPlace     ? std::max(inBytes, outBytes)
                                             : outAt + outBytes;
    program.arenas = {{"device", test.sharedOutput ? 0 : outBytes, 64, 0},
                      {"shared", sharedBytes, 64, 0}};
    program.buffers = {
        {"x", "communication", "shared", 0, inBytes, 1, inBytes, "", ""},
        {"y", "output", test.sharedOutput ? "shared" : "device",
         test.sharedOutput ? (test.inPlace ? 0 : outAt) : 0, outBytes, 1,
         outBytes, "", ""}};
    CollectiveCommand collective = test.collective;
    collective.inputs = {contiguousView(0, {test.rows, test.columns})};
    collective.outputs = {contiguousView(1, {outRows, outColumns})};
    Body body{"body", "cpu", {}};
    body.commands = {
        command(ReadCommand{"input", "x", in,
                            contiguousView(0, {1, test.rows, test.columns})},
                "X"),
        command(collective, "Collective"),
        command(WriteCommand{"output", "y", out,
                             contiguousView(1, {1, outRows, outColumns})},
                "Y")};
    program.bodies = {body};
    program.entries = {{"forward", {{1, {{"cpu", false, {{0, 0}}}}}}}};
    executable.programs = {program};
    write(executable, {});
    std::vector<float> x, y;
    for (Matrix &matrix : inputs)
      x.insert(x.end(), matrix.values.begin(), matrix.values.end());
    for (Matrix &matrix : expected)
      y.insert(y.end(), matrix.values.begin(), matrix.values.end());
    writeNpy(folder / "x.npy", in.shape, x);
    options.repeats = 2; // the second call must find clean barriers
    ASSERT_EQ(run(), "");
    EXPECT_EQ(readNpy(folder / "out/y.npy"), y);
    // Another pattern of machines each time: one of them has all but one rank,
    // they take turns, each has one, pairs.
    std::vector<std::string> machines(static_cast<size_t>(n), "a");
    int pattern = patterns++ % 4;
    for (int64_t rank = 0; rank < n; ++rank)
      if (int64_t other = pattern == 0   ? rank == n - 1
                          : pattern == 1 ? rank % 2
                          : pattern == 2 ? rank
                                         : rank / 2)
        machines[static_cast<size_t>(rank)] =
            std::string(1, static_cast<char>('a' + other));
    std::filesystem::remove_all(folder / "out");
    ASSERT_EQ(runOn(machines), "") << "pattern " << pattern;
    EXPECT_EQ(readNpy(folder / "out/y.npy"), y) << "pattern " << pattern;
  }
  static inline int patterns = 0;

  static CollectiveCommand collective(std::string kind,
                                      std::vector<std::string> axes) {
    CollectiveCommand result;
    result.kind = kind;
    result.axes = axes;
    if (kind == "all_reduce" || kind == "reduce_scatter")
      result.combine = "sum";
    return result;
  }

  void checkAllGroups(CollectiveCommand what) {
    if (GetParam()) { // where views lie does not depend on the group
      for (bool shared : {true, false})
        check({{{"a", 2}, {"b", 2}}, with(what, {"b"}), 6, 60, shared});
      return;
    }
    for (int64_t columns : {12, 6012}) {
      for (bool shared : {true, false}) {
        check({{{"dp", 2}}, with(what, {"dp"}), 12, columns, shared});
        check({{{"dp", 4}}, with(what, {"dp"}), 4, columns, shared});
      }
      check({{{"a", 2}, {"b", 2}}, with(what, {"a"}), 6, columns, true});
      check({{{"a", 2}, {"b", 2}}, with(what, {"b"}), 6, columns, false});
      check({{{"a", 2}, {"b", 3}}, with(what, {"b", "a"}), 6, columns, true});
    }
  }
  static CollectiveCommand with(CollectiveCommand what,
                                std::vector<std::string> axes) {
    what.axes = axes;
    return what;
  }
};

TEST_P(Collectives, AllReduce) {
  checkAllGroups(collective("all_reduce", {}));
  for (const char *combine : {"max", "min"}) {
    CollectiveCommand what = collective("all_reduce", {"b", "a"});
    what.combine = combine;
    check({{{"a", 2}, {"b", 3}}, what, 6, 60, true});
  }
}
TEST_P(Collectives, AllReduceInPlace) {
  CollectiveCommand what = collective("all_reduce", {"dp"});
  check({{{"dp", 4}}, what, 5, 1234, true, /*inPlace=*/true});
}
TEST_P(Collectives, AllReduceOfLessThanALineEach) {
  CollectiveCommand what = collective("all_reduce", {"dp"});
  check({{{"dp", 4}}, what, 1, 1, true});
}
TEST_P(Collectives, ReduceScatter) {
  for (int64_t dim : {0, 1}) {
    CollectiveCommand what = collective("reduce_scatter", {});
    what.dim = dim;
    if (dim == 1)
      checkAllGroups(what);
    check({{{"dp", 3}}, with(what, {"dp"}), 9, 30, true});
  }
}
TEST_P(Collectives, AllGather) {
  for (int64_t dim : {0, 1}) {
    CollectiveCommand what = collective("all_gather", {});
    what.dim = dim;
    checkAllGroups(what);
  }
}
TEST_P(Collectives, AllToAll) {
  for (auto [split, dim] : {std::pair(0, 1), {1, 0}, {1, 1}}) {
    CollectiveCommand what = collective("all_to_all", {});
    what.splitDim = split;
    what.dim = dim;
    if (split == 1)
      checkAllGroups(what);
    check({{{"dp", 3}}, with(what, {"dp"}), 9, 30, true});
  }
}
TEST_P(Collectives, BroadcastAndPermute) {
  CollectiveCommand broadcast = collective("broadcast", {"dp"});
  broadcast.permutation = {2};
  check({{{"dp", 3}}, broadcast, 4, 100, false});
  CollectiveCommand permute = collective("permute", {"dp"});
  permute.permutation = {2, 0, 1};
  check({{{"dp", 3}}, permute, 4, 100, false});
}

TEST_P(Collectives, RefusesWhatItDoesNotHave) {
  CollectiveCase test{
      {{"dp", 2}}, collective("all_reduce", {"dp"}), 4, 4, true};
  check(test);
  auto refused = [&](std::function<void(Program &)> change) {
    std::unique_ptr<ExecutableFile> file;
    EXPECT_TRUE(ExecutableFile::open(folder / "m.accx", file).ok());
    Executable executable = file->plan();
    change(executable.programs[0]);
    Status status = writeExecutableFile(executable, {}, folder / "b.accx");
    options.executable = folder / "b.accx";
    return status.ok() ? run() : status.message();
  };
  auto what = [](Program &program) -> CollectiveCommand & {
    return std::get<CollectiveCommand>(program.bodies[0].commands[1].what);
  };
  EXPECT_THAT(refused([](Program &p) {
                p.buffers[0].space = "device";
                p.arenas[0].bytes = p.buffers[0].bytes;
              }),
              HasSubstr("node 'Collective': expected the input of a "
                        "collective in space 'shared', found it in 'device'"));
  EXPECT_THAT(refused([&](Program &p) { what(p).wire = DType::BF16; }),
              HasSubstr("on the wire, found bf16"));
  EXPECT_THAT(refused([&](Program &p) { what(p).combine = "product"; }),
              HasSubstr("expected 'sum', 'max' or 'min', found 'product'"));
  EXPECT_THAT(refused([&](Program &p) { what(p).kind = "gossip"; }),
              HasSubstr("unknown kind 'gossip'"));
  EXPECT_THAT(refused([&](Program &p) { what(p).axes = {"tp"}; }),
              HasSubstr("no mesh axis 'tp'"));
  EXPECT_THAT(refused([&](Program &p) { what(p).kind = "all_gather"; }),
              HasSubstr("shapes fit a all_gather"));
}

/// Rank d sends its matrix to d + 1 in a group with the receive from d - 1: a
/// ring without its last link, in which single blocking sends would be in order
/// by luck only.
TEST_P(Collectives, SendsAndReceivesInAGroup) {
  Executable executable = tinyExecutable(2);
  Program &program = executable.programs[0];
  program.arenas.push_back({"shared", 64, 64, 0});
  for (BufferPlan &buffer : program.buffers)
    if (buffer.name == "x")
      buffer.space = "shared", buffer.offset = 0;
  // Rank 0 has coordinate 0: it sends to +1 and receives from +1; rank 1 the
  // other way round. One text cannot say both, so each direction is one stage.
  executable.mesh = {{"pp", 2}};
  for (auto *tensors : {&executable.inputs, &executable.outputs})
    (*tensors)[0].shape = {8};
  for (Command &one : program.bodies[1].commands) {
    if (auto *read = std::get_if<ReadCommand>(&one.what))
      read->part = {{8}, {{"pp"}}};
    if (auto *write = std::get_if<WriteCommand>(&one.what))
      write->part = {{8}, {{"pp"}}};
  }
  View x = contiguousView(0, {4}), y = contiguousView(2, {4});
  auto half = [](View view, int64_t number) {
    view.shape = {2};
    view.offset += number * 2 * dtypeBytes(view.dtype);
    return view;
  };
  Program second = program;
  second.name = "second";
  second.stage = 1;
  program.bodies[1].commands[1] =
      command(GroupCommand{{{half(x, 0), "pp", 1, 5}, {half(x, 1), "pp", 1, 6}},
                           {{y, "pp", 1, 7}}},
              "Swap");
  second.bodies[1].commands[1] = command(
      // Tags, not the order, say which letter is which.
      GroupCommand{{{x, "pp", -1, 7}},
                   {{half(y, 1), "pp", -1, 6}, {half(y, 0), "pp", -1, 5}}},
      "Swap");
  executable.programs.push_back(second);
  write(executable);
  options.repeats = 50;
  ASSERT_EQ(run(), "");
  EXPECT_EQ(readNpy(folder / "out/y.npy"),
            (std::vector<float>{4.5, 5.5, 6.5, 7.5, .5, 1.5, 2.5, 3.5}));
  std::filesystem::remove_all(folder / "out");
  ASSERT_EQ(runOn({"a", "b"}), "");
  EXPECT_EQ(readNpy(folder / "out/y.npy"),
            (std::vector<float>{4.5, 5.5, 6.5, 7.5, .5, 1.5, 2.5, 3.5}));
}

INSTANTIATE_TEST_SUITE_P(Devices, Collectives, ::testing::Bool(),
                         [](const auto &info) {
                           return info.param ? "walled" : "cpu";
                         });

} // namespace
