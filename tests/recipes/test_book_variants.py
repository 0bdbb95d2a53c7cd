"""The parts that the book's exercises on its GRU exchange, and what is recorded of them."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from pages.bahdanau.book_variants import MEASURED, Variant
from recipes.book_pairs import prepare
from recipes.book_variants import FILE, VARIANTS, DotProductWeighing, OneStateLSTM, measure
from recipes.sentence_pairs import Pair
from viz_core.attention import DotProductAttention


def test_scores_are_those_of_dot_product_attention() -> None:
    queries, keys, lens = torch.randn(2, 1, 8), torch.randn(2, 5, 8), torch.tensor([5, 2])
    weighing = DotProductWeighing().eval()
    found = weighing.pool(weighing.weigh(queries, weighing.W_k(keys), lens), keys)
    torch.testing.assert_close(found, DotProductAttention().eval()(queries, keys, keys, lens))


def test_an_lstm_with_one_state_is_torchs() -> None:
    """Cut in two, its state carried over, and over padding: the outputs and the last state are those of nn.LSTM."""
    layer = OneStateLSTM(3, 4, 2, 0.0)
    inputs = torch.randn(2, 6, 3)
    whole, (states, cells) = layer.rnn(inputs)
    first, stacked = layer(inputs[:, :2])
    second, stacked = layer(inputs[:, 2:], stacked)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    torch.testing.assert_close(stacked, torch.cat([cells, states]))
    torch.testing.assert_close(stacked[-1], whole[:, -1])  # what the decoder asks with
    packed = pack_padded_sequence(inputs, torch.tensor([6, 2]), batch_first=True)
    torch.testing.assert_close(layer(packed)[1][-1, 1], first[1, -1])


def test_every_variant_learns_from_the_same_seeds(pairs: list[Pair]) -> None:
    text = "\n".join(f"{pair.english}\t{pair.french}" for pair in pairs[:5] * 4)
    found = measure(prepare(text, num_train=16), seeds=(0, 1), epochs=2, device=torch.device("cpu"))
    assert found["variants"].keys() == VARIANTS.keys()
    assert (found["pairs"], found["epochs"], found["seeds"]) == (16, 2, [0, 1])
    for each in found["variants"].values():
        assert len(each["train_loss"]) == len(each["validation_loss"]) == 2
        assert all(last < first for first, last in each["train_loss"])
    printed, dot = (found["variants"][name]["parameters"] for name in ("printed", "dot-product"))
    assert printed - dot == 2 * 256**2 + 256, "W_q, W_k and w_v"


def test_what_is_recorded_by_hand() -> None:
    assert FILE == MEASURED
    variant = Variant(7, ((3.0, 1.0, 0.5), (2.0, 0.9, 0.8)), ((3.0, 2.0, 2.5), (1.0, 2.0, 3.0)))
    assert variant.epochs_until(1.0) == [3, 2]
    assert variant.epochs_until(0.6) == [3, 4]
    assert variant.best_validation() == [2.0, 1.0]
    assert variant.curve()[1] == pytest.approx({"epoch": 2, "train_loss": 0.95})
