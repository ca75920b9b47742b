#!/bin/bash
#SBATCH -N 2
#SBATCH --ntasks-per-node=4
# A task of Slurm's for each rank, in a container.
ARGS="--tensor-model-parallel-size 2 --micro-batch-size 2 --global-batch-size 32 \
--lr 2e-4 --min-lr 2e-5 --train-iters 2000 --lr-decay-style linear"
run_cmd="cd /opt/megatron; python -u pretrain_gpt.py ${ARGS} --bf16"
srun --container-image=nemo --output=log.txt bash -c "${run_cmd}"
set +x
