"""The last check: the program that will be written is run beside the module itself, on the
sample, value and gradient. Whatever a trace cannot see (a hook, a backward that somebody
changed, a number that Python computed of a parameter, an attribute that the next call
reads) comes out as a difference, and is refused.

The parameters are moved a little for it, since a number that was taken from them is right
for those of today, and gradients are asked for at several sizes, since clipping does not
scale. Random draws are the same in both."""
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import Refused, at, line_of_exception
from .state import Place, Snapshot

#: Of float32: what formulas for one function, or sums in another order, differ by.
_TOLERANCE = 1e-4
#: Of the largest gradient: a gradient that is 0 comes out as rounding.
_FLOOR = 1e-5
#: How far parameters are moved, of their size.
_MOVE = 0.05
#: Sizes of the gradient that comes in: powers of two, which change no digit.
_SCALES = (1.0, 2.0 ** 24)
#: What hangs on a parameter's own gradient.
_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


class _EqualDraws(TorchDispatchMode):
    """Every draw of random numbers begins at the same seed: in whichever order, and with
    whatever was drawn for nothing in between."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if torch.Tag.nondeterministic_seeded in function.tags:
            torch.manual_seed(0)
        return function(*args, **(kwargs or {}))


class _Parameters:
    """The module's parameters, which are moved, get gradients, and are put back."""

    def __init__(self, module):
        self.named = dict(module.named_parameters())
        self.before = {name: (p.detach().clone(), p.requires_grad, p.grad)
                       for name, p in self.named.items()}
        self.generator = torch.Generator().manual_seed(0)

    @torch.no_grad()
    def move(self):
        for name, p in self.named.items():
            value, trained, _ = self.before[name]
            if trained and p.is_floating_point() and p.numel():
                size = max(value.pow(2).mean().sqrt().item(), 1e-2)
                noise = torch.randn(value.shape, generator=self.generator, dtype=value.dtype)
                p.copy_(value + _MOVE * size * noise.to(value.device))

    def values(self):
        return {name: p.detach().clone().requires_grad_(p.requires_grad)
                for name, p in self.named.items()}

    @torch.no_grad()
    def restore(self):
        for name, p in self.named.items():
            value, trained, p.grad = self.before[name]
            p.copy_(value)
            p.requires_grad_(trained)
            for hooks in _HOOKS:
                setattr(p, hooks, None)  # there were none (signature.check)

    def hook(self):
        """The name of a parameter that somebody has put a hook on, or None."""
        return next((name for name, p in self.named.items() if any(
            getattr(p, hooks) for hooks in _HOOKS)), None)


def _own(value):
    """A copy of an argument, which the forward may write."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone().requires_grad_(value.requires_grad)


def _total(outputs):
    """The number that is differentiated: the losses, or of what has none everything."""
    outputs = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
    losses = [o for o in outputs if o.dim() == 0] or outputs
    generator = torch.Generator().manual_seed(0)
    return sum(((o * (1 + torch.rand(o.shape, generator=generator)).to(o)).sum()
                for o in losses), start=torch.zeros(()))


def _run(call, leaves, args, kwargs, scales):
    """(outputs, for each scale the gradients of `leaves` by name, divided by it)."""
    args, kwargs = pytree.tree_map(_own, (args, kwargs))
    for leaf in leaves.values():
        leaf.grad = None
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), _EqualDraws():
        outputs = pytree.tree_leaves(call(*args, **kwargs))
        total, gradients = _total(outputs), []
        for scale in scales:
            if total.requires_grad:
                total.backward(torch.tensor(scale, dtype=total.dtype), retain_graph=True)
            gradients.append({name: leaf.grad.to_dense() / scale for name, leaf in leaves.items()
                              if leaf.grad is not None})
            for leaf in leaves.values():
                leaf.grad = None
    return [o.detach() if isinstance(o, torch.Tensor) else o for o in outputs], gradients


def _differ(a, b, floor=0.0):
    """Whether two tensors are apart; where both are lost, they are not."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return True
    if not (a.is_floating_point() or a.is_complex()):
        return not torch.equal(a, b)
    lost = ~(a.isfinite() & b.isfinite())
    if lost.any():
        if not torch.equal(a[lost].nan_to_num(), b[lost].nan_to_num()):
            return True
        a, b = a[~lost], b[~lost]
    return bool((a - b).norm() > _TOLERANCE * b.norm() + floor)


def _number(value):
    return f"{value.item():.6g}" if value.numel() == 1 else f"of norm {value.norm().item():.6g}"


_CAUSES = ("a hook, a gradient function, a context around it, or a number that Python keeps or "
           "computes of a parameter may be the cause; write it as ordinary calls of tensors")


def _compare(found, expected):
    """Refuses where the program's (outputs, gradients) are not the module's."""
    for mine, theirs in zip(found[0], expected[0]):
        if isinstance(theirs, torch.Tensor) and _differ(mine, theirs):
            raise Refused(f"what was traced is not what the model computes: an output is "
                          f"{_number(mine.double())} instead of {_number(theirs.double())} on the "
                          f"sample, parameters moved a little: {_CAUSES}")
    mine = found[1][0]
    for scale, theirs in zip(_SCALES, expected[1]):
        largest = max((g.norm().item() for g in theirs.values()), default=0.0)
        for name in mine.keys() | theirs.keys():
            g, wanted = mine.get(name), theirs.get(name)
            g = torch.zeros_like(wanted) if g is None else g
            wanted = torch.zeros_like(g) if wanted is None else wanted
            if scale > 1 and not wanted.isfinite().all():
                continue  # what is computed in halves overflows at that size
            if _differ(g, wanted, _FLOOR * largest):
                raise Refused(
                    f"the gradient of parameter '{name}' is {_number(g)} in what was traced, and "
                    f"{_number(wanted)} in PyTorch: {_CAUSES}")


def _check_parameters(parameters, values):
    """The forward itself must have left the parameters alone."""
    hooked = parameters.hook()
    if hooked:
        raise Refused(f"the forward puts a hook on the gradient of parameter '{hooked}', which a "
                      "file cannot hold: leave the hook out")
    for name, p in parameters.named.items():
        if p.requires_grad != parameters.before[name][1]:
            raise Refused(f"the forward changes requires_grad of parameter '{name}': set it before "
                          "exporting, or stop the gradient by detach()")
        if not torch.equal(p.detach().nan_to_num(), values[name].detach().nan_to_num()):
            raise Refused(f"the forward changes parameter '{name}': a training step changes it by "
                          "the optimizer alone, so compute without writing to it")


def _spoil(places, sign):
    """Overwrites the tensors that a call left for the next one, if the next reads them."""
    for path, place in places.items():
        tensor = place.tensor
        if tensor.dtype == torch.bool:
            spoilt = ~tensor.detach()
        elif tensor.is_floating_point():
            spoilt = torch.full_like(tensor.detach(), 1e6 * sign)
        else:
            limits = torch.iinfo(tensor.dtype)
            spoilt = torch.full_like(tensor, limits.max if sign > 0 else limits.min)
        if not place.put(spoilt):
            raise Refused(f"the forward changes {_describe(path)}, which the next step would read: "
                          "pass it as an argument, or compute it anew")


def _describe(path):
    return path if " " in path.split("(")[0] else f"attribute '{path}'"


def _tensors_left(left, before, after):
    """The tensors among the paths `left`, which a call has put there."""
    places = {path: after.held[path] for path in left if isinstance(after.held.get(path), Place)}
    for path, place in places.items():
        old = before.held.get(path)
        if isinstance(old, Place) and old.tensor is place.tensor:
            raise Refused(f"the forward writes {_describe(path)} in place: a training step has no "
                          "place to keep it, so compute it anew in each call")
    return places


def _later_calls(run, first):
    """What `run` gives in the calls after the `first`, if that has changed something: the
    next ones must change nothing more, but for tensors, which are spoilt if one reads them."""
    _, _, before, after = first
    left = after.changed_from(before)
    places = _tensors_left(left, before, after)
    for sign in (1, -1) if left else ():
        _spoil(places, sign)
        results = run()
        _, _, before, after = results
        changing = [path for path in after.changed_from(before) if path not in places]
        if changing:
            raise Refused(f"each call of the forward changes {_describe(changing[0])}, and a file "
                          "holds what one call computes: pass it as an argument, or decide it "
                          "before exporting")
        places = {path: after.held[path] for path in places}
        yield results


def _as_module(program):
    """`program` as a module that gradients pass; tracing leaves a call that has none, and writes
    of buffers, which autograd would have kept as they were."""
    def copy(into, source, non_blocking=False):
        return source.to(into.dtype).expand(into.shape)
    module = program.module()
    for node in module.graph.nodes:
        if node.target is torch.ops.aten.copy.default:
            node.target = copy
        elif node.target is torch.ops.aten.copy_.default and node.args[0].op == "get_attr":
            node.replace_all_uses_with(node.args[1])
            module.graph.erase_node(node)
    module.recompile()
    return module


def _run_program(traced, values, args, kwargs):
    """The same of the program. Its parameters are copies: what hangs on the module's own
    would be in both."""
    def call(*given, **named):
        return torch.func.functional_call(traced, values, given, named)
    return _run(call, values, args, kwargs, _SCALES[:1])


def check(module, program, args, kwargs, loss=None):
    """Refuses `program` unless it computes on the sample what `module` does. That runs, and
    may change but for its parameters (state.restored). `loss` is the user's function, if
    there is one."""
    roots, traced = [loss] if callable(loss) else [], _as_module(program)
    parameters = _Parameters(module)

    def run():
        """The values of the parameters, what the module makes of them, and its state
        before and after."""
        parameters.move()
        values, before = parameters.values(), Snapshot(module, *roots)
        result = _run(module, parameters.named, args, kwargs, _SCALES)
        _check_parameters(parameters, values)
        return values, result, before, Snapshot(module, *roots)
    try:
        first = run()
        for values, expected, _, _ in [first, *_later_calls(run, first)]:
            _compare(_run_program(traced, values, args, kwargs), expected)
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"the model cannot be run on the sample{at(line_of_exception(error))}: "
                      f"{' '.join(str(error).split())[:300]}") from error
    finally:
        parameters.restore()
