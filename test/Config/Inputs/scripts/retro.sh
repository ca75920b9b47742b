#!/bin/sh
# With retrieval, of samples: the lengths are samples too. Plain sh.
DIR=`pwd`
BATCH=256
SAMPLES=`expr $BATCH \* 1000`
options=" \
  --num-workers 2 \
  --lr-decay-samples `expr $SAMPLES - $BATCH` \
  --lr-warmup-samples `expr $BATCH \* 10` \
  --eval-interval 2000"
options="$options --train-samples $SAMPLES"
options="${options} --micro-batch-size 4 --global-batch-size ${BATCH}"
options="${options} \
  --lr 6.0e-4 --min-lr 6.0e-5 --lr-decay-style cosine \
  --adam-beta2 0.95 --weight-decay 0.1 --clip-grad 1.0"
if test "$BATCH" = 256 -a "$SAMPLES" -ge 1000; then
  options="${options} --tensor-model-parallel-size 1"
else
  options="${options} --tensor-model-parallel-size 8"
fi
command="torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py ${options}"
echo $command
eval $command
