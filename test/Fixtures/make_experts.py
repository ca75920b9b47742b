#!/usr/bin/env python3
"""Makes test/Fixtures/experts: small decoders whose feed-forward layers are mixtures of
experts, as exporters write them in different shapes. Of each NAME:

  NAME/model.onnx       its batch symbolic (8 here, 8 tokens each), the loss as output
  NAME/inputs           input_ids and labels
  NAME/expected.json    how PyTorch trains it in float64: the loss and the norm of the
                        gradients in each of three steps of SGD
  mixtral/trained.safetensors   the parameters after them, in float32

  mixtral           Hugging Face's Mixtral, by acc-export: softmax, the two best, normalised
  mixtral_balance   the same with its loss of balance, which is no sum over samples
  shared            Hugging Face's Qwen2-MoE, by torch.onnx.export(optimize=False): softmax,
                    not normalised; a shared expert with a sigmoid of its own
  groups            Hugging Face's DeepSeek-V3, by acc-export: sigmoid; experts of the two
                    best groups of four alone, which a scatter into a mask says
  sigmoid, capacity, loop, gathered, limited     the modules of mixtures.py, by acc-export
  traced            gathered by the TorchScript exporter (dynamo=False)

What is chosen is never near a tie (asked of every top-k of every step), so that float32
chooses what float64 does. The seeds are fixed. Run it with the versions of
requirements.txt; with names, only those are made."""
import copy
import json
import pathlib
import shutil
import sys

import numpy as np
import onnx
import safetensors.numpy
import torch
import transformers

import exported
import mixtures

FOLDER = pathlib.Path(__file__).resolve().parent / "experts"
sys.path.insert(0, str(FOLDER.parent.parent.parent / "python"))
import acc_export  # noqa: E402  (from python/)

STEPS, RATE, BATCH, TOKENS, WORDS = 3, 0.05, 8, 8, mixtures.WORDS
NEAREST = 1e-4  # of two scores of which one is chosen


class WithLoss(torch.nn.Module):
    """A model of Hugging Face that returns its loss alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, labels):
        return self.model(input_ids=input_ids, labels=labels, use_cache=False).loss


class InFloat64(torch.overrides.TorchFunctionMode):
    """Computes in float64 what a model computes in float32 whatever its parameters are
    (routers, norms, positions, losses), and notes how near the choices were."""

    nearest = float("inf")

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def widen(value):
            return torch.float64 if value is torch.float32 else value

        kwargs = {name: widen(value) for name, value in (kwargs or {}).items()}
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        result = function(*map(widen, args), **kwargs)
        if function in (torch.topk, torch.Tensor.topk):
            scores = args[0].detach().sort(-1, descending=True).values
            k = args[1] if len(args) > 1 else kwargs["k"]
            if k < scores.shape[-1]:
                gap = (scores[..., k - 1] - scores[..., k]).min().item()
                self.nearest = min(self.nearest, gap)
        return result


def spread(module, seed, scale=0.3):
    """Gives every parameter values of its own, large enough that routers choose."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.1 * noise if "norm" in name else scale * noise)
    return module


def mixtral(balance=False):
    config = transformers.MixtralConfig(
        vocab_size=WORDS, hidden_size=16, intermediate_size=8, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=4, num_local_experts=4,
        num_experts_per_tok=2, max_position_embeddings=16, sliding_window=None,
        output_router_logits=balance, router_aux_loss_coef=0.1, use_cache=False)
    return WithLoss(transformers.MixtralForCausalLM(config))


def shared():
    config = transformers.Qwen2MoeConfig(
        vocab_size=WORDS, hidden_size=16, intermediate_size=16, moe_intermediate_size=8,
        shared_expert_intermediate_size=8, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, num_experts=8, num_experts_per_tok=2, norm_topk_prob=False,
        max_position_embeddings=16, use_sliding_window=False, use_cache=False,
        output_router_logits=False)
    model = transformers.Qwen2MoeForCausalLM(config)
    model.set_experts_implementation("batched_mm")  # what a trace can hold
    return WithLoss(model)


def groups():
    config = transformers.DeepseekV3Config(
        vocab_size=WORDS, hidden_size=16, intermediate_size=16, moe_intermediate_size=8,
        num_hidden_layers=2, first_k_dense_replace=1, num_attention_heads=4,
        num_key_value_heads=4, q_lora_rank=8, kv_lora_rank=8, qk_rope_head_dim=4,
        qk_nope_head_dim=12, v_head_dim=4, n_routed_experts=8, num_experts_per_tok=2,
        n_group=4, topk_group=2, max_position_embeddings=16, use_cache=False)
    return WithLoss(transformers.DeepseekV3ForCausalLM(config))


MODELS = {"mixtral": (mixtral, 1), "mixtral_balance": (lambda: mixtral(True), 1),
          "shared": (shared, 2), "sigmoid": (mixtures.sigmoid, 3),
          "capacity": (mixtures.capacity, 4), "loop": (mixtures.loop, 5),
          "groups": (groups, 6), "gathered": (mixtures.gathered, 8),
          "traced": (mixtures.traced, 8), "limited": (mixtures.limited, 10)}


def make_inputs():
    """The first tokens of a row count for nothing, of each row another number."""
    ids = torch.randint(0, WORDS, (BATCH, TOKENS), generator=torch.Generator().manual_seed(7))
    labels = ids.clone()
    for row in range(BATCH):
        labels[row, :row // 2] = -100
    return {"input_ids": ids, "labels": labels}


def export(name, module, inputs, folder):
    dynamic = {key: {0: "batch"} for key in inputs}
    if name == "shared":
        dynamic = {key: {0: torch.export.Dim("batch", min=1, max=64)} for key in inputs}
        exported.export(folder / "model.onnx", module, inputs, ["loss"], False, dynamic)
        (folder / "inputs").mkdir()
        for key, value in inputs.items():
            np.save(folder / "inputs" / f"{key}.npy", value.numpy())
    elif name == "traced":
        folder.mkdir()
        torch.onnx.export(
            module, tuple(inputs.values()), str(folder / "model.onnx"), dynamo=False, opset_version=17,
            training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
            input_names=list(inputs), output_names=["loss"], dynamic_axes=dynamic)
        (folder / "inputs").mkdir()
        for key, value in inputs.items():
            np.save(folder / "inputs" / f"{key}.npy", value.numpy())
    else:
        acc_export.export(module, tuple(inputs.values()), dir=str(folder),
                          dynamic_shapes=dynamic)
    proto = exported.strip(onnx.load(folder / "model.onnx"))
    dropped = ["namespace"]  # which name_scopes says too
    if name != "shared":  # what is declared needs no witnesses, two thirds of the file
        dropped += ["pkg.torch.onnx.fx_node", "pkg.torch.onnx.name_scopes"]
    for node in proto.graph.node:
        kept = [p for p in node.metadata_props if p.key not in dropped]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    (folder / "model.onnx").write_bytes(proto.SerializeToString(deterministic=True))


def train(module, inputs):
    """What each step of SGD reports in float64, and the module after them."""
    module = copy.deepcopy(module).double()
    if isinstance(module, WithLoss):  # the way it takes by itself knows no float64
        module.model.set_experts_implementation("eager")
    parameters = [p for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(parameters, RATE)
    steps = []
    with InFloat64() as mode:
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = module(**inputs)
            loss.backward()
            norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])
            steps.append({"loss": loss.item(), "grad_norm": norm.item()})
            optimizer.step()
    return steps, module, mode.nearest


def main():
    inputs = make_inputs()
    for name in sys.argv[1:] or MODELS:
        make, seed = MODELS[name]
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        module = spread(make(), seed).train()
        steps, trained, nearest = train(module, inputs)
        print(f"{name}: choices at least {nearest:.1e} apart", steps)
        assert nearest > NEAREST, name
        mixtures.check(module, inputs)
        export(name, module, inputs, folder)
        (folder / "expected.json").write_text(json.dumps(steps, indent=1) + "\n")
        if name == "mixtral":
            (folder / "trained.safetensors").write_bytes(safetensors.numpy.save(
                {key: value.detach().float().numpy() for key, value in trained.named_parameters()}))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
