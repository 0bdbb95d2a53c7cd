#!/usr/bin/env bash
# ONNX Attention: the optional output of scores "before softcap" is capped already in the reference evaluator.
#
# Versions: onnx 1.23.2, onnxruntime 1.32.0, CPU, opsets 23 and 24. Run 2026-11-28.
# Guess: with qk_matmul_output_mode=0 both return the scaled product of queries and keys.
# Seen: the runtime does; the reference returns softcap tanh(s / softcap) of it. The attention itself agrees. A test that
# compares scores of a runtime with the reference fails although nothing is wrong with the map.
# Output: largest difference from q k / sqrt(d) with softcap 1: runtime 0.000, reference above 0.1.
source "$(dirname "$0")/environment.bash"
in_environment onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6 <<'PY'
import numpy as np
from onnx_attention import model, reference, runtime, tensors

for opset in (23, 24):
    feeds = tensors(3, 3)
    plain = (feeds["Q"] @ feeds["K"].swapaxes(-1, -2) / 8**0.5)[0, 0]
    proto = model(opset, ("Q", "K", "V"), ("Y", "", "", "S"), softcap=1.0, qk_matmul_output_mode=0)
    (out, scores), (own_out, own_scores) = reference(proto, feeds), runtime(proto, feeds)
    gaps = [float(abs(each[0, 0] - plain).max()) for each in (own_scores, scores)]
    print(opset, "runtime %.3f, reference %.3f" % tuple(gaps))
    np.testing.assert_allclose(out, own_out, atol=1e-5)
    assert gaps[0] < 1e-5 and gaps[1] > 0.1
    np.testing.assert_allclose(scores[0, 0], np.tanh(plain), atol=1e-5)
PY
