// Whose `forward` each frame of a call's stack trace is: a module's, of which
// the gradient is that of its calls, or perhaps an autograd function's, of
// which the file does not hold the backward. An autograd function leaves
// nothing but its frame, so every frame must be shown to be a module's. Private
// to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_FORWARDFRAMES_H
#define ACCEL_LIB_ONNX_FORWARDFRAMES_H

#include "NodeInfo.h"
#include "TracedProgram.h"
#include "llvm/ADT/StringSet.h"

namespace accel::onnxio {

/// Reads the frames of a program's calls. torch.export keeps those of functions
/// `forward` only, so that what a helper calls follows the helper's caller. A
/// frame is a module's where
/// - its file is one of PyTorch's modules: `torch.nn.CrossEntropyLoss()` may be
///   made within `forward`;
/// - a registered module around the call, other than one of PyTorch's, is left
///   for it: those whose frames come before it take theirs first;
/// - the line before calls a `forward` by that name, as `super().forward(x)`
///   does, and then nothing has another backward;
/// - the line before makes an object and calls it (`Focal()(x)`), and the code
///   reads attributes of `self`;
/// - its own line calls a method or a module of `self`, or the line before is
///   of `nn.Sequential`, or calls a module that torch.compile has wrapped.
/// What is left may be `act(x)` with `act = Twice.apply`.
class ForwardFrames {
public:
  explicit ForwardFrames(const TracedProgram &program);

  /// A frame that may be of an autograd function.
  struct Function {
    SourceLine frame;
    /// Whether the line before calls `apply`.
    bool isApplied;
  };

  /// The forward of an autograd function that has made the node, or that may
  /// have: nothing of the above shows whose it is. Nothing where there is none.
  std::optional<Function> functionAround(const onnx::NodeProto &node) const;

private:
  bool isModules(llvm::ArrayRef<SourceLine> frames, size_t number,
                 llvm::ArrayRef<ModuleScope> modules, size_t &next) const;

  /// Frames before and files within which some line reads an attribute of
  /// `self`.
  llvm::StringSet<> withState;
  /// The names of attributes that torch.compile has wrapped.
  llvm::StringSet<> compiled;
};

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_FORWARDFRAMES_H
