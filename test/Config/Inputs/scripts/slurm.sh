#!/bin/bash
#SBATCH --job-name=gpt
#SBATCH --nodes=4              # machines
#SBATCH --ntasks-per-node=1
#SBATCH -c 32
#SBATCH --time=24:00:00 --exclusive

module purge 2>/dev/null || true
source env.sh

nodes=( $( scontrol show hostnames "$SLURM_JOB_NODELIST" ) )
head_node=${nodes[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
export LOGLEVEL=INFO
echo "Node IP: $head_node_ip"

GLOBAL=$(( SLURM_NNODES * GPUS_PER_NODE * PER_RANK ))

srun --label torchrun \
    --nnodes $SLURM_NNODES \
    --nproc_per_node $GPUS_PER_NODE \
    --rdzv_id $RANDOM \
    --rdzv_backend c10d \
    --rdzv_endpoint $head_node_ip:29500 \
    pretrain_gpt.py \
    --tensor-model-parallel-size $TP --micro-batch-size 1 \
    --global-batch-size $GLOBAL --lr ${RATES[1]} --train-iters 1000 \
    --lr-decay-style cosine --lr-warmup-iters ${WARMUP:-50} \
    --bf16 --save out-${SLURM_NNODES}
