"""Makes the GPT-2 that the benchmark runs: 124M parameters with random values of
their own, exported by PyTorch's dynamo exporter, its weights as one .npz for the
peers, and one input. Everything lies in a cache folder and is made once."""
import pathlib

import numpy as np

WEIGHTS, INPUT, REFERENCE = "weights.npz", "input_ids.npy", "logits.npy"
DIMENSION_NAMES = ("batch", "sequence")


def build(weights=None):
    """GPT2LMHeadModel of the default configuration (12 layers, width 768) in
    inference mode, with `weights` (an .npz) if given."""
    import torch
    import transformers

    config = transformers.GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                                     use_cache=False)
    model = transformers.GPT2LMHeadModel(config).eval()
    if weights is not None:
        with np.load(weights) as arrays, torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(torch.from_numpy(arrays[name]))
    return model


def logits_only(model):
    """The model as a function of input_ids alone, returning the logits alone."""
    import torch

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids=input_ids, use_cache=False).logits

    return Logits().eval()


def randomise(model):
    """Values of GPT-2's own sizes, but none equal: an exporter merges parameters
    with equal values, which would be another model."""
    import torch

    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = 0.02 * torch.randn(parameter.shape, generator=generator)
            is_norm_weight = ".ln_" in name and name.endswith("weight")
            parameter.copy_(1 + noise if is_norm_weight else noise)


def make(folder, batch, sequence, dynamic):
    """Writes the model, weights, input and PyTorch's logits into `folder`."""
    import torch

    torch.set_num_threads(2)
    folder = pathlib.Path(folder)
    (folder / "inputs").mkdir(parents=True, exist_ok=True)
    model = build()
    randomise(model)
    ids = torch.randint(0, model.config.vocab_size, (batch, sequence),
                        generator=torch.Generator().manual_seed(8))
    np.save(folder / "inputs" / INPUT, ids.numpy())
    np.savez(folder / WEIGHTS, **{n: p.detach().numpy() for n, p in model.named_parameters()})
    wrapped = logits_only(model)
    with torch.no_grad():
        np.save(folder / REFERENCE, wrapped(ids).numpy())
        shapes = None
        if dynamic:
            shapes = {"input_ids": {0: torch.export.Dim(DIMENSION_NAMES[0], min=1, max=64),
                                    1: torch.export.Dim(DIMENSION_NAMES[1], min=2, max=1024)}}
        program = torch.onnx.export(wrapped, (ids,), dynamo=True, dynamic_shapes=shapes,
                                    input_names=["input_ids"], output_names=["logits"],
                                    verbose=False)
    program.save(str(folder / "model.onnx"), external_data=True)
    (folder / "done").touch()


if __name__ == "__main__":
    import sys

    make(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "dynamic")
