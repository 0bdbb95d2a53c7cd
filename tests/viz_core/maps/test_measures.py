"""Measures by hand, fingerprints block by block, distances over patches, and contacts of proteins."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import EsmConfig, EsmModel

from viz_core.hub import instrument
from viz_core.maps.contacts import ContactRegression, average_product_correction, contact_features, fit_contacts
from viz_core.maps.fingerprints import measure_layer, row_sum_error
from viz_core.maps.measures import (
    attention_entropy,
    attention_sink,
    combine_heads,
    induction_mass,
    induction_targets,
    key_mass,
    mean_attention_distance,
    offset_mass,
    total_variation,
    uniform_attention_distance,
)
from viz_core.trace import AttentionCall, Trace, record, record_weights


def test_entropy_of_rows_worked_by_hand():
    weights = torch.tensor(
        [
            [1.0, 0.0, 0.0, 0.0],  # one key: 0
            [0.25, 0.25, 0.25, 0.25],  # all alike: log2 4 = 2
            [0.5, 0.25, 0.25, 0.0],  # 1/2 * 1 + 2 * 1/4 * 2 = 1.5
            [0.75, 0.25, 0.0, 0.0],  # 3/4 log2(4/3) + 1/4 * 2 = 0.811278
        ]
    )
    torch.testing.assert_close(attention_entropy(weights), torch.tensor([0.0, 2.0, 1.5, 0.811278]))


def test_entropy_of_masked_and_certain_rows_is_a_positive_zero():
    entropy = attention_entropy(torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0000001, 0.0]]))
    assert entropy.tolist() == [0.0, 0.0, 0.0]
    assert not torch.signbit(entropy).any()


def test_induction_is_the_weight_on_what_followed_the_same_token():
    weights = torch.tensor(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.5, 0.5, 0.0, 0.0, 0.0],
            [0.1, 0.6, 0.3, 0.0, 0.0],  # a again: after the first a came b, at 1
            [0.0, 0.2, 0.3, 0.5, 0.0],  # b again: after the first b came a, at 2
            [0.0, 0.4, 0.1, 0.2, 0.3],  # a for the third time: b at 1 and at 3
        ]
    )
    found = induction_mass(torch.stack([weights, torch.eye(5)]), "ababa")
    torch.testing.assert_close(found, torch.tensor([(0.6 + 0.3 + 0.6) / 3, 0.0]))


@given(st.lists(st.sampled_from("ab"), max_size=7))
def test_induction_looks_where_its_definition_says(tokens):
    n = len(tokens)
    expected = [[0 < k <= q and tokens[k - 1] == tokens[q] for k in range(n)] for q in range(n)]
    assert induction_targets(tokens).tolist() == expected


def test_total_variation_by_hand() -> None:
    one, other = torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([[0.0, 1.0], [0.25, 0.75]])
    assert total_variation(one, other).item() == pytest.approx((1 + 0.25) / 2)
    assert total_variation(torch.stack([one, other]), torch.stack([one, one])).tolist() == [0.0, pytest.approx(0.625)]


def call_of(weights: torch.Tensor, site: str = "encoder.0.self") -> AttentionCall:
    with record() as trace:
        record_weights(weights[None], site)
    return trace[site]


def test_offsets_key_mass_and_combinations_by_hand() -> None:
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]])
    assert offset_mass(weights, 0).item() == pytest.approx(1.3 / 3)
    assert offset_mass(weights, -1).item() == pytest.approx((0.1 + 0.4) / 2)
    assert offset_mass(weights, 2).item() == pytest.approx(0.2)
    assert key_mass(weights, [0, 2, 2]).item() == pytest.approx((0.7 + 0.4 + 0.6) / 3)
    both = torch.stack([weights, weights.flip(0)])
    torch.testing.assert_close(combine_heads(both, "mean")[0], torch.tensor([0.45, 0.35, 0.2]))
    torch.testing.assert_close(combine_heads(both, "max")[0], torch.tensor([0.5, 0.4, 0.2]))


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (7, 5), (600, 600), (1100, 300)])
@pytest.mark.parametrize("head", [0, 2])
def test_one_wrong_row_of_one_head_is_noticed_wherever_it_is(queries: int, keys: int, head: int) -> None:
    weights = torch.rand(3, queries, keys).softmax(dim=-1)
    sound = call_of(weights, "decoder.0.cross")
    found = measure_layer(sound, on_itself=False).row_error
    assert found == pytest.approx(row_sum_error([sound]), abs=1e-7)
    assert found < 1e-5
    for row in {0, queries // 2, queries - 1}:
        broken = weights.clone()
        broken[head, row] *= 0.75
        assert measure_layer(call_of(broken, "decoder.0.cross"), on_itself=False).row_error == pytest.approx(0.25)
        broken[head, row, -1] = torch.nan
        assert math.isnan(row_sum_error([sound, call_of(broken), sound]))


def test_against_loops() -> None:
    weights = torch.randn(2, 3, 7, 7).softmax(dim=-1)
    found = mean_attention_distance(weights, (2, 3), (4, 5))
    places = [(4.0 * r, 5.0 * c) for r in range(2) for c in range(3)]
    for layer, head in product(range(2), range(3)):
        total = 0.0
        for i in range(6):
            w = [float(weights[layer, head, 1 + i, 1 + j]) for j in range(6)]
            total += sum(w[j] * math.dist(places[i], places[j]) for j in range(6)) / sum(w)
        assert found[layer, head] == pytest.approx(total / 6, abs=1e-5)


def test_the_class_token_is_left_out() -> None:
    weights = torch.zeros(3, 3)
    weights[:, 0] = 0.9
    weights[1, 2] = weights[2, 1] = 0.1  # all that is left goes one patch on
    assert mean_attention_distance(weights, (1, 2), (4, 4)) == pytest.approx(4)
    weights[2] = torch.tensor([1.0, 0.0, 0.0])  # and a patch that sees no patch does not count
    assert mean_attention_distance(weights, (1, 2), (4, 4)) == pytest.approx(4)
    assert mean_attention_distance(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), (1, 1), (4, 4)) == 0


def test_the_uniform_baseline() -> None:
    # 2 x 2 patches of 1 pixel: to itself 0, two neighbours 1, the diagonal sqrt 2
    assert uniform_attention_distance((2, 2), (1, 1)) == pytest.approx((2 + math.sqrt(2)) / 4)
    uniform = torch.full((50, 50), 1 / 50)
    assert mean_attention_distance(uniform, (7, 7), (4, 4)) == pytest.approx(uniform_attention_distance((7, 7), (4, 4)))


def test_a_sink_is_a_key_that_most_queries_attend_to_beyond_even_attention() -> None:
    weights = torch.full((5, 5), 0.2)
    assert attention_sink(weights) is None
    weights[:, 3], weights[:, :3], weights[:, 4] = 0.6, 0.1, 0.1
    assert attention_sink(weights) == (3, pytest.approx(0.6))
    weights[:3] = 0.2  # two of five queries ask for it: (3 x 0.2 + 2 x 0.6) / 5
    assert attention_sink(weights) is None
    assert attention_sink(weights, least=0.15) == (3, pytest.approx(0.36))
    assert attention_sink(torch.eye(4)[[1, 1, 1, 1]]) == (1, 1.0)  # a saturated softmax, whose other weights round to 0
    assert attention_sink(torch.empty(0, 5)) is None


def test_of_a_causal_map_queries_that_see_few_keys_make_no_sink() -> None:
    even = torch.ones(6, 6).tril() / torch.arange(1.0, 7)[:, None]
    assert attention_sink(even) is None
    weights = torch.eye(6)  # each attends to itself: the last key is seen by one query, which gives it all
    assert attention_sink(weights) is None
    weights[1:], weights[1:, 0] = 0, 1
    assert attention_sink(weights) == (0, 1.0)


CLS, PAD, EOS = 0, 1, 2
LENGTHS = (12, 9)


@pytest.fixture(scope="module")
def model() -> EsmModel:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 24}
    config = EsmConfig(vocab_size=33, pad_token_id=PAD, position_embedding_type="rotary", token_dropout=True, **sizes)
    config.mask_token_id = 32
    return EsmModel(config, add_pooling_layer=False).eval()


@pytest.fixture(scope="module")
def batch() -> tuple[Tensor, Tensor]:
    tokens = torch.full((2, 14), PAD)
    for row, length in enumerate(LENGTHS):
        residues = torch.randint(4, 24, (length,), generator=torch.Generator().manual_seed(row))
        tokens[row, : length + 2] = torch.cat([torch.tensor([CLS]), residues, torch.tensor([EOS])])
    return tokens, (tokens != PAD).long()


@pytest.fixture(scope="module")
def trace(model: EsmModel, batch: tuple[Tensor, Tensor]) -> Trace:
    instrument(model)
    with record() as trace, torch.no_grad():
        model(batch[0], attention_mask=batch[1])
    return trace


@pytest.mark.parametrize("row", [0, 1])
def test_contacts_are_those_of_transformers(model, batch, trace, row):
    head = model.contact_head.regression
    ours = ContactRegression(head.weight[0].detach(), head.bias.item()).probabilities(contact_features(trace, row))
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model.predict_contacts(*(each[row : row + 1, : LENGTHS[row] + 2] for each in batch))[0]
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours, ours.T)
    with pytest.raises(ValueError, match="got none"):
        contact_features(trace, residues=slice(5, 5))


def test_the_correction_by_hand() -> None:
    """Sums 4 and 6 of rows and of columns, 10 of all."""
    maps = torch.tensor([[1.0, 3.0], [3.0, 3.0]])
    expected = torch.tensor([[1 - 1.6, 3 - 2.4], [3 - 2.4, 3 - 3.6]])
    torch.testing.assert_close(average_product_correction(maps), expected)
    torch.testing.assert_close(average_product_correction(torch.ones(3, 3)), torch.zeros(3, 3))


def proteins(seed: int = 0) -> tuple[list[Tensor], list[Tensor]]:
    """Two proteins whose head 2 of 5 is their contacts and noise; the others are noise."""
    draw = torch.Generator().manual_seed(seed)
    features, contacts = [], []
    for n in (30, 40):
        touches = (torch.rand(n, n, generator=draw) < 0.15).triu(1)
        touches = touches | touches.T
        maps = 0.01 * torch.randn(5, n, n, generator=draw).double()
        maps[2] += 0.02 * touches
        features.append(maps + maps.mT)
        contacts.append(touches)
    return features, contacts


@pytest.mark.parametrize("penalty", [0.05, 0.5])
def test_at_the_minimum_no_weight_can_gain(penalty: float) -> None:
    """The gradient of the cross-entropy is -penalty * sign(w), at most the penalty where w = 0, and 0 for the bias."""
    features, contacts = proteins(1)
    found = fit_contacts(features, contacts, penalty=penalty, separation=3)
    pairs = [torch.ones(each.shape).triu(3).bool() for each in contacts]
    errors = torch.cat(
        [found.probabilities(f)[p] - c[p].double() for f, c, p in zip(features, contacts, pairs, strict=True)]
    )
    gradient = torch.cat([f[:, p] for f, p in zip(features, pairs, strict=True)], dim=1) @ errors
    assert abs(float(errors.sum())) < 1e-4
    assert (gradient.abs() < penalty + 1e-4).all()
    used = found.weights != 0
    torch.testing.assert_close(gradient[used], -penalty * found.weights[used].sign(), rtol=0, atol=1e-4)
