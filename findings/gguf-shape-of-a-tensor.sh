#!/usr/bin/env bash
# gguf: a tensor that was read has two shapes, and they disagree.
#
# Version: gguf 0.17.1. Run 2026-11-28.
# Guess: shape and data.shape of a tensor from GGUFReader are equal, and equal to what was written, in float16 or Q8_0.
# Seen: shape counts elements with the fastest dimension first (the file's order), data.shape is the array's order. For a
# quantized tensor data.shape counts bytes: 64 values in Q8_0 are two blocks of 34 bytes, so a row has 68.
# Output (written as 3 rows of 64): float16 shape [64, 3], data (3, 64); Q8_0 shape [64, 3], data (3, 68).
source "$(dirname "$0")/environment.bash"
in_environment gguf==0.17.1 numpy==2.4.6 <<'PY'
import tempfile

import gguf
import numpy as np

rows = np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32)
with tempfile.TemporaryDirectory() as folder:
    writer = gguf.GGUFWriter(f"{folder}/model.gguf", "llama")
    writer.add_tensor("half", rows.astype(np.float16))
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor("quantized", gguf.quants.quantize(rows, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = {t.name: (t.shape.tolist(), t.data.shape) for t in gguf.GGUFReader(f"{folder}/model.gguf").tensors}
print(found)
assert found == {"half": ([64, 3], (3, 64)), "quantized": ([64, 3], (3, 68))}
PY
