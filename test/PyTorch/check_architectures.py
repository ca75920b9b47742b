#!/usr/bin/env python3
"""Trains small random language models of many architectures with acc and with
PyTorch in float64, and compares losses and parameters after three steps.

Each is exported by today's exporter in three ways (defaults with dynamic sizes,
defaults with static ones, optimize=False) and by acc-export (with the loss inside),
and runs on one rank, on two with two micro-batches, on four with ZeRO-3, and on two and four
that share weights and sequences. A default
export of which the exporter folded parameters must be refused, naming them and the
remedy; with --allow-folded it trains like PyTorch with those held. Of the others nothing
may be folded, and the weights that acc trained from a file of acc-export, put back by
acc_export.load, must give PyTorch's logits. A default export in which calls were merged
may be refused altogether, naming the calls, parameters and the remedy. Run it with the
versions of test/Fixtures/requirements.txt and the tools built (scripts/setup); arguments
name architectures, none all of them. Then every head for a task of many families
(`bert:tokens`), with its loss in its forward, by its default export, by one with
optimize=False and by acc-export; some default exports are refused (heads.NOT_TOLD). Takes some two hours."""
import argparse
import copy
import json
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import safetensors.torch
import torch
import transformers as hf

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))

import acc_export  # noqa: E402
import heads  # noqa: E402

VOCABULARY, BATCH, SEQUENCE, STEPS, RATE = 99, 4, 10, 3, 0.1
WAYS = ("dynamic", "static", "raw", "acc-export")
LAYOUTS = {"1 rank": ["--mesh", "dp=1"],
           "2 ranks, 2 micro-batches": ["--mesh", "dp=2", "--micro-batches", "2"],
           "ZeRO-3 on 4": ["--mesh", "dp=4", "--set", "zero_stage=3"],
           "tp 2, rows shared": ["--mesh", "tp=2", "--set", "sequence_parallelism=true"],
           "tp 4": ["--mesh", "tp=4"],
           "ZeRO-3 x tp": ["--mesh", "dp_shard=2,tp=2", "--set", "zero_stage=3", "--micro-batches", "2"],
           "a ring of 2": ["--mesh", "cp=2", "--set", "cp.strategy=ring"],
           "Ulysses x tp": ["--mesh", "sp=2,tp=2"]}
LOSS_LIMIT = 1e-6       # relative
# Of a parameter that a default export holds as 1 + w alone the last bits are gone.
FOLDED_LOSS_LIMIT = 1e-5
LOGITS_LIMIT = 1e-4     # of the largest
PARAMETER_LIMIT = 1e-3  # of how far the parameter moved: float32 keeps the moves so well

USUAL = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             intermediate_size=48, max_position_embeddings=32)
GROUPED = dict(USUAL, num_key_value_heads=2)
GPT = dict(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=32,
           resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
PAIR = dict(vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2,
            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
            decoder_ffn_dim=48, max_position_embeddings=32)
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 16}

EXPERTS = dict(GROUPED, num_local_experts=4, num_experts_per_tok=2)
ROUTED = dict(GROUPED, num_experts_per_tok=2, moe_intermediate_size=24)

ARCHITECTURES = {
    "albert": (hf.AlbertForMaskedLM, hf.AlbertConfig, dict(USUAL, embedding_size=16)),
    "arcee": (hf.ArceeForCausalLM, hf.ArceeConfig, GROUPED),
    "bart": (hf.BartForConditionalGeneration, hf.BartConfig, PAIR),
    "bert": (hf.BertForMaskedLM, hf.BertConfig, USUAL),
    "biogpt": (hf.BioGptForCausalLM, hf.BioGptConfig, USUAL),
    "bloom": (hf.BloomForCausalLM, hf.BloomConfig, dict(
        vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4)),
    "camembert": (hf.CamembertForMaskedLM, hf.CamembertConfig, dict(
        USUAL, max_position_embeddings=40)),
    "codegen": (hf.CodeGenForCausalLM, hf.CodeGenConfig, dict(GPT, rotary_dim=4)),
    "cohere": (hf.CohereForCausalLM, hf.CohereConfig, USUAL),
    "cohere2": (hf.Cohere2ForCausalLM, hf.Cohere2Config, GROUPED),
    "data2vec": (hf.Data2VecTextForMaskedLM, hf.Data2VecTextConfig, dict(
        USUAL, max_position_embeddings=40)),
    "deepseek_v3": (hf.DeepseekV3ForCausalLM, hf.DeepseekV3Config, dict(
        ROUTED, num_key_value_heads=4, n_routed_experts=8, n_group=2, topk_group=1,
        q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=4, qk_nope_head_dim=4,
        v_head_dim=8, first_k_dense_replace=1)),
    "deberta_v2": (hf.DebertaV2ForMaskedLM, hf.DebertaV2Config, USUAL),
    "distilbert": (hf.DistilBertForMaskedLM, hf.DistilBertConfig, dict(
        vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=48,
        max_position_embeddings=32)),
    "electra": (hf.ElectraForMaskedLM, hf.ElectraConfig, dict(USUAL, embedding_size=16)),
    "ernie": (hf.ErnieForMaskedLM, hf.ErnieConfig, USUAL),
    "ernie4_5": (hf.Ernie4_5ForCausalLM, hf.Ernie4_5Config, dict(
        GROUPED, head_dim=8, pad_token_id=0)),
    "exaone4": (hf.Exaone4ForCausalLM, hf.Exaone4Config, dict(GROUPED, sliding_window=4)),
    "falcon": (hf.FalconForCausalLM, hf.FalconConfig, dict(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        alibi=False)),
    "falcon, alibi": (hf.FalconForCausalLM, hf.FalconConfig, dict(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        multi_query=False, alibi=True)),
    "falcon, grouped": (hf.FalconForCausalLM, hf.FalconConfig, dict(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_kv_heads=2, new_decoder_architecture=True, alibi=False)),
    "gemma": (hf.GemmaForCausalLM, hf.GemmaConfig, dict(
        USUAL, num_key_value_heads=1, head_dim=8)),
    "gemma2": (hf.Gemma2ForCausalLM, hf.Gemma2Config, dict(
        GROUPED, head_dim=8, sliding_window=4)),
    "gemma3": (hf.Gemma3ForCausalLM, hf.Gemma3TextConfig, dict(
        GROUPED, head_dim=8, sliding_window=4)),
    "glm": (hf.GlmForCausalLM, hf.GlmConfig, dict(GROUPED, head_dim=8, pad_token_id=0)),
    "gpt2": (hf.GPT2LMHeadModel, hf.GPT2Config, dict(
        GPT, n_embd=30, n_head=3, scale_attn_by_inverse_layer_idx=True)),
    "gpt_bigcode": (hf.GPTBigCodeForCausalLM, hf.GPTBigCodeConfig, GPT),
    "gpt_neo": (hf.GPTNeoForCausalLM, hf.GPTNeoConfig, dict(
        vocab_size=VOCABULARY, hidden_size=32, num_layers=2, num_heads=4, window_size=4,
        attention_types=[[["global", "local"], 1]], max_position_embeddings=32)),
    "gpt_neox": (hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig, dict(USUAL, rotary_pct=0.25)),
    "gpt_oss": (hf.GptOssForCausalLM, hf.GptOssConfig, dict(
        EXPERTS, head_dim=8, sliding_window=4)),
    "gptj": (hf.GPTJForCausalLM, hf.GPTJConfig, dict(GPT, rotary_dim=4)),
    "granite": (hf.GraniteForCausalLM, hf.GraniteConfig, GROUPED),
    "granitemoe": (hf.GraniteMoeForCausalLM, hf.GraniteMoeConfig, EXPERTS),
    "helium": (hf.HeliumForCausalLM, hf.HeliumConfig, dict(GROUPED, head_dim=8)),
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig, dict(
        GROUPED, tie_word_embeddings=True, rope_parameters=LLAMA3)),
    "mbart": (hf.MBartForConditionalGeneration, hf.MBartConfig, PAIR),
    "megatron_bert": (hf.MegatronBertForMaskedLM, hf.MegatronBertConfig, USUAL),
    "mistral": (hf.MistralForCausalLM, hf.MistralConfig, dict(GROUPED, sliding_window=4)),
    "mixtral": (hf.MixtralForCausalLM, hf.MixtralConfig, EXPERTS),
    "mobilebert": (hf.MobileBertForMaskedLM, hf.MobileBertConfig, dict(
        USUAL, embedding_size=16, intra_bottleneck_size=32)),
    "modernbert": (hf.ModernBertForMaskedLM, hf.ModernBertConfig, dict(
        USUAL, pad_token_id=0, global_attn_every_n_layers=2, local_attention=4)),
    "mpt": (hf.MptForCausalLM, hf.MptConfig, dict(
        vocab_size=VOCABULARY, d_model=32, n_heads=4, n_layers=2, max_seq_len=32)),
    "nemotron": (hf.NemotronForCausalLM, hf.NemotronConfig, GROUPED),
    "olmo": (hf.OlmoForCausalLM, hf.OlmoConfig, USUAL),
    "olmoe": (hf.OlmoeForCausalLM, hf.OlmoeConfig, dict(
        GROUPED, num_experts=4, num_experts_per_tok=2)),
    "olmo2": (hf.Olmo2ForCausalLM, hf.Olmo2Config, USUAL),
    "olmo3": (hf.Olmo3ForCausalLM, hf.Olmo3Config, dict(GROUPED, sliding_window=4)),
    "openai_gpt": (hf.OpenAIGPTLMHeadModel, hf.OpenAIGPTConfig, GPT),
    "opt": (hf.OPTForCausalLM, hf.OPTConfig, dict(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        ffn_dim=48, max_position_embeddings=32, word_embed_proj_dim=32)),
    "persimmon": (hf.PersimmonForCausalLM, hf.PersimmonConfig, USUAL),
    "phi": (hf.PhiForCausalLM, hf.PhiConfig, USUAL),
    "phi3": (hf.Phi3ForCausalLM, hf.Phi3Config, dict(GROUPED, pad_token_id=0)),
    "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config, GROUPED),
    "qwen2_moe": (hf.Qwen2MoeForCausalLM, hf.Qwen2MoeConfig, dict(
        ROUTED, num_experts=4, shared_expert_intermediate_size=32)),
    "qwen3_moe": (hf.Qwen3MoeForCausalLM, hf.Qwen3MoeConfig, dict(
        ROUTED, num_experts=8, head_dim=8)),
    "qwen3": (hf.Qwen3ForCausalLM, hf.Qwen3Config, dict(GROUPED, head_dim=8)),
    "rembert": (hf.RemBertForMaskedLM, hf.RemBertConfig, dict(
        USUAL, input_embedding_size=16, output_embedding_size=24)),
    "roberta": (hf.RobertaForMaskedLM, hf.RobertaConfig, dict(
        USUAL, max_position_embeddings=40)),
    "seed_oss": (hf.SeedOssForCausalLM, hf.SeedOssConfig, dict(GROUPED, head_dim=8)),
    "smollm3": (hf.SmolLM3ForCausalLM, hf.SmolLM3Config, dict(GROUPED, pad_token_id=0)),
    "stablelm": (hf.StableLmForCausalLM, hf.StableLmConfig, GROUPED),
    "starcoder2": (hf.Starcoder2ForCausalLM, hf.Starcoder2Config, GROUPED),
    "xlm_roberta": (hf.XLMRobertaForMaskedLM, hf.XLMRobertaConfig, dict(
        USUAL, max_position_embeddings=40)),
}


class Refused(Exception):
    """acc said no: its message."""


def run(*command):
    result = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if result.returncode:
        lines = result.stderr.strip().splitlines()
        errors = [line for line in lines if "error: " in line]
        more = f" (and {len(errors) - 1} more errors)" if len(errors) > 1 else ""
        raise Refused((errors or lines[-1:])[0] + more)
    return result.stdout


def make_model(architecture):
    """Logits alone, no dropout (the model is in eval mode), parameters all different
    (an exporter merges equal ones)."""
    kind, config, sizes = ARCHITECTURES[architecture]
    options = {} if "MaskedLM" in kind.__name__ else {"use_cache": False}

    class Logits(kind):
        def forward(self, input_ids):
            return kind.forward(self, input_ids=input_ids, **options).logits

    torch.manual_seed(5)
    model = Logits(config(**sizes)).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return model


def make_inputs():
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(2, VOCABULARY, (BATCH, SEQUENCE), generator=generator)
    labels = torch.randint(0, VOCABULARY, (BATCH, SEQUENCE), generator=generator)
    labels[0, :3] = -100
    labels[2, 5:] = -100
    return ids, labels


def train(model, held):
    """float64's losses and the model after the steps; names in `held` stay."""
    model = copy.deepcopy(model).double()
    ids, labels = make_inputs()
    optimizer = torch.optim.SGD([p for n, p in model.named_parameters() if n not in held], lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            model(ids).reshape(-1, VOCABULARY), labels.reshape(-1))
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return losses, model


def compare(model, trained, weights, held):
    """The largest error of a parameter, relative to how far it moved. A parameter
    that the file knows by another of its names is found under that one."""
    start, end = model.state_dict(), trained.state_dict()
    worst = 0.0
    for name, parameter in trained.named_parameters():
        if name in held:
            continue
        saved = [n for n in end if n in weights and end[n].data_ptr() == parameter.data_ptr()]
        if not saved and torch.equal(end[name], start[name].double()):
            continue  # nothing uses it, and files of torch.onnx.export do not hold it
        if not saved:
            raise Refused(f"'{name}' is not among the saved weights")
        error = (weights[saved[0]].double() - end[name]).norm()
        moved = (end[name] - start[name].double()).norm()
        worst = max(worst, (error / max(moved, 1e-3 * end[name].norm())).item())
    return worst


def check_loaded(model, trained, saved):
    """The weights go back strictly, and the module then computes what PyTorch's does."""
    ids, _ = make_inputs()
    fresh = copy.deepcopy(model)
    acc_export.load(fresh, saved)
    with torch.no_grad():
        expected = trained(ids)
        error = (fresh(ids).double() - expected).abs().max() / expected.abs().max()
    if not error <= LOGITS_LIMIT:
        raise Refused(f"after acc_export.load the logits are off by {error:.1e} of the largest")


def export(model, way, work):
    """Writes work/model.onnx and work/inputs. Returns the loss and the dimensions, as
    acc-opt takes them."""
    ids, labels = make_inputs()
    shape = {0: "batch", 1: "sequence"}
    dims = [] if way == "static" else ["--dim", f"batch={BATCH}", "--dim", f"sequence={SEQUENCE}"]
    if way == "acc-export":
        acc_export.export(model, (ids,), {"labels": labels}, loss="mlm", dir=work,
                          dynamic_shapes={"input_ids": shape, "labels": shape})
        return "loss", dims
    options = {"optimize": way != "raw"}
    if hasattr(model.config, "num_experts_per_tok"):
        model.config._experts_implementation = "batched_mm"  # acc-export does so by itself
    if way != "static":
        options["dynamic_shapes"] = {"input_ids": {0: torch.export.Dim("batch", min=1, max=64),
                                                   1: torch.export.Dim("sequence", min=2, max=32)}}
    torch.onnx.export(model, (ids,), str(work / "model.onnx"), dynamo=True, verbose=False,
                      input_names=["input_ids"], output_names=["logits"], **options)
    (work / "inputs").mkdir()
    np.save(work / "inputs" / "input_ids.npy", ids.numpy())
    np.save(work / "inputs" / "labels.npy", labels.numpy())
    return "cross_entropy:logits,labels", dims


def refused_by_name(tools, file, dims, loss):
    """Whether a default export is refused even with its folded parameters held, for what
    the exporter merged or for a small number that it dropped, and the error says what and what
    to do."""
    done = subprocess.run([tools / "acc-opt", file, *dims, "--train", "--loss", loss,
                           "--allow-folded", "--compile-to=nn", "-o", "/dev/null"],
                          capture_output=True, text=True)
    merged = "was merged with" in done.stderr and "gradients of '" in done.stderr
    dropped = "drops what adds less than 1e-8" in done.stderr
    return (done.returncode != 0 and (merged or dropped)
            and "export with acc-export" in done.stderr)


def check_refusal(tools, file, dims, loss, held):
    """Without --allow-folded the file is refused, if anything would be held."""
    done = subprocess.run([tools / "acc-opt", file, *dims, "--train", "--loss", loss,
                           "--compile-to=nn", "-o", "/dev/null"], capture_output=True, text=True)
    if bool(done.returncode) != bool(held):
        raise Refused(f"expected {held} to be refused, found: {done.stderr.strip()[:300]}")
    if held and not ("export with acc-export" in done.stderr and any(
            f"'{name}'" in done.stderr for name in held)):
        raise Refused(f"expected an error that names one of {held}, found: {done.stderr[:300]}")


def check(architecture, way, tools, work):
    model = make_model(architecture)
    loss, dims = export(model, way, work)
    file, inputs = work / "model.onnx", work / "inputs"
    folded = [] if way in ("raw", "acc-export") else ["--allow-folded"]
    if folded and refused_by_name(tools, file, dims, loss):
        return None
    report = json.loads(run(tools / "acc-opt", file, *dims, "--report=parameters", "--json",
                            *folded))
    held = {n for p in report if not p["trained"] for n in [p["name"], *p["aliases"]]}
    check_refusal(tools, file, dims, loss, [p["name"] for p in report if not p["trained"]])
    losses, trained = train(model, held)
    loss_error = parameter_error = 0.0
    for layout in LAYOUTS.values():
        program, saved = work / "train.accx", work / "weights.safetensors"
        run(tools / "acc-opt", file, *dims, "--train", "--loss", loss,
            "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", *layout, *folded,
            "-o", program)
        lines = run(tools / "acc-run", program, "--steps", STEPS, "--inputs", inputs, "--json",
                    "--save-weights", saved).splitlines()
        for line, expected in zip(lines, losses):
            loss_error = max(loss_error, abs(json.loads(line)["loss"] - expected) / expected)
        parameter_error = max(parameter_error, compare(
            model, trained, safetensors.torch.load_file(saved), held))
        if way == "acc-export":
            check_loaded(model, trained, saved)
    said = f"; refused, and with {len(held)} parameters held as said" if held else ""
    return loss_error, parameter_error, said


def check_head(name, way, tools, work):
    """The head of a family, with its loss in its forward, in float64: a bias of which the loss
    does not depend moves by what rounds. What a default export folded is undone by the weights
    that it was made with; None where it is refused as heads.NOT_TOLD has it."""
    model, inputs = heads.make(name)
    dims = heads.export(model, inputs, way, work)
    losses, trained = heads.train(model, inputs, STEPS, RATE)
    for path in (work / "inputs").glob("*.npy"):
        value = np.load(path)
        if value.dtype == np.float32:
            np.save(path, value.astype(np.float64))
    originals = []
    loss_error = parameter_error = 0.0
    for layout in ("1 rank", "2 ranks, 2 micro-batches"):
        program, saved = work / "train.accx", work / "weights.safetensors"
        command = [tools / "acc-opt", work / "model.onnx", *dims, "--train", "--loss", "loss",
                   "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", "--dtype=f64",
                   *LAYOUTS[layout], "-o", program]
        try:
            run(*command, *originals)
        except Refused as problem:
            if way != "default" or originals:
                raise
            if (words := heads.not_told(name)) and words in str(problem):
                return None
            path = work / "original.safetensors"
            safetensors.torch.save_file({n: v.clone() for n, v in model.state_dict().items()}, path)
            originals = ["--original-weights", path]
            run(*command, *originals)
        lines = run(tools / "acc-run", program, "--steps", STEPS, "--inputs", work / "inputs",
                    "--json", "--save-weights", saved).splitlines()
        for line, expected in zip(lines, losses):
            loss_error = max(loss_error, abs(json.loads(line)["loss"] - expected) / expected)
        parameter_error = max(parameter_error, compare(
            model, trained, safetensors.torch.load_file(saved), ()))
    return loss_error, parameter_error, "; by --original-weights" if originals else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architectures", nargs="*", metavar="ARCHITECTURE",
                        help=", ".join([*ARCHITECTURES, *heads.names()]))
    parser.add_argument("--ways", metavar="WAY,...", help=f"default: {', '.join(WAYS)}, of heads "
                        f"{', '.join(heads.WAYS)}")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "bin")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    failed = 0
    for architecture in arguments.architectures or [*ARCHITECTURES, *heads.names()]:
        ways, one = (heads.WAYS, check_head) if ":" in architecture else (WAYS, check)
        for way in arguments.ways.split(",") if arguments.ways else ways:
            with tempfile.TemporaryDirectory() as work:
                try:
                    found = one(architecture, way, arguments.tools, pathlib.Path(work))
                    if found is None:
                        print(f"{architecture:12} {way:10} refused by name", flush=True)
                        continue
                    loss, parameter, said = found
                    limit = FOLDED_LOSS_LIMIT if way == "default" else LOSS_LIMIT
                    wrong = not (loss <= limit and parameter <= PARAMETER_LIMIT)
                    text = f"loss {loss:.1e}, parameters {parameter:.1e} of their moves{said}"
                except (Refused, acc_export.Refused, torch.onnx.OnnxExporterError) as problem:
                    wrong, text = True, str(problem)
            failed += wrong
            print(f"{architecture:12} {way:10} {'WRONG: ' if wrong else ''}{text}", flush=True)
    if failed:
        raise SystemExit(f"{failed} of them are wrong")


if __name__ == "__main__":
    main()
