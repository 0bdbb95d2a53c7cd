#!/usr/bin/env bash
# jax.nn.dot_product_attention: local_window_size alone does nothing.
#
# Version: jax 0.8.1, CPU (0.10.2 applies the window always). Run 2026-11-28.
# Guess: local_window_size=(1, 0) limits every query to itself and the key before it.
# Seen: each query attends to all keys, without a warning. The window counts only where there is another limit: with
# is_causal=True, with a mask that is True everywhere, or with lengths of queries or keys.
# Output (keys that each of four queries sees): alone [4 4 4 4], causal [1 2 2 2], true mask [1 2 2 2].
source "$(dirname "$0")/environment.bash"
in_environment jax==0.8.1 numpy==2.4.6 <<'PY'
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
queries, keys = (rng.normal(size=(1, 4, 1, 8)).astype(np.float32) for _ in range(2))
values = np.eye(4, 8, dtype=np.float32)[None, :, None]  # the output is the row of weights


def seen(**options):
    out = jax.nn.dot_product_attention(queries, keys, values, local_window_size=(1, 0), **options)
    return (np.asarray(out)[0, :, 0, :4] > 0).sum(-1)


alone, causal = seen(), seen(is_causal=True)
masked = seen(mask=jnp.ones((1, 1, 4, 4), bool))
print("jax", jax.__version__, "alone", alone, "causal", causal, "true mask", masked)
assert alone.tolist() == [4, 4, 4, 4]
assert causal.tolist() == masked.tolist() == [1, 2, 2, 2]
PY
