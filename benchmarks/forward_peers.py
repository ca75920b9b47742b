"""The peers of forward.py, each in a process of its own: started with a peer's
name, the model's and its folder, it loads, makes the first call, saves its
logits, then answers `run N` on stdin with the seconds of N calls. So calls of
different peers can alternate without their thread pools and memory meeting."""
import json
import os
import pathlib
import resource
import sys
import time

import numpy as np

import models


def torch_eager(name, folder, threads):
    import torch

    torch.set_num_threads(threads)
    model = models.logits_only(models.build(name, folder / models.WEIGHTS))
    ids = torch.from_numpy(np.load(folder / "inputs" / models.INPUT))

    def call():
        with torch.inference_mode():
            return model(ids)

    return call, lambda out: out.numpy(), torch.__version__


def torch_compile(name, folder, threads):
    import torch

    torch.set_num_threads(threads)
    model = torch.compile(
        models.logits_only(models.build(name, folder / models.WEIGHTS)))
    ids = torch.from_numpy(np.load(folder / "inputs" / models.INPUT))

    def call():
        with torch.no_grad():
            return model(ids)

    return call, lambda out: out.numpy(), torch.__version__


def onnxruntime(name, folder, threads):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(str(folder / "model.onnx"), options,
                                   providers=["CPUExecutionProvider"])
    ids = np.load(folder / "inputs" / models.INPUT)
    # Bound once: the session then writes into the same memory in every call.
    logits = np.empty(np.load(folder / models.REFERENCE, mmap_mode="r").shape, np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("input_ids", ids)
    binding.bind_output("logits", "cpu", 0, np.float32, logits.shape, logits.ctypes.data)

    def call():
        session.run_with_iobinding(binding)
        return logits

    return call, lambda out: out, ort.__version__


def jax_jit(name, folder, threads):
    import jax
    import jax.numpy as jnp

    import jax_training

    prefix, model = models.in_jax(name)
    parameters = jax_training.load(folder / models.WEIGHTS, prefix)
    ids = jnp.asarray(np.load(folder / "inputs" / models.INPUT), dtype=jnp.int32)
    forward = jax.jit(model)
    return (lambda: forward(parameters, ids).block_until_ready(), np.asarray, jax.__version__)


PEERS = {"PyTorch eager": torch_eager, "torch.compile": torch_compile,
         "JAX": jax_jit, "ONNX Runtime": onnxruntime}


def serve(peer, name, folder, threads, output):
    # Libraries write to stdout; the answers go to the pipe that was there first.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    start = time.perf_counter()
    call, as_array, version = PEERS[peer](name, pathlib.Path(folder), threads)
    loaded = time.perf_counter()
    result = call()
    first = time.perf_counter()
    np.save(output, as_array(result))
    print(json.dumps({"version": version, "load_s": loaded - start,
                      "first_call_s": first - loaded}), file=answers)
    for line in sys.stdin:
        times = []
        for _ in range(int(line.split()[1])):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"times_s": times, "peak_resident_bytes": peak}), file=answers)


if __name__ == "__main__":
    serve(*sys.argv[1:4], int(sys.argv[4]), sys.argv[5])
