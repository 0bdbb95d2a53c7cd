#!/usr/bin/env bash
# CTranslate2: return_attention is one head unless the model says otherwise.
#
# Version: ctranslate2 4.8.5, CPU, a random model of one layer with two heads. Run 2026-11-28.
# Guess: return_attention=True gives the mean over all heads of the last decoder layer.
# Seen: it gives the first head alone. The specification's alignment_heads (1 if left out) is how many heads, counted from
# the first, are averaged; with 2 it is the mean of both.
# Output: the first head attends evenly to four tokens, the second does not. Left out: 0.25 everywhere. alignment_heads=2:
# no row is even, and none has a weight below 0.125 (half of the even head).
source "$(dirname "$0")/environment.bash"
in_environment ctranslate2==4.8.5 numpy==2.4.6 <<'PY'
import tempfile

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec

WIDTH, HEADS = 16, 2
VOCABULARY = ["<unk>", "<s>", "</s>", *"abcdefghi"]


def attention(**options):
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.normal(size=shape).astype(np.float32)

    def fill(norm, linears, *outputs):
        norm.gamma, norm.beta = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
        for linear, output in zip(linears, outputs):
            linear.weight, linear.bias = normal(output, WIDTH), np.zeros(output, np.float32)

    spec = TransformerSpec.from_config((1, 1), HEADS, pre_norm=True, **options)
    spec.encoder.embeddings[0].weight = normal(len(VOCABULARY), WIDTH)
    spec.decoder.embeddings.weight = normal(len(VOCABULARY), WIDTH)
    for part in (spec.encoder, spec.decoder):
        layer = part.layer[0]
        fill(layer.self_attention.layer_norm, layer.self_attention.linear, 3 * WIDTH, WIDTH)
        fill(layer.ffn.layer_norm, [layer.ffn.linear_0, layer.ffn.linear_1], WIDTH, WIDTH)
        fill(part.layer_norm, [])
    fill(spec.decoder.layer_norm, [spec.decoder.projection], len(VOCABULARY))
    cross = spec.decoder.layer[0].attention
    fill(cross.layer_norm, cross.linear, WIDTH, 2 * WIDTH, WIDTH)
    cross.linear[0].weight[: WIDTH // HEADS] = 0  # the first head's queries
    spec.register_source_vocabulary(VOCABULARY)
    spec.register_target_vocabulary(VOCABULARY)
    with tempfile.TemporaryDirectory() as folder:
        spec.validate()
        spec.save(folder)
        translator = ctranslate2.Translator(folder)
        lengths = dict(min_decoding_length=3, max_decoding_length=3)
        result = translator.translate_batch([list("abcd")], return_attention=True, beam_size=1, **lengths)[0]
    return np.array(result.attention[0])


one, both = attention(), attention(alignment_heads=2)
print("left out\n", one.round(3), "\nalignment_heads=2\n", both.round(3))
np.testing.assert_allclose(one, 0.25, atol=1e-6)
assert (both.max(-1) > 0.3).all() and (both > 0.125 - 1e-6).all()
PY
