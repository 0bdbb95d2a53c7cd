#!/usr/bin/env bash
# onnxruntime's MultiHeadAttention (com.microsoft): with unidirectional=1 the last query sees every key.
#
# Version: onnxruntime 1.32.0, CPU. Run 2026-11-28.
# Guess: with fewer queries than keys, query i sees keys 0 to i (upper left).
# Seen: all rows but the last stand at the upper left; the last row is not masked at all. With as many queries
# as keys this cannot be noticed, as the last row sees all keys anyway.
# Output (keys seen by each of three queries): [1 2 5].
source "$(dirname "$0")/environment.bash"
in_environment onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6 <<'PY'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

rng = np.random.default_rng(0)
feeds = {name: rng.normal(size=(1, n, 16)).astype(np.float32) for name, n in (("q", 3), ("k", 5))}
feeds["v"] = np.eye(5, 16, dtype=np.float32)[None]
node = helper.make_node("MultiHeadAttention", list(feeds), ["y"], domain="com.microsoft", num_heads=1, unidirectional=1)
infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in (*feeds, "y")]
graph = helper.make_graph([node], "attention", infos[:3], infos[3:])
sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
proto = helper.make_model(graph, opset_imports=sets, ir_version=10)
session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
seen = (session.run(None, feeds)[0][0, :, :5] > 0).sum(-1)
print("keys seen", seen)
assert seen.tolist() == [1, 2, 5]
PY
