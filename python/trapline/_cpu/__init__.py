"""``trapline run --cpu``: a CUDA device made of the CPU; where it cannot be had, the CPU in CUDA's place."""
