"""Contract of every measure of heads in the register, and roles of heads, by hand and against chance."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.view_bytes import decode_view
from tests.viz_core.trace.test_weights import rule
from tests.viz_core.view.attention_groups import make_group
from viz_core.maps.fingerprints import measure_layer
from viz_core.maps.head_measure import MapBlock, MapInfo, Measure
from viz_core.maps.measures import Patches, diagonal_mass, induction_mass, key_mass, offset_mass
from viz_core.maps.register import COLUMNS, MEASURES, ROLES, RoleTargets, beyond_chance, role_masses
from viz_core.trace import AttentionCall, record, record_weights
from viz_core.view.components import view_words
from viz_core.view.payload import View, encode_view
from viz_core.view.state import ViewState

TOKENS = ["[CLS]", "The", "cat", ",", "the", "dog", ".", "[SEP]"]


def named(masses: torch.Tensor) -> dict[str, list[float]]:
    return {role: masses[:, COLUMNS.index(column)].tolist() for role, column in ROLES.items()}


def test_each_role_is_the_measure_it_is_named_for() -> None:
    weights = torch.rand(3, 8, 8).softmax(dim=-1)
    found = named(role_masses(weights, RoleTargets.of(TOKENS, TOKENS, on_itself=True)))
    expected = {
        "previous": offset_mass(weights, -1),
        "next": offset_mass(weights, 1),
        "diagonal": diagonal_mass(weights),
        "first": key_mass(weights, [0]),
        "separator": key_mass(weights, [7]),
        "punctuation": key_mass(weights, [3, 6]),
        "same-word": (weights[:, 1, 4] + weights[:, 4, 1]) / 2,  # The and the
    }
    assert {role: found[role] for role in expected} == {
        role: pytest.approx(masses.tolist(), abs=1e-6) for role, masses in expected.items()
    }
    assert np.isnan(found["induction"]).all(), "no token comes twice as it is written"
    again = [*"abcab"]
    ours = named(role_masses(weights[:, :5, :5], RoleTargets.of(again, again, on_itself=True)))["induction"]
    assert ours == pytest.approx(induction_mass(weights[:, :5, :5], again).tolist())


def test_special_tokens_are_no_words() -> None:
    tokens = ["[CLS]", "the", "cat", "[SEP]", "the", "dog", "[SEP]"]
    targets = RoleTargets.of(tokens, tokens, on_itself=True)
    assert targets.masks["same-word"].nonzero().tolist() == [[1, 4], [4, 1]]
    same_word, separator = torch.zeros(2, 1, 7, 7)
    same_word[0, 1, 4] = same_word[0, 4, 1] = 1.0
    separator[0, 3, 6] = separator[0, 6, 3] = 1.0
    assert named(role_masses(same_word, targets))["same-word"] == [1.0]
    assert named(role_masses(separator, targets))["same-word"] == [0.0]


def test_in_a_causal_map_no_role_asks_for_the_future() -> None:
    tokens = ["a", "b", "a"]
    causal, both = (RoleTargets.of(tokens, tokens, on_itself=True, causal=each) for each in (True, False))
    assert both.masks["previous"].nonzero().tolist() == [[1, 0], [2, 1]]
    weights = torch.tensor([[[1.0, 0, 0], [0.5, 0.5, 0], [0.7, 0.2, 0.1]]])
    column = COLUMNS.index("same-word")
    assert role_masses(weights, causal)[0, column].item() == pytest.approx(0.7)
    assert role_masses(weights, both)[0, column].item() == pytest.approx(0.35)
    torch.testing.assert_close(causal.even[0], torch.tensor([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]))


def test_between_two_sequences_only_places_and_words_count() -> None:
    targets = RoleTargets.of(["Tom", "rit", "</s>"], ["tom", "laughs", ".", "</s>"], on_itself=False)
    weights = torch.tensor([[[0.6, 0.2, 0.1, 0.1], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]])
    found = {role: value[0] for role, value in named(role_masses(weights, targets)).items() if value[0] == value[0]}
    assert found == {
        "first": pytest.approx(0.2),
        "separator": pytest.approx(0.2),
        "punctuation": pytest.approx(0.2),
        "same-word": pytest.approx(0.6),
    }


def test_chance_is_taken_off() -> None:
    assert beyond_chance(0.25, 0.25) == 0.0
    assert beyond_chance(1.0, 0.25) == 1.0
    assert beyond_chance(0.5, 0.2) == pytest.approx(0.375)
    assert beyond_chance(1.0, 1.0) == 0.0, "where nothing else can be done, nothing was done"


COMPUTED = [measure for measure in MEASURES.values() if measure.sums is not None]
INFOS = (
    MapInfo(12, 12, on_itself=True, separators=(0, 11)),
    MapInfo(12, 12, on_itself=True, patches=Patches((2, 5), num_special=2)),
    MapInfo(7, 12, on_itself=False, separators=(11,)),
    MapInfo(1, 1),
    MapInfo(12, 12, signed=True, decays=True),
    MapInfo(7, 12, on_itself=False, signed=True),
)

computed = pytest.mark.parametrize("measure", COMPUTED, ids=lambda measure: measure.name)


def value_of(
    measure: Measure, weights: torch.Tensor, info: MapInfo, height: int, log_decay: torch.Tensor | None = None
) -> float:
    """The measure of one map, from sums over blocks of so many rows."""
    assert measure.sums is not None
    gates = torch.linspace(-2, 0, info.num_queries)[None] if log_decay is None else log_decay
    blocks = [
        measure.sums(MapBlock(weights[None, rows], rows.start, info, gates[:, rows])).double()
        for rows in (slice(first, first + height) for first in range(0, info.num_queries, height))
    ]
    return float(measure.value(torch.stack(blocks).sum(dim=0), info)[0])


@computed
@pytest.mark.parametrize("height", [1, 2, 9])
def test_the_example_worked_by_hand(measure: Measure, height: int) -> None:
    example = measure.example
    assert example is not None
    weights = torch.tensor(example.weights)
    assert measure.fits(example.info)
    assert weights.shape == (example.info.num_queries, example.info.num_keys)
    gates = torch.tensor(example.log_decay) if example.log_decay else None
    assert value_of(measure, weights, example.info, height, gates) == pytest.approx(example.value)


@computed
@settings(max_examples=25)
@given(seed=st.integers(0, 2**31), sharpness=st.sampled_from([0.0, 1.0, 8.0, 200.0]), height=st.integers(1, 12))
def test_blocks_give_the_value_of_the_whole_map_within_its_range(measure, seed, sharpness, height):
    generator = torch.Generator().manual_seed(seed)
    infos = [info for info in INFOS if measure.fits(info)]
    assert infos, "add maps to which it applies"
    for info in infos:
        scores = torch.randn(info.num_queries, info.num_keys, generator=generator)
        weights = sharpness * scores if info.signed else (sharpness * scores).softmax(dim=-1)
        whole = value_of(measure, weights, info, info.num_queries)
        assert value_of(measure, weights, info, height) == pytest.approx(whole, abs=1e-5)
        assert 0 <= whole <= measure.maximum(info) + 1e-5


@pytest.mark.parametrize("info", [info for info in INFOS if not info.signed], ids=str)
def test_fingerprints_hold_what_applies(info: MapInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz_core.maps.fingerprints._BLOCK_WEIGHTS", 2 * info.num_keys)
    weights = torch.randn(info.num_queries, info.num_keys).softmax(dim=-1)
    with record() as trace:
        record_weights(weights[None, None], "encoder.0.self")
    options = {"on_itself": info.on_itself, "separators": info.separators, "patches": info.patches}
    (found,) = measure_layer(trace["encoder.0.self"], **options).fingerprints
    expected = {each.name: value_of(each, weights, info, info.num_queries) for each in COMPUTED if each.fits(info)}
    assert found == pytest.approx(expected, abs=1e-5)


def test_a_hybrid_has_measures_of_shares_for_layers_with_a_softmax_and_others_for_signed_ones() -> None:
    signed = AttentionCall("decoder.1.self", rule(9, erases=True))
    with record() as trace:
        record_weights(torch.full((2, 4, 9, 9), 1 / 9), "decoder.0.self")
    group = make_group(9, 9, "self", calls=(trace["decoder.0.self"], signed), row=1)
    of_signed = {"memory", "negative", "decay"}
    sent = decode_view(encode_view(View([group], view_words()), ViewState("self", 0, 0))).header
    described = {each["name"]: each.get("signed", False) for each in sent["base"]["groups"][0][0]["measures"]}
    assert {name for name, is_signed in described.items() if is_signed} == of_signed
    assert "entropy" in described
    softmax, prints = (group.picture(layer).fingerprints for layer in (0, 1))
    assert all({*print_} == {*described} - of_signed for print_ in softmax)
    weights, source = signed.weights()[1], signed.source
    for head, print_ in enumerate(prints):
        assert {*print_} == of_signed
        sizes = weights[head].abs() / weights[head].abs().sum(dim=-1, keepdim=True)
        lengths = 1 + (torch.arange(9)[:, None] - torch.arange(9)).abs()
        assert print_["memory"] == pytest.approx(float((sizes * lengths).sum() / 9), abs=1e-5)
        assert print_["negative"] == pytest.approx(float(sizes[weights[head] < 0].sum() / 9), abs=1e-5)
        assert print_["decay"] == pytest.approx(float(source.log_decay[1, head].mean().exp()), abs=1e-5)
