#!/bin/bash
# Ranks by mpirun; a list of machines that is counted here.
HOSTS=(a b c d)
COUNT=${#HOSTS[@]}
EACH=2
LIST=""
for ((n = 0; n < COUNT; n++)); do
  LIST+="${HOSTS[$n]}:$EACH,"
done
LIST=${LIST%,}
WORLD=$((COUNT * EACH))
[ -z "$LIST" ] && { echo "no machines"; exit 1; }
mpirun -np $WORLD -H $LIST python pretrain_gpt.py \
  --pipeline-model-parallel-size $(( WORLD / 4 > 1 ? WORLD / 4 : 1 )) \
  --micro-batch-size 1 --global-batch-size $((WORLD * 2)) \
  --lr-decay-style constant --lr 1e-3 --train-iters 10 \
  --save "runs/${LIST//:/_}" --optimizer sgd --sgd-momentum 0.95 2>&1 | tee log.txt
