#!/usr/bin/env python3
"""The whole grid of recomputation: seven families that transformers makes, small, by every policy
(selective, full in groups and in blocks, modules by name, memory budgets at five points), on one
rank, with four micro-batches, with ZeRO-3 over four, tp 2, and two stages under 1F1B and ZB-H1, in
float64 and float32, with dropout and without:

  check_recompute_grid.py --work DIR [--families A,B] [--layouts A,B] [--parts f64,f32-drop]

test/Integration/check_recompute.py says what holds of each; test/Integration/recompute.rows has a
sample that CI runs. One line for each family, layout and part; what --work has done already is
skipped, so that it may be stopped. Run it with the versions of test/Fixtures/requirements.txt and
the tools in PATH. Takes some four hours of two cores."""
import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))

import acc_export  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers as hf  # noqa: E402

BATCH, LENGTH, WORDS, LAYERS = 8, 8, 64, 4
LAYOUTS = {"one": "", "micro-batches": "dp=1 4 0", "zero3": "dp_shard=4 2 3", "tp": "tp=2 1 0",
           "1f1b": "pp=2 4 0 schedule=1f1b", "zb-h1": "pp=2 4 0 schedule=zb-h1"}
PARTS = ("f64", "f64-drop", "f32", "f32-drop")
POLICIES = "=selective;selective:layernorm,{mlp};full:uniform:1;full:uniform:2;full:block:1;" \
           "full:block:2;{modules};budget:5"
USUAL = dict(vocab_size=WORDS, hidden_size=16, num_hidden_layers=LAYERS, num_attention_heads=4,
             max_position_embeddings=16)
GROUPED = dict(USUAL, num_key_value_heads=2, use_cache=False)


class WithLoss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, labels):
        return self.model(input_ids=input_ids, labels=labels).loss


class Pictures(WithLoss):
    def forward(self, pixel_values, labels):
        logits = self.model(pixel_values=pixel_values).logits
        return torch.nn.functional.cross_entropy(logits, labels)


def gpt2(drop):
    return WithLoss(hf.GPT2LMHeadModel(hf.GPT2Config(
        vocab_size=WORDS, n_positions=16, n_embd=16, n_layer=LAYERS, n_head=4, resid_pdrop=drop,
        embd_pdrop=drop, attn_pdrop=drop, use_cache=False)))


def llama(drop):
    return WithLoss(hf.LlamaForCausalLM(hf.LlamaConfig(
        **GROUPED, intermediate_size=32, attention_dropout=drop)))


def bert(drop):
    return WithLoss(hf.BertForMaskedLM(hf.BertConfig(
        **USUAL, intermediate_size=32, hidden_dropout_prob=drop,
        attention_probs_dropout_prob=drop)))


def t5(drop):
    return WithLoss(hf.T5ForConditionalGeneration(hf.T5Config(
        vocab_size=WORDS, d_model=16, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        relative_attention_num_buckets=8, relative_attention_max_distance=12, dropout_rate=drop,
        decoder_start_token_id=0, use_cache=False)))


def gemma3(drop):
    return WithLoss(hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(
        **GROUPED, intermediate_size=32, head_dim=8, sliding_window=4, attention_dropout=drop,
        layer_types=["sliding_attention", "full_attention"] * 2, query_pre_attn_scalar=8)))


def mixture(drop):
    return WithLoss(hf.MixtralForCausalLM(hf.MixtralConfig(
        **GROUPED, intermediate_size=8, head_dim=4, num_local_experts=4, num_experts_per_tok=2,
        sliding_window=None, attention_dropout=drop)))


def vit(drop):
    return Pictures(hf.ViTForImageClassification(hf.ViTConfig(
        hidden_size=16, num_hidden_layers=LAYERS, num_attention_heads=4, intermediate_size=32,
        hidden_dropout_prob=drop, attention_probs_dropout_prob=drop, image_size=12, patch_size=4,
        num_labels=8)))


#: The modules that are computed again by name.
FAMILIES = {gpt2: "*.mlp", llama: "*.mlp", bert: "*.attention", t5: "*.layer.*",
            gemma3: "*.self_attn", mixture: "*.layers.1,*.layers.3", vit: "*.mlp"}


def export(make, drop, dtype, folder):
    torch.manual_seed(1)
    model = make(drop).train()
    draw = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=draw)
            is_scale = name.endswith("weight") and parameter.dim() == 1
            parameter.copy_(1 + 0.1 * noise if is_scale else 0.3 * noise)
    words = lambda: torch.randint(1, WORDS, (BATCH, LENGTH), generator=draw)
    if make is vit:
        inputs = {"pixel_values": torch.randn(BATCH, 3, 12, 12, generator=draw),
                  "labels": torch.randint(0, 8, (BATCH,), generator=draw)}
    else:
        inputs = {"input_ids": words(), "labels": words()}
    acc_export.export(model, tuple(inputs.values()), dir=str(folder),
                      dynamic_shapes={name: {0: "batch"} for name in inputs})
    for file in (folder / "inputs").glob("*.npy"):
        values = np.load(file)
        np.save(file, values.astype(dtype) if values.dtype.kind == "f" else values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--families", default=",".join(make.__name__ for make in FAMILIES))
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    log = options.work / "grid.log"
    done = set(log.read_text().splitlines()) if log.exists() else set()
    failed = 0
    for part in options.parts.split(","):
        for make, modules in FAMILIES.items():
            if make.__name__ not in options.families.split(","):
                continue
            drop = part.endswith("-drop")
            folder = options.work / f"{make.__name__}-{part}"
            if not (folder / "model.onnx").exists():
                export(make, 0.1 if drop else 0.0, np.float64 if part.startswith("f64") else np.float32,
                       folder)
            policies = POLICIES.format(mlp="moe" if make is mixture else "mlp", modules=modules)
            for layout in options.layouts.split(","):
                name = f"{make.__name__} {layout} {part}: ok"
                if name in done:
                    continue
                result = subprocess.run(
                    [sys.executable, ROOT / "test/Integration/check_recompute.py", folder, "--work",
                     options.work / "run", "--policies", policies, "--layouts", LAYOUTS[layout],
                     *(["--single"] if part.startswith("f32") else [])],
                    capture_output=True, text=True)
                if result.returncode:
                    failed += 1
                    name = name.removesuffix("ok") + result.stderr.strip().replace("\n", " ")
                else:
                    with log.open("a") as file:
                        file.write(name + "\n")
                print(name, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
