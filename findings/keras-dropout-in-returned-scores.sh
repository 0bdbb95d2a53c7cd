#!/usr/bin/env bash
# Keras: whether the returned scores include the dropout depends on the layer.
#
# Versions: keras 3.12.0 on jax 0.10.2, CPU. Run 2026-11-28.
# Guess: the scores that a layer returns in training are those that weight the values, so after dropout, in every layer.
# Seen: MultiHeadAttention and GroupQueryAttention return the scores before dropout, which are not the weights they used
# (each row sums to 1). Attention and AdditiveAttention return them after dropout: some are zero, the rest doubled.
# Output (zeros among the scores): 0 of 72, 0 of 144, 22 of 36, 21 of 36.
source "$(dirname "$0")/environment.bash"
in_environment keras==3.12.0 jax==0.10.2 numpy==2.4.6 <<'PY'
import os

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(1, 6, 8)).astype(np.float32)
for layer in (layers.MultiHeadAttention(2, 4, dropout=0.5), layers.GroupQueryAttention(4, 4, 2, dropout=0.5)):
    scores = np.asarray(layer(x, x, return_attention_scores=True, training=True)[1])
    print(type(layer).__name__, "zeros", (scores == 0).sum(), "of", scores.size)
    np.testing.assert_allclose(scores.sum(-1), 1, rtol=1e-5)
for layer in (layers.Attention(dropout=0.5), layers.AdditiveAttention(dropout=0.5)):
    scores = np.asarray(layer([x, x], return_attention_scores=True, training=True)[1])
    print(type(layer).__name__, "zeros", (scores == 0).sum(), "of", scores.size)
    assert (scores == 0).any() and not np.allclose(scores.sum(-1), 1)
PY
