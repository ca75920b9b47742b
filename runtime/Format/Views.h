// Calls a function on every view of a command: what checks and address
// resolution share. Of each view, whether it is read, written or both. Both
// walk the commands' descriptions.

#ifndef ACCEL_RUNTIME_FORMAT_VIEWS_H
#define ACCEL_RUNTIME_FORMAT_VIEWS_H

#include "accel-rt/PlanFormat.h"

namespace accel::rt::format {

using rt::Access;

/// Calls f(view, access) on the views of what is described to it.
template <class F> class ViewVisitor {
public:
  explicit ViewVisitor(F &f) : f(f) {}

  void view(const char *, View &view, Access access) { f(view, access); }
  void view(const char *, std::optional<View> &view, Access access) {
    if (view)
      f(*view, access);
  }
  void view(const char *, std::vector<View> &views, Access access) {
    for (View &view : views)
      f(view, access);
  }
  /// Commands within a command.
  template <class T, const char *const * = &T::kKind>
  void field(const char *, std::vector<T> &commands) {
    for (T &command : commands)
      describe(*this, command);
  }
  template <class T> void field(const char *, T &) {}
  void code(const char *, std::string &) {}
  void origins(const char *, std::vector<std::string> &,
               const std::vector<View> &) {}

private:
  F &f;
};

/// Calls f(view, access) on every view of one kind of command, or of any, in
/// the order in which tasks get their addresses.
template <class Kind, class F> void visitViews(const Kind &command, F &&f) {
  // Descriptions serve readers too, which fill the fields.
  ViewVisitor<F> visitor(f);
  describe(visitor, const_cast<Kind &>(command));
}
template <class F> void visitViews(const Command &command, F &&f) {
  std::visit([&](const auto &what) { visitViews(what, f); }, command.what);
}

/// Calls f(view) on every view, in the order in which tasks get their
/// addresses.
template <class Kind, class F> void forEachView(const Kind &command, F &&f) {
  visitViews(command, [&](const View &view, Access) { f(view); });
}

/// Calls f(view, access) on every view that is touched: those that are only
/// read before the others.
template <class Kind, class F> void forEachAccess(const Kind &command, F &&f) {
  visitViews(command, [&](const View &view, Access access) {
    if (access == Access::Read)
      f(view, access);
  });
  visitViews(command, [&](const View &view, Access access) {
    if (access == Access::Write || access == Access::Both)
      f(view, access);
  });
}

} // namespace accel::rt::format

#endif // ACCEL_RUNTIME_FORMAT_VIEWS_H
