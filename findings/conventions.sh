#!/usr/bin/env bash
# Writes the table of kernels in docs/conventions.md: weights of two queries over five keys, in the pinned versions below,
# and what `viz_core.view` makes of each library's own arrays.
#
# Run 2026-11-29 on a CPU as a whole, in 4 minutes.
source "$(dirname "$0")/environment.bash"
ROOT=$(realpath "$(dirname "$0")/..")
export PAGE="$ROOT/docs/conventions.md" PYTHONPATH="$ROOT"
in_environment torch==2.13.0 onnx==1.23.2 onnxruntime==1.32.0 jax==0.10.2 keras==3.12.0 "mlx[cpu]==0.32.4" numpy==2.4.6 \
  einops==0.8.2 jaxtyping==0.3.11 pillow==13.0.0 safetensors==0.8.0 \
  <"$(dirname "$0")/conventions.py"
