// Dividing loops, and the row emitter's part in it: what is known of an index,
// and what would have to be known of it.

#include "DividedLoop.h"

#include "RowEmitter.h"

using namespace mlir;
using namespace accel;

/// Inner loops of at most this many indices are written out; others pay from
/// this many on, the elements of the narrowest vector.
static constexpr int64_t kWrittenOut = 4, kFewest = 8;

void DividedLoop::cut(int64_t at) { parts = {{begin, at}, {at, end}}; }

void DividedLoop::split(int64_t n) {
  factor = n;
  parts = {{begin / n, end / n}, {0, n}};
  if (n <= kWrittenOut)
    for (int64_t at = 0; at < n; ++at)
      parts[1].parts.push_back({at, at + 1});
}

int64_t DividedLoop::countBodies() const {
  if (isWhole())
    return 1;
  if (factor)
    return parts[0].countBodies() * parts[1].countBodies();
  int64_t bodies = 0;
  for (const DividedLoop &part : parts)
    bodies += part.countBodies();
  return bodies;
}

RowEmitter::Values
RowEmitter::loop(DividedLoop &divided, ValueRange initial,
                 function_ref<Values(Value, ValueRange)> body) {
  if (divided.isWhole()) {
    if (divided.end - divided.begin == 1)
      return body(constantIndex(divided.begin), initial);
    return loop(constantIndex(divided.begin), constantIndex(divided.end),
                initial, [&](Value at, ValueRange carried) {
                  facts[at] = {divided.begin, divided.end, &divided, 0};
                  return body(at, carried);
                });
  }
  if (divided.factor == 0) {
    Values carried(initial);
    for (DividedLoop &part : divided.parts)
      carried = loop(part, carried, body);
    return carried;
  }
  return loop(divided.parts[0], initial, [&](Value outer, ValueRange carried) {
    return loop(divided.parts[1], carried, [&](Value inner, ValueRange last) {
      return body(join(outer, inner, divided.factor), last);
    });
  });
}

RowEmitter::Values RowEmitter::loops(MutableArrayRef<DividedLoop> dims,
                                     function_ref<void(ArrayRef<Value>)> body) {
  Values index;
  std::function<Values(ValueRange)> nest = [&](ValueRange) -> Values {
    if (index.size() == dims.size()) {
      body(index);
      return {};
    }
    return loop(dims[index.size()], {}, [&](Value at, ValueRange) {
      index.push_back(at);
      nest({});
      index.pop_back();
      return Values();
    });
  };
  return nest({});
}

//===----------------------------------------------------------------------===//
// What is known of an index
//===----------------------------------------------------------------------===//

std::optional<std::pair<int64_t, int64_t>> RowEmitter::getRange(Value index) {
  if (std::optional<int64_t> constant = getConstant(index))
    return std::pair(*constant, *constant + 1);
  if (auto found = facts.find(index); found != facts.end())
    return std::pair(found->second.begin, found->second.end);
  return std::nullopt;
}

Value RowEmitter::join(Value outer, Value inner, int64_t size) {
  Value index = add(mul(outer, size), inner);
  if (getConstant(index))
    return index;
  auto first = getRange(outer), second = getRange(inner);
  if (first && second)
    facts[index] = {first->first * size + second->first,
                    (first->second - 1) * size + second->second, nullptr, 0};
  joins[index] = {outer, inner, size};
  return index;
}

/// An index that differs from `from` by a constant.
void RowEmitter::noteSum(Value sum, Value from, int64_t by) {
  if (auto found = facts.find(from); found != facts.end()) {
    Fact fact = found->second;
    facts[sum] = {fact.begin + by, fact.end + by, fact.loop, fact.moved + by};
  }
  if (auto found = joins.find(from); found != joins.end()) {
    Join joined = found->second;
    if (by % joined.size == 0)
      joins[sum] = {add(joined.outer, constantIndex(by / joined.size)),
                    joined.inner, joined.size};
  }
}

std::optional<std::pair<Value, Value>> RowEmitter::divide(Value index,
                                                          int64_t n) {
  if (auto range = getRange(index);
      range && range->first >= 0 &&
      range->first / n == (range->second - 1) / n) {
    int64_t quotient = range->first / n;
    return std::pair(constantIndex(quotient),
                     add(index, constantIndex(-quotient * n)));
  }
  auto found = joins.find(index);
  if (found == joins.end())
    return std::nullopt;
  auto [outer, inner, size] = found->second;
  if (size == n)
    return std::pair(outer, inner);
  if (n % size == 0)
    return std::pair(div(outer, n / size),
                     join(rem(outer, n / size), inner, size));
  if (size % n == 0)
    return std::pair(join(outer, div(inner, n), size / n), rem(inner, n));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// What would have to be known
//===----------------------------------------------------------------------===//

void RowEmitter::wantCut(Value index, int64_t at) {
  if (wantSplit(index))
    return;
  auto found = facts.find(index);
  if (found == facts.end() || !found->second.loop)
    return;
  Fact fact = found->second;
  if (fact.begin < at && at < fact.end)
    wanted.push_back({fact.loop, at - fact.moved, 0});
}

bool RowEmitter::wantSplit(Value index) {
  auto found = quotients.find(index);
  if (found == quotients.end()) {
    found = remainders.find(index);
    if (found == remainders.end())
      return false;
  }
  auto [from, n] = found->second;
  auto fact = facts.find(from);
  if (fact == facts.end() || !fact->second.loop ||
      (n > kWrittenOut && n < kFewest))
    return false;
  DividedLoop *loop = fact->second.loop;
  if (fact->second.moved % n != 0 || loop->begin % n != 0 || loop->end % n != 0)
    return false;
  wanted.push_back({loop, 0, n});
  return true;
}
