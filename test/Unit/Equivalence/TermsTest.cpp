// Terms by what they mean: random pieces of random joins, element by element,
// are what picking the elements one by one gives.

#include "lib/Equivalence/Plan/Renaming.h"
#include "mlir/IR/Builders.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace accel::equivalence;

namespace {
using Element = std::pair<ValueId, int64_t>;

class TermsTest : public ::testing::Test {
protected:
  ValueId makeValue(int64_t count) {
    ValueKey key;
    key.add(int64_t(1000)).add(int64_t(made++));
    return terms.getValue(key, {ValueKind::Given, count, f32});
  }

  int64_t apply(const IndexMap &map, int64_t index) {
    int64_t position = map.offset;
    for (const Coordinate &coordinate : map.coordinates)
      position += ranks.at(coordinate.axis) * coordinate.stride;
    for (Step step : llvm::reverse(map.steps)) {
      position += index % step.size * step.stride;
      index /= step.size;
    }
    return position;
  }

  /// The element of a value that stands at an index of a term.
  Element get(TermId id, int64_t index) {
    const Term &term = terms.get(id);
    if (!term.choices.empty())
      return get(term.choices[ranks.at(term.axis)], index);
    if (!term.parts.empty()) {
      int64_t period = term.count / term.rows, row = index / period,
              column = index % period;
      for (Term::Part part : term.parts) {
        if (column < part.width)
          return get(part.term, row * part.width + column);
        column -= part.width;
      }
    }
    int64_t position = apply(term.map, index);
    const Computation &value = terms.at(term.value);
    return value.kind == ValueKind::Materialized
               ? get(value.operand, position)
               : Element(term.value, position);
  }

  int64_t pick(int64_t count) { return random() % count; }

  /// A map into `count` positions.
  IndexMap pickMap(int64_t count) {
    static constexpr int64_t kSizes[] = {1, 2, 3, 4, 6};
    IndexMap map;
    map.offset = pick(count);
    for (int64_t digit = pick(4); digit-- > 0;) {
      Step step{kSizes[pick(5)], pick(8) ? pick(count) : 1};
      map.steps.push_back(step);
      if (map.range().second >= count)
        map.steps.pop_back();
    }
    // A rank's own piece: it begins where the numbers along two axes say.
    for (auto [axis, size] : {std::pair(dp, 2), std::pair(tp, 3)})
      if (pick(3) == 0) {
        IndexMap before = map;
        map.add({axis, size, 1 + pick(count)});
        if (map.range().second >= count)
          map = before;
      }
    return map;
  }

  MLIRContext context;
  StringAttr dp = StringAttr::get(&context, "dp"),
             tp = StringAttr::get(&context, "tp"),
             mb = StringAttr::get(&context, "mb");
  llvm::DenseMap<StringAttr, int64_t> ranks; ///< the rank that is looked at
  Type f32 = Float32Type::get(&context);
  Terms terms;
  std::mt19937 random{11};
  int64_t made = 0;
};
} // namespace

TEST_F(TermsTest, SelectsAndJoinsElementByElement) {
  std::vector<TermId> known;
  for (int64_t count : {24, 36, 48})
    known.push_back(terms.whole(makeValue(count)));
  int joined = 0, ordered = 0, chosen = 0;
  ranks[dp] = ranks[tp] = 1;
  for (int round = 0; round < 4000; ++round) {
    if (round % 3 == 0) { // two or three, with rows in common
      int64_t rows = int64_t(1) << pick(3);
      SmallVector<Term::Part> parts;
      for (int64_t number = 2 + pick(2); number-- > 0;) {
        TermId part = known[pick(known.size())];
        if (terms.get(part).count % rows == 0 && terms.get(part).count < 200)
          parts.push_back({terms.get(part).count / rows, part});
      }
      if (parts.empty())
        continue;
      TermId whole = terms.join(rows, parts);
      int64_t index = 0;
      for (int64_t row = 0; row < rows; ++row)
        for (Term::Part part : parts)
          for (int64_t column = 0; column < part.width; ++column)
            ASSERT_EQ(get(whole, index++),
                      get(part.term, row * part.width + column));
      ASSERT_EQ(terms.get(whole).count, index);
      joined += !terms.get(whole).parts.empty();
      known.push_back(whole);
      continue;
    }
    TermId from = known[pick(known.size())];
    IndexMap map = pickMap(terms.get(from).count), normal = map;
    normal.normalize();
    TermId piece = terms.select(from, normal);
    ASSERT_EQ(terms.get(piece).count, map.count());
    for (ranks[dp] = 0; ranks[dp] < 2; ++ranks[dp])
      for (ranks[tp] = 0; ranks[tp] < 3; ++ranks[tp])
        for (int64_t index = 0; index < map.count(); ++index)
          ASSERT_EQ(get(piece, index), get(from, apply(map, index)));
    ranks[dp] = ranks[tp] = 1;
    const Term &term = terms.get(piece);
    chosen += !term.choices.empty();
    ordered += !term.isOfValue() ||
               terms.at(term.value).kind != ValueKind::Materialized;
    known.push_back(piece);
  }
  EXPECT_GT(joined, 300);
  EXPECT_GT(chosen, 100);
  EXPECT_GT(ordered, 1500); // the others' order no digits say
}

TEST_F(TermsTest, KnowsEqualFunctionsByOneNumber) {
  ValueId value = makeValue(24);
  TermId whole = terms.whole(value);
  // A transpose and back; halves of columns, joined again.
  IndexMap turn = IndexMap::strided(0, {6, 4}, {1, 6}),
           back = IndexMap::strided(0, {4, 6}, {1, 4});
  EXPECT_NE(terms.select(whole, turn), whole);
  EXPECT_EQ(terms.select(terms.select(whole, turn), back), whole);
  TermId left = terms.select(whole, IndexMap::strided(0, {4, 2}, {6, 1})),
         right = terms.select(whole, IndexMap::strided(2, {4, 4}, {6, 1}));
  EXPECT_EQ(terms.join(4, {{2, left}, {4, right}}), whole);
  EXPECT_NE(terms.join(4, {{4, right}, {2, left}}), whole);
  // A rank's piece of what is joined is its piece of one part.
  TermId other = terms.whole(makeValue(24));
  IndexMap own = IndexMap::strided(0, {4, 3}, {12, 1});
  own.add({StringAttr::get(&context, "dp"), 2, 3});
  IndexMap ownPart = IndexMap::strided(0, {4, 3}, {6, 1});
  ownPart.add({StringAttr::get(&context, "dp"), 2, 3});
  EXPECT_EQ(terms.select(terms.join(4, {{6, whole}, {6, other}}), own),
            terms.select(whole, ownPart));
}

TEST_F(TermsTest, LooksAtRanksOneByOneWherePartsLieDifferentlyToEach) {
  // Columns of two parts, three and nine wide, of which ranks have six each:
  // cut out of the transposed tensor, and out of its bytes.
  TermId mask = terms.whole(makeValue(12)), rest = terms.whole(makeValue(36));
  TermId joined = terms.join(1, {{12, mask}, {36, rest}}); // [12, 4]
  IndexMap turn = IndexMap::strided(0, {4, 12}, {1, 4});
  IndexMap own = IndexMap::strided(0, {4, 6}, {12, 1});
  own.add({dp, 2, 6});
  IndexMap bytes = IndexMap::strided(0, {4, 6}, {1, 4});
  bytes.add({dp, 2, 24});
  TermId piece = terms.select(terms.select(joined, turn), own);
  EXPECT_EQ(piece, terms.select(joined, bytes));
  ASSERT_EQ(terms.get(piece).choices.size(), 2u);
  // Every second column: the transposed tensor is in no order of digits then.
  IndexMap stripes = IndexMap::strided(0, {4, 2, 6}, {12, 1, 2});
  IndexMap striped = IndexMap::strided(0, {4, 6}, {12, 1});
  striped.add({dp, 2, 6});
  IndexMap stripe = IndexMap::strided(0, {4, 6}, {1, 8});
  stripe.add({dp, 2, 4});
  TermId cut =
      terms.select(terms.select(terms.select(joined, turn), stripes), striped);
  EXPECT_EQ(cut, terms.select(joined, stripe));
  // Another rank's piece is another.
  IndexMap shifted = IndexMap::strided(24, {4, 6}, {1, 4});
  shifted.add({dp, 2, -24});
  EXPECT_NE(piece, terms.select(joined, shifted));
  // Of parts that lie alike on all ranks each has its own piece.
  TermId heads = terms.join(
      2, {{12, terms.whole(makeValue(24))}, {24, terms.whole(makeValue(48))}});
  IndexMap apart = IndexMap::strided(0, {2, 4, 9, 1}, {36, 1, 4, 1});
  IndexMap ownHeads = IndexMap::strided(0, {2, 2, 9}, {36, 9, 1});
  ownHeads.add({dp, 2, 18});
  IndexMap atOnce = IndexMap::strided(0, {2, 2, 9}, {36, 1, 4});
  atOnce.add({dp, 2, 2});
  TermId head = terms.select(terms.select(heads, apart), ownHeads);
  EXPECT_EQ(head, terms.select(heads, atOnce));
  EXPECT_EQ(terms.get(head).parts.size(), 2u);
  // Halves along one axis and quarters along another, at once or one by one.
  TermId two = terms.join(
      4, {{6, terms.whole(makeValue(24))}, {6, terms.whole(makeValue(24))}});
  IndexMap half = IndexMap::strided(0, {4, 6}, {12, 1}), third,
           both = IndexMap::strided(0, {4, 2}, {12, 1});
  half.add({tp, 2, 6});
  third = IndexMap::strided(0, {4, 2}, {6, 1});
  third.add({dp, 3, 2});
  both.add({tp, 2, 6});
  both.add({dp, 3, 2});
  EXPECT_EQ(terms.select(terms.select(two, half), third),
            terms.select(two, both));
  // What is one piece on each rank is no choice.
  IndexMap right = IndexMap::strided(12, {3, 4}, {4, 1});
  right.add({dp, 2, 12});
  EXPECT_TRUE(terms.get(terms.select(joined, right)).isOfValue());
  // The turns of a loop are too many to be looked at one by one.
  IndexMap turns = IndexMap::strided(0, {4, 6}, {1, 4});
  turns.add({dp, 2, 24, /*microBatch=*/0});
  EXPECT_TRUE(terms.get(terms.select(joined, turns)).isOfValue());
}

TEST_F(TermsTest, CutsWhatStraddlesTwoRanks) {
  // Pairs of rows, each of another value, of which four ranks have three rows
  // each: cut out of all heads' rows, and out of their bytes.
  TermId pairs = terms.join(
      6, {{4, terms.whole(makeValue(24))}, {4, terms.whole(makeValue(24))}});
  IndexMap heads = IndexMap::strided(0, {2, 12, 2}, {2, 4, 1}),
           rows = IndexMap::strided(0, {2, 3, 2}, {24, 2, 1}),
           bytes = IndexMap::strided(0, {2, 3, 2}, {2, 4, 1}),
           others = IndexMap::strided(36, {2, 3, 2}, {2, 4, 1});
  rows.add({dp, 4, 6});
  bytes.add({dp, 4, 12});
  others.add({dp, 4, -12});
  TermId own = terms.select(terms.select(pairs, heads), rows);
  EXPECT_EQ(own, terms.select(pairs, bytes));
  EXPECT_NE(own, terms.select(pairs, others));
  ranks[tp] = 0;
  for (ranks[dp] = 0; ranks[dp] < 4; ++ranks[dp])
    for (int64_t index = 0; index < 12; ++index)
      EXPECT_EQ(get(own, index), get(pairs, apply(bytes, index)));
  // Rows of one rank, from the second of a pair to the first of another, in
  // whichever order they were cut.
  IndexMap middle = IndexMap::strided(4, {2, 6, 2}, {2, 4, 1}),
           left = IndexMap::strided(2, {2, 6, 2}, {24, 2, 1});
  TermId six = terms.select(pairs, middle);
  EXPECT_EQ(six, terms.select(terms.select(pairs, heads), left));
  for (int64_t index = 0; index < 24; ++index)
    EXPECT_EQ(get(six, index), get(pairs, apply(middle, index)));
  EXPECT_EQ(terms.get(six).parts.size(), 3u);
  // No number of rows that pairs are made of.
  EXPECT_TRUE(
      terms.get(terms.select(pairs, IndexMap::strided(0, {6, 2}, {7, 3})))
          .isOfValue());
}

TEST_F(TermsTest, NamesPiecesAlongTwoAxesAlikeWhicheverWasCutFirst) {
  // Quarters that lie in another order.
  TermId rows = terms.whole(makeValue(8));
  auto quarter = [&](int64_t number) {
    return terms.select(rows, IndexMap::strided(2 * number, {2}, {1}));
  };
  TermId moved = terms.join(
      1, {{2, quarter(3)}, {2, quarter(0)}, {2, quarter(2)}, {2, quarter(1)}});
  IndexMap major = IndexMap::dense(4), minor = IndexMap::dense(2), cut = minor;
  major.add({dp, 2, 4});
  minor.add({tp, 2, 2});
  cut.add({dp, 2, 4});
  cut.add({tp, 2, 2});
  TermId own = terms.select(moved, cut);
  EXPECT_EQ(terms.select(terms.select(moved, major), minor), own);
  EXPECT_NE(terms.select(rows, cut), own);
  for (ranks[dp] = 0; ranks[dp] < 2; ++ranks[dp])
    for (ranks[tp] = 0; ranks[tp] < 2; ++ranks[tp])
      EXPECT_EQ(get(own, 0), get(moved, 4 * ranks[dp] + 2 * ranks[tp]));
  // Of quarters in their own order they are one piece.
  TermId pieces =
      terms.choose(tp, {terms.choose(dp, {quarter(0), quarter(2)}),
                        terms.choose(dp, {quarter(1), quarter(3)})});
  EXPECT_EQ(terms.select(rows, cut), pieces);
  EXPECT_TRUE(terms.get(pieces).isOfValue());
}

TEST_F(TermsTest, RenamesMicroBatches) {
  MicroBatch any = getAnyMicroBatch(&context), none,
             turn{StringAttr::get(&context, "turn"), 2};
  TermId weight = terms.whole(makeValue(24));
  auto given = [&](MicroBatch microBatch) {
    ValueKey key;
    key.add(int64_t(2000)).addMicroBatch(microBatch);
    return terms.whole(terms.getValue(key, {ValueKind::Given, 24, f32}));
  };
  // What is made of an input, of one two micro-batches before, of what is
  // none's, and of each micro-batch's own piece.
  auto make = [&](MicroBatch microBatch) {
    MicroBatch before{microBatch.turn, microBatch.number - 2};
    ValueKey sum;
    sum.add(int64_t(3000)).addPair(given(microBatch), weight);
    TermId one =
        terms.whole(terms.getValue(sum, {ValueKind::Computed, 24, f32}));
    IndexMap own = IndexMap::strided(0, {3}, {1});
    own.add({microBatch.turn ? microBatch.turn : mb, 8, 3, microBatch.number});
    TermId piece = terms.select(weight, own);
    ValueKey cast;
    cast.add(int64_t(4000)).addTerm(given(before));
    TermId other = terms.whole(
        terms.getValue(cast, {ValueKind::Cast, 24, f32, given(before)}));
    return terms.join(1, {{24, one}, {3, piece}, {24, other}});
  };
  // In both orders, as pairs are kept by number.
  TermId ofTurn = make(turn), ofAny = make(any);
  EXPECT_NE(ofTurn, ofAny);
  EXPECT_EQ(Renaming(terms, turn, any).rename(ofTurn), ofAny);
  EXPECT_EQ(Renaming(terms, any, turn).rename(ofAny), ofTurn);
  MicroBatch later{turn.turn, 5};
  EXPECT_EQ(Renaming(terms, turn, later).rename(ofTurn), make(later));
  EXPECT_EQ(Renaming(terms, none, any).rename(ofTurn), ofTurn);
  // What a cast is of is renamed in the value as in its key.
  const Term &joined = terms.get(Renaming(terms, turn, later).rename(ofTurn));
  const Computation &cast = terms.at(terms.get(joined.parts.back().term).value);
  EXPECT_EQ(cast.operand, given({turn.turn, 3}));
  // A number is one as well: there and back is the same.
  MicroBatch four{StringAttr(), 4};
  TermId numbered = Renaming(terms, any, four).rename(ofAny);
  EXPECT_EQ(numbered, make(four));
  EXPECT_EQ(Renaming(terms, four, any).rename(numbered), ofAny);
  const IndexMap &place = terms.get(terms.get(numbered).parts[1].term).map;
  EXPECT_EQ(place.offset, 0);
  EXPECT_EQ(place.atNumbers(mb).offset, 12);
}
