// Dynamic programming over layers, with the linear relaxation as a bound.

#include "PolicyKnapsack.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace accel::search;
using Choice = LayerClass::Choice;

namespace {
/// A step on the lower convex hull of a class: one layer more of it saves so
/// many bytes for so much work.
struct Saving {
  int64_t bytes, work, layers;
};

/// The linear relaxation of the classes from one on.
struct Relaxation {
  int64_t bytes = 0, work = 0; ///< of the least work
  std::vector<Saving> savings; ///< the cheapest first

  /// None where nothing fits.
  std::optional<double> bound(int64_t budget) const {
    double over = double(bytes) - double(budget), least = double(work);
    for (const Saving &saving : savings) {
      if (over <= 0)
        break;
      double layers =
          std::min(double(saving.layers), over / double(saving.bytes));
      least += layers * double(saving.work);
      over -= layers * double(saving.bytes);
    }
    // Less than half a byte is what rounding leaves.
    return over < 0.5 ? std::optional<double>(least) : std::nullopt;
  }
};

/// A partial choice, and the one that it was made of.
struct State {
  int64_t bytes, work;
  int previous;
  unsigned choice;
};
} // namespace

static std::vector<Choice> getAllowed(const LayerClass &of,
                                      const StageTable &table, int64_t most) {
  std::vector<Choice> allowed;
  for (const Choice &choice : of.choices)
    if (table.besides[choice.policy] <= most)
      allowed.push_back(choice);
  return allowed;
}

/// The choices from the one of least work to that of fewest bytes of which none
/// lies above the line between two others.
static std::vector<Choice> findHull(std::vector<Choice> choices) {
  llvm::stable_sort(choices, [](const Choice &one, const Choice &other) {
    return std::pair(one.work, one.bytes) < std::pair(other.work, other.bytes);
  });
  std::vector<Choice> hull;
  for (const Choice &choice : choices) {
    if (!hull.empty() && choice.bytes >= hull.back().bytes)
      continue;
    auto isAbove = [&] {
      const Choice &from = hull[hull.size() - 2], &middle = hull.back();
      return double(middle.work - from.work) *
                 double(from.bytes - choice.bytes) >=
             double(choice.work - from.work) *
                 double(from.bytes - middle.bytes);
    };
    while (hull.size() > 1 && isAbove())
      hull.pop_back();
    hull.push_back(choice);
  }
  return hull;
}

static void addClass(Relaxation &relaxation, int64_t layers,
                     const std::vector<Choice> &choices) {
  std::vector<Choice> hull = findHull(choices);
  relaxation.bytes += layers * hull.front().bytes;
  relaxation.work += layers * hull.front().work;
  for (size_t i = 1; i < hull.size(); ++i)
    relaxation.savings.push_back({hull[i - 1].bytes - hull[i].bytes,
                                  hull[i].work - hull[i - 1].work, layers});
  llvm::stable_sort(relaxation.savings,
                    [](const Saving &one, const Saving &other) {
                      return double(one.work) * double(other.bytes) <
                             double(other.work) * double(one.bytes);
                    });
}

/// Drops what another is as good as in both.
static void prune(std::vector<State> &states) {
  llvm::stable_sort(states, [](const State &one, const State &other) {
    return std::pair(one.bytes, one.work) < std::pair(other.bytes, other.work);
  });
  size_t kept = 0;
  for (const State &state : states)
    if (kept == 0 || state.work < states[kept - 1].work)
      states[kept++] = state;
  states.resize(kept);
}

/// The best of the choices whose policies need no more than `most` beside.
static std::optional<PolicyCounts> choose(const StageTable &table, int64_t most,
                                          int64_t budget,
                                          std::optional<int64_t> known) {
  std::vector<std::vector<Choice>> allowed;
  for (const LayerClass &each : table.classes) {
    allowed.push_back(getAllowed(each, table, most));
    if (allowed.back().empty())
      return std::nullopt;
  }
  // Of the classes behind each, and of all.
  std::vector<Relaxation> rest(table.classes.size() + 1);
  for (size_t i = table.classes.size(); i-- > 0;) {
    rest[i] = rest[i + 1];
    addClass(rest[i], table.classes[i].layers, allowed[i]);
  }
  // Whole layers: the cheapest savings until it fits.
  auto round = [&](const Relaxation &relaxation, int64_t room,
                   int64_t work) -> std::optional<int64_t> {
    int64_t over = relaxation.bytes - room;
    work += relaxation.work;
    for (const Saving &saving : relaxation.savings) {
      if (over <= 0)
        break;
      int64_t layers =
          std::min(saving.layers, (over + saving.bytes - 1) / saving.bytes);
      work += layers * saving.work;
      over -= layers * saving.bytes;
    }
    return over <= 0 ? std::optional<int64_t>(work) : std::nullopt;
  };
  if (auto rounded = round(rest.front(), budget, 0))
    known = known ? std::min(*known, *rounded) : *rounded;
  // By layer, the states that it leads to.
  std::vector<std::vector<State>> levels{{{0, 0, -1, 0}}};
  for (auto [number, each] : llvm::enumerate(table.classes))
    for (int64_t layer = 0; layer < each.layers; ++layer) {
      // Of this class, too, some layers are left.
      Relaxation left = rest[number + 1];
      if (layer + 1 < each.layers)
        addClass(left, each.layers - layer - 1, allowed[number]);
      std::vector<State> next;
      for (auto [at, state] : llvm::enumerate(levels.back()))
        for (auto [index, choice] : llvm::enumerate(allowed[number])) {
          State made{state.bytes + choice.bytes, state.work + choice.work,
                     int(at), unsigned(index)};
          auto bound = left.bound(budget - made.bytes);
          // Rounding moves a bound by far less than this.
          if (bound && (!known || double(made.work) + *bound - 1 <=
                                      double(*known) * (1 + 1e-9)))
            next.push_back(made);
        }
      prune(next);
      levels.push_back(std::move(next));
    }
  const State *best = nullptr;
  for (const State &state : levels.back())
    if (state.bytes <= budget && (!best || state.work < best->work))
      best = &state;
  if (!best)
    return std::nullopt;
  PolicyCounts counts;
  counts.work = best->work;
  for (const LayerClass &each : table.classes)
    counts.layers.emplace_back(each.choices.size(), 0);
  int64_t beside = INT64_MIN;
  size_t level = levels.size() - 1;
  for (size_t number = table.classes.size(); number-- > 0;)
    for (int64_t layer = 0; layer < table.classes[number].layers; ++layer) {
      const Choice &choice = allowed[number][best->choice];
      auto &choices = table.classes[number].choices;
      auto own = llvm::find_if(choices, [&](const Choice &each) {
        return each.policy == choice.policy;
      });
      ++counts.layers[number][own - choices.begin()];
      counts.bytes += choice.bytes;
      beside = std::max(beside, table.besides[choice.policy]);
      best = &levels[--level][best->previous];
    }
  counts.bytes += beside;
  return counts;
}

/// What policies need beside, the least first. Without layers the first policy,
/// none, is the only one.
static std::vector<int64_t> listBesides(const StageTable &table) {
  std::vector<int64_t> besides = table.besides;
  llvm::sort(besides);
  besides.erase(std::unique(besides.begin(), besides.end()), besides.end());
  return besides;
}

std::optional<PolicyCounts>
accel::search::choosePolicies(const StageTable &table, int64_t budget) {
  std::optional<PolicyCounts> best;
  if (table.classes.empty())
    return table.besides.front() <= budget
               ? std::optional(PolicyCounts{{}, table.besides.front(), 0})
               : std::nullopt;
  for (int64_t most : listBesides(table)) {
    auto found = choose(table, most, budget - most,
                        best ? std::optional(best->work) : std::nullopt);
    if (found && (!best || std::pair(found->work, found->bytes) <
                               std::pair(best->work, best->bytes)))
      best = std::move(found);
  }
  return best;
}

std::optional<double> accel::search::boundWork(const StageTable &table,
                                               int64_t budget) {
  std::optional<double> least;
  if (table.classes.empty())
    return table.besides.front() <= budget ? std::optional(0.0) : std::nullopt;
  for (int64_t most : listBesides(table)) {
    Relaxation all;
    bool isAllowed = true;
    for (const LayerClass &each : table.classes) {
      std::vector<Choice> allowed = getAllowed(each, table, most);
      isAllowed &= !allowed.empty();
      if (isAllowed)
        addClass(all, each.layers, allowed);
    }
    auto bound = isAllowed ? all.bound(budget - most) : std::nullopt;
    if (bound && (!least || *bound < *least))
      least = bound;
  }
  return least;
}

int64_t accel::search::getFewestBytes(const StageTable &table) {
  std::optional<int64_t> fewest;
  if (table.classes.empty())
    return table.besides.front();
  for (int64_t most : listBesides(table)) {
    int64_t bytes = most;
    bool isAllowed = true;
    for (const LayerClass &each : table.classes) {
      std::vector<Choice> allowed = getAllowed(each, table, most);
      isAllowed &= !allowed.empty();
      if (isAllowed)
        bytes +=
            each.layers * llvm::min_element(allowed, [](const Choice &one,
                                                        const Choice &other) {
                            return one.bytes < other.bytes;
                          })->bytes;
    }
    if (isAllowed && (!fewest || bytes < *fewest))
      fewest = bytes;
  }
  return fewest.value_or(0);
}
