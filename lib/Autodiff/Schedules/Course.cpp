// The arithmetic of schedules.

#include "lib/Autodiff/Schedules/Course.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

Number autodiff::operator+(Number a, Number b) {
  return {a.builder(), a.builder().add(a.get(), b.get())};
}
Number autodiff::operator-(Number a, Number b) {
  return {a.builder(), a.builder().sub(a.get(), b.get())};
}
Number autodiff::operator*(Number a, Number b) {
  return {a.builder(), a.builder().mul(a.get(), b.get())};
}
Number autodiff::operator/(Number a, Number b) {
  return {a.builder(), a.builder().div(a.get(), b.get())};
}

template <typename Op, typename... Args>
static Number make(Number first, Args... others) {
  return {first.builder(),
          first.builder().make<Op>(first.get(), others.get()...)};
}

Number autodiff::min(Number a, double b) {
  return make<nn::MinOp>(a, a.known(b));
}
Number autodiff::max(Number a, double b) {
  return make<nn::MaxOp>(a, a.known(b));
}
Number autodiff::floor(Number a) { return make<nn::FloorOp>(a); }
Number autodiff::sqrt(Number a) { return make<nn::SqrtOp>(a); }
Number autodiff::cos(Number a) { return make<nn::CosOp>(a); }
Number autodiff::log(Number a) { return make<nn::LogOp>(a); }
Number autodiff::pow(double base, Number exponent) {
  return make<nn::PowOp>(exponent.known(base), exponent);
}
Number autodiff::pow(Number base, double exponent) {
  return exponent == 1 ? base : make<nn::PowOp>(base, base.known(exponent));
}
Number autodiff::mod(Number a, double b) { return a - floor(a / b) * b; }

static Number choose(nn::ComparePredicate predicate, Number a, double b,
                     Number yes, Number no) {
  const NNBuilder &build = a.builder();
  return {build, build.select(build.compare(predicate, a.get(), build.f64(b)),
                              yes.get(), no.get())};
}
Number autodiff::ifLess(Number a, double b, Number below, Number other) {
  return choose(nn::ComparePredicate::lt, a, b, below, other);
}
Number autodiff::ifAtMost(Number a, double b, Number below, Number other) {
  return choose(nn::ComparePredicate::le, a, b, below, other);
}

Number autodiff::wave(Number progress) {
  return (cos(progress * M_PI) + 1) * 0.5;
}

Number autodiff::buildRate(const NNBuilder &build, const ScheduleRule &rule,
                           Value step, double base) {
  Number counted(build, step);
  Number n =
      rule.kind->clock == Clock::Late ? max(counted - 2, 0) : counted - 1;
  return rule.kind->rate({build, rule, n, counted, base});
}

llvm::Error autodiff::failSchedule(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

std::string autodiff::spellNumber(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

llvm::Error autodiff::checkLengths(const ScheduleRule &rule) {
  double warmup = rule.values.getOr("warmup_steps", 0);
  if (!rule.values.has("total_steps") ||
      rule.values.get("total_steps") > warmup)
    return llvm::Error::success();
  return failSchedule("expected more 'scheduler.total_steps' than the " +
                      spellNumber(warmup) +
                      " of 'scheduler.warmup_steps', found " +
                      spellNumber(rule.values.get("total_steps")));
}

llvm::Error autodiff::checkBelow(const ScheduleRule &rule, StringRef key,
                                 double lr) {
  double rate = rule.values.getOr(key, 0);
  if (rate <= lr)
    return llvm::Error::success();
  return failSchedule("expected at most the " + spellNumber(lr) +
                      " of 'optimizer.lr' as 'scheduler." + key + "', found " +
                      spellNumber(rate));
}
