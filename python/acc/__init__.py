"""Trains and runs executables of acc-opt from Python (docs/Embedding.md):

    import acc
    with acc.load("model.accx") as run:
        for batch in loader:
            out = run.step({"input_ids": batch.x, "labels": batch.y})
            print(out.step, out.loss)
        run.save_checkpoint("checkpoints")

The ranks are processes of acc-run, started once; batches are NumPy arrays or PyTorch
tensors, or are written into the memory that the ranks read (`run.inputs`)."""
from .errors import BatchError, Error, NotFinite, Warn
from .run import Result, Run, load

__all__ = ["BatchError", "Error", "NotFinite", "Result", "Run", "Warn", "load"]
