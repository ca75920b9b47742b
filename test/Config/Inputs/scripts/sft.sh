#!/bin/bash
# Tuning on conversations, with options of its own.
TP=1
SAVE=tuned
EPOCHS=1
ROWS=64
while [[ $# -gt 0 ]]; do
  case "$1" in
    --tp)   TP="$2"; shift 2 ;;
    --save=*) SAVE="${1#*=}"; shift ;;
    --rows) ROWS=$2
            shift; shift;;
    --)     shift; break ;;
    *)      echo "unknown: $1"; exit 1 ;;
  esac
done
STEPS=$(( 6400 * EPOCHS / ROWS ))
NAME="$(basename "$SAVE")-tp${TP}"
RECIPE=$(cat <<'END'
--finetune --lr 5e-6 --min-lr 0
END
)
# shellcheck disable=SC2086
exec torchrun --standalone --nproc-per-node=4 train.py $RECIPE \
  --train-iters $STEPS --lr-decay-style constant \
  --micro-batch-size 1 --global-batch-size "$ROWS" \
  --tensor-model-parallel-size "${TP}" ${EXTRA:+--seed $EXTRA} \
  --save "$SAVE" "$@"
