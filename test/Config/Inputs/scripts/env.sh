# What slurm.sh reads.
GPUS_PER_NODE=8
PER_RANK=2
TP=${TP:-4}
RATES=(1e-3 3e-4)
