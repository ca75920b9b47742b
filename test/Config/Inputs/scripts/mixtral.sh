#!/bin/bash
# Eight experts, two of them for each token.
export CUDA_DEVICE_MAX_CONNECTIONS=1 NCCL_IB_SL=1
GPUS_PER_NODE=8
MASTER_ADDR=${MASTER_ADDR:-"localhost"}
NNODES=${SLURM_NNODES:-"1"}
TOKENIZER_MODEL=$1
DATA_PATH=$2

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES
    --node_rank ${RANK:-"0"} --master_addr $MASTER_ADDR
)
MODEL_ARGS=( --seq-length 4096 --num-layers 32 --hidden-size 4096
    --ffn-hidden-size 14336 --num-attention-heads 32 --init-method-std 0.01
    --normalization RMSNorm --position-embedding-type rope --swiglu
    --group-query-attention --num-query-groups 8 --no-masked-softmax-fusion
    --no-position-embedding --rotary-base 1000000 )
MOE_ARGS=(
    --num-experts 8
    --moe-router-topk 2
    --moe-router-load-balancing-type aux_loss
    --moe-aux-loss-coeff 1e-2
    --moe-grouped-gemm
    --moe-token-dispatcher-type alltoall
)
EP=8
TP=1
if [ $EP -gt 1 ] && [ $TP -gt 1 ]; then
    MOE_ARGS+=(--sequence-parallel)
fi
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 256
    --lr 1e-4
    --train-iters 500000
    --lr-decay-iters 320000
    --lr-decay-style cosine
    --min-lr 1.0e-5
    --weight-decay 0.1
    --lr-warmup-iters 500
    --clip-grad 1.0
    --bf16
)
MODEL_PARALLEL_ARGS=(
    --tensor-model-parallel-size "$TP" --pipeline-model-parallel-size 1
    --expert-model-parallel-size "$EP" --use-distributed-optimizer
)
LOGGING_ARGS=(--log-interval 1 --no-load-optim --no-load-rng)
if [ -n "${WANDB_API_KEY:-}" ]; then
    LOGGING_ARGS+=(--wandb-project ${WANDB_PROJECT:-"Mixtral"})
fi
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${MODEL_ARGS[@]} ${MOE_ARGS[@]} \
    --tokenizer-type Llama2Tokenizer --tokenizer-model ${TOKENIZER_MODEL} \
    --data-path $DATA_PATH --split 99990,8,2 \
    ${TRAINING_ARGS[@]} ${MODEL_PARALLEL_ARGS[@]} ${LOGGING_ARGS[@]}
