"""Every layer of a model has a site or a reason."""

from __future__ import annotations

import re
import warnings

import pytest
import torch
from torch import nn

from tests.viz_core.hub.architectures import ARCHITECTURES, TABLE, build, layers_by_config
from viz_core.hub import coverage, instrument
from viz_core.trace import find_sites, record


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES)[::3])
def test_layers_of_a_model_are_those_seen_and_those_named(architecture: str) -> None:
    """The config says how many there are; `instrument` gives the sites of some and warns of all others.

    A third of them: docs/architectures.md is about all.
    """
    model = build(architecture)
    rows = coverage(model)
    seen = {(each.stack, each.layer) for each in rows if each.site}
    named = {(each.stack, each.layer) for each in rows if each.reason and each.layer is not None}
    assert len(seen | named) == layers_by_config(architecture)
    assert all(bool(each.site) != bool(each.reason) for each in rows)
    if not seen:
        with pytest.raises(ValueError, match="instrument: expected"):
            instrument(model)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sites = instrument(model)
    warned = " ".join(str(each.message) for each in caught if "not recorded" in str(each.message))
    assert set(sites) == {each.site for each in rows if each.site}
    assert all(each.reason.rstrip(".") in warned for each in rows if each.reason)
    assert bool(warned) == any(each.reason for each in rows)


def test_a_hybrid_names_its_other_layers() -> None:
    with pytest.warns(UserWarning, match=re.escape("layers 0 to 1, 3 to 4")) as warned:
        instrument(build("recurrent_gemma"))
    assert "RecurrentGemmaRglru weighs earlier tokens separately in each channel" in str(warned[0].message)


def test_a_softmax_that_gates_channels_is_no_map() -> None:
    assert not any(each.site for each in coverage(build("patchtsmixer")))


@pytest.mark.parametrize("architecture", ["recurrent_gemma", "rwkv"])
def test_layers_that_weigh_each_channel_by_itself_say_so(architecture: str) -> None:
    assert {each.code for each in coverage(build(architecture)) if each.reason} == {"channels"}


WRONG_MAPS = re.findall(
    r"```python\n(.*?)```", TABLE.with_name("wrong-maps.md").read_text(encoding="utf-8"), flags=re.DOTALL
)


@pytest.mark.parametrize("code", WRONG_MAPS)
@pytest.mark.filterwarnings("ignore")
def test_the_code_on_wrong_maps_shows_what_the_page_says(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "wrong-maps.md", "exec"), {})  # it ends with assertions
    assert capsys.readouterr().out


def test_stages_and_blocks_have_names_of_their_own() -> None:
    rows = coverage(build("swin"))
    assert [each.site for each in rows] == [
        f"encoder.{stage}.{block}.self" for stage, count in enumerate((2, 2, 6, 2)) for block in range(count)
    ]
    assert [each.layer for each in rows] == list(range(12))


class SlidingMixer(nn.Module):
    """Mixes tokens by a rule of its own, whatever it is."""

    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(8, 8)


def test_a_plain_model_has_rows_too() -> None:
    blocks = nn.ModuleList([nn.TransformerEncoderLayer(8, 2, 8), SlidingMixer(), nn.Linear(8, 8)])
    model = nn.ModuleDict({"layers": blocks, "pool": nn.MultiheadAttention(8, 2)})
    assert [(each.stack, each.layer, each.site) for each in coverage(model)] == [
        ("layers", 0, "encoder.0.self"),
        ("layers", 1, None),
        ("layers", 2, None),
        ("", None, None),
    ]
    assert [each.reason for each in coverage(model)] == [
        "",
        "SlidingMixer mixes tokens by a rule of its own; it has no map that is recorded.",
        "No attention is known in Linear.",
        "MultiheadAttention at pool is in none of the lists of layers.",
    ]


class FactorAttn(nn.Module):
    """Weighs channels by a softmax, not keys."""

    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(8, 8)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.W(X) @ torch.softmax(X.mT @ X, dim=-1)


def test_a_layer_that_ran_unseen_is_named_after_the_recording() -> None:
    model = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), FactorAttn())
    assert list(find_sites(model).values()) == ["encoder.0.self", "encoder.1.self"]
    X = torch.randn(2, 3, 8)
    with pytest.warns(UserWarning, match="record: not recorded: layers 1 of .*FactorAttn"), record(torch_calls=model):
        model(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with record(torch_calls=model):
            model[0](X)  # the other did not run
