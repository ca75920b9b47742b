"""One peer's training step: tokens a second and peak memory.

usage: peers.py NAME MODEL PRECISION compile|eager FOLDER. It warms up, writes FOLDER/NAME.ready,
waits for FOLDER/NAME.go, measures and writes FOLDER/NAME.json: timings want the GPU alone, compiling doesn't."""

import json
import os
import sys
import time
import torch
import transformers as tf

name, model, precision, how, folder = sys.argv[1:]
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
torch.manual_seed(0)
if model == "gpt2":
    B, T, V = 8, 1024, 50257
    m = tf.GPT2LMHeadModel(
        tf.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False)
    )
else:
    h, L, H, inner, B, T = {
        "llama350m": (1024, 24, 16, 2816, 8, 2048),
        "llama1.3b": (2048, 24, 16, 5504, 4, 2048),
    }[model]
    V = 32000
    m = tf.LlamaForCausalLM(
        tf.LlamaConfig(
            hidden_size=h,
            num_hidden_layers=L,
            num_attention_heads=H,
            num_key_value_heads=H,
            intermediate_size=inner,
            vocab_size=V,
            max_position_embeddings=T,
            use_cache=False,
        )
    )
m = m.cuda().train()
n = sum(p.numel() for p in m.parameters())
opt = torch.optim.AdamW(m.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
ids = torch.randint(0, V, (B, T), device="cuda")
f = torch.compile(m) if how == "compile" else m


def step():
    with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
        loss = f(input_ids=ids, labels=ids).loss
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
    return loss


t = time.time()
l0 = step().item()
step().item()
warm = time.time() - t
torch.cuda.empty_cache()
open(f"{folder}/{name}.ready", "w").close()
while not os.path.exists(f"{folder}/{name}.go"):
    time.sleep(0.05)
torch.cuda.reset_peak_memory_stats()
for _ in range(3):
    step()
ts = []
k = 8
for _ in range(3):
    torch.cuda.synchronize()
    t = time.perf_counter()
    for _ in range(k):
        loss = step()
    torch.cuda.synchronize()
    ts.append((time.perf_counter() - t) / k)
s = sorted(ts)[1]
cfg = m.config
layers, width = (
    (cfg.n_layer, cfg.n_embd) if model == "gpt2" else (cfg.num_hidden_layers, cfg.hidden_size)
)
table = 0 if model == "gpt2" else V * width  # an embedding that is not tied costs no product
flop = (6 * (n - table) + 6 * layers * T * width) * B * T  # causal attention at half of 12 L T C
json.dump(
    dict(
        name=name,
        model=model,
        precision=precision,
        how=how,
        parameters=n,
        batch=[B, T],
        step_ms=s * 1e3,
        all_ms=[x * 1e3 for x in ts],
        tokens_per_s=B * T / s,
        TFLOPs=flop / s / 1e12,
        peak_GiB=torch.cuda.max_memory_allocated() / 2**30,
        warm_s=warm,
        loss=[l0, loss.item()],
        torch=torch.__version__,
        transformers=tf.__version__,
    ),
    open(f"{folder}/{name}.json", "w"),
)
