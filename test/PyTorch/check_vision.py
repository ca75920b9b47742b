#!/usr/bin/env python3
"""Trains small random models of pictures, sounds and sequences of many architectures of
transformers with acc and with PyTorch, in float64 and in training mode (batch norms take
statistics), and compares losses, parameters and running statistics after three steps.

Each is exported by acc-export, and runs on one rank, on two with two micro-batches, and on
four with ZeRO-3. Its loss is a sum over all of its floating-point outputs, so that nothing
that it computes goes unread. Run it with the versions of test/Fixtures/requirements.txt and
the tools built (scripts/setup); arguments name architectures, none all of them. Takes some
twenty minutes."""
import argparse
import copy
import json
import logging
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import safetensors.torch
import torch
import transformers as hf

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))

import acc_export  # noqa: E402

BATCH, STEPS, RATE = 8, 3, 2.0 ** -6
#: Flags, and how many micro-batches they make.
LAYOUTS = (((), 1), (("--mesh", "dp=2", "--micro-batches", "2"), 2),
           (("--mesh", "dp=4", "--set", "zero_stage=3"), 1))
FLOOR = 1e-2  # of a loss, which is a sum of numbers of both signs
LIMIT = 1e-5  # of a loss; of a parameter, relative to how far it moved: constants are float32

PATCHES = dict(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2,
               num_attention_heads=4, intermediate_size=48)
STAGES = dict(hidden_sizes=[16, 32], depths=[1, 2])
SOUND = dict(vocab_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             intermediate_size=48, conv_dim=(16, 16), conv_stride=(4, 2), conv_kernel=(8, 3),
             num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
             mask_time_prob=0.0, layerdrop=0.0)


def picture(size=32, channels=3):
    return {"pixel_values": (channels, size, size)}


SAMPLES = {"input_values": (400,)}
TOKENS = {"input_ids": (10,)}

#: A class, its configuration, the sizes, and the shapes of a sample's inputs.
ARCHITECTURES = {
    "ast": (hf.ASTForAudioClassification, hf.ASTConfig, dict(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, patch_size=8,
        frequency_stride=8, time_stride=8, max_length=32, num_mel_bins=16), {"input_values": (32, 16)}),
    "beit": (hf.BeitForImageClassification, hf.BeitConfig, PATCHES, picture()),
    "bit": (hf.BitForImageClassification, hf.BitConfig, dict(
        embedding_size=16, num_groups=4, **STAGES), picture()),
    "clip": (hf.CLIPVisionModel, hf.CLIPVisionConfig, PATCHES, picture()),
    "convnext": (hf.ConvNextForImageClassification, hf.ConvNextConfig, dict(
        num_stages=2, **STAGES), picture()),
    "convnextv2": (hf.ConvNextV2ForImageClassification, hf.ConvNextV2Config, dict(
        num_stages=2, **STAGES), picture()),
    "cvt": (hf.CvtForImageClassification, hf.CvtConfig, dict(
        embed_dim=[16, 32, 32], num_heads=[1, 2, 4], depth=[1, 2, 3], drop_path_rate=[0.0] * 3,
        drop_rate=[0.0] * 3), picture(64)),
    "data2vec_vision": (hf.Data2VecVisionForImageClassification, hf.Data2VecVisionConfig, PATCHES,
                        picture()),
    "deit": (hf.DeiTForImageClassification, hf.DeiTConfig, PATCHES, picture()),
    "dinov2": (hf.Dinov2ForImageClassification, hf.Dinov2Config, PATCHES, picture()),
    "dpt": (hf.DPTForDepthEstimation, hf.DPTConfig, dict(
        PATCHES, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 16, 32, 32],
        fusion_hidden_size=16, is_hybrid=False), picture()),
    "efficientnet": (hf.EfficientNetForImageClassification, hf.EfficientNetConfig, dict(
        image_size=32, width_coefficient=0.25, depth_coefficient=0.3, hidden_dim=320, dropout_rate=0.0,
        drop_connect_rate=0.0), picture(64)),
    "focalnet": (hf.FocalNetForImageClassification, hf.FocalNetConfig, dict(
        image_size=32, patch_size=4, embed_dim=16, hidden_sizes=[16, 32], depths=[1, 2], focal_levels=[2, 2],
        focal_windows=[3, 3], drop_path_rate=0.0), picture()),
    "glpn": (hf.GLPNForDepthEstimation, hf.GLPNConfig, dict(
        num_encoder_blocks=4, depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 16, 32], decoder_hidden_size=16,
        num_attention_heads=[1, 2, 2, 4], drop_path_rate=0.0), picture(64)),
    "hgnet_v2": (hf.HGNetV2ForImageClassification, hf.HGNetV2Config, dict(
        stem_channels=[3, 8, 16], stage_in_channels=[16, 16], stage_mid_channels=[8, 8],
        stage_out_channels=[16, 32], stage_num_blocks=[1, 1], stage_downsample=[False, True],
        stage_light_block=[False, True], stage_kernel_size=[3, 5], stage_numb_of_layers=[2, 2],
        depths=[1, 1], hidden_sizes=[16, 32]), picture()),
    "hubert": (hf.HubertForCTC, hf.HubertConfig, SOUND, SAMPLES),
    "ijepa": (hf.IJepaForImageClassification, hf.IJepaConfig, PATCHES, picture()),
    "levit": (hf.LevitForImageClassification, hf.LevitConfig, dict(
        image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 2, 2], depths=[1, 1, 1],
        key_dim=[8, 8, 8], drop_path_rate=0, mlp_ratio=[2, 2, 2]), picture(64)),
    "mamba": (hf.MambaForCausalLM, hf.MambaConfig, dict(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4, use_cache=False), TOKENS),
    "mobilenet_v1": (hf.MobileNetV1ForImageClassification, hf.MobileNetV1Config, dict(
        depth_multiplier=0.25, image_size=96, classifier_dropout_prob=0.0), picture(96)),
    "mobilenet_v2": (hf.MobileNetV2ForImageClassification, hf.MobileNetV2Config, dict(
        depth_multiplier=0.25, image_size=96, classifier_dropout_prob=0.0), picture(96)),
    "mobilevit": (hf.MobileViTForImageClassification, hf.MobileViTConfig, dict(
        image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 48],
        num_attention_heads=4, mlp_ratio=2.0), picture(64)),
    "mobilevitv2": (hf.MobileViTV2ForImageClassification, hf.MobileViTV2Config, dict(
        image_size=64, width_multiplier=0.25), picture(64)),
    "poolformer": (hf.PoolFormerForImageClassification, hf.PoolFormerConfig, dict(
        hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], drop_path_rate=0.0), picture(64)),
    "pvt": (hf.PvtForImageClassification, hf.PvtConfig, dict(
        image_size=64, depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], drop_path_rate=0.0,
        num_attention_heads=[1, 2, 2, 4], mlp_ratios=[2, 2, 2, 2]), picture(64)),
    "pvt_v2": (hf.PvtV2ForImageClassification, hf.PvtV2Config, dict(
        image_size=64, depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], drop_path_rate=0.0,
        num_attention_heads=[1, 2, 2, 4], mlp_ratios=[2, 2, 2, 2]), picture(64)),
    "regnet": (hf.RegNetForImageClassification, hf.RegNetConfig, dict(
        embedding_size=16, groups_width=8, **STAGES), picture()),
    "resnet": (hf.ResNetForImageClassification, hf.ResNetConfig, dict(embedding_size=16, **STAGES),
               picture()),
    "segformer": (hf.SegformerForImageClassification, hf.SegformerConfig, dict(
        num_encoder_blocks=4, depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 16, 32], decoder_hidden_size=16,
        num_attention_heads=[1, 2, 2, 4], drop_path_rate=0.0, classifier_dropout_prob=0.0), picture(64)),
    "sew": (hf.SEWForCTC, hf.SEWConfig, dict(SOUND, squeeze_factor=2), SAMPLES),
    "siglip": (hf.SiglipVisionModel, hf.SiglipVisionConfig, PATCHES, picture()),
    "swiftformer": (hf.SwiftFormerForImageClassification, hf.SwiftFormerConfig, dict(
        image_size=32, depths=[1, 1], embed_dims=[16, 32], mlp_ratio=2, drop_path_rate=0.0,
        downsamples=[True, True]), picture(64)),
    "swin": (hf.SwinForImageClassification, hf.SwinConfig, dict(
        image_size=32, patch_size=4, embed_dim=16, depths=[1, 2], num_heads=[2, 4], window_size=4,
        drop_path_rate=0.0), picture()),
    "swin2sr": (hf.Swin2SRForImageSuperResolution, hf.Swin2SRConfig, dict(
        image_size=16, patch_size=1, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4,
        drop_path_rate=0.0), picture(16)),
    "swinv2": (hf.Swinv2ForImageClassification, hf.Swinv2Config, dict(
        image_size=32, patch_size=4, embed_dim=16, depths=[1, 2], num_heads=[2, 4], window_size=4,
        drop_path_rate=0.0), picture()),
    "textnet": (hf.TextNetForImageClassification, hf.TextNetConfig, dict(
        stem_out_channels=8, hidden_sizes=[8, 8, 16, 16, 16], conv_layer_kernel_sizes=[
            [[3, 3]], [[3, 1]], [[1, 3]], [[3, 3]]], conv_layer_strides=[[2], [1], [2], [1]]), picture()),
    "unispeech": (hf.UniSpeechForCTC, hf.UniSpeechConfig, SOUND, SAMPLES),
    "upernet": (hf.UperNetForSemanticSegmentation, hf.UperNetConfig, dict(
        backbone_config=hf.ConvNextConfig(num_stages=4, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1],
                                          out_features=["stage1", "stage2", "stage3", "stage4"]),
        hidden_size=16, use_auxiliary_head=False, num_labels=5), picture(64)),
    "vit": (hf.ViTForImageClassification, hf.ViTConfig, PATCHES, picture()),
    "vit_msn": (hf.ViTMSNForImageClassification, hf.ViTMSNConfig, PATCHES, picture()),
    "vit_mae_decoder": (hf.ViTForMaskedImageModeling, hf.ViTConfig, dict(
        PATCHES, encoder_stride=8), picture()),
    "wav2vec2": (hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config, SOUND, SAMPLES),
    "wavlm": (hf.WavLMForCTC, hf.WavLMConfig, dict(SOUND, num_buckets=16, max_bucket_distance=32),
              SAMPLES),
    "whisper": (hf.WhisperForConditionalGeneration, hf.WhisperConfig, dict(
        vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=8,
        max_source_positions=16, max_target_positions=16, use_cache=False, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1), {
            "input_features": (8, 32), "decoder_input_ids": (6,)}),
    "yolos": (hf.YolosForObjectDetection, hf.YolosConfig, dict(
        PATCHES, image_size=[32, 32], num_detection_tokens=5), picture()),
}


class Refused(Exception):
    """acc said no: its message."""


def run(*command):
    result = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if result.returncode:
        lines = result.stderr.strip().splitlines()
        raise Refused(next((line for line in lines if "error: " in line), lines[-1] if lines else
                           f"{command[0]} ended with {result.returncode}"))
    return result.stdout


def floats(value):
    """The floating-point tensors of an output, each once."""
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, dict):
        value = value.values()
    return [each for part in value or () if not isinstance(part, str) for each in floats(part)]


def make_model(name):
    kind, config, sizes, _ = ARCHITECTURES[name]

    class Loss(kind):
        def forward(self, **inputs):
            total = 0
            for output in floats(kind.forward(self, **inputs)):
                places = torch.arange(output[0].numel(), dtype=output.dtype).view(output[0].shape)
                total = total + (torch.tanh(output / 10) * torch.cos(places)).mean()
            return total

    torch.manual_seed(5)
    made = config(**sizes)
    for key in vars(made):
        if key.endswith(("dropout", "dropout_prob", "dropout_rate", "drop_path_rate")) and (
                not isinstance(getattr(made, key), list)):
            setattr(made, key, type(getattr(made, key))(0))
    if hasattr(made, "use_cache"):
        made.use_cache = False
    model = Loss(made).train()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return model


def make_inputs(name):
    generator = torch.Generator().manual_seed(2)
    return {key: torch.randint(3, 90, (BATCH, *shape), generator=generator) if key.endswith("ids")
            else torch.randn(BATCH, *shape, generator=generator)
            for key, shape in ARCHITECTURES[name][3].items()}


def double(value):
    return value.double() if value.is_floating_point() else value


def train(model, inputs, micro_batches):
    """Losses, and the model after the steps. Numbers of norms are of float32 in the file, and
    norms of few numbers tell."""
    model = copy.deepcopy(model).double()
    for part in model.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.eps = float(np.float32(part.eps))
            part.momentum = 1 - float(np.float32(1 - part.momentum))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for number in range(micro_batches):
            loss = model(**{key: double(value).chunk(micro_batches)[number]
                            for key, value in inputs.items()}) / micro_batches
            loss.backward()
            total += loss.item()
        losses.append(total)
        optimizer.step()
    return losses, model


def compare(model, trained, weights):
    """The largest error of a parameter or running statistic, relative to how far it moved."""
    start, worst = model.state_dict(), 0.0
    for name, end in trained.state_dict().items():
        if name not in weights:
            if end.is_floating_point() and not torch.equal(end, start[name].double()):
                twins = [n for n, v in trained.state_dict().items()
                         if n in weights and v.data_ptr() == end.data_ptr()]
                if not twins:
                    raise Refused(f"'{name}' is not among the saved weights")
            continue
        moved = (end - start[name].double()).norm()
        error = (weights[name].double() - end).norm()
        worst = max(worst, (error / max(moved, 1e-3 * end.norm(), 1e-9)).item())
    return worst


def check(name, tools, work):
    model, inputs = make_model(name), make_inputs(name)
    acc_export.export(model, (), inputs, dir=work)
    for path in (work / "inputs").glob("*.npy"):
        np.save(path, double(torch.from_numpy(np.load(path))).numpy())
    loss_error = parameter_error = 0.0
    for layout, micro_batches in LAYOUTS:
        losses, trained = train(model, inputs, micro_batches)
        program, saved = work / "train.accx", work / "weights.safetensors"
        run(tools / "acc-opt", work / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
            "--entries=step", "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", *layout, "-o",
            program)
        lines = run(tools / "acc-run", program, "--steps", STEPS, "--inputs", work / "inputs", "--json",
                    "--save-weights", saved).splitlines()
        for line, expected in zip(lines, losses):
            loss_error = max(loss_error, abs(json.loads(line)["loss"] - expected) /
                             max(abs(expected), FLOOR))
        parameter_error = max(parameter_error, compare(model, trained,
                                                       safetensors.torch.load_file(saved)))
    return loss_error, parameter_error


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architectures", nargs="*", metavar="ARCHITECTURE",
                        help=", ".join(ARCHITECTURES))
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "bin")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    failed = 0
    for name in arguments.architectures or ARCHITECTURES:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as work:
            try:
                loss, parameter = check(name, arguments.tools, pathlib.Path(work))
                wrong = not (loss <= LIMIT and parameter <= LIMIT)
                text = f"loss {loss:.1e}, parameters {parameter:.1e} of their moves"
            except (Refused, acc_export.Refused) as problem:
                wrong, text = True, str(problem)
        failed += wrong
        print(f"{name:16} {'WRONG: ' if wrong else ''}{text} ({time.monotonic() - began:.0f} s)",
              flush=True)
    if failed:
        raise SystemExit(f"{failed} of them are wrong")


if __name__ == "__main__":
    main()
