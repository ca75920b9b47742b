#!/bin/bash
# What comes apart, and what does not.
ONE='a  b'
NONE=""
LIST=("x y" "" z)
LINES=$'--mock-data'
JOINED="${LIST[*]}"
UPPER=${ONE^^} PART=${ONE:0:1} LAST=${LIST[-1]}
eval "SEED=\$((40 + 2))"
f() { printf '%s' "$1"; }
{
  torchrun --nproc_per_node "1" pretrain_gpt.py --save "$ONE" $NONE --load ${NONE:-"$ONE"} \
    --wandb-project "$JOINED" --wandb-exp-name \$HOME\ "\$x" --seed "$SEED" \
    --tensorboard-dir "$UPPER"'$UPPER'"$PART" $LINES \
    --data-path "${LIST[@]}" $LAST "it's" # the end
} 2>/dev/null
