// What each op of one rank's program computes, in terms of the logical one.

#ifndef ACCEL_LIB_EQUIVALENCE_FOLLOW_H
#define ACCEL_LIB_EQUIVALENCE_FOLLOW_H

#include "Logical.h"
#include "Pieces.h"
#include "Rules.h"
#include "dialects/NN/NN.h"
#include <map>

namespace accel::equivalence {

/// A rank's number along axes, times a factor: where its piece begins.
struct Offset {
  Axes axes;
  int64_t factor = 1;
};

/// A piece in a ring of the ranks along an axis, which splits its rows or keys:
/// of the rank `turn` places before this one, cyclically. With `terms` it is
/// not all there: it has what the ranks so many places before this one add to
/// it.
struct Turned {
  Piece piece;
  mlir::StringAttr axis;
  int64_t turn = 0;
  std::vector<int64_t> terms;
  /// Whether rows' log-sum-exps are counted from the levels of their mask.
  bool isLeveled = false;
  /// How the keys are split that its terms are of; of keys' gradients, the
  /// rows.
  Dim others = {};

  bool isComplete(int64_t ranks) const;
  bool operator==(const Turned &other) const {
    return piece == other.piece && axis == other.axis && turn == other.turn &&
           terms == other.terms && isLeveled == other.isLeveled &&
           others == other.others;
  }
};

/// A dealing of rows over ranks (nn.deal_rows): the axes of these, and what the
/// groups of a rank's own rows may be.
struct Dealing {
  Axes axes;
  std::vector<Piece> groups;
};

/// Rows that a dealing has given to this rank, of a piece whose rows are its
/// own: which ones, only the dealing's numbers say.
struct Dealt {
  Piece piece;
  mlir::Operation *deal;
  bool noneIsZero; ///< whether rows of no group are zeros of the whole

  bool operator==(const Dealt &other) const {
    return piece == other.piece && deal == other.deal &&
           noneIsZero == other.noneIsZero;
  }
};

/// A piece of which a value has one part of several that are made one after
/// another: what a rank would hold whose place along `axis`, no axis of the
/// mesh, is `which`. Of terms it is the sum of those of several such places.
struct Portion {
  Piece piece;
  mlir::StringAttr axis;
  llvm::SmallVector<int64_t, 1> which;

  bool isLike(const Portion &other) const {
    return axis == other.axis && piece == other.piece;
  }
  bool operator==(const Portion &other) const {
    return isLike(other) && which == other.which;
  }
};

/// The numbers that a dealing gives, by result.
struct DealIndex {
  mlir::Operation *deal;
  unsigned number;
};

/// What is known of a local value. None of these: nothing.
struct Known {
  /// The values of the logical program that it holds a piece of, and, where
  /// equal elements leave it open, each piece that it may be.
  std::vector<Piece> pieces;
  mlir::Attribute splat; ///< all elements are this
  /// The sum over micro-batches that it is, so far, with further terms: of each
  /// what it may be. Without one a sum of terms that the logical program adds
  /// in another order.
  mlir::StringAttr sum;
  std::vector<std::vector<Piece>> terms;
  dist::Reduction combines = dist::Reduction::sum; ///< how terms came in
  /// What it is of a value whose elements the logical program has nowhere in
  /// this shape.
  std::vector<View> views;
  std::vector<Turned> turned; ///< what it is of what goes round in rings
  std::vector<Dealt> dealt;   ///< and of rows that are dealt
  std::vector<Portion> portions;
  /// The value that it is, where what this comes to is seen where it is used:
  /// numbers of ranks and of dealings, arithmetic on indices, parts of masks.
  mlir::Value formula;

  bool isNothing() const {
    return pieces.empty() && !splat && !sum && terms.empty() && views.empty() &&
           turned.empty() && dealt.empty() && portions.empty() && !formula;
  }
  bool isZero() const;
  /// Whether it changes nothing where it is combined with others.
  bool isIdentityOf(dist::Reduction kind) const;
};

/// Whether two ops are the same function, sizes aside.
bool agree(mlir::Operation *logical, mlir::Operation *local);

/// Whether two ops look up along the same dimension and stop for the same
/// indices. Which row is padding says nothing of what is looked up.
bool isSameLookup(mlir::Operation *whole, mlir::Operation *local);

/// Whether a value is nothing by itself: what tells padding from elements, or
/// an index that is checked, is seen where it is used.
bool isGuard(mlir::Operation *op);

/// Adds what is not there yet.
void insert(std::vector<Piece> &pieces, const Piece &piece);

/// The dimensions of two pieces of tensors of `whole`'s shape whose elements
/// stand side by side: where one's are equal, those of the other. None if they
/// are split differently, or one by rows and the other by columns over the same
/// ranks: each has a block of the diagonal, of which no collective makes rows
/// or columns.
std::optional<std::vector<Dim>> joinDims(llvm::ArrayRef<Dim> lhs,
                                         llvm::ArrayRef<Dim> rhs,
                                         mlir::Value whole, PieceMaker &maker);

/// Follows one rank's ops in order.
class Follower {
public:
  Follower(Logical &logical, dist::MeshOp mesh)
      : logical(logical), mesh(mesh), maker(mesh) {}

  /// Finds what the op's results hold; an error if that is nothing of the
  /// logical program.
  mlir::LogicalResult follow(mlir::Operation *op);
  Known &at(mlir::Value value) {
    std::unique_ptr<Known> &what = known[value];
    if (!what)
      what = std::make_unique<Known>();
    return *what;
  }
  /// The pieces of `wanted`, a root of the logical program, that a value holds.
  std::vector<Piece> hold(mlir::Value value, mlir::Value wanted);
  PieceMaker &getMaker() { return maker; }
  /// What is known of a dealing that has been followed.
  const Dealing &getDealing(mlir::Operation *deal) { return dealings[deal]; }
  /// Where a rank's piece begins, as each element of a value; none if it is
  /// anything else.
  std::optional<Offset> getOffset(mlir::Value value);
  /// Which numbers of a dealing that has been followed a value is; none if it
  /// is anything else.
  std::optional<DealIndex> getDealIndex(mlir::Value value);

  /// All rules, in the order in which they are asked.
  static llvm::ArrayRef<Rule> getRules();
  /// Asks one rule what it concludes of an op.
  void apply(const Rule &rule, mlir::Operation *op) {
    (this->*rule.transfer)(op, at(op->getResult(0)));
  }

private:
  using Operands = std::vector<std::vector<Piece>>;

  /// Asks the rules of a stage.
  void apply(Stage stage, mlir::Operation *op);
  /// Whether anything is known of a result.
  bool isFollowed(mlir::Operation *op);
  /// Finds what an op on its rank's own values computes; false if nothing.
  bool followValue(mlir::Operation *op);
  mlir::LogicalResult followCollective(dist::CollectiveOpInterface op);
  bool readsSeveral(mlir::Operation *op);
  bool readFurther(mlir::Value value);
  std::vector<Piece> move(dist::CollectiveOpInterface op,
                          llvm::ArrayRef<Piece> pieces);
  // What each rule is, `Rules.def` says.
#define RULE(ID, STAGE, LAST, FILE, SAYS)                                      \
  void follow##ID(mlir::Operation *op, Known &result);
#define PREMISE(RULE, ID, TEXT)
#include "Rules.def"
#undef RULE
#undef PREMISE
  std::optional<View> applyParts(mlir::Operation *whole, mlir::Operation *local,
                                 const View &view);
  /// What is somewhere a value, and zeros where a mask does not hold.
  struct Masked {
    mlir::Value value, mask;
  };
  std::optional<Masked> getMasked(mlir::Value value,
                                  llvm::ArrayRef<int64_t> shape, size_t batch,
                                  size_t from);
  bool isArithmetic(mlir::Operation *op);
  bool isPartOfRing(mlir::Operation *op);
  bool isPartOfDealing(mlir::Operation *op);
  mlir::Operation *getFormulaOp(mlir::Value value) {
    mlir::Value formula = at(value).formula;
    return formula ? formula.getDefiningOp() : nullptr;
  }
  std::vector<Piece> applyOwn(mlir::Operation *whole, mlir::Operation *local,
                              mlir::Value mask, Operands values,
                              bool startsAsZeros = false);
  std::vector<Piece> applyOwnScatter(mlir::Operation *whole,
                                     mlir::Operation *local,
                                     std::vector<Piece> table,
                                     bool startsAsZeros);
  bool distribute(mlir::Operation *op);
  bool distributeViews(mlir::Operation *op);
  bool addViews(mlir::Operation *op);
  bool stackMatrices(nn::ConcatOp op);
  void insertPortion(Known &result, Portion portion);
  void applyMaps(mlir::Operation *op);
  llvm::SmallSetVector<mlir::Operation *, 2> getDeals(mlir::Operation *op);
  void applyDealtProduct(mlir::Operation *op, mlir::Operation *deal);
  void applyDealtRows(mlir::Operation *op, mlir::Operation *deal);
  bool isOfDealing(const Piece &piece, mlir::Operation *deal);
  std::vector<Piece> holdDealt(mlir::Value value, mlir::Value root,
                               mlir::Operation *deal);
  void insertDealt(mlir::Value value, Dealt dealt);
  template <typename AttentionLike> void followRectangle(AttentionLike local);
  void addRectangle(mlir::Operation *local, llvm::ArrayRef<Piece> results,
                    const Turned &keys, bool isLeveled);
  /// A mask whose columns of the keys of the rank `turn` places before a rank
  /// has, along `axis`.
  struct MaskColumns {
    mlir::Value mask;
    mlir::StringAttr axis;
    int64_t turn;
    bool isLeveled; ///< whether levels stand before them
  };
  mlir::Value getLeveledMask(mlir::Value value);
  bool areSamePiece(mlir::Value lhs, mlir::Value rhs);
  std::vector<Piece> getLeveled(mlir::Value value, mlir::Value wanted,
                                mlir::Value mask);
  bool isMaskPart(mlir::Operation *op);
  std::optional<MaskColumns> getMaskColumns(mlir::Value value);
  struct Subtrahend {
    mlir::Value value;
    bool isGuarded = false;
  };
  Subtrahend getSubtrahend(mlir::Value value);
  struct LogAddExp {
    mlir::Value a, b;
    bool isGuarded; ///< whether both may be -inf
  };
  std::optional<LogAddExp> matchLogAddExp(mlir::Value value);
  struct Weighted {
    mlir::Value value, part, all;
    bool isGuarded; ///< whether it is 0 where `all` is -inf; else it is NaN
  };
  std::optional<Weighted> matchWeighted(mlir::Value product);
  bool belongTogether(const Turned &rows, mlir::Value logSumExp);
  void insertTurned(mlir::Value value, Turned turned);
  std::vector<Turned> getTurned(mlir::Value value);
  std::vector<std::vector<Piece>>
  apply(mlir::Operation *whole, Operands operands, llvm::ArrayRef<bool> zeros,
        mlir::Operation *local, bool ownRows = false);
  Logical::Ops findScatters(nn::ScatterAddOp local);
  std::vector<Piece> applyScatter(mlir::Operation *whole,
                                  mlir::Operation *local);
  using Terms = std::vector<std::vector<Piece>>;
  std::vector<Piece> getEqualTerms(mlir::Value value);
  bool collectTerms(mlir::Operation *op, Terms &terms);
  Terms join(Terms terms);
  std::vector<Piece> findSum(const Terms &terms);
  void insertSum(std::vector<Piece> &pieces, const Piece &piece);
  std::vector<View> getViews(mlir::Value value);
  /// Whether it is a part of equal elements, of which any is as good, or was
  /// one and is read in another order now.
  bool holdsSeveralWays(mlir::Value value);
  void addPieces(const View &view, mlir::Value value, Known &result);
  std::vector<Piece> addTerms(llvm::ArrayRef<Piece> lhs,
                              llvm::ArrayRef<Piece> rhs);

  Logical &logical;
  dist::MeshOp mesh;
  PieceMaker maker;
  /// References to what is known stay good.
  llvm::DenseMap<mlir::Value, std::unique_ptr<Known>> known;
  llvm::DenseMap<mlir::Operation *, Dealing> dealings;
  llvm::DenseSet<mlir::Operation *> furtherRead;
  size_t piecesBeforeMap = 0; ///< of the op whose map is asked
  std::string why;            ///< the last thing that kept an op from following
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_FOLLOW_H
