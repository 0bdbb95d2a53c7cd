"""A score of a first layer is the sum of its four terms, and each is a product by hand."""

from __future__ import annotations

import pytest
import torch

from viz_core.attention import MultiHeadAttention
from viz_core.maps.score_terms import score_terms
from viz_core.models import BlockOptions, TransformerEncoder
from viz_core.positional import ALiBi
from viz_core.trace import attention_weights, record


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_the_four_terms_make_the_first_layer_s_map(bias: bool, key_heads: int) -> None:
    encoder = TransformerEncoder(20, 16, 24, 4, 2, 0.0, bias, options=BlockOptions(num_key_heads=key_heads)).eval()
    X = torch.randint(0, 20, (2, 6))
    words = encoder.embed(X)
    places = encoder.pos_encoding(torch.zeros_like(words))
    terms = score_terms(encoder.blocks[0].attention, words, places)
    with record() as trace:
        encoder(X)
    call = trace["encoder.0.self"]
    torch.testing.assert_close(terms.total.softmax(dim=-1), call.weights(), atol=1e-5, rtol=0)
    i, j, h = 2, 4, 3
    W_q, W_k = encoder.blocks[0].attention.W_q.weight, encoder.blocks[0].attention.W_k.weight
    query = words[1, i] @ W_q[12:16].T
    if bias:
        query = query + encoder.blocks[0].attention.W_q.bias[12:16]
    group = h * key_heads // 4
    key = places[1, j] @ W_k[4 * group : 4 * group + 4].T
    torch.testing.assert_close(terms.word_place[1, h, i, j], query @ key / 2, atol=1e-5, rtol=1e-4)
    later = score_terms(encoder.blocks[1].attention, words, places)
    assert float((later.total.softmax(dim=-1) - trace["encoder.1.self"].weights()).abs().max()) > 1e-3


def test_places_alone_depend_on_no_word() -> None:
    layer = MultiHeadAttention(8, 2)
    one, other, places = torch.randn(3, 1, 5, 8)
    terms = [score_terms(layer, words, places) for words in (one, other)]
    assert torch.equal(terms[0].place_place, terms[1].place_place)
    expected = attention_weights(*(W(places).unflatten(-1, (2, 4)).transpose(1, 2) for W in (layer.W_q, layer.W_k)))
    torch.testing.assert_close(terms[0].place_place.softmax(dim=-1), expected.detach(), atol=1e-6, rtol=0)


def test_a_layer_with_positions_of_its_own_is_refused() -> None:
    for layer in (MultiHeadAttention(8, 2, positions=ALiBi()), MultiHeadAttention(8, 2, softcap=1.0)):
        with pytest.raises(ValueError, match="without softcap or positions"):
            score_terms(layer, torch.randn(1, 3, 8), torch.randn(1, 3, 8))
