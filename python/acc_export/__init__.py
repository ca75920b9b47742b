"""Exports PyTorch modules as ONNX files that say all that training needs, and puts
trained weights back. PyTorch is imported when something is exported or loaded, not
before, so that `--help` and refusals about the command line take no time.

    import acc_export
    acc_export.export(module, (x,), {"labels": y}, loss=my_loss, dir="exported")
    acc_export.load(module, "weights.safetensors")
"""
from .errors import Refused

__version__ = "0.1.0"
__all__ = ["Refused", "export", "load"]


def export(module, args=(), kwargs=None, *, loss=None, path=None, dir=None,
           dynamic_shapes=None, input_names=None, output_names=None, opset=None,
           progress=None):
    """Writes `module`, called with `args` and `kwargs`, as an ONNX file.

    loss            None: the module computes it (its only or first output, or the one
                    called 'loss'). Else 'causal-lm', 'sequence-classification', 'mlm',
                    'seq2seq', or a function of (outputs, labels); `kwargs` then holds `labels`, which
                    the module does not see, and the file has an output 'loss' beside the
                    module's own.
    path, dir       one of them: the file's name, or a folder that gets model.onnx and
                    inputs/<name>.npy, the sample as acc-run reads it.
    dynamic_shapes  as torch.export.export takes it (with `labels` in it where there is a
                    loss), or a name where it has a Dim, as in {"x": {0: "batch"}}:
                    symbolic dimensions that `acc-opt --dim` binds.
    input_names, output_names
                    default: the parameters' names of forward(); the keys of what it
                    returns, else 'loss' for a scalar, else 'output', 'output_1'...
    opset           ONNX opset, default: what torch.onnx.export writes.
    progress        a function that is told of steps that take long.

    Returns a `Summary` of what was written. Raises `Refused`, one sentence that says what
    to do, where the file could not say what PyTorch does. The module is left as it was.
    """
    from .program import export_module
    return export_module(module, args, kwargs, loss=loss, path=path, dir=dir,
                         dynamic_shapes=dynamic_shapes, input_names=input_names,
                         output_names=output_names, opset=opset, progress=progress)


def load(module, path):
    """Copies weights that acc-run wrote into `module`, in place: a file of `--save-weights`,
    a checkpoint, or a folder of checkpoints, whose newest is taken.

    Strict both ways: raises `Refused` and changes nothing where a parameter is missing, a
    name is unknown, or a shape or dtype differs. Of tied parameters one name is enough. A
    parameter that requires no gradient stays as it is where a checkpoint has none.
    """
    from .weights import load_weights
    load_weights(module, path)
