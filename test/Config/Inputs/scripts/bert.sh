#!/bin/bash
# 340M parameters, by an older launcher.
set -x
N=$((2**2)); readonly N
declare -a BERT=(
  --num-layers 24 --hidden-size 1024 --num-attention-heads 16
  --seq-length 512 --max-position-embeddings 512
)
declare -r RATE=0.0001
i=0
TRAIN=()
while [ $i -lt 2 ]; do
  case $i in
    0) TRAIN+=(--micro-batch-size 4 --global-batch-size $((N * 8))) ;;
    *) TRAIN+=(--train-iters 1000000 --lr-decay-iters 990000 --lr-warmup-fraction 0.01) ;;
  esac
  i=$((i + 1))
done
OPTIMIZER="--lr $RATE --min-lr ${RATE/0001/00001} --weight-decay 1e-2 --clip-grad 1.0"
python -u -m torch.distributed.launch --nproc_per_node $N --nnodes 1 \
  --master_port 6001 pretrain_bert.py "${BERT[@]}" "${TRAIN[@]}" $OPTIMIZER \
  --lr-decay-style linear --mock-data --bf16 \
  --tensor-model-parallel-size 2 > >(tee -a log.txt) 2>&1
