#!/usr/bin/env bash
# A training job under Slurm: one supervisor on each node, around torchrun. Submit with `sbatch slurm.sh`.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120
# trapline: each rank's findings are in trapline-reports, also when its peers are killed.
set -uo pipefail

status=0
srun --kill-on-bad-exit=1 trapline supervise --restarts 3 --report "trapline-reports/$SLURM_JOB_ID" -- \
  torchrun --nnodes "${SLURM_NNODES:-1}" --nproc-per-node 8 --rdzv-backend c10d \
  --rdzv-endpoint "${SLURM_LAUNCH_NODE_IPADDR:-localhost}:29500" train.py || status=$?

# 75: a machine, a driver or a peer failed. Another run, perhaps on other nodes, may go well. 65 (the data or the model)
# and 70 (it failed too often) would only fail again.
if [[ $status == 75 && ${SLURM_RESTART_COUNT:-0} -lt 3 ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
