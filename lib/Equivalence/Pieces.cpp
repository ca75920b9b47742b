// How ops and collectives turn pieces into pieces.

#include "Pieces.h"

#include "Rules.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

int64_t PieceMaker::countRanks(ArrayRef<StringAttr> axes) {
  int64_t count = 1;
  for (StringAttr axis : axes)
    count *= getSize(axis);
  return count;
}

Axes PieceMaker::dropUnits(ArrayRef<StringAttr> axes) {
  Axes kept;
  for (StringAttr axis : axes)
    if (getSize(axis) > 1)
      kept.push_back(axis);
  return kept;
}

void PieceMaker::normalize(Axes &partial) {
  Axes sorted;
  for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
    for (StringAttr each : partial)
      if (each.getValue() == axis.getName() &&
          !llvm::is_contained(sorted, each))
        sorted.push_back(each);
  for (auto &[axis, count] : places)
    if (llvm::is_contained(partial, axis))
      sorted.push_back(axis);
  partial = sorted;
}

void PieceMaker::sortAxes(Dim &dim) {
  Axes sorted = inOrder(dim.axes);
  if (dim.order.empty() || sorted == dim.axes)
    return;
  llvm::SmallDenseMap<StringAttr, Digit> digits;
  std::vector<Digit> left = dim.order;
  auto next = left.begin();
  for (StringAttr axis : dim.axes) {
    int64_t size = getSize(axis);
    if (next == left.end() || next->size % size != 0)
      return;
    next->size /= size;
    digits[axis] = {size, next->stride * next->size};
    if (next->size == 1)
      ++next;
  }
  std::vector<Digit> order;
  for (StringAttr axis : sorted)
    order.push_back(digits[axis]);
  order.insert(order.end(), next, left.end());
  dim.order = makeOrder(order);
  dim.axes = std::move(sorted);
}

Dim PieceMaker::inMeshOrder(Dim dim, int64_t size) {
  if (dim.isPlain() && !dim.free)
    dim.order = {{size, 1}};
  sortAxes(dim);
  dim.order = makeOrder(dim.order);
  return dim;
}

bool PieceMaker::isSplit(const Piece &piece, StringAttr axis) {
  return llvm::any_of(piece.dims, [&](const Dim &dim) {
    return llvm::is_contained(dim.axes, axis);
  });
}

Piece PieceMaker::get(Value logical, dist::LayoutAttr layout) {
  Piece piece;
  piece.logical = logical;
  for (dist::AxesAttr axes : layout.getDims())
    piece.dims.push_back({dropUnits(axes.getNames()), false});
  // What is laid out may be larger than the value: the rest is not known.
  for (auto [dim, held, size] :
       llvm::zip(piece.dims, layout.getShape(), shapeOf(logical)))
    dim.padding = held - size;
  dist::InterleavedAttr interleaved = layout.getInterleaved();
  if (!interleaved)
    return piece;
  Dim &dim = piece.dims[interleaved.getDim()];
  int64_t by = interleaved.getBy(), times = interleaved.getTimes();
  ArrayRef<int64_t> sizes = interleaved.getSizes();
  if (times > 1 && sizes.size() == 1) {
    dim.order = makeOrder({{by, sizes.front() / by},
                           {times, sizes.front()},
                           {sizes.front() / by, 1}});
    sortAxes(dim);
    return piece;
  }
  dim.parts.by = by;
  for (int64_t time = 0; time < times; ++time)
    llvm::append_range(dim.parts.sizes, sizes);
  return piece;
}

Piece equivalence::makeFree(Value logical) {
  Piece piece;
  piece.logical = logical;
  piece.dims.resize(shapeOf(logical).size(), Dim{{}, true});
  return piece;
}

bool PieceMaker::fits(const Piece &piece, Type local) {
  ArrayRef<int64_t> whole = shapeOf(piece.logical),
                    part = cast<RankedTensorType>(local).getShape();
  if (whole.size() != part.size() ||
      getElementTypeOrSelf(piece.logical) != getElementTypeOrSelf(local))
    return false;
  for (auto [dim, size] : llvm::enumerate(whole))
    if (piece.dims[dim].padding < 0 ||
        (!piece.dims[dim].parts.empty() &&
         (piece.dims[dim].padding != 0 ||
          llvm::sum_of(piece.dims[dim].parts.sizes) != size)))
      return false;
    else if (!piece.dims[dim].free &&
             part[dim] * countRanks(piece.dims[dim].axes) !=
                 size + piece.dims[dim].padding)
      return false;
  return true;
}

std::string PieceMaker::describe(const Piece &piece) {
  auto join = [](const Axes &axes) {
    std::vector<StringRef> names(axes.begin(), axes.end());
    return "{" + llvm::join(names, ",") + "}";
  };
  std::vector<std::string> dims;
  for (const Dim &dim : piece.dims) {
    std::string &text = dims.emplace_back(dim.free ? "any" : join(dim.axes));
    if (!dim.order.empty())
      text += " in another order";
    if (!dim.parts.empty()) {
      std::vector<std::string> sizes;
      for (int64_t size : dim.parts.sizes)
        sizes.push_back(std::to_string(size));
      text += " of [" + llvm::join(sizes, ", ") + "] by " +
              std::to_string(dim.parts.by);
    }
    if (dim.padding)
      text += " and " + std::to_string(dim.padding) + " more";
  }
  std::string text = "[" + llvm::join(dims, ", ") + "]";
  if (!piece.partial.empty())
    text += " partial " + join(piece.partial);
  return text;
}

FailureOr<std::vector<Piece>>
PieceMaker::applyOp(Operation *logical, ArrayRef<Piece> operands,
                    Operation *local, std::string &why, bool ownRows) {
  auto fail = [&](const Twine &what) {
    why = what.str();
    return failure();
  };
  if (isa<nn::ReshapeOp>(logical))
    return applyReshape(logical, operands[0], local, why);
  std::optional<OpMap> map = getOpMap(logical, ownRows);
  if (!map)
    return fail("nothing is known of what it computes of pieces");
  // What each index is split over: the operands must agree.
  std::vector<std::optional<Dim>> splits(map->indices);
  auto forEachDim = [&](auto look) {
    for (auto [number, dims] : llvm::enumerate(map->operands))
      for (auto [dim, index] : llvm::enumerate(dims))
        if (!look(unsigned(number), unsigned(dim), index,
                  shapeOf(logical->getOperand(number))[dim],
                  shapeOf(local->getOperand(number))[dim]))
          return false;
    return true;
  };
  auto isOne = [](const Dim &held, int64_t whole) {
    return whole == 1 && held == Dim();
  };
  auto notAll = [&](unsigned number, unsigned dim, int64_t whole,
                    int64_t part) {
    why = ("expected all of dimension " + Twine(dim) + " of operand " +
           Twine(number) + ", found " + Twine(part) + " of " + Twine(whole))
              .str();
    return false;
  };
  bool agrees = forEachDim([&](unsigned number, unsigned dim, int index,
                               int64_t whole, int64_t part) {
    const Dim &held = operands[number].dims[dim];
    if (index >= 0 && isOne(held, whole))
      return true;
    if (index == OpMap::kWhole) {
      if (!holds(Premise::WholeInOrder, held.free || held.isPlain())) {
        why = "expected all of dimension " + std::to_string(dim) +
              " of operand " + std::to_string(number) +
              " in its order and without padding, found " +
              describe(operands[number]);
        return false;
      }
      return holds(Premise::WholeIsThere, part == whole) ||
             notAll(number, dim, whole, part);
    }
    if (held.free)
      return true;
    bool shares = part == 1 && splits[index] && held.isPlain() &&
                  splits[index]->isPlain() &&
                  llvm::is_contained(map->shared, std::pair(number, dim)) &&
                  held.axes.size() <= splits[index]->axes.size() &&
                  ArrayRef(splits[index]->axes).take_front(held.axes.size()) ==
                      ArrayRef(held.axes);
    if (!shares && splits[index] &&
        !holds(Premise::SplitAlike, splits[index]->isSplitLike(held))) {
      why = "expected operand " + std::to_string(number) +
            " to be split like the operands before it, found " +
            describe(operands[number]);
      return false;
    }
    if (!shares) {
      if (!splits[index])
        splits[index] = held;
      splits[index]->zeros &= held.zeros;
      if (splits[index]->extreme != held.extreme)
        splits[index]->extreme.reset();
    }
    return true;
  });
  // Of equal elements any are as good, and one element is equal to itself,
  // whatever stands behind others' like it; but their number counts where they
  // are reduced.
  agrees = agrees && forEachDim([&](unsigned number, unsigned dim, int index,
                                    int64_t whole, int64_t part) {
             if (index < 0)
               return true;
             const Dim &held = operands[number].dims[dim];
             bool isReduced = llvm::is_contained(map->reduced, index);
             if (!splits[index] && (isReduced || isOne(held, whole)))
               splits[index] = Dim();
             if (!isReduced || !(held.free || isOne(held, whole)))
               return true;
             return (splits[index]->padding == 0 &&
                     part * countRanks(splits[index]->axes) == whole) ||
                    notAll(number, dim, whole, part);
           });
  if (!agrees || failed(passPadding(logical, *map, operands, splits, why)) ||
      failed(checkCausalRows(logical, local, *map, splits, why)))
    return failure();
  Axes used;
  for (const auto &split : splits)
    if (split)
      for (StringAttr axis : split->axes) {
        if (!holds(Premise::SplitsOneDim, !llvm::is_contained(used, axis)))
          return fail("axis '" + axis.getValue() +
                      "' splits two of its dimensions");
        used.push_back(axis);
      }
  // Terms pass where the op is linear in exactly what is partial.
  Axes partial;
  for (const Piece &operand : operands)
    partial.append(operand.partial.begin(), operand.partial.end());
  normalize(partial);
  for (StringAttr axis : partial) {
    if (!holds(Premise::SplitsNoTerms, !llvm::is_contained(used, axis)))
      return fail("is partial and split over axis '" + axis.getValue() + "'");
    std::vector<unsigned> terms;
    for (auto [number, operand] : llvm::enumerate(operands))
      if (llvm::is_contained(operand.partial, axis)) {
        terms.push_back(number);
        if (!holds(Premise::TermsAreOfSums,
                   operand.reduction == dist::Reduction::sum))
          return fail("reads terms of a '" +
                      stringifyReduction(operand.reduction) + "'");
      }
    if (!holds(Premise::LinearInPartial,
               llvm::is_contained(map->linear, terms)))
      return fail("is not linear in what is partial over axis '" +
                  axis.getValue() + "': a sum is missing");
  }
  std::vector<Piece> pieces;
  for (auto [number, dims] : llvm::enumerate(map->results)) {
    Piece &piece = pieces.emplace_back();
    piece.logical = logical->getResult(number);
    piece.partial = partial;
    for (int index : map->reduced)
      if (splits[index] && !llvm::is_contained(dims, index))
        piece.partial.append(splits[index]->axes.begin(),
                             splits[index]->axes.end());
    piece.reduction = map->reduction;
    for (int index : dims) {
      Dim dim;
      dim.free = index == OpMap::kFree || (index >= 0 && !splits[index]);
      if (!dim.free && index >= 0)
        dim = *splits[index];
      piece.dims.push_back(dim);
    }
    // Those that hold one element of what others have a part of it for.
    for (auto [result, dim, operand] : map->sharedResults) {
      const Dim &held = operands[operand].dims[dim];
      Dim &made = piece.dims[dim];
      if (result != number || held.free || made.free ||
          held.axes.size() >= made.axes.size())
        continue;
      piece.partial.append(made.axes.begin() + held.axes.size(),
                           made.axes.end());
      made = held;
    }
    normalize(piece.partial);
    if (piece.partial.empty())
      piece.reduction = dist::Reduction::sum;
    if (!fits(piece, local->getResult(number).getType()))
      return fail("expected one rank's shape of " + describe(piece));
  }
  return pieces;
}

void PieceMaker::addSplits(ArrayRef<StringAttr> axes, int64_t whole,
                           int64_t part, Axes taken,
                           std::vector<Axes> &splits) {
  int64_t ranks = countRanks(taken);
  if (whole % ranks != 0)
    return;
  int64_t left = whole / ranks;
  if (left == part)
    splits.push_back(taken);
  if (left <= part)
    return;
  for (StringAttr axis : axes) {
    if (llvm::is_contained(taken, axis))
      continue;
    taken.push_back(axis);
    addSplits(axes, whole, part, taken, splits);
    taken.pop_back();
  }
}

std::vector<Axes> PieceMaker::findSplits(const Axes &used, int64_t whole,
                                         int64_t part) {
  Axes axes;
  for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
    axes.push_back(StringAttr::get(mesh.getContext(), axis.getName()));
  axes = dropUnits(axes);
  // Stages have tensors of their own, not pieces of one.
  llvm::erase_if(axes, [&](StringAttr axis) {
    return llvm::is_contained(used, axis) ||
           axis == dist::MeshOp::kPipelineAxis;
  });
  std::vector<Axes> splits;
  addSplits(axes, whole, part, {}, splits);
  return splits;
}

std::vector<std::vector<Piece>>
PieceMaker::getReadings(Operation *logical, std::vector<Piece> operands,
                        Operation *local) {
  using Places = SmallVector<std::pair<size_t, size_t>>;
  std::vector<Places> undecided; ///< each to be read as split alike
  bool isReshape = isa<nn::ReshapeOp>(logical);
  if (isReshape) {
    llvm::SmallBitVector equal = getStayingEqual(logical, operands[0], local);
    for (size_t dim = 0; dim < operands[0].dims.size(); ++dim)
      if (!equal[dim])
        undecided.push_back({{0, dim}});
  }
  if (std::optional<OpMap> map = getOpMap(logical))
    for (int index : map->reduced) {
      Places &places = undecided.emplace_back();
      for (auto [number, dims] : llvm::enumerate(map->operands))
        for (auto [dim, of] : llvm::enumerate(dims))
          if (of == index)
            places.push_back({number, dim});
    }

  Axes used;
  for (const Piece &operand : operands) {
    used.append(operand.partial);
    for (const Dim &dim : operand.dims)
      used.append(dim.axes);
  }

  std::vector<std::vector<Piece>> readings = {operands};
  for (const Places &places : undecided) {
    if (places.empty() || !llvm::all_of(places, [&](auto place) {
          return operands[place.first].dims[place.second].free;
        }))
      continue;
    auto [number, dim] = places.front();
    int64_t whole = shapeOf(logical->getOperand(number))[dim],
            part = shapeOf(local->getOperand(number))[dim];
    if (part == whole)
      continue;
    // A reshape may leave the dimension as it is.
    std::vector<std::vector<Piece>> more;
    if (isReshape)
      more = readings;
    for (const std::vector<Piece> &reading : readings) {
      // An axis splits one dimension.
      Axes taken = used;
      for (const Piece &operand : reading)
        for (const Dim &each : operand.dims)
          taken.append(each.axes);
      for (const Axes &split : findSplits(taken, whole, part)) {
        std::vector<Piece> &made = more.emplace_back(reading);
        for (auto [number, dim] : places)
          made[number].dims[dim] = {split, false};
      }
    }
    readings = std::move(more);
  }
  return readings;
}

/// Rank k of the group gets the piece of another: the new place of every axis
/// is the one that explains all of them.
LogicalResult PieceMaker::permute(dist::PermuteOp op, Piece &piece) {
  Axes group = dropUnits(op.getAxes().getNames());
  // Terms that go to other ranks are others' terms.
  if (!holds(Premise::ExchangesNoTerms,
             llvm::none_of(group, [&](StringAttr axis) {
               return llvm::is_contained(piece.partial, axis);
             })))
    return failure();
  auto coordinatesOf = [&](int64_t member) {
    llvm::SmallDenseMap<StringAttr, int64_t> coordinates;
    for (StringAttr axis : llvm::reverse(op.getAxes().getNames())) {
      int64_t size = *mesh.findAxisSize(axis);
      coordinates[axis] = member % size;
      member /= size;
    }
    return coordinates;
  };
  auto numberOf = [&](const Axes &axes, int64_t member) {
    auto coordinates = coordinatesOf(member);
    int64_t number = 0;
    for (StringAttr axis : axes)
      if (llvm::is_contained(group, axis))
        number = number * *mesh.findAxisSize(axis) + coordinates[axis];
    return number;
  };
  // Each arrangement of the group's axes over the dimensions.
  std::vector<Piece> found;
  std::function<void(size_t, Piece)> place = [&](size_t next, Piece target) {
    if (next == group.size()) {
      if (!fits(target, op.getResult().getType()))
        return;
      for (auto [member, source] : llvm::enumerate(op.getSources()))
        for (size_t dim = 0; dim < piece.dims.size(); ++dim)
          if (!holds(Premise::ExchangesWholeParts,
                     numberOf(target.dims[dim].axes, member) ==
                         numberOf(piece.dims[dim].axes, source)))
            return;
      found.push_back(target);
      return;
    }
    for (Dim &dim : target.dims)
      for (size_t at = 0; at <= dim.axes.size(); ++at) {
        dim.axes.insert(dim.axes.begin() + at, group[next]);
        place(next + 1, target);
        dim.axes.erase(dim.axes.begin() + at);
      }
    place(next + 1, target); // it splits nothing
  };
  Piece start = piece;
  for (Dim &dim : start.dims) {
    size_t moving = llvm::count_if(dim.axes, [&](StringAttr axis) {
      return llvm::is_contained(group, axis);
    });
    if (moving == 0)
      continue;
    if (moving != dim.axes.size())
      return failure(); // within a part of a dimension: not understood
    dim.axes.clear();
  }
  place(0, start);
  if (found.empty())
    return failure();
  piece = found.front();
  return success();
}

FailureOr<Piece> PieceMaker::applyCollective(dist::CollectiveOpInterface op,
                                             Piece piece, std::string &why) {
  auto fail = [&](const Twine &what) {
    why = (what + ", found " + describe(piece)).str();
    return failure();
  };
  Axes axes = dropUnits(op.getAxes().getNames());
  auto takePartial = [&](dist::Reduction kind) {
    for (StringAttr axis : axes) {
      if (!holds(Premise::CombinesWhatIsPartial,
                 llvm::is_contained(piece.partial, axis)) ||
          !holds(Premise::CombinesAsTermsAre, kind == piece.reduction))
        return false;
      llvm::erase(piece.partial, axis);
    }
    if (piece.partial.empty())
      piece.reduction = dist::Reduction::sum;
    return true;
  };
  auto areFree = [&] {
    return holds(Premise::CutsWhatAllHave,
                 llvm::none_of(axes, [&](StringAttr axis) {
                   return isSplit(piece, axis) ||
                          llvm::is_contained(piece.partial, axis);
                 }));
  };
  auto takeEnd = [&](int64_t dim) {
    Axes &held = piece.dims[dim].axes;
    if (piece.dims[dim].free)
      return areFree();
    if (held.size() < axes.size() ||
        !holds(Premise::JoinsMinorAxes,
               ArrayRef(held).take_back(axes.size()) == ArrayRef(axes)))
      return false;
    held.truncate(held.size() - axes.size());
    return true;
  };
  auto split = [&](int64_t dim) {
    if (!piece.dims[dim].free)
      piece.dims[dim].axes.append(axes.begin(), axes.end());
    sortAxes(piece.dims[dim]);
  };
  bool legal = llvm::TypeSwitch<Operation *, bool>(op.getOperation())
                   .Case([&](dist::AllReduceOp reduce) {
                     return takePartial(reduce.getKind());
                   })
                   .Case([&](dist::ReduceScatterOp reduce) {
                     if (!takePartial(reduce.getKind()))
                       return false;
                     split(reduce.getDim());
                     return true;
                   })
                   .Case([&](dist::AllGatherOp gather) {
                     return takeEnd(gather.getDim());
                   })
                   .Case([&](dist::AllSliceOp slice) {
                     if (!areFree())
                       return false;
                     split(slice.getDim());
                     return true;
                   })
                   .Case([&](dist::AllToAllOp all) {
                     // A rank cuts its own part before it gets the others'.
                     int64_t dim = all.getConcatDim();
                     if (!holds(Premise::ExchangesTwoDims,
                                dim != int64_t(all.getSplitDim()) ||
                                    piece.dims[dim].free) ||
                         !takeEnd(dim) || !areFree())
                       return false;
                     split(all.getSplitDim());
                     return true;
                   })
                   .Case([&](dist::PermuteOp permuted) {
                     return succeeded(permute(permuted, piece));
                   })
                   .Default([](Operation *) { return false; });
  std::vector<StringRef> names(axes.begin(), axes.end());
  if (!legal)
    return fail("expected what it does over {" + Twine(llvm::join(names, ",")) +
                "} to follow from what it gets");
  if (!fits(piece, op->getResult(0).getType()))
    return fail("expected one rank's shape");
  return piece;
}
