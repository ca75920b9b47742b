// Import of Einsum. Two operands at a time, in their order, become a matrix
// product: its batches are the labels that both have and somebody still needs,
// its sum is over those that nobody does. Where there is nothing to sum over it
// is a product of elements.

#include "lib/Import/Equation.h"
#include "lib/Import/OpTable.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

namespace {
/// A tensor with a label for each dimension.
struct Term {
  Value value;
  Labels labels;

  bool has(Label label) const { return llvm::is_contained(labels, label); }
  int64_t dimOf(Label label) const {
    return llvm::find(labels, label) - labels.begin();
  }
  int64_t sizeOf(Label label) const {
    return Importer::shape(value)[dimOf(label)];
  }
};
} // namespace

using IsNeeded = llvm::function_ref<bool(Label)>;

static Labels keepLabels(ArrayRef<Label> from, IsNeeded wanted) {
  Labels kept;
  llvm::copy_if(from, std::back_inserter(kept), wanted);
  return kept;
}

/// The dimensions in the order of `labels`, all of which the term has.
static Value arrange(Importer &n, const Term &term, ArrayRef<Label> labels) {
  SmallVector<int64_t> permutation;
  for (Label label : labels)
    permutation.push_back(term.dimOf(label));
  return n.transpose(term.value, permutation);
}

/// The diagonal of two dimensions of one label, put last: of both joined, every
/// element that is one row and one column further than the one before.
static Term takeDiagonal(Importer &n, const Term &term, int64_t first,
                         int64_t second) {
  ArrayRef<int64_t> shape = Importer::shape(term.value);
  int64_t size = shape[first];
  if (shape[second] != size)
    n.error() << "expected dimensions of one size for label '"
              << spellLabel(term.labels[first]) << "', found "
              << term.value.getType();
  SmallVector<int64_t> permutation, sizes;
  Labels labels;
  for (int64_t dim = 0; dim < Importer::rank(term.value); ++dim)
    if (dim != first && dim != second) {
      permutation.push_back(dim);
      sizes.push_back(shape[dim]);
      labels.push_back(term.labels[dim]);
    }
  permutation.append({first, second});
  labels.push_back(term.labels[first]);
  sizes.push_back(size * size);
  Value joined = n.reshape(n.transpose(term.value, permutation), sizes);
  SmallVector<int64_t> starts(sizes.size(), 0), steps(sizes.size(), 1);
  sizes.back() = size;
  steps.back() = size + 1;
  return {n.create<nn::SliceOp>(joined, {n.named("starts", starts),
                                         n.named("sizes", sizes),
                                         n.named("steps", steps)}),
          labels};
}

/// Leaves no label standing twice.
static void takeDiagonals(Importer &n, Term &term) {
  for (size_t second = 1; second < term.labels.size(); ++second) {
    ArrayRef<Label> before = ArrayRef(term.labels).take_front(second);
    const Label *first = llvm::find(before, term.labels[second]);
    if (first == before.end())
      continue;
    term = takeDiagonal(n, term, first - before.begin(), second);
    if (n.hasFailed())
      return;
    second = 0; // the dimensions have moved
  }
}

/// Takes away the dimensions of 1 whose label has another size elsewhere, which
/// NumPy repeats: a product is the same without them. False after an error.
static bool dropRepeated(Importer &n, MutableArrayRef<Term> terms) {
  llvm::DenseMap<Label, int64_t> sizes;
  for (const Term &term : terms)
    for (Label label : term.labels) {
      int64_t &all = sizes.try_emplace(label, 1).first->second;
      int64_t size = term.sizeOf(label);
      if (all == 1)
        all = size;
      if (size == all || size == 1)
        continue;
      n.error() << "expected dimensions of one size for label '"
                << spellLabel(label) << "', found " << all << " and " << size;
      return false;
    }
  for (Term &term : terms) {
    Labels kept = keepLabels(term.labels, [&](Label label) {
      return term.sizeOf(label) == sizes[label];
    });
    SmallVector<int64_t> shape;
    for (Label label : kept)
      shape.push_back(sizes[label]);
    term = {n.reshape(term.value, shape), kept};
  }
  return !n.hasFailed();
}

static void sumOut(Importer &n, Term &term, IsNeeded isNeeded) {
  SmallVector<int64_t> dims;
  for (auto [dim, label] : llvm::enumerate(term.labels))
    if (!isNeeded(label))
      dims.push_back(dim);
  term = {n.reduce(nn::ReductionKind::sum, term.value, dims, false),
          keepLabels(term.labels, isNeeded)};
}

/// The term with a dimension for each of the groups, which have its labels:
/// those of a group are joined, and of an empty one there is 1.
static Value groupLabels(Importer &n, const Term &term,
                         ArrayRef<Labels> groups) {
  Labels order;
  SmallVector<int64_t> shape;
  for (const Labels &group : groups) {
    llvm::append_range(order, group);
    shape.push_back(1);
    for (Label label : group)
      shape.back() *= term.sizeOf(label);
  }
  return n.reshape(arrange(n, term, order), shape);
}

/// A group for each label.
static SmallVector<Labels> each(ArrayRef<Label> labels) {
  return llvm::map_to_vector(labels, [](Label one) { return Labels{one}; });
}

/// The product of two terms, summed over what nobody needs any more.
static Term multiplyTerms(Importer &n, Term lhs, Term rhs, IsNeeded isNeeded) {
  sumOut(n, lhs, [&](Label one) { return isNeeded(one) || rhs.has(one); });
  sumOut(n, rhs, [&](Label one) { return isNeeded(one) || lhs.has(one); });
  if (n.hasFailed())
    return {};
  auto isShared = [&](Label one) { return lhs.has(one) && rhs.has(one); };
  auto isOwn = [&](Label one) { return !isShared(one); };
  Labels shared = keepLabels(lhs.labels, isShared),
         batch = keepLabels(shared, isNeeded),
         summed = keepLabels(shared, [&](Label one) { return !isNeeded(one); }),
         rows = keepLabels(lhs.labels, isOwn),
         columns = keepLabels(rhs.labels, isOwn), all = batch;
  llvm::append_range(all, rows);
  llvm::append_range(all, columns);
  SmallVector<int64_t> shape;
  for (Label label : all)
    shape.push_back(lhs.has(label) ? lhs.sizeOf(label) : rhs.sizeOf(label));
  SmallVector<Labels> left = each(batch), right = each(batch);
  // nn.matmul is of floats.
  if (summed.empty() || !Importer::isFloat(lhs.value)) {
    llvm::append_range(left, each(rows));
    left.append(columns.size(), Labels());
    right.append(rows.size(), Labels());
    llvm::append_range(right, each(columns));
    llvm::append_range(left, each(summed));
    llvm::append_range(right, each(summed));
    Term product{n.binary<nn::MulOp>(groupLabels(n, lhs, left),
                                     groupLabels(n, rhs, right)),
                 all};
    llvm::append_range(product.labels, summed);
    sumOut(n, product, isNeeded);
    return product;
  }
  // Without batches rows need not be joined, and may be split among ranks.
  if (batch.empty() && !rows.empty())
    llvm::append_range(left, each(rows));
  else
    left.push_back(rows);
  left.push_back(summed);
  // As they lie, if they do as a matrix or its transpose.
  bool turned = llvm::is_contained(summed, rhs.labels.back());
  right.append(turned ? SmallVector<Labels>{columns, summed}
                      : SmallVector<Labels>{summed, columns});
  Value product =
      n.matmul(groupLabels(n, lhs, left), groupLabels(n, rhs, right),
               /*transposeLhs=*/false, /*transposeRhs=*/turned);
  return {n.reshape(product, shape), all};
}

static LogicalResult importEinsum(Importer &n) {
  SmallVector<int64_t> ranks;
  for (unsigned number = 0; number < n.operandCount(); ++number)
    ranks.push_back(Importer::rank(n.operand(number)));
  std::string text = n.stringAttr("equation", "");
  std::optional<Equation> equation = readEquation(text, ranks);
  if (!equation) {
    InFlightDiagnostic diagnostic =
        n.error() << "expected an 'equation' with a letter, or '...', for each "
                     "dimension of the operands, as 'ij,jk->ik', found '"
                  << text << "' for ";
    llvm::interleaveComma(
        llvm::seq(n.operandCount()), diagnostic,
        [&](unsigned number) { diagnostic << n.operand(number).getType(); });
    return diagnostic;
  }
  SmallVector<Term> terms;
  for (auto [number, labels] : llvm::enumerate(equation->operands)) {
    terms.push_back({n.operand(number), labels});
    takeDiagonals(n, terms.back());
    if (n.hasFailed())
      return failure();
  }
  if (!dropRepeated(n, terms))
    return failure();
  ArrayRef<Label> wanted = equation->result;
  ArrayRef<Term> rest = terms;
  auto isNeeded = [&](Label label) {
    return llvm::is_contained(wanted, label) ||
           llvm::any_of(rest,
                        [&](const Term &term) { return term.has(label); });
  };
  // Rows are of the operand whose labels stand first in the result, which then
  // needs no transposition.
  auto placeOf = [&](const Term &term, const Term &other) {
    return llvm::find_if(wanted, [&](Label label) {
      return term.has(label) && !other.has(label);
    });
  };
  Term result = rest.consume_front();
  while (!rest.empty()) {
    Term next = rest.consume_front();
    if (placeOf(next, result) < placeOf(result, next))
      std::swap(next, result);
    result = multiplyTerms(n, result, next, isNeeded);
  }
  if (n.hasFailed())
    return failure();
  sumOut(n, result, isNeeded);
  return n.finish(arrange(n, result, wanted));
}

ArrayRef<OpRow> accel::import::einsumOps() {
  static const OpRow rows[] = {
      {"", "Einsum", 12, 1, -1, importEinsum},
  };
  return rows;
}
