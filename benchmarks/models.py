"""Makes the models that the benchmarks run: of transformers, with random values of
their own, exported by PyTorch's dynamo exporter, the weights as one .npz for the
peers, and one input. Everything lies in a cache folder and is made once."""
import argparse
import json
import pathlib

import numpy as np

WEIGHTS, INPUT, REFERENCE, LOSSES = "weights.npz", "input_ids.npy", "logits.npy", "losses.json"
DIMENSION_NAMES = ("batch", "sequence")
GPT2 = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
LLAMA = {"tie_word_embeddings": True}
# Positions that every model has, and what their number is called.
POSITIONS = 1024
LENGTH = {"gpt2": "n_positions", "llama": "max_position_embeddings",
          "mixtral": "max_position_embeddings"}
# Their configurations by transformers' names; the rest is the default there. Tiny ones
# tell only whether the scripts work.
MODELS = {
    "gpt2-124m": {**GPT2, "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257},
    # Of bytes.
    "gpt2-10m": {**GPT2, "n_layer": 6, "n_embd": 384, "n_head": 6, "vocab_size": 256},
    "gpt2-tiny": {**GPT2, "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 512},
    "llama-110m": {**LLAMA, "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
                   "num_key_value_heads": 4, "intermediate_size": 2304, "vocab_size": 32000},
    "llama-10m": {**LLAMA, "num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 6,
                  "num_key_value_heads": 2, "intermediate_size": 1024, "vocab_size": 256},
    "llama-tiny": {**LLAMA, "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "intermediate_size": 192, "vocab_size": 512},
    # Of 117 million parameters, 41 for each token.
    "mixtral-117m": {**LLAMA, "num_hidden_layers": 8, "hidden_size": 512, "num_attention_heads": 8,
                     "num_key_value_heads": 4, "intermediate_size": 1024, "vocab_size": 16000,
                     "num_local_experts": 8, "num_experts_per_tok": 2, "output_router_logits": False},
    "mixtral-tiny": {**LLAMA, "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
                     "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 512,
                     "num_local_experts": 4, "num_experts_per_tok": 2, "output_router_logits": False},
}
TITLES = {"gpt2": "GPT-2", "llama": "Llama", "mixtral": "Mixtral"}
# AdamW by PyTorch's names, and the norm that gradients are clipped to.
TRAINING = {"lr": 1e-4, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01, "clip": 1.0}


def family(model):
    return model.split("-")[0]


def title(model):
    """The name in tables."""
    name, size = model.split("-")
    return f"{TITLES[name]} {size.upper() if size[0].isdigit() else size}"


def build(name, weights=None, sequence=POSITIONS):
    """The model in inference mode, which without dropout is the mode of training too,
    with `weights` (an .npz) if given."""
    import torch
    import transformers

    configuration, kind = {"gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel),
                           "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
                           "mixtral": (transformers.MixtralConfig, transformers.MixtralForCausalLM)}[family(name)]
    length = {LENGTH[family(name)]: max(POSITIONS, sequence)}
    model = kind(configuration(use_cache=False, **length, **MODELS[name])).eval()
    if weights is not None:
        with np.load(weights) as arrays, torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(torch.from_numpy(arrays[name]))
    return model


def blocks(model):
    """The layers that FSDP2 gathers one by one."""
    return model.transformer.h if hasattr(model, "transformer") else model.model.layers


def in_jax(name, dtype=None, **more):
    """The family's prefix of names, and the model in JAX: logits of (parameters, tokens)."""
    import importlib

    module = importlib.import_module(f"{family(name)}_jax")
    if dtype is not None:
        more["dtype"] = dtype
    return module.PREFIX, lambda p, tokens: module.forward(p, tokens, MODELS[name], **more)


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


def with_loss(model):
    """The same model, parameters' names included, as a function of input_ids and
    labels that returns the mean loss alone."""

    class WithLoss(type(model)):
        def forward(self, input_ids, labels):
            return super().forward(input_ids=input_ids, labels=labels, use_cache=False).loss

    model.__class__ = WithLoss
    return model


def randomise(model):
    """Values of the sizes that models begin with, but none equal: an exporter merges
    parameters with equal values, which would be another model."""
    import torch

    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = 0.02 * torch.randn(parameter.shape, generator=generator)
            is_norm_weight = ("norm" in name or ".ln_" in name) and name.endswith("weight")
            parameter.copy_(1 + noise if is_norm_weight else noise)


def export(folder, model, inputs, output, dynamic, optimize):
    import torch

    shapes = None
    if dynamic:
        sizes = {0: torch.export.Dim(DIMENSION_NAMES[0], min=1, max=64),
                 1: torch.export.Dim(DIMENSION_NAMES[1], min=2, max=1024)}
        shapes = {name: sizes for name in inputs}
    program = torch.onnx.export(model, tuple(inputs.values()), dynamo=True, dynamic_shapes=shapes,
                                input_names=list(inputs), output_names=[output],
                                optimize=optimize, verbose=False)
    program.save(str(folder / "model.onnx"), external_data=True)


def three_losses(model, inputs):
    """What the first three steps of training say, eagerly in float32."""
    import torch

    s = TRAINING
    optimizer = torch.optim.AdamW(model.parameters(), lr=s["lr"], betas=s["betas"], eps=s["eps"],
                                  weight_decay=s["weight_decay"])
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(**inputs)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), s["clip"])
        optimizer.step()
        losses.append(loss.item())
    return losses


def make(name, folder, batch, sequence, dynamic=False, training=False):
    """Writes the model, weights, inputs, and PyTorch's logits or losses into `folder`."""
    import torch

    torch.set_num_threads(2)
    (folder / "inputs").mkdir(parents=True, exist_ok=True)
    model = build(name, sequence=sequence)
    randomise(model)
    ids = torch.randint(0, model.config.vocab_size, (batch, sequence),
                        generator=torch.Generator().manual_seed(8))
    np.save(folder / "inputs" / INPUT, ids.numpy())
    np.savez(folder / WEIGHTS, **{n: p.detach().numpy() for n, p in model.named_parameters()})
    if training:
        # The model shifts the labels. optimize=False: the exporter's constant
        # folding would take the position embeddings out of a static file.
        inputs = {"input_ids": ids, "labels": ids.clone()}
        np.save(folder / "inputs" / "labels.npy", ids.numpy())
        model = with_loss(model)
        # What peers take by default, a loop over experts, no file can hold.
        model.config._experts_implementation = "batched_mm"
        export(folder, model, inputs, "loss", dynamic, optimize=False)
        (folder / LOSSES).write_text(json.dumps(three_losses(model, inputs)) + "\n")
    else:
        wrapped = logits_only(model)
        with torch.no_grad():
            np.save(folder / REFERENCE, wrapped(ids).numpy())
            export(folder, wrapped, {"input_ids": ids}, "logits", dynamic, optimize=True)
    (folder / "done").touch()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=MODELS)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("batch", type=int)
    parser.add_argument("sequence", type=int)
    parser.add_argument("--dynamic", action="store_true")
    parser.add_argument("--training", action="store_true")
    make(**vars(parser.parse_args()))
