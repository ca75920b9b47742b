// The planner, exhaustively: every pair of shardings of a rank-2 tensor on
// small meshes, each plan carried out on all virtual devices. The simulation
// shares no code with the planner or with the evaluator: it moves numbers
// between arrays.

#include "accel/Parallel/ReshardPlanner.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

namespace {
using Lists = std::array<std::vector<int>, 3>; // dim 0, dim 1, partial

/// One rank's piece: a row-major matrix.
struct Piece {
  int64_t rows, columns;
  std::vector<double> values;
  double &at(int64_t row, int64_t column) {
    return values[row * columns + column];
  }
};

class ReshardPlannerTest : public ::testing::Test {
protected:
  ReshardPlannerTest() { context.loadDialect<dist::DistDialect>(); }

  void makeMesh(std::vector<int64_t> axisSizes) {
    sizes = std::move(axisSizes);
    module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
    SmallVector<Attribute> axes;
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      axes.push_back(
          dist::AxisAttr::get(&context, nameOf(axis).getValue(), sizes[axis]));
    mesh = dist::MeshOp::create(builder, module->getLoc(), "m",
                                builder.getArrayAttr(axes), nullptr, nullptr);
    ranks = 1;
    for (int64_t size : sizes)
      ranks *= size;
  }

  StringAttr nameOf(size_t axis) {
    return StringAttr::get(&context, std::string(1, char('a' + axis)));
  }
  int axisOf(StringAttr name) { return name.getValue()[0] - 'a'; }
  int64_t coordinate(int64_t rank, int axis) {
    for (int later = sizes.size() - 1; later > axis; --later)
      rank /= sizes[later];
    return rank % sizes[axis];
  }
  int64_t indexIn(int64_t rank, const std::vector<int> &axes) {
    int64_t index = 0;
    for (int axis : axes)
      index = index * sizes[axis] + coordinate(rank, axis);
    return index;
  }
  int64_t groupSize(const std::vector<int> &axes) {
    int64_t size = 1;
    for (int axis : axes)
      size *= sizes[axis];
    return size;
  }
  /// The ranks that agree with `rank` outside `axes`, by their index in it.
  std::vector<int64_t> groupOf(int64_t rank, const std::vector<int> &axes) {
    std::vector<int64_t> group(groupSize(axes));
    for (int64_t other = 0; other < ranks; ++other) {
      bool same = true;
      for (int axis = 0; axis < static_cast<int>(sizes.size()); ++axis)
        same &= llvm::is_contained(axes, axis) ||
                coordinate(other, axis) == coordinate(rank, axis);
      if (same)
        group[indexIn(other, axes)] = other;
    }
    return group;
  }

  /// All ways to place every axis on nothing, a dimension or the partial sums,
  /// in every order.
  std::vector<Lists> allShardings(bool withPartial) {
    std::vector<Lists> all = {Lists()};
    for (int axis = 0; axis < static_cast<int>(sizes.size()); ++axis) {
      std::vector<Lists> more = all;
      for (const Lists &lists : all)
        for (int at = 0; at < (withPartial ? 3 : 2); ++at)
          for (size_t place = 0; place <= (at == 2 ? 0 : lists[at].size());
               ++place) {
            Lists next = lists;
            next[at].insert(next[at].begin() + place, axis);
            more.push_back(next);
          }
      all = std::move(more);
    }
    return all;
  }

  dist::ShardingAttr shardingOf(const Lists &lists) {
    auto axesOf = [&](const std::vector<int> &list) {
      SmallVector<StringAttr> names;
      for (int axis : list)
        names.push_back(nameOf(axis));
      return dist::AxesAttr::get(&context, names, false);
    };
    return dist::ShardingAttr::get(&context,
                                   FlatSymbolRefAttr::get(&context, "m"),
                                   {axesOf(lists[0]), axesOf(lists[1])},
                                   axesOf(lists[2]), dist::Reduction::sum);
  }

  /// What a rank holds: its block of the matrix, or a term of it. Terms differ
  /// between ranks and add up to the matrix.
  Piece pieceOf(int64_t rank, const Lists &lists) {
    int64_t rows = kRows / groupSize(lists[0]);
    int64_t columns = kColumns / groupSize(lists[1]);
    Piece piece{rows, columns, std::vector<double>(rows * columns)};
    int64_t term = indexIn(rank, lists[2]), terms = groupSize(lists[2]);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        double value = (indexIn(rank, lists[0]) * rows + row) * kColumns +
                       indexIn(rank, lists[1]) * columns + column;
        double share = terms == 1 ? value : 1000.0 * (term + 1);
        if (term == terms - 1 && terms > 1)
          share = value - 1000.0 * terms * (terms - 1) / 2;
        piece.at(row, column) = share;
      }
    return piece;
  }

  static Piece slice(Piece piece, int64_t dim, int64_t index, int64_t parts) {
    int64_t rows = piece.rows / (dim == 0 ? parts : 1);
    int64_t columns = piece.columns / (dim == 1 ? parts : 1);
    Piece result{rows, columns, std::vector<double>(rows * columns)};
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        result.at(row, column) =
            piece.at(row + (dim == 0 ? index * rows : 0),
                     column + (dim == 1 ? index * columns : 0));
    return result;
  }
  static Piece join(std::vector<Piece> pieces, int64_t dim) {
    Piece result = pieces[0];
    result.rows *= dim == 0 ? pieces.size() : 1;
    result.columns *= dim == 1 ? pieces.size() : 1;
    result.values.resize(result.rows * result.columns);
    for (size_t index = 0; index < pieces.size(); ++index)
      for (int64_t row = 0; row < pieces[0].rows; ++row)
        for (int64_t column = 0; column < pieces[0].columns; ++column)
          result.at(row + (dim == 0 ? index * pieces[0].rows : 0),
                    column + (dim == 1 ? index * pieces[0].columns : 0)) =
              pieces[index].at(row, column);
    return result;
  }

  std::vector<Piece> apply(const ReshardStep &step, std::vector<Piece> before) {
    std::vector<int> axes;
    for (StringAttr name : step.axes.getNames())
      axes.push_back(axisOf(name));
    std::vector<Piece> after;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<int64_t> group = groupOf(rank, axes);
      int64_t me = indexIn(rank, axes), parts = group.size();
      Piece sum = before[group[0]];
      if (step.kind == ReshardStep::AllReduce ||
          step.kind == ReshardStep::ReduceScatter)
        for (int64_t other : llvm::drop_begin(group))
          for (size_t i = 0; i < sum.values.size(); ++i)
            sum.values[i] += before[other].values[i];
      std::vector<Piece> pieces;
      switch (step.kind) {
      case ReshardStep::AllReduce:
        after.push_back(sum);
        break;
      case ReshardStep::ReduceScatter:
        after.push_back(slice(sum, step.dim, me, parts));
        break;
      case ReshardStep::AllSlice:
        after.push_back(slice(before[rank], step.dim, me, parts));
        break;
      case ReshardStep::AllGather:
        for (int64_t other : group)
          pieces.push_back(before[other]);
        after.push_back(join(pieces, step.dim));
        break;
      case ReshardStep::AllToAll:
        for (int64_t other : group)
          pieces.push_back(slice(before[other], step.dim, me, parts));
        after.push_back(join(pieces, step.concatDim));
        break;
      case ReshardStep::Permute:
        after.push_back(before[group[step.sources[me]]]);
        break;
      }
    }
    return after;
  }

  /// What it costs to reduce and gather everything and then slice.
  double naiveSeconds(ReshardPlanner &planner, const Lists &from,
                      const Lists &to) {
    auto axesOf = [&](ArrayRef<int> list) {
      SmallVector<StringAttr> names;
      for (int axis : list)
        names.push_back(nameOf(axis));
      return dist::AxesAttr::get(&context, names, false);
    };
    double bytes =
        4.0 * kRows * kColumns / (groupSize(from[0]) * groupSize(from[1]));
    double seconds = 0;
    if (!from[2].empty())
      seconds +=
          planner.getSeconds(ReshardStep::AllReduce, axesOf(from[2]), bytes);
    for (int dim : {0, 1})
      if (!from[dim].empty()) {
        seconds += planner.getSeconds(ReshardStep::AllGather, axesOf(from[dim]),
                                      bytes);
        bytes *= groupSize(from[dim]);
      }
    for (int dim : {0, 1})
      for (int axis : to[dim]) {
        seconds +=
            planner.getSeconds(ReshardStep::AllSlice, axesOf(axis), bytes);
        bytes /= sizes[axis];
      }
    return seconds;
  }

  /// Plans and carries out every pair; returns how many.
  int checkAllPairs() {
    ReshardPlanner planner(mesh);
    int pairs = 0;
    for (const Lists &from : allShardings(/*withPartial=*/true))
      for (const Lists &to : allShardings(/*withPartial=*/false)) {
        ++pairs;
        const ReshardPlan &plan = planner.plan(
            {kRows, kColumns}, 4, shardingOf(from), shardingOf(to));
        std::vector<Piece> pieces, expected;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          pieces.push_back(pieceOf(rank, from));
          expected.push_back(pieceOf(rank, to));
        }
        for (const ReshardStep &step : plan.steps)
          pieces = apply(step, std::move(pieces));
        for (int64_t rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(pieces[rank].rows, expected[rank].rows);
          EXPECT_EQ(pieces[rank].values, expected[rank].values);
        }
        EXPECT_LE(plan.seconds, naiveSeconds(planner, from, to) * (1 + 1e-9));
        if (!plan.steps.empty())
          EXPECT_EQ(plan.steps.back().sharding, shardingOf(to));
        if (::testing::Test::HasFailure()) {
          std::string text;
          llvm::raw_string_ostream(text)
              << shardingOf(from) << " -> " << shardingOf(to);
          ADD_FAILURE() << text;
          return pairs;
        }
      }
    return pairs;
  }

  static constexpr int64_t kRows = 16, kColumns = 32;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  dist::MeshOp mesh;
  std::vector<int64_t> sizes;
  int64_t ranks = 1;
};
} // namespace

TEST_F(ReshardPlannerTest, AllPairsOnALineOfFour) {
  makeMesh({4});
  EXPECT_EQ(checkAllPairs(), 4 * 3);
}

TEST_F(ReshardPlannerTest, AllPairsOnTwoByTwo) {
  makeMesh({2, 2});
  EXPECT_EQ(checkAllPairs(), 18 * 11);
}

TEST_F(ReshardPlannerTest, AllPairsOnTwoByFour) {
  makeMesh({2, 4});
  EXPECT_EQ(checkAllPairs(), 18 * 11);
}

TEST_F(ReshardPlannerTest, AllPairsOnTwoByTwoByTwo) {
  makeMesh({2, 2, 2});
  EXPECT_EQ(checkAllPairs(), 92 * 49);
}

TEST_F(ReshardPlannerTest, AxesOfSizeOneAreFree) {
  makeMesh({1, 4});
  ReshardPlanner planner(mesh);
  const ReshardPlan &plan =
      planner.plan({kRows, kColumns}, 4, shardingOf({{{0}, {}, {}}}),
                   shardingOf({{{}, {0}, {}}}));
  EXPECT_TRUE(plan.steps.empty());
}

TEST_F(ReshardPlannerTest, PartialSumsThatAreSplitAreScattered) {
  makeMesh({4});
  ReshardPlanner planner(mesh);
  const ReshardPlan &plan =
      planner.plan({kRows, kColumns}, 4, shardingOf({{{}, {}, {0}}}),
                   shardingOf({{{0}, {}, {}}}));
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].kind, ReshardStep::ReduceScatter);
}

TEST_F(ReshardPlannerTest, PartialSumsMayStay) {
  makeMesh({2, 2});
  ReshardPlanner planner(mesh);
  const ReshardPlan &plan =
      planner.plan({kRows, kColumns}, 4, shardingOf({{{}, {}, {0, 1}}}),
                   shardingOf({{{}, {}, {1}}}));
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].kind, ReshardStep::AllReduce);
  EXPECT_EQ(plan.steps[0].axes.getNames().size(), 1u);
}
