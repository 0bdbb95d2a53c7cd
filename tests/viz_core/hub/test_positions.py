"""The numbers a model really uses for its positions."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
import torch
import transformers

from viz_core.hub import HubModel, Positions
from viz_core.hub.runs.positions import find_positions
from viz_core.positional import alibi_slopes, angular_frequencies, t5_relative_position_bucket
from viz_core.positional.register import BY_NAME

TinyModel = Callable[[str], HubModel]


def only(model: HubModel) -> Positions:
    (positions,) = model.positions
    assert positions.scheme in BY_NAME
    assert positions.values.dtype == torch.float32
    return positions


@pytest.mark.parametrize(
    ("family", "path", "first"),
    [
        ("bert", "embeddings.position_embeddings.weight", 0),
        ("roberta", "embeddings.position_embeddings.weight", 1),  # rows up to padding's are free
        ("gpt2", "transformer.wpe.weight", 0),
    ],
)
def test_learned_tables(family: str, path: str, first: int, tiny_model: TinyModel) -> None:
    model = tiny_model(family)
    positions = only(model)
    table = model.engine.model.get_parameter(path)
    assert (positions.scheme, positions.num_special) == ("learned", 0)
    assert torch.equal(positions.values, table[first:])
    assert model.card.max_tokens == len(table) - first


def test_a_table_of_each_stack(tiny_model: TinyModel) -> None:
    encoder, decoder = tiny_model("bart").positions
    assert [(p.scheme, p.stack, tuple(p.values.shape)) for p in (encoder, decoder)] == [
        ("learned", "encoder", (64, 32)),
        ("learned", "decoder", (64, 32)),
    ]


def test_marians_sinusoids(tiny_model: TinyModel) -> None:
    model = tiny_model("marian")
    assert {p.scheme for p in model.positions} == {"sinusoidal"}
    values = model.positions[0].values
    phases = torch.arange(64)[:, None] * angular_frequencies(32)
    torch.testing.assert_close(values, torch.cat([phases.sin(), phases.cos()], dim=1).float(), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("family", "base"), [("llama", 10000.0), ("gemma", 10000.0), ("qwen3", 10000.0)])
def test_rotary_frequencies(family: str, base: float, tiny_model: TinyModel) -> None:
    positions = only(tiny_model(family))
    assert positions.scheme == "rotary"
    torch.testing.assert_close(positions.values, angular_frequencies(8, base).float(), atol=1e-7, rtol=1e-6)


def test_t5_biases_are_those_added_to_the_scores(tiny_model: TinyModel) -> None:
    model = tiny_model("t5")
    encoder, decoder = model.positions
    assert [(p.stack, p.bidirectional, p.max_distance, tuple(p.values.shape)) for p in model.positions] == [
        ("encoder", True, 128, (8, 4)),
        ("decoder", False, 128, (8, 4)),
    ]
    run = model.run("The cat sat", target="a cat")
    for positions, site in ((encoder, "encoder.0.self"), (decoder, "decoder.0.self")):
        bias = run.trace[site].source.bias[0]
        n = bias.shape[-1]
        offsets = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        buckets = t5_relative_position_bucket(offsets, positions.bidirectional, 8, 128)
        assert torch.equal(bias, positions.values[buckets].permute(2, 0, 1))
    assert model.card.positions == ("t5",)


def test_bloom_slopes(tiny_model: TinyModel) -> None:
    positions = only(tiny_model("bloom"))
    assert positions.scheme == "alibi"
    torch.testing.assert_close(positions.values, alibi_slopes(4).float())


def test_mpt_slopes_are_its_own() -> None:
    config = transformers.MptConfig(d_model=48, n_heads=6, n_layers=1, vocab_size=20)
    with torch.device("meta"):
        model = transformers.MptForCausalLM(config)
    (positions,) = find_positions(model, "decoder", False)
    code = importlib.import_module("transformers.models.mpt.modeling_mpt")
    bias = code.build_mpt_alibi_tensor(6, 5)[:, 0]
    torch.testing.assert_close(positions.values[:, None] * torch.arange(-4, 1), bias)


@pytest.mark.parametrize(("family", "special"), [("vit", 1), ("deit", 2), ("dinov2", 1)])
def test_tables_of_pictures(family: str, special: int, tiny_model: TinyModel) -> None:
    positions = only(tiny_model(family))
    assert (positions.scheme, positions.num_special, tuple(positions.values.shape)) == (
        "learned",
        special,
        (16 + special, 32),
    )


def test_what_is_given_away_is_a_copy(tiny_model: TinyModel) -> None:
    model = tiny_model("bert")
    source = model.engine.model.embeddings.position_embeddings.weight
    assert model.positions[0].values.data_ptr() != source.data_ptr()
