// What the code of a kernel relies on, as one number. Generated code has sizes
// and strides compiled in: a command that calls it with others would make it
// reach where nobody looked.

#include "Format/Views.h"

#include <cstring>

namespace accel::rt {
namespace {

/// Collects numbers; lists are preceded by their length.
struct Words {
  std::vector<int64_t> words;
  void add(int64_t word) { words.push_back(word); }
  void add(const std::vector<int64_t> &list) {
    add(static_cast<int64_t>(list.size()));
    words.insert(words.end(), list.begin(), list.end());
  }
  void add(double number) {
    int64_t word;
    std::memcpy(&word, &number, sizeof word);
    add(word);
  }
  void add(const std::string &text) {
    add(static_cast<int64_t>(hashBytes(text.data(), text.size())));
  }
  void add(const View &view) {
    add(static_cast<int64_t>(view.dtype));
    add(view.shape);
    add(view.strides);
  }
  void add(const Form &form) {
    add(static_cast<int64_t>(form.size()));
    for (const auto &[name, value] : form) {
      add(name);
      add(static_cast<int64_t>(value.index()));
      std::visit([&](const auto &known) { add(known); }, value);
    }
  }
  KernelPlan named(const std::string &function) const {
    return {function, hashBytes(words.data(), words.size() * sizeof(int64_t))};
  }
};

/// Whether two views begin at the same byte in every run.
bool beginTogether(const Program &program, const View &a, const View &b) {
  // The writer signs before it checks.
  int64_t count = static_cast<int64_t>(program.buffers.size());
  if (a.buffer < 0 || a.buffer >= count || b.buffer < 0 || b.buffer >= count)
    return false;
  const BufferPlan &left = program.buffers[a.buffer],
                   &right = program.buffers[b.buffer];
  // Unsigned, because offsets may be anything yet.
  auto start = [](const BufferPlan &buffer, const View &view) {
    return static_cast<uint64_t>(buffer.offset) +
           static_cast<uint64_t>(view.offset);
  };
  auto strides = [](const AxisStride &x, const AxisStride &y) {
    return x.axis == y.axis && x.bytes == y.bytes;
  };
  return left.space == right.space && left.slots == right.slots &&
         left.slotStride == right.slotStride &&
         start(left, a) == start(right, b) &&
         std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(),
                    strides);
}

/// Of the softmax between an attention's products, whose rows are scores.
template <class AnyAttention>
Words attentionWords(const AnyAttention &attention, int64_t kind) {
  Words words;
  words.add(kind);
  words.add(attention.query);
  words.add(attention.key);
  words.add(static_cast<int64_t>(attention.mask.has_value()));
  if (attention.mask)
    words.add(*attention.mask);
  words.add(attention.scale);
  words.add(int64_t(attention.causal) + 2 * attention.zeroMaskedRows);
  words.add(attention.output);
  return words;
}

std::optional<KernelPlan> sign(const AttentionCommand &attention,
                               int64_t kind) {
  if (attention.kernel.empty())
    return std::nullopt;
  Words words = attentionWords(attention, kind);
  words.add(static_cast<int64_t>(attention.logSumExp.has_value()));
  return words.named(attention.kernel);
}

std::optional<KernelPlan> sign(const AttentionGradCommand &grad, int64_t kind) {
  if (grad.kernel.empty())
    return std::nullopt;
  Words words = attentionWords(grad, kind);
  words.add(static_cast<int64_t>(grad.logSumExpGradient.has_value()));
  return words.named(grad.kernel);
}

} // namespace

std::optional<KernelPlan> kernelSignature(const Program &program,
                                          const Command &command) {
  int64_t kind = static_cast<int64_t>(command.what.index());
  if (auto *attention = std::get_if<AttentionCommand>(&command.what))
    return sign(*attention, kind);
  if (auto *grad = std::get_if<AttentionGradCommand>(&command.what))
    return sign(*grad, kind);
  auto *kernel = std::get_if<KernelCommand>(&command.what);
  if (!kernel)
    return std::nullopt;
  Words words;
  words.add(kind);
  words.add(kernel->rows);
  words.add(kernel->grid);
  words.add(static_cast<int64_t>(kernel->inputs.size()));
  for (const std::vector<View> *views : {&kernel->inputs, &kernel->outputs})
    for (const View &view : *views)
      words.add(view);
  words.add(kernel->form);
  // Code for results in place is not that for results elsewhere.
  for (const View &input : kernel->inputs) {
    int64_t same = -1;
    for (size_t i = 0; i < kernel->outputs.size(); ++i)
      if (beginTogether(program, input, kernel->outputs[i]))
        same = static_cast<int64_t>(i);
    words.add(same);
  }
  return words.named(kernel->function);
}

} // namespace accel::rt
