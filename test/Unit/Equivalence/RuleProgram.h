// A small random program of one rank, the logical program beside it, and what
// facts of the first proof mean: element by element, on virtual ranks. It
// shares no code with what concludes facts from facts.

#ifndef ACCEL_TEST_UNIT_EQUIVALENCE_RULEPROGRAM_H
#define ACCEL_TEST_UNIT_EQUIVALENCE_RULEPROGRAM_H

#include "lib/Equivalence/Follow.h"
#include "lib/Evaluate/Lockstep.h"
#include "mlir/IR/Builders.h"

#include <random>

namespace accel::test {

class RuleProgram {
public:
  /// An empty program on a random mesh of one to three axes, of at most
  /// `points` ranks times micro-batches.
  RuleProgram(mlir::MLIRContext &context, uint64_t seed, int64_t points = 12);

  int64_t pick(int64_t count) { return random() % count; }
  bool chance(int percent) { return pick(100) < percent; }
  template <typename T> T pickOf(std::initializer_list<T> choices) {
    return choices.begin()[pick(choices.size())];
  }
  llvm::SmallVector<int64_t> pickShape(int64_t least, int64_t most);

  /// An argument of the logical program; integers are from `least` on, and less
  /// than `bound`.
  mlir::Value takeWhole(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                        int64_t bound = 2, int64_t least = 0);
  mlir::Value takeWhole(llvm::ArrayRef<int64_t> shape) {
    return takeWhole(shape, f64);
  }
  /// What a random piece may be beside axes that split it.
  struct Kinds {
    int partial = 30, free = 10, padding = 8, order = 8, parts = 5;
    int again = 65; ///< percent that it is split like the one before it
  };
  /// A piece of a logical value, and one rank's shape of it.
  equivalence::Piece pickPiece(mlir::Value logical, Kinds kinds);
  llvm::SmallVector<int64_t> getShape(const equivalence::Piece &piece);
  /// The piece of another value of the same shape.
  equivalence::Piece likewise(equivalence::Piece piece, mlir::Value logical) {
    piece.logical = logical;
    return piece;
  }
  /// An argument of the rank's program that holds a piece, a sum of terms, or
  /// with `isSum` the sum over micro-batches so far.
  mlir::Value take(const equivalence::Piece &piece);
  mlir::Value takeTerms(std::vector<std::vector<equivalence::Piece>> terms);
  mlir::Value takeSum(mlir::RankedTensorType type,
                      std::vector<std::vector<equivalence::Piece>> terms = {},
                      dist::Reduction combines = dist::Reduction::sum);
  mlir::Value constant(mlir::OpBuilder &builder, mlir::RankedTensorType type,
                       double number);

  /// Asks `rules` of an op, and no others. Of ops that are never asked
  /// constants alone are known.
  void ask(mlir::Operation *op, llvm::ArrayRef<equivalence::RuleId> rules);

  /// What the logical program gives, and the type that it declares for terms of
  /// gradients between ranks.
  void giveOutput(mlir::Value value) { outputs.push_back(value); }
  void declareWire(mlir::Type type);
  /// Follows a collective as the proof does; one that is refused is not asked.
  void accept(mlir::Operation *collective);

  /// Asks all rules of the ops that are before one, as the proof does.
  void follow(mlir::Operation *end);
  void follow(mlir::Value end) { follow(end.getDefiningOp()); }

  /// Whether anything has been concluded of a value.
  bool isKnown(mlir::Value value) {
    return follower && !follower->at(value).isNothing();
  }

  enum class Verdict { Nothing, Sound, Unsound, NoProgram };
  /// Whether what has been concluded of the ops asked last is true. `why`:
  /// which fact is not.
  Verdict check(std::string &why);

  mlir::OpBuilder whole, local; ///< at the ends of the two programs
  mlir::Location loc;
  mlir::Type f64;
  llvm::SmallVector<mlir::StringAttr> axes;
  bool isValid = true; ///< whether its ops are well-formed

  /// An op of either program; one that its verifier refuses makes the program
  /// invalid.
  template <typename Op, typename... Args>
  mlir::Value make(mlir::OpBuilder &builder, Args &&...args) {
    return add(builder, Op::create(builder, loc, std::forward<Args>(args)...));
  }
  mlir::Value add(mlir::OpBuilder &builder, mlir::Operation *op);
  dist::AxesAttr getAxes(llvm::ArrayRef<mlir::StringAttr> names);
  mlir::FlatSymbolRefAttr getMeshName() {
    return mlir::FlatSymbolRefAttr::get(module->getContext(), "mesh");
  }
  dist::MeshOp getMesh() { return mesh; }
  int64_t getSize(mlir::StringAttr axis) { return *mesh.findAxisSize(axis); }
  void print(llvm::raw_ostream &os);

private:
  /// A rank at a micro-batch.
  using Point = evaluate::MeshPoint;
  std::vector<Point> getPoints();
  int64_t number(Point point) {
    return point.microBatch * mesh.getRankCount() + point.rank;
  }
  /// The points that agree in all axes but these.
  std::vector<Point> getGroup(Point point, llvm::ArrayRef<mlir::StringAttr> of);
  std::vector<int64_t> getIndices(const equivalence::Dim &dim, int64_t size,
                                  int64_t held, Point point);
  /// By element of a rank's tensor: the number that it must be, none of
  /// padding.
  using Numbers = std::vector<std::optional<double>>;
  Numbers cut(const Tensor &tensor, const equivalence::Piece &piece,
              llvm::ArrayRef<int64_t> shape, Point point);
  Tensor getWhole(mlir::Value value);
  /// One tensor a point.
  using Tensors = std::vector<Tensor>;
  std::vector<Tensor> pickTerms(const equivalence::Piece &piece);
  Tensors materialize(const equivalence::Piece &piece,
                      mlir::RankedTensorType type);
  Tensors materialize(mlir::Value argument);
  void begin();
  void noteEqual(const equivalence::Piece &piece);
  bool evaluateLocal();
  bool isTrue(const equivalence::Piece &piece, const Tensors &tensors);
  bool isTrue(const equivalence::View &view, const Tensors &tensors);
  /// By what the dealing's numbers say on each rank.
  bool isTrue(const equivalence::Dealt &dealt, const Tensors &tensors);
  bool isTrue(equivalence::DealIndex index, const Tensors &tensors);
  /// Whether rounding what a collective sends shows in nothing but gradients.
  bool isWireDeclared(dist::CollectiveOpInterface op,
                      const equivalence::Known &known);
  bool isForGradients(mlir::Value root);
  bool isTrue(const equivalence::Turned &turned, const Tensors &tensors);
  /// The rank so many places before another along an axis.
  Point getTurned(Point point, mlir::StringAttr axis, int64_t turn);
  Tensor attend(mlir::OpResult result, llvm::ArrayRef<int64_t> rows,
                llvm::ArrayRef<int64_t> keys, bool zeroRows, bool isLeveled);
  static bool isClose(double found, double expected);
  /// A point's group along axes, in the order of its ranks' numbers.
  std::vector<Point> getRanks(Point point, llvm::ArrayRef<mlir::StringAttr> of);
  bool areTrue(const std::vector<std::vector<equivalence::Piece>> &terms,
               const Tensors &tensors);
  Tensors getSum();
  bool isCombination(const equivalence::Known &known, const Tensors &found);
  bool isWellFormed(const equivalence::Piece &piece,
                    llvm::ArrayRef<int64_t> shape);
  double draw() {
    return pickOf({-7., -5., -3., -2., -1., 1., 2., 3., 4., 6.});
  }

  std::mt19937_64 random;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  dist::MeshOp mesh;
  mlir::func::FuncOp wholeFunction, localFunction;
  std::optional<equivalence::Piece> last; ///< piece picked
  struct Given {
    equivalence::Known known;
    Tensors tensors;
    Tensors sum = {}; ///< over micro-batches, before the terms
  };
  llvm::MapVector<mlir::Value, Given> given; ///< local arguments
  llvm::SmallVector<mlir::Value> outputs;    ///< of the logical program
  llvm::DenseMap<mlir::Value, std::pair<int64_t, int64_t>>
      bounds;                                           ///< of integers
  llvm::DenseMap<mlir::Value, std::vector<bool>> equal; ///< dims, by argument
  llvm::DenseMap<mlir::Value, Tensor> wholes;
  llvm::DenseMap<mlir::Value, Tensors> locals;
  std::unique_ptr<equivalence::Logical> logical;
  std::unique_ptr<equivalence::Follower> follower;
  llvm::DenseSet<mlir::Operation *> sources; ///< that are known
  mlir::Operation *asked = nullptr;          ///< the last one
};

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_EQUIVALENCE_RULEPROGRAM_H
