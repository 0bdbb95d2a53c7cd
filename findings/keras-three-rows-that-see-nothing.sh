#!/usr/bin/env bash
# Keras: a row that may see nothing is zero in one of its attentions and a mean in two others.
#
# Versions: keras 3.12.0 on jax 0.10.2, CPU. Run 2026-11-28.
# Guess: a mean over all keys everywhere, since Keras masks by adding a large negative number.
# Seen: MultiHeadAttention and GroupQueryAttention return scores of zero there (a row that does not sum to 1), while
# layers.Attention and ops.dot_product_attention return a mean over all keys, masked ones included.
# Output: MultiHeadAttention 0, GroupedQueryAttention 0, Attention 0.2, ops 0.2 for each of five keys.
source "$(dirname "$0")/environment.bash"
in_environment keras==3.12.0 jax==0.10.2 numpy==2.4.6 <<'PY'
import os

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
from keras import layers

rng = np.random.default_rng(0)
queries, keys = rng.normal(size=(1, 2, 8)).astype(np.float32), rng.normal(size=(1, 5, 8)).astype(np.float32)
mask = np.ones((1, 2, 5), bool)
mask[:, 1] = False
found = {}
for layer in (layers.MultiHeadAttention(2, 4), layers.GroupQueryAttention(4, 4, 2)):
    scores = layer(queries, keys, attention_mask=mask, return_attention_scores=True)[1]
    found[type(layer).__name__] = np.asarray(scores)[0, 0, 1]
nothing = [None, np.zeros((1, 5), bool)]
found["Attention"] = np.asarray(layers.Attention()([queries, keys], mask=nothing, return_attention_scores=True)[1])[0, 1]
values = np.eye(5, 8, dtype=np.float32)[None, :, None]
out = keras.ops.dot_product_attention(queries[:, :, None], keys[:, :, None], values, mask=mask[:, None])
found["ops"] = np.asarray(out)[0, 1, 0, :5]
print({name: row.round(3).tolist() for name, row in found.items()})
for name, expected in {"MultiHeadAttention": 0, "GroupedQueryAttention": 0, "Attention": 0.2, "ops": 0.2}.items():
    np.testing.assert_allclose(found[name], expected, atol=1e-6)
PY
