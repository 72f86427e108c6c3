#include "kernels/cuda/kernels.cuh"
