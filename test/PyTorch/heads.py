"""Small random models of many families with every head for a task that `transformers` has
for them. The loss is made within `forward`, by the module that the head makes there
(`CrossEntropyLoss()(…)`), so that a file has its labels as inputs and one output."""
import copy
import inspect

import numpy as np
import torch
import transformers as hf
from torch.overrides import TorchFunctionMode

import acc_export

VOCABULARY, BATCH, SEQUENCE, CLASSES, CHOICES = 61, 4, 8, 3, 2
WAYS = ("default", "raw", "acc-export")

ENCODER = dict(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
               intermediate_size=24, max_position_embeddings=16, hidden_dropout_prob=0,
               attention_probs_dropout_prob=0)
DECODER = dict(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
               num_key_value_heads=1, intermediate_size=24, max_position_embeddings=16,
               pad_token_id=0, attention_dropout=0)
GPT = dict(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_positions=16, resid_pdrop=0,
           embd_pdrop=0, attn_pdrop=0, summary_first_dropout=0, pad_token_id=0)
PAIR = dict(vocab_size=VOCABULARY, d_model=16, encoder_layers=2, decoder_layers=2,
            encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24,
            decoder_ffn_dim=24, max_position_embeddings=16, dropout=0, pad_token_id=0,
            eos_token_id=2, decoder_start_token_id=1)

# The beginning of the classes' names, the configuration, sizes.
FAMILIES = {
    "albert": ("Albert", hf.AlbertConfig, dict(
        ENCODER, embedding_size=8, classifier_dropout_prob=0)),
    "bart": ("Bart", hf.BartConfig, PAIR),
    "bert": ("Bert", hf.BertConfig, ENCODER),
    "bloom": ("Bloom", hf.BloomConfig, dict(
        vocab_size=VOCABULARY, hidden_size=16, n_layer=2, n_head=2, pad_token_id=0)),
    "deberta_v2": ("DebertaV2", hf.DebertaV2Config, dict(ENCODER, pooler_dropout=0)),
    "deepseek_v3": ("DeepseekV3", hf.DeepseekV3Config, dict(
        DECODER, num_key_value_heads=2, moe_intermediate_size=12, num_experts_per_tok=2,
        n_routed_experts=4, n_group=2, topk_group=1, q_lora_rank=8, kv_lora_rank=8,
        qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8, first_k_dense_replace=1)),
    "distilbert": ("DistilBert", hf.DistilBertConfig, dict(
        vocab_size=VOCABULARY, dim=16, n_layers=2, n_heads=2, hidden_dim=24,
        max_position_embeddings=16, dropout=0, attention_dropout=0, seq_classif_dropout=0,
        qa_dropout=0)),
    "electra": ("Electra", hf.ElectraConfig, dict(ENCODER, embedding_size=8)),
    "falcon": ("Falcon", hf.FalconConfig, dict(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_kv_heads=1, new_decoder_architecture=True, alibi=False, pad_token_id=0)),
    "gemma": ("Gemma", hf.GemmaConfig, dict(DECODER, head_dim=8)),
    "gemma2": ("Gemma2", hf.Gemma2Config, dict(DECODER, head_dim=8, sliding_window=4)),
    "gemma3": ("Gemma3", hf.Gemma3TextConfig, dict(DECODER, head_dim=8, sliding_window=4)),
    "gpt2": ("GPT2", hf.GPT2Config, GPT),
    "gpt_neo": ("GPTNeo", hf.GPTNeoConfig, dict(
        vocab_size=VOCABULARY, hidden_size=16, num_layers=2, num_heads=2, window_size=4,
        attention_types=[[["global", "local"], 1]], max_position_embeddings=16,
        pad_token_id=0, resid_dropout=0, embed_dropout=0, attention_dropout=0,
        classifier_dropout=0)),
    "gpt_neox": ("GPTNeoX", hf.GPTNeoXConfig, dict(ENCODER, pad_token_id=0)),
    "gpt_oss": ("GptOss", hf.GptOssConfig, dict(
        DECODER, head_dim=8, sliding_window=4, num_local_experts=4, num_experts_per_tok=2)),
    "gptj": ("GPTJ", hf.GPTJConfig, dict(GPT, rotary_dim=4)),
    "llama": ("Llama", hf.LlamaConfig, DECODER),
    "mistral": ("Mistral", hf.MistralConfig, dict(DECODER, sliding_window=4)),
    "mixtral": ("Mixtral", hf.MixtralConfig, dict(
        DECODER, num_local_experts=4, num_experts_per_tok=2)),
    "mobilebert": ("MobileBert", hf.MobileBertConfig, dict(
        ENCODER, embedding_size=8, intra_bottleneck_size=16, pad_token_id=0)),
    "modernbert": ("ModernBert", hf.ModernBertConfig, dict(
        ENCODER, pad_token_id=0, global_attn_every_n_layers=2, local_attention=4)),
    "opt": ("OPT", hf.OPTConfig, dict(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        ffn_dim=24, max_position_embeddings=16, word_embed_proj_dim=16, pad_token_id=0,
        dropout=0)),
    "phi": ("Phi", hf.PhiConfig, DECODER),
    "phi3": ("Phi3", hf.Phi3Config, DECODER),
    "qwen2": ("Qwen2", hf.Qwen2Config, DECODER),
    "qwen3": ("Qwen3", hf.Qwen3Config, dict(DECODER, head_dim=8)),
    "qwen3_moe": ("Qwen3Moe", hf.Qwen3MoeConfig, dict(
        DECODER, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12)),
    "roberta": ("Roberta", hf.RobertaConfig, dict(ENCODER, max_position_embeddings=24)),
    "stablelm": ("StableLm", hf.StableLmConfig, DECODER),
    "starcoder2": ("Starcoder2", hf.Starcoder2Config, dict(
        DECODER, residual_dropout=0, embedding_dropout=0)),
    "t5": ("T5", hf.T5Config, dict(
        vocab_size=VOCABULARY, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2,
        dropout_rate=0, classifier_dropout=0, pad_token_id=0, eos_token_id=2,
        decoder_start_token_id=0, attn_implementation="eager")),
}


def numbers(high, *shape, low=0):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(sum(shape)))


def words(*shape):
    """Ids of words: no padding, and what ends a sequence at its end."""
    ids = numbers(VOCABULARY, *shape, low=3)
    ids[..., -1] = 2
    return ids


def some_ignored(labels):
    labels[0, :3] = -100
    labels[2, 5:] = -100
    return labels


CLASSIFIERS = ["ForSequenceClassification", "TextForSequenceClassification"]

# The end of the classes' names, what else the configuration says, the labels.
HEADS = {
    "one class": (CLASSIFIERS, dict(num_labels=CLASSES),
                  lambda: {"labels": numbers(CLASSES, BATCH)}),
    "many classes": (CLASSIFIERS, dict(
        num_labels=CLASSES, problem_type="multi_label_classification"),
                     lambda: {"labels": numbers(2, BATCH, CLASSES).float()}),
    "regression": (CLASSIFIERS, dict(
        num_labels=1, problem_type="regression"),
                   lambda: {"labels": numbers(9, BATCH) / 4 - 1}),
    "tokens": (["ForTokenClassification"], dict(num_labels=CLASSES),
               lambda: {"labels": some_ignored(numbers(CLASSES, BATCH, SEQUENCE))}),
    "question": (["ForQuestionAnswering"], {},
                 lambda: {"start_positions": numbers(SEQUENCE, BATCH),
                          "end_positions": numbers(SEQUENCE, BATCH)}),
    "choice": (["ForMultipleChoice"], {},
               lambda: {"input_ids": words(BATCH, CHOICES, SEQUENCE),
                        "labels": numbers(CHOICES, BATCH)}),
    "masked": (["ForMaskedLM"], {},
               lambda: {"labels": some_ignored(words(BATCH, SEQUENCE))}),
    "next sentence": (["ForNextSentencePrediction"], {},
                      lambda: {"labels": numbers(2, BATCH)}),
    "both": (["ForPreTraining"], {},
             lambda: {"labels": some_ignored(words(BATCH, SEQUENCE)),
                      "next_sentence_label": numbers(2, BATCH)}),
    "order": (["ForPreTraining"], {},
              lambda: {"labels": some_ignored(words(BATCH, SEQUENCE)),
                       "sentence_order_label": numbers(2, BATCH)}),
    "replaced": (["ForPreTraining"], {},
                 lambda: {"labels": numbers(2, BATCH, SEQUENCE)}),
    "causal": (["ForCausalLM", "LMHeadModel"], {},
               lambda: {"labels": some_ignored(words(BATCH, SEQUENCE))}),
    "conditional": (["ForConditionalGeneration"], {},
                    lambda: {"labels": some_ignored(words(BATCH, SEQUENCE))}),
    "two": (["DoubleHeadsModel"], dict(num_labels=1),
            lambda: {"input_ids": words(BATCH, CHOICES, SEQUENCE),
                     "mc_token_ids": numbers(SEQUENCE, BATCH, CHOICES),
                     "labels": words(BATCH, CHOICES, SEQUENCE),
                     "mc_labels": numbers(CHOICES, BATCH)}),
}

# Of which default exports do not tell all that training needs, and a part of what acc says: a
# value that has other uses may have been detached, what is in no initializer may be unused or
# folded, the number that keeps a quotient finite is gone, a product is of two parameters.
DETACHED = "or of its detached value"
NOT_TOLD = {
    "albert:order": DETACHED,
    "bart:causal": "the exporter folded it into constants, or nothing uses it",
    "bert:both": DETACHED,
    "deepseek_v3": "drops what adds less than 1e-8",
    "falcon": DETACHED,
    "gpt_oss": "was computed by the exporter from parameter",
    "gptj": DETACHED,
    "mobilebert": DETACHED,
    "mobilebert:masked": "was computed by the exporter from parameters",
    "mobilebert:both": "was computed by the exporter from parameters",
}
# Of which PyTorch's own export fails: a branch of their forward on values.
NOT_TRACED = {"deberta_v2:one class", "modernbert:choice"}


def not_told(name):
    return NOT_TOLD.get(name) or NOT_TOLD.get(name.split(":")[0])


def class_of(name):
    """The class of `transformers` with that head, or None: of the family's configuration (some
    have another for images as well), with the head's labels among its arguments."""
    family, head = name.split(":")
    prefix, config, _ = FAMILIES[family]
    kinds = (getattr(hf, prefix + end, None) for end in HEADS[head][0])
    kind = next((kind for kind in kinds if kind and kind.config_class is config), None)
    if kind is None:
        return None
    takes = inspect.signature(kind.forward).parameters
    if not all(label in takes for label in HEADS[head][2]()):
        return None
    # A loss that asks for more than this head's labels is another head's.
    both = "next_sentence_label" in takes or "sentence_order_label" in takes
    return None if head == "replaced" and both else kind


def names():
    return [name for family in FAMILIES for head in HEADS
            if (name := f"{family}:{head}") not in NOT_TRACED and class_of(name)]


def make(name):
    """The model, which returns its loss, and its inputs by name; no dropout, parameters all
    different."""
    family, head = name.split(":")
    _, config, sizes = FAMILIES[family]
    _, more, make_labels = HEADS[head]
    kind = class_of(name)
    inputs = {"input_ids": words(BATCH, SEQUENCE), **make_labels()}
    arguments = ", ".join(inputs)
    scope = {"kind": kind}
    # Exporters name a file's inputs by the arguments of forward, and the library finds a
    # head's loss by the name of its class.
    exec(f"class {kind.__name__}(kind):\n"
         f"    def forward(self, {arguments}):\n"
         f"        found = kind.forward(self, {', '.join(f'{n}={n}' for n in inputs)})\n"
         f"        return found.loss{' + found.mc_loss' if 'mc_labels' in inputs else ''}\n",
         scope)
    torch.manual_seed(5)
    model = scope[kind.__name__](config(**sizes, **more)).eval()
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return model, inputs


def dynamic_shapes(inputs):
    """Batch and sequence are symbols: of a fixed sequence the exporter folds tables of
    positions. The exporter cannot write a loss that ignores the label `sequence`, as that of
    questions does."""
    batch, sequence = torch.export.Dim("batch"), torch.export.Dim("sequence", min=2, max=16)
    fixed = "start_positions" in inputs
    return {name: {place: batch if place == 0 else sequence
                   for place, size in enumerate(value.shape)
                   if place == 0 or (size == SEQUENCE and not fixed)}
            for name, value in inputs.items()}


def export(model, inputs, way, work):
    """Writes work/model.onnx and work/inputs. Returns the dimensions, as acc-opt takes them."""
    if way == "acc-export":
        acc_export.export(model, (), inputs, dir=work)
        return []
    if hasattr(model.config, "num_experts_per_tok"):
        model.config._experts_implementation = "batched_mm"
    shapes = dynamic_shapes(inputs)
    torch.onnx.export(model, tuple(inputs.values()), str(work / "model.onnx"), dynamo=True,
                      verbose=False, optimize=way == "default", input_names=list(inputs),
                      output_names=["loss"], dynamic_shapes=shapes)
    (work / "inputs").mkdir()
    for name, value in inputs.items():
        np.save(work / "inputs" / f"{name}.npy", value.numpy())
    open_dims = {dim.__name__ for sizes in shapes.values() for dim in sizes.values()}
    return [part for name, size in (("batch", BATCH), ("sequence", SEQUENCE))
            if name in open_dims for part in ("--dim", f"{name}={size}")]


class Wide(TorchFunctionMode):
    """Models cast to float32 where they need no less (softmax, norms, angles): in float64
    that would round."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def widened(value):
            return torch.float64 if value is torch.float32 else value
        function = torch.Tensor.double if function is torch.Tensor.float else function
        return function(*map(widened, args),
                        **{name: widened(value) for name, value in (kwargs or {}).items()})


def train(model, inputs, steps, rate, held=()):
    """float64's losses and the model after the steps of SGD; names in `held` stay."""
    model = copy.deepcopy(model).double()
    inputs = {n: v.double() if v.is_floating_point() else v for n, v in inputs.items()}
    optimizer = torch.optim.SGD([p for n, p in model.named_parameters() if n not in held], lr=rate)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with Wide():
            loss = model(**inputs)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return losses, model
