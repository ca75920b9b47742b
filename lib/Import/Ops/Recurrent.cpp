// Import of the recurrent networks LSTM (Hochreiter and Schmidhuber, 1997), GRU
// (Cho et al., arXiv:1406.1078) and RNN: a copy of the cell for each step, all
// steps' products with the input in one.

#include "lib/Import/Activations.h"
#include "lib/Import/OpTable.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

namespace {
using Function = std::function<Value(Importer &, Value)>;

/// What the cell of one direction is made of. H numbers are in its state, and
/// each of its gates.
struct Cell {
  int64_t size;                    ///< H
  Value inputWeight;               ///< [gates · H, I]
  Value stateWeight;               ///< [gates · H, H]
  Value inputBias, stateBias;      ///< [gates · H], or null
  Value peepholes;                 ///< [3 · H], or null (LSTM)
  SmallVector<Function> functions; ///< of the activations, in ONNX's order
  std::optional<double> clip;

  /// Gate `index` of a tensor whose last dimension has all of them.
  Value gate(Importer &n, Value all, int64_t index, int64_t count = 1) const {
    return n.slice(all, Importer::rank(all) - 1, index * size, count * size);
  }
  Value activate(Importer &n, int64_t function, Value x) const {
    if (clip)
      x = n.binary<nn::MaxOp>(n.binary<nn::MinOp>(x, n.splatLike(x, *clip)),
                              n.splatLike(x, -*clip));
    return functions[function](n, x);
  }
};

/// The states between two steps, [B, H] each: what is seen, and, of an LSTM,
/// the cell's own.
struct States {
  Value hidden, cell;
};

/// One step: from the states, of the input's product [B, gates · H] with the
/// input's bias, and the state's where the step does not add it itself.
using Step = States (*)(Importer &n, const Cell &cell, Value product,
                        States states);
} // namespace

static Value product(Importer &n, Value x, Value weight) {
  return n.matmul(x, weight, /*transposeLhs=*/false, /*transposeRhs=*/true);
}

/// Gates i, o, f and c; peepholes p: i = f(x + pi ⊙ c), f alike (1 - i with
/// `input_forget`), c' = f ⊙ c + i ⊙ g(x), o = f(x + po ⊙ c'), h = o ⊙ h(c').
template <bool forgetsInput>
static States stepLstm(Importer &n, const Cell &cell, Value x, States states) {
  Value gates =
      n.binary<nn::AddOp>(x, product(n, states.hidden, cell.stateWeight));
  auto open = [&](int64_t index, int64_t hole, Value seen) {
    Value gate = cell.gate(n, gates, index);
    if (cell.peepholes)
      gate = n.binary<nn::AddOp>(
          gate, n.binary<nn::MulOp>(seen, cell.gate(n, cell.peepholes, hole)));
    return cell.activate(n, 0, gate);
  };
  Value input, output, forget;
  if (cell.peepholes) {
    input = open(0, 0, states.cell);
    forget = open(2, 2, states.cell);
  } else { // three of one function
    Value all = cell.activate(n, 0, cell.gate(n, gates, 0, 3));
    input = cell.gate(n, all, 0);
    output = cell.gate(n, all, 1);
    forget = cell.gate(n, all, 2);
  }
  if (forgetsInput)
    forget = n.binary<nn::SubOp>(n.splatLike(input, 1), input);
  Value fresh = cell.activate(n, 1, cell.gate(n, gates, 3));
  Value next = n.binary<nn::AddOp>(n.binary<nn::MulOp>(forget, states.cell),
                                   n.binary<nn::MulOp>(input, fresh));
  if (cell.peepholes)
    output = open(1, 1, next);
  return {n.binary<nn::MulOp>(output, cell.functions[2](n, next)), next};
}

/// Gates z, r and h: h' = (1 - z) ⊙ g(x + Rh (r ⊙ h) + b) + z ⊙ h, or, with
/// `linear_before_reset`, g(x + r ⊙ (Rh h + b)).
template <bool resetsProduct>
static States stepGru(Importer &n, const Cell &cell, Value x, States states) {
  Value hidden = states.hidden;
  int64_t size = cell.size;
  auto weight = [&](int64_t gate, int64_t count) {
    return n.slice(cell.stateWeight, 0, gate * size, count * size);
  };
  auto addBias = [&](Value value, int64_t gate, int64_t count) {
    return cell.stateBias
               ? n.binary<nn::AddOp>(value,
                                     cell.gate(n, cell.stateBias, gate, count))
               : value;
  };
  Value update, reset, from;
  auto open = [&](Value products) {
    Value both = cell.activate(
        n, 0, n.binary<nn::AddOp>(cell.gate(n, x, 0, 2), products));
    update = cell.gate(n, both, 0);
    reset = cell.gate(n, both, 1);
  };
  if (resetsProduct) {
    Value all = addBias(product(n, hidden, cell.stateWeight), 0, 3);
    open(cell.gate(n, all, 0, 2));
    from = n.binary<nn::MulOp>(reset, cell.gate(n, all, 2));
  } else {
    open(addBias(product(n, hidden, weight(0, 2)), 0, 2));
    from = addBias(product(n, n.binary<nn::MulOp>(reset, hidden), weight(2, 1)),
                   2, 1);
  }
  Value fresh =
      cell.activate(n, 1, n.binary<nn::AddOp>(cell.gate(n, x, 2), from));
  Value kept = n.binary<nn::SubOp>(n.splatLike(update, 1), update);
  return {n.binary<nn::AddOp>(n.binary<nn::MulOp>(kept, fresh),
                              n.binary<nn::MulOp>(update, hidden)),
          nullptr};
}

static States stepRnn(Importer &n, const Cell &cell, Value x, States states) {
  Value sum =
      n.binary<nn::AddOp>(x, product(n, states.hidden, cell.stateWeight));
  return {cell.activate(n, 0, sum), nullptr};
}

/// A function by its name in ONNX, which takes its alpha and beta from the
/// lists, where it has some; an error if there is none of the name.
static Function findFunction(Importer &n, StringRef name,
                             ArrayRef<double> &alphas,
                             ArrayRef<double> &betas) {
  auto take = [](ArrayRef<double> &list, double fallback) {
    if (list.empty())
      return fallback;
    double first = list.front();
    list = list.drop_front();
    return first;
  };
  std::string lower = name.lower();
  // ONNX has no numbers for these two where the node has none.
  if ((lower == "affine" || lower == "scaledtanh") &&
      (alphas.empty() || betas.empty())) {
    n.error() << "expected 'activation_alpha' and 'activation_beta' for '"
              << name << "', found none";
    return nullptr;
  }
  if (lower == "sigmoid")
    return [](Importer &n, Value x) { return n.unary<nn::SigmoidOp>(x); };
  if (lower == "tanh")
    return [](Importer &n, Value x) { return n.unary<nn::TanhOp>(x); };
  if (lower == "relu")
    return [](Importer &n, Value x) { return n.unary<nn::ReluOp>(x); };
  if (lower == "softsign")
    return [](Importer &n, Value x) { return softsign(n, x); };
  if (lower == "softplus")
    return [](Importer &n, Value x) { return softplus(n, x); };
  if (lower == "leakyrelu")
    return [alpha = take(alphas, 0.01f)](Importer &n, Value x) {
      return leakyRelu(n, x, alpha);
    };
  if (lower == "thresholdedrelu")
    return [alpha = take(alphas, 1)](Importer &n, Value x) {
      return thresholdedRelu(n, x, alpha);
    };
  if (lower == "elu")
    return [alpha = take(alphas, 1)](Importer &n, Value x) {
      return elu(n, x, alpha);
    };
  if (lower == "hardsigmoid")
    return [alpha = take(alphas, 0.2f), beta = take(betas, 0.5f)](
               Importer &n, Value x) { return hardSigmoid(n, x, alpha, beta); };
  if (lower == "affine")
    return
        [alpha = take(alphas, 1), beta = take(betas, 0)](Importer &n, Value x) {
          return n.binary<nn::AddOp>(n.scale(x, alpha), n.splatLike(x, beta));
        };
  if (lower == "scaledtanh")
    return
        [alpha = take(alphas, 1), beta = take(betas, 1)](Importer &n, Value x) {
          return n.scale(n.unary<nn::TanhOp>(n.scale(x, beta)), alpha);
        };
  n.error() << "expected an activation of ONNX's recurrent operators, found '"
            << name << "'";
  return nullptr;
}

static SmallVector<double> floatsAttr(Importer &n, StringRef name) {
  const auto *found = n.attribute(name, onnx::AttributeProto::FLOATS);
  return found ? SmallVector<double>(found->floats().begin(),
                                     found->floats().end())
               : SmallVector<double>();
}

/// Those of all directions: `defaults` of each where the node names none.
static SmallVector<Function> readFunctions(Importer &n, int64_t directions,
                                           ArrayRef<StringRef> defaults) {
  SmallVector<StringRef> names;
  if (const auto *given =
          n.attribute("activations", onnx::AttributeProto::STRINGS))
    names.assign(given->strings().begin(), given->strings().end());
  else
    for (int64_t direction = 0; direction < directions; ++direction)
      llvm::append_range(names, defaults);
  SmallVector<double> alphas = floatsAttr(n, "activation_alpha"),
                      betas = floatsAttr(n, "activation_beta");
  ArrayRef<double> restOfAlphas = alphas, restOfBetas = betas;
  SmallVector<Function> functions;
  for (StringRef name : names)
    if (!n.hasFailed())
      functions.push_back(findFunction(n, name, restOfAlphas, restOfBetas));
  if (!n.hasFailed() && functions.size() != directions * defaults.size())
    n.error() << "expected " << directions * defaults.size()
              << " activations, found " << functions.size();
  return functions;
}

/// Checks operand `index`, if it is there; an error if its shape is another.
static Value readOperand(Importer &n, unsigned index, ArrayRef<int64_t> shape) {
  Value value = n.operand(index);
  if (!value || Importer::shape(value) == shape)
    return value;
  auto type = RankedTensorType::get(shape, Importer::element(value));
  n.error() << "expected operand #" << index << " to be " << type << ", found "
            << value.getType();
  return nullptr;
}

/// All directions of a network of `gates` gates.
static LogicalResult importRecurrent(Importer &n, int64_t gates, Step step,
                                     ArrayRef<StringRef> functions,
                                     bool addsStateBias, bool hasCell) {
  std::string direction = n.stringAttr("direction", "forward");
  bool isBoth = direction == "bidirectional";
  if (!isBoth && direction != "forward" && direction != "reverse")
    return n.error() << "expected 'direction' to be forward, reverse or "
                        "bidirectional, found '"
                     << direction << "'";
  int64_t directions = isBoth ? 2 : 1, layout = n.intAttr("layout", 0);
  if (layout != 0 && layout != 1)
    return n.error() << "expected 'layout' to be 0 or 1, found " << layout;
  SmallVector<Function> all = readFunctions(n, directions, functions);
  std::optional<double> clip;
  if (n.hasAttribute("clip"))
    clip = n.floatAttr("clip", 0);
  Value x = n.operand(0), weights = n.operand(2);
  if (n.hasFailed())
    return failure();
  if (Importer::rank(x) != 3 || Importer::rank(weights) != 3)
    return n.error() << "expected an input and weights of rank 3, found "
                     << x.getType() << " and " << weights.getType();
  if (layout == 1)
    x = n.transpose(x, {1, 0, 2});
  int64_t steps = Importer::shape(x)[0], batch = Importer::shape(x)[1],
          inputs = Importer::shape(x)[2], size = Importer::shape(weights)[2];
  if (int64_t given = n.intAttr("hidden_size", size); given != size)
    return n.error() << "expected 'hidden_size' of " << size
                     << ", which its weights have, found " << given;
  // Each is a copy of the cell.
  constexpr int64_t kMostSteps = 8192;
  if (steps < 1 || steps > kMostSteps)
    return n.error() << "expected a sequence of 1 to " << kMostSteps
                     << " steps, found " << steps;
  Value inputWeights = readOperand(n, 1, {directions, gates * size, inputs});
  weights = readOperand(n, 2, {directions, gates * size, size});
  Value biases = readOperand(n, 3, {directions, 2 * gates * size});
  Value lengths = readOperand(n, 4, {batch});
  Value peepholes =
      hasCell ? readOperand(n, 7, {directions, 3 * size}) : Value();
  auto initial = [&](unsigned index) {
    SmallVector<int64_t> shape{directions, batch, size};
    if (layout == 1)
      std::swap(shape[0], shape[1]);
    Value given = readOperand(n, index, shape);
    if (given && layout == 1)
      given = n.transpose(given, {1, 0, 2});
    return given ? given
                 : n.splat({directions, batch, size}, Importer::element(x), 0);
  };
  Value hidden = initial(5), cells = hasCell ? initial(6) : Value();
  if (n.hasFailed())
    return failure();

  SmallVector<Value> sequences, lastHidden, lastCell;
  for (int64_t which = 0; which < directions; ++which) {
    auto part = [&](Value value) {
      if (!value)
        return value;
      SmallVector<int64_t> shape(Importer::shape(value).drop_front());
      return n.reshape(n.slice(value, 0, which, 1), shape);
    };
    Cell cell;
    cell.size = size;
    cell.clip = clip;
    cell.inputWeight = part(inputWeights);
    cell.stateWeight = part(weights);
    cell.peepholes = part(peepholes);
    cell.functions.assign(all.begin() + which * functions.size(),
                          all.begin() + (which + 1) * functions.size());
    if (Value both = part(biases)) {
      cell.inputBias = n.slice(both, 0, 0, gates * size);
      cell.stateBias = n.slice(both, 0, gates * size, gates * size);
    }
    Value products = product(n, x, cell.inputWeight);
    if (cell.inputBias)
      products = n.binary<nn::AddOp>(
          products, addsStateBias
                        ? n.binary<nn::AddOp>(cell.inputBias, cell.stateBias)
                        : cell.inputBias);
    States states{part(hidden), part(cells)};
    SmallVector<Value> outputs(steps);
    bool isReverse = direction == "reverse" || which == 1;
    for (int64_t count = 0; count < steps && !n.hasFailed(); ++count) {
      int64_t at = isReverse ? steps - 1 - count : count;
      Value own = n.reshape(n.slice(products, 0, at, 1), {batch, gates * size});
      States next = step(n, cell, own, states);
      Value shown = next.hidden;
      if (lengths) { // beyond its length a sequence stays as it is
        Value isWithin = n.reshape(n.compare(nn::ComparePredicate::gt, lengths,
                                             n.splatLike(lengths, at)),
                                   {batch, 1});
        shown = n.select(isWithin, next.hidden, n.splatLike(next.hidden, 0));
        next.hidden = n.select(isWithin, next.hidden, states.hidden);
        if (hasCell)
          next.cell = n.select(isWithin, next.cell, states.cell);
      }
      outputs[at] = n.reshape(shown, {1, 1, batch, size});
      states = next;
    }
    if (n.hasFailed())
      return failure();
    if (n.wantsResult(0))
      sequences.push_back(n.concat(outputs, 0));
    lastHidden.push_back(n.reshape(states.hidden, {1, batch, size}));
    if (hasCell)
      lastCell.push_back(n.reshape(states.cell, {1, batch, size}));
  }
  auto last = [&](ArrayRef<Value> of) {
    Value joined = n.concat(of, 0);
    return layout == 1 ? n.transpose(joined, {1, 0, 2}) : joined;
  };
  n.setResult(1, last(lastHidden));
  if (hasCell)
    n.setResult(2, last(lastCell));
  if (!n.wantsResult(0))
    return n.finish();
  Value sequence = n.concat(sequences, 1); // [T, D, B, H]
  return n.finish(layout == 1 ? n.transpose(sequence, {2, 0, 1, 3}) : sequence);
}

static LogicalResult importLstm(Importer &n) {
  bool forgetsInput = n.intAttr("input_forget", 0);
  return importRecurrent(n, 4, forgetsInput ? stepLstm<true> : stepLstm<false>,
                         {"Sigmoid", "Tanh", "Tanh"}, /*addsStateBias=*/true,
                         /*hasCell=*/true);
}

static LogicalResult importGru(Importer &n) {
  bool resetsProduct = n.intAttr("linear_before_reset", 0);
  return importRecurrent(n, 3, resetsProduct ? stepGru<true> : stepGru<false>,
                         {"Sigmoid", "Tanh"}, /*addsStateBias=*/false,
                         /*hasCell=*/false);
}

static LogicalResult importRnn(Importer &n) {
  return importRecurrent(n, 1, stepRnn, {"Tanh"}, /*addsStateBias=*/true,
                         /*hasCell=*/false);
}

ArrayRef<OpRow> accel::import::recurrentOps() {
  static const OpRow rows[] = {
      {"", "GRU", 7, 3, 6, importGru},
      {"", "LSTM", 7, 3, 8, importLstm},
      {"", "RNN", 7, 3, 6, importRnn},
  };
  return rows;
}
