#!/bin/bash
# 175B parameters on 16 machines, the way in which the paper's table has it.
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1
: "${MASTER_ADDR:=localhost}"
GPUS_PER_NODE=8
NUM_NODES=16
NODE_RANK=${RANK:-0}
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))

CHECKPOINTS=$1
LOGS=$2; VOCAB=$3

DISTRIBUTED=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr $MASTER_ADDR
    --master_port "${MASTER_PORT:-6000}"
)
MODEL=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048          # tokens
    --max-position-embeddings 2048
    --attention-backend auto   # what is there
)
TRAINING=(
    --micro-batch-size 1
    --global-batch-size 1536
    --train-iters 500000
    --weight-decay 0.1
    --adam-beta1 0.9
    --adam-beta2 0.95
    --init-method-std 0.006
    --clip-grad 1.0
    --bf16
    --lr 6.0e-5
    --lr-decay-style cosine
    --min-lr 6.0e-6
    --lr-warmup-fraction .001
    --lr-decay-iters 430000
)
PARALLEL=(
	--tensor-model-parallel-size 8
	--pipeline-model-parallel-size 16
)
DATA=(--mock-data --vocab-file "$VOCAB" --split 949,50,1)
LOGGING=(
    --log-interval 100
    --save-interval 10000
    --save "$CHECKPOINTS"
    --load "$CHECKPOINTS"
    --tensorboard-dir "$LOGS"
)
if [ "$WORLD_SIZE" -ne $((16 * 8)) ]; then
    echo "wants 128 ranks, has $WORLD_SIZE" >&2
    exit 1
fi
torchrun "${DISTRIBUTED[@]}" pretrain_gpt.py \
    "${MODEL[@]}" \
    "${TRAINING[@]}" \
    "${PARALLEL[@]}" \
    ${DATA[@]} \
    ${LOGGING[@]}
