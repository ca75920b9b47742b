#!/bin/bash
# An encoder and a decoder of 220M parameters.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS=8
usage() { echo "usage: $0 CHECKPOINTS DATA"; exit 1; }
[ $# -ge 2 ] || usage
CHECKPOINT_PATH=$1
DATA_PATH=$2
shift 2

T5_ARGS="
    --encoder-num-layers 12 \
    --decoder-num-layers 12 \
    --hidden-size 768 \
    --num-attention-heads 12 \
    --kv-channels 64 \
    --ffn-hidden-size 3072 \
    --encoder-seq-length 512 \
    --decoder-seq-length 128 \
    --max-position-embeddings 512 \
    --micro-batch-size 64 \
    --global-batch-size 512 \
    --lr 0.0001 \
    --train-iters 1000000 \
    --lr-decay-iters 1000000 \
    --lr-decay-style linear \
    --min-lr 0.00001 \
    --weight-decay 1e-2 \
    --lr-warmup-fraction .01 \
    --clip-grad 1.0 \
    --bf16 \
    --vocab-extra-ids 100 \
    --init-method-std 0.015
"
DATA_ARGS="--data-path $DATA_PATH --tokenizer-type BertWordPieceCase --split 99982,9,9"
OUTPUT_ARGS="
    --log-interval 100
    --eval-iters 10
"
torchrun --nproc_per_node=$GPUS --nnodes=1 --node_rank=0 \
    pretrain_t5.py \
    $T5_ARGS \
    $DATA_ARGS \
    $OUTPUT_ARGS \
    --distributed-backend nccl \
    --save $CHECKPOINT_PATH --load $CHECKPOINT_PATH "$@"
