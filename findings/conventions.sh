#!/usr/bin/env bash
# Writes the table of kernels in docs/conventions.md: weights of two queries over five keys, in the pinned versions below.
#
# Run 2026-11-29 on a CPU, each library in an environment that had it installed.
source "$(dirname "$0")/environment.bash"
PAGE=$(realpath "$(dirname "$0")/../docs/conventions.md")
export PAGE
in_environment torch==2.13.0 onnx==1.23.2 onnxruntime==1.32.0 jax==0.10.2 keras==3.12.0 "mlx[cpu]==0.32.4" numpy==2.4.6 \
  <"$(dirname "$0")/conventions.py"
