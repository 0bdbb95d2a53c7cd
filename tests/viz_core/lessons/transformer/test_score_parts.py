"""The four terms of a real translation's scores: each against queries and keys made by hand, and their sum."""

from __future__ import annotations

import numpy as np
import torch

from viz_core.lessons.transformer.score_parts import TERMS, score_parts
from viz_core.positional import sinusoidal_table
from viz_core.pretrained import Translator


def test_each_term_is_the_product_of_its_two_parts(translator: Translator) -> None:
    made = translator.translate("Go.", max_new_tokens=2)
    found = score_parts(translator, made, 1)
    encoder = translator.model.encoder
    attention, d = encoder.blocks[0].attention, encoder.num_hiddens
    words = (encoder.embedding.weight[torch.tensor(made.source_ids)] * d**0.5).detach()
    parts = {"word": words, "place": sinusoidal_table(len(words), d)}
    h = attention.head_dim
    W_q, W_k = (W.weight.detach()[h : 2 * h] for W in (attention.W_q, attention.W_k))
    biases = [0 if W.bias is None else W.bias.detach()[h : 2 * h] for W in (attention.W_q, attention.W_k)]
    for term, scores in zip(TERMS, found.terms, strict=True):
        query_part, key_part = term.split("_")
        Q = parts[query_part] @ W_q.T + (biases[0] if query_part == "word" else 0)
        K = parts[key_part] @ W_k.T + (biases[1] if key_part == "word" else 0)
        np.testing.assert_allclose(scores, (Q @ K.T / h**0.5).numpy(), atol=1e-4, rtol=1e-3)
        assert found.spreads[term] == np.std(scores, axis=-1).mean()
    for term, scores in zip(TERMS, found.terms, strict=True):
        highest = scores.argmax(axis=-1).tolist()
        key, rows = found.highest_key(term)
        assert rows == highest.count(key) == max(map(highest.count, highest))
    assert found.residual < 1e-5
    assert found.later > 1e-2, "a later layer reads no sum of word and place"
