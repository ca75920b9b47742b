// The planner, exhaustively: every ordered pair of shardings of tensors of up
// to three dimensions on small meshes, each plan carried out on all virtual
// devices. The simulation shares no code with the planner or with the
// evaluator: it moves numbers between arrays.

#include "lib/Parallel/Split/ReshardPlanner.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;
using cost::Exchange;

namespace {
/// Where a tensor is: the axes of each dimension, then those it is partial
/// over.
using Lists = std::vector<std::vector<int>>;
using Shape = std::vector<int64_t>;

/// One rank's piece, row-major.
struct Piece {
  Shape shape;
  std::vector<double> values;

  explicit Piece(Shape of) : shape(std::move(of)) {
    int64_t elements = 1;
    for (int64_t size : shape)
      elements *= size;
    values.resize(elements);
  }
  double &at(const Shape &index) {
    int64_t position = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      position = position * shape[dim] + index[dim];
    return values[position];
  }
  /// Calls `visit` with every index.
  template <class F> static void forEach(const Shape &shape, F &&visit) {
    Shape index(shape.size(), 0);
    while (true) {
      visit(index);
      size_t dim = shape.size();
      while (dim > 0 && ++index[dim - 1] == shape[dim - 1])
        index[--dim] = 0;
      if (dim == 0)
        return;
    }
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
    size_t rank = shape.size();
    std::vector<Lists> all = {Lists(rank + 1)};
    for (int axis = 0; axis < static_cast<int>(sizes.size()); ++axis) {
      std::vector<Lists> more = all;
      for (const Lists &lists : all)
        for (size_t at = 0; at < rank + withPartial; ++at)
          for (size_t place = 0; place <= (at == rank ? 0 : lists[at].size());
               ++place) {
            Lists next = lists;
            next[at].insert(next[at].begin() + place, axis);
            more.push_back(next);
          }
      all = std::move(more);
    }
    return all;
  }

  dist::AxesAttr axesOf(ArrayRef<int> list) {
    SmallVector<StringAttr> names;
    for (int axis : list)
      names.push_back(nameOf(axis));
    return dist::AxesAttr::get(&context, names, false);
  }

  dist::ShardingAttr shardingOf(const Lists &lists) {
    SmallVector<dist::AxesAttr> dims;
    for (const std::vector<int> &list : ArrayRef(lists).drop_back())
      dims.push_back(axesOf(list));
    return dist::ShardingAttr::get(&context,
                                   FlatSymbolRefAttr::get(&context, "m"), dims,
                                   axesOf(lists.back()), dist::Reduction::sum);
  }

  /// What a rank holds: its block of the tensor, or a term of it. Terms differ
  /// between ranks and add up to the tensor, whose elements are their
  /// positions.
  Piece pieceOf(int64_t rank, const Lists &lists) {
    Shape local = shape;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      local[dim] /= groupSize(lists[dim]);
    Piece piece(local);
    int64_t term = indexIn(rank, lists.back()), terms = groupSize(lists.back());
    Piece::forEach(local, [&](const Shape &index) {
      double value = 0;
      for (size_t dim = 0; dim < shape.size(); ++dim)
        value = value * shape[dim] + indexIn(rank, lists[dim]) * local[dim] +
                index[dim];
      double share = terms == 1 ? value : 1000.0 * (term + 1);
      if (term == terms - 1 && terms > 1)
        share = value - 1000.0 * terms * (terms - 1) / 2;
      piece.at(index) = share;
    });
    return piece;
  }

  static Piece slice(Piece piece, int64_t dim, int64_t part, int64_t parts) {
    Shape local = piece.shape;
    local[dim] /= parts;
    Piece result(local);
    Piece::forEach(local, [&](Shape index) {
      double &target = result.at(index);
      index[dim] += part * local[dim];
      target = piece.at(index);
    });
    return result;
  }
  static Piece join(std::vector<Piece> pieces, int64_t dim) {
    Shape whole = pieces[0].shape;
    int64_t size = whole[dim];
    whole[dim] *= pieces.size();
    Piece result(whole);
    Piece::forEach(whole, [&](Shape index) {
      double &target = result.at(index);
      Piece &piece = pieces[index[dim] / size];
      index[dim] %= size;
      target = piece.at(index);
    });
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
      if (step.kind == Exchange::AllReduce ||
          step.kind == Exchange::ReduceScatter)
        for (int64_t other : llvm::drop_begin(group))
          for (size_t i = 0; i < sum.values.size(); ++i)
            sum.values[i] += before[other].values[i];
      std::vector<Piece> pieces;
      switch (step.kind) {
      case Exchange::AllReduce:
        after.push_back(sum);
        break;
      case Exchange::ReduceScatter:
        after.push_back(slice(sum, step.dim, me, parts));
        break;
      case Exchange::AllSlice:
        after.push_back(slice(before[rank], step.dim, me, parts));
        break;
      case Exchange::AllGather:
        for (int64_t other : group)
          pieces.push_back(before[other]);
        after.push_back(join(pieces, step.dim));
        break;
      case Exchange::AllToAll:
        for (int64_t other : group)
          pieces.push_back(slice(before[other], step.dim, me, parts));
        after.push_back(join(pieces, step.concatDim));
        break;
      case Exchange::Permute:
        after.push_back(before[group[step.sources[me]]]);
        break;
      }
    }
    return after;
  }

  /// What it costs to reduce and gather everything and then slice.
  double naiveSeconds(ReshardPlanner &planner, const Lists &from,
                      const Lists &to) {
    double bytes = 4.0, seconds = 0;
    size_t rank = shape.size();
    for (size_t dim = 0; dim < rank; ++dim)
      bytes *= shape[dim] / groupSize(from[dim]);
    if (!from[rank].empty())
      seconds +=
          planner.getSeconds(Exchange::AllReduce, axesOf(from[rank]), bytes);
    for (size_t dim = 0; dim < rank; ++dim)
      if (!from[dim].empty()) {
        seconds +=
            planner.getSeconds(Exchange::AllGather, axesOf(from[dim]), bytes);
        bytes *= groupSize(from[dim]);
      }
    for (size_t dim = 0; dim < rank; ++dim)
      for (int axis : to[dim]) {
        seconds += planner.getSeconds(Exchange::AllSlice, axesOf(axis), bytes);
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
        const ReshardPlan &plan =
            planner.plan(shape, 4, shardingOf(from), shardingOf(to));
        std::vector<Piece> pieces, expected;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          pieces.push_back(pieceOf(rank, from));
          expected.push_back(pieceOf(rank, to));
        }
        for (const ReshardStep &step : plan.steps)
          pieces = apply(step, std::move(pieces));
        for (int64_t rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(pieces[rank].shape, expected[rank].shape);
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

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  dist::MeshOp mesh;
  std::vector<int64_t> sizes;
  Shape shape = {16, 32};
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
  shape = {32};
  EXPECT_EQ(checkAllPairs(), 10 * 5);
  shape = {16, 32};
  EXPECT_EQ(checkAllPairs(), 18 * 11);
  shape = {8, 16, 24};
  EXPECT_EQ(checkAllPairs(), 28 * 19);
}

TEST_F(ReshardPlannerTest, AllPairsOnTwoByTwoByTwo) {
  makeMesh({2, 2, 2});
  shape = {32};
  EXPECT_EQ(checkAllPairs(), 38 * 16);
  shape = {16, 32};
  EXPECT_EQ(checkAllPairs(), 92 * 49);
}

TEST_F(ReshardPlannerTest, AllPairsOfThreeDimensionsOnTwoByTwoByTwo) {
  makeMesh({2, 2, 2});
  shape = {8, 8, 16};
  EXPECT_EQ(checkAllPairs(), 176 * 106);
}

TEST_F(ReshardPlannerTest, AxesOfSizeOneAreFree) {
  makeMesh({1, 4});
  ReshardPlanner planner(mesh);
  const ReshardPlan &plan = planner.plan(shape, 4, shardingOf({{0}, {}, {}}),
                                         shardingOf({{}, {0}, {}}));
  EXPECT_TRUE(plan.steps.empty());
}

TEST_F(ReshardPlannerTest, PartialSumsThatAreSplitAreScattered) {
  makeMesh({4});
  ReshardPlanner planner(mesh);
  const ReshardPlan &plan = planner.plan(shape, 4, shardingOf({{}, {}, {0}}),
                                         shardingOf({{0}, {}, {}}));
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].kind, Exchange::ReduceScatter);
}

TEST_F(ReshardPlannerTest, AxesOfOneDimensionAreScatteredTogether) {
  makeMesh({2, 2});
  ReshardPlanner planner(mesh);
  const ReshardPlan &plan = planner.plan(shape, 4, shardingOf({{}, {}, {0, 1}}),
                                         shardingOf({{1, 0}, {}, {}}));
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].kind, Exchange::ReduceScatter);
  EXPECT_EQ(plan.steps[0].axes, axesOf(std::vector<int>{1, 0}));
}

TEST_F(ReshardPlannerTest, PartialSumsMayStay) {
  makeMesh({2, 2});
  ReshardPlanner planner(mesh);
  const ReshardPlan &plan = planner.plan(shape, 4, shardingOf({{}, {}, {0, 1}}),
                                         shardingOf({{}, {}, {1}}));
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].kind, Exchange::AllReduce);
  EXPECT_EQ(plan.steps[0].axes.getNames().size(), 1u);
}
