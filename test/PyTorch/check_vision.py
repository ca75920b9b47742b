#!/usr/bin/env python3
"""Trains small random models of pictures, sounds and sequences of many architectures of
transformers with acc and with PyTorch (trained.py says how), and compares. Run it with the
versions of test/Fixtures/requirements.txt and the tools built (scripts/setup); arguments name
architectures, none all of them. Takes some twenty minutes."""
import transformers as hf

import torch

import trained

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


def make(name):
    kind, config, sizes, shapes = ARCHITECTURES[name]
    torch.manual_seed(5)
    made = config(**sizes)
    for key in vars(made):
        if key.endswith(("dropout", "dropout_prob", "dropout_rate", "drop_path_rate")) and (
                not isinstance(getattr(made, key), list)):
            setattr(made, key, type(getattr(made, key))(0))
    if hasattr(made, "use_cache"):
        made.use_cache = False
    return trained.prepare(kind(made)), trained.make_inputs(shapes)


if __name__ == "__main__":
    trained.main(__doc__, ARCHITECTURES, make)
