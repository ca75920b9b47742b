#!/usr/bin/env bash
# 8B parameters; SIZE and DTYPE come from outside or not.
SIZE="${SIZE:-8b}"
DTYPE=${DTYPE:-"bf16"}

case "$SIZE" in
    8b|8B)
        LAYERS=32; HIDDEN=4096; HEADS=32
        FFN=14336
        ;;
    70b)
        LAYERS=80
        HIDDEN=8192 HEADS=64
        FFN=28672 ;;
    *)
        echo "no such size: $SIZE"
        exit 2
esac

precision() {
    local wanted=$1
    if [[ "$wanted" == "bf16" ]]; then
        PRECISION=(--bf16)
    elif [[ $wanted == fp8* ]]; then
        PRECISION=(--bf16 --fp8-format hybrid)
    else
        PRECISION=()
    fi
}
precision "$DTYPE"

ARGS=(
    --use-mcore-models
    --num-layers $LAYERS --hidden-size $HIDDEN --ffn-hidden-size $FFN
    --num-attention-heads $HEADS
    --group-query-attention --num-query-groups 8
    --kv-channels 128
    --seq-length 8192 --max-position-embeddings 8192
    --position-embedding-type rope --rotary-base 1000000 --rotary-percent 1.0
    --swiglu --normalization RMSNorm --untie-embeddings-and-output-weights
    --disable-bias-linear
    --attention-dropout 0.0 --hidden-dropout 0.0
)
ARGS+=(
    --micro-batch-size 1
    --global-batch-size 128
    --train-samples 1953125120
    --lr-decay-samples 1949218560
    --lr-warmup-samples 3906048
    --lr 0.00015
    --min-lr 0.00001
    --decoupled-lr-none
    --lr-decay-style cosine
    --clip-grad 1.0 --weight-decay 0.1
    --adam-beta1 0.9 --adam-beta2 0.95
)
# One that is not there any more.
KEPT=()
for argument in "${ARGS[@]}"; do
    [[ "$argument" == "--decoupled-lr-none" ]] && continue
    KEPT+=("$argument")
done
PARALLEL=(--tensor-model-parallel-size 1 --context-parallel-size 2
          --use-distributed-optimizer --overlap-grad-reduce)
(( ${#PRECISION[@]} > 0 )) && PARALLEL+=("${PRECISION[@]}")

torchrun --nproc_per_node 8 --nnodes 1 \
  pretrain_gpt.py "${KEPT[@]}" "${PARALLEL[@]}" --mock-data \
  --tokenizer-type NullTokenizer --vocab-size 128256
