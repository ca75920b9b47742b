#!/bin/bash
# DeepSpeed's branch: the script writes what its engine reads.
ZERO_STAGE=1
BATCH=64
MICRO=2
RANKS=8
CONFIG=ds_config_z${ZERO_STAGE}.json
cat <<EOT > $CONFIG
{
  "train_batch_size" : $BATCH,
  "train_micro_batch_size_per_gpu": ${MICRO},
  "steps_per_print": 1,
  "gradient_clipping": 0.5,
  "zero_optimization": {
    "stage": $ZERO_STAGE
  },
  "bf16": { "enabled": true }
}
EOT
ds_args=""
ds_args=" --deepspeed ${ds_args}"
ds_args=" --deepspeed_config=$CONFIG ${ds_args}"
ds_args=" --zero-stage=$ZERO_STAGE ${ds_args}"
if [ "$ZERO_STAGE" -gt 0 ]; then ds_args=" --no-pipeline-parallel ${ds_args}"; fi

deepspeed --num_gpus $RANKS --num_nodes 1 pretrain_gpt.py \
    --tensor-model-parallel-size 2 --clip-grad 1.0 \
    --micro-batch-size $MICRO --global-batch-size $BATCH \
    --train-iters 100 --lr 3.0e-4 --min-lr 3.0e-5 --lr-decay-style cosine \
    --adam-beta1 0.9 --adam-beta2 0.95 --weight-decay 0.1 --bf16 \
    $ds_args
