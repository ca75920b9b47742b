"""What can go wrong, by what is left: the run, or nothing."""


class Error(RuntimeError):
    """What acc-run says where it ends, in its words: there are no ranks any more. Or a call
    that was refused: `run.closed` tells them apart."""


class BatchError(Error, ValueError):
    """Inputs or weights that are not what the executable takes. Nothing was called."""


class NotFinite(Error, ArithmeticError):
    """A step that failed: its loss, or the norm of its gradients, is not finite. The state is
    that of the step before, and the run goes on."""


class Warn(UserWarning):
    """What acc-run warns of."""
