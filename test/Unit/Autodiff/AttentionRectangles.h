// Attention cut into rectangles of scores, as cases of differentiation: each is
// an nn.attention of its own, combined by their log-sum-exps with ops of nn, so
// that gradients pass through results and log-sum-exps alike.

#ifndef ACCEL_TEST_UNIT_AUTODIFF_ATTENTIONRECTANGLES_H
#define ACCEL_TEST_UNIT_AUTODIFF_ATTENTIONRECTANGLES_H

#include "VjpCases.h"

#include <deque>
#include <string>
#include <vector>

namespace accel::test {

/// 8 rows and keys, 2 heads of one key head; causal behind `hidden` keys: row s
/// sees key t where t + hidden <= s.
class AttentionRectangles {
public:
  /// The body of a case whose %r is the result of the whole attention (`cuts`
  /// is 1) or of cuts by cuts rectangles. `withSums` multiplies it by the
  /// log-sum-exps, which must be finite then.
  AttentionRectangles(int64_t cuts, int64_t hidden, bool withSums)
      : cuts(cuts), hidden(hidden), size(kLength / cuts) {
    std::string results, sums, resultTypes, sumTypes;
    for (int64_t row = 0; row < cuts; ++row) {
      combine(row);
      std::string number = std::to_string(row), comma = row ? ", " : "";
      results += comma + "%y" + number;
      sums += comma + "%l" + number;
      resultTypes += comma + wide();
      sumTypes += comma + rows();
    }
    std::string whole = tensor("1x2x8x3");
    line("%result = nn.concat " + results + " dim 2 : (" + resultTypes +
         ") -> " + whole);
    line("%sums = nn.concat " + sums + " dim 2 : (" + sumTypes + ") -> " +
         tensor("1x2x8"));
    std::string factor = "%result";
    if (withSums) {
      line("%column = nn.reshape %sums : (" + tensor("1x2x8") + ") -> " +
           tensor("1x2x8x1"));
      line("%factor = nn.broadcast %column : (" + tensor("1x2x8x1") + ") -> " +
           whole);
      factor = "%factor";
    }
    binary("%r", withSums ? "mul" : "add", "%result", factor, whole);
  }
  const std::string &body() const { return text; }

private:
  static constexpr int64_t kLength = 8;

  static std::string tensor(const std::string &shape) {
    return "tensor<" + shape + "xf64>";
  }
  std::string rows() const { return tensor("1x2x" + std::to_string(size)); }
  std::string wide() const {
    return tensor("1x2x" + std::to_string(size) + "x3");
  }
  void line(const std::string &op) { text += op + "\n"; }
  void binary(const std::string &name, const char *op, const std::string &lhs,
              const std::string &rhs, const std::string &type) {
    line(name + " = nn." + op + " " + lhs + ", " + rhs + " : (" + type + ", " +
         type + ") -> " + type);
  }
  void unary(const std::string &name, const char *op,
             const std::string &operand) {
    line(name + " = nn." + op + " " + operand + " : (" + rows() + ") -> " +
         rows());
  }
  /// `then` where `test` equals `value`.
  void select(const std::string &name, const std::string &test,
              const std::string &value, const std::string &then) {
    std::string bits = "tensor<1x2x" + std::to_string(size) + "xi1>";
    line(name + "e = nn.compare eq " + test + ", " + value + " : (" + rows() +
         ", " + rows() + ") -> " + bits);
    line(name + " = nn.select " + name + "e, " + then + ", " + test + " : (" +
         bits + ", " + rows() + ", " + rows() + ") -> " + rows());
  }
  std::string slice(const std::string &name, const char *operand, int64_t heads,
                    int64_t width, int64_t number) {
    auto shape = [&](int64_t length) {
      return "1x" + std::to_string(heads) + "x" + std::to_string(length) + "x" +
             std::to_string(width);
    };
    line(name + " = nn.slice " + operand + " starts [0, 0, " +
         std::to_string(number * size) + ", 0] sizes [1, " +
         std::to_string(heads) + ", " + std::to_string(size) + ", " +
         std::to_string(width) + "] steps [1, 1, 1, 1] : (" +
         tensor(shape(kLength)) + ") -> " + tensor(shape(size)));
    return tensor(shape(size));
  }

  /// Makes %y<row> and %l<row>.
  void combine(int64_t row) {
    std::string r = std::to_string(row), most;
    std::string q = slice("%q" + r, "%0", 2, 2, row);
    for (int64_t column = 0; column < cuts; ++column) {
      std::string c = r + "_" + std::to_string(column);
      std::string k = slice("%k" + c, "%1", 1, 2, column),
                  v = slice("%v" + c, "%2", 1, 3, column);
      line("%a" + c + ":2 = nn.attention %q" + r + ", %k" + c + ", %v" + c +
           " {causal, row_offset = " + std::to_string(row * size) +
           ", column_offset = " + std::to_string(column * size + hidden) +
           ", scale = 0.6, zero_masked_rows} : (" + q + ", " + k + ", " + v +
           ") -> (" + wide() + ", " + rows() + ")");
      std::string sum = "%a" + c + "#1";
      if (column)
        binary("%most" + c, "max", most, sum, rows());
      most = column ? "%most" + c : sum;
    }
    for (const char *value :
         {"none 0xFFF0000000000000", "zero 0.0", "one 1.0"}) {
      std::string name(value), number = name.substr(name.find(' ') + 1);
      line("%" + name.substr(0, name.find(' ')) + r + " = nn.constant dense<" +
           number + "> : " + rows());
    }
    // Where nothing is seen in any rectangle, the shares are 0.
    select("%shift" + r, most, "%none" + r, "%zero" + r);
    std::string total, y;
    for (int64_t column = 0; column < cuts; ++column) {
      std::string c = r + "_" + std::to_string(column);
      binary("%off" + c, "sub", "%a" + c + "#1", "%shift" + r, rows());
      unary("%weight" + c, "exp", "%off" + c);
      if (column)
        binary("%total" + c, "add", total, "%weight" + c, rows());
      total = (column ? "%total" : "%weight") + c;
    }
    select("%divisor" + r, total, "%zero" + r, "%one" + r);
    unary("%log" + r, "log", total);
    binary("%l" + r, "add", "%shift" + r, "%log" + r, rows());
    std::string one = tensor("1x2x" + std::to_string(size) + "x1");
    for (int64_t column = 0; column < cuts; ++column) {
      std::string c = r + "_" + std::to_string(column);
      binary("%share" + c, "div", "%weight" + c, "%divisor" + r, rows());
      line("%column" + c + " = nn.reshape %share" + c + " : (" + rows() +
           ") -> " + one);
      line("%wide" + c + " = nn.broadcast %column" + c + " : (" + one +
           ") -> " + wide());
      std::string name = column + 1 == cuts && !column ? "%y" + r : "%part" + c;
      binary(name, "mul", "%a" + c + "#0", "%wide" + c, wide());
      if (column) {
        std::string sum = column + 1 == cuts ? "%y" + r : "%sum" + c;
        binary(sum, "add", y, name, wide());
        name = sum;
      }
      y = name;
    }
  }

  int64_t cuts, hidden, size;
  std::string text;
};

/// The whole attention and its cuts; those of one name but for the number of
/// cuts compute the same.
inline std::vector<VjpCase> attentionRectangles() {
  static std::deque<std::string> texts;
  std::vector<VjpCase> cases;
  for (auto [hidden, withSums, kind] :
       {std::tuple(0, true, "causal"), std::tuple(3, false, "hidden")})
    for (int64_t cuts : {1, 2, 4}) {
      texts.push_back(std::string(kind) + "_" + std::to_string(cuts));
      const char *name = texts.back().c_str();
      texts.push_back(AttentionRectangles(cuts, hidden, withSums).body());
      cases.push_back(
          {name, "1x2x8x2 1x1x8x2 1x1x8x3", texts.back().c_str(), "1x2x8x3"});
    }
  return cases;
}

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_AUTODIFF_ATTENTIONRECTANGLES_H
