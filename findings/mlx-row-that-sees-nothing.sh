#!/usr/bin/env bash
# mx.fast.scaled_dot_product_attention: a row that may see nothing is a mean or NaN, by the type of the mask.
#
# Version: mlx 0.32.4, CPU. Run 2026-11-28.
# Guess: NaN in all three cases, as a softmax over minus infinity alone.
# Seen: with a boolean mask, and with mask="causal" and more queries than keys, the row is the plain mean of all values,
# forbidden keys included; with the same mask as 0 and minus infinity it is NaN.
# Output (weights of the row): bool [0.333 0.333 0.333], causal [0.5 0.5], additive [nan nan nan].
source "$(dirname "$0")/environment.bash"
in_environment "mlx[cpu]==0.32.4" numpy==2.4.6 <<'PY'
import mlx.core as mx
import numpy as np

rng = np.random.default_rng(0)
mask = np.ones((1, 1, 3, 3), bool)
mask[..., 1, :] = False


def weights(num_queries, num_keys, mask):
    queries, keys = (mx.array(rng.normal(size=(1, 1, n, 8)).astype(np.float32)) for n in (num_queries, num_keys))
    values = mx.array(np.eye(num_keys, 8, dtype=np.float32)[None, None])
    out = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=8**-0.5, mask=mask)
    return np.array(out)[0, 0, :, :num_keys]


boolean = weights(3, 3, mx.array(mask))[1]
causal = weights(5, 2, "causal")[0]
additive = weights(3, 3, mx.array(np.where(mask, 0, -np.inf).astype(np.float32)))[1]
print("bool", boolean.round(3), "causal", causal.round(3), "additive", additive)
np.testing.assert_allclose(boolean, 1 / 3, rtol=1e-5)
np.testing.assert_allclose(causal, 1 / 2, rtol=1e-5)
assert np.isnan(additive).all()
PY
