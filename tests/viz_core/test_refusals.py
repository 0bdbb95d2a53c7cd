"""`import viz_core` brings every name, and whoever gives a public function the wrong thing is told what it wanted."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch

import viz_core
from viz_core import attention, models, positional
from viz_core.attention.kernel_pooling import kernel_weights
from viz_core.attention.scores import batch_product, dot_scores, general_scores, scaled_dot_scores
from viz_core.maps.measures import (
    attention_entropy,
    combine_heads,
    diagonal_mass,
    key_mass,
    mean_attention_distance,
    offset_mass,
    query_information,
    target_mass,
    total_variation,
)
from viz_core.maps.rollout import attention_rollout
from viz_core.maps.word_maps import merge_words
from viz_core.trace import (
    attend,
    attention_weights,
    gate,
    head_outputs,
    knock_out,
    mean,
    off,
    pattern,
    record,
    record_weights,
)

HEAVY = ("torch", "transformers", "huggingface_hub", "numpy", "PIL", "plotly")


def imported(program: str) -> set[str]:
    """Which of the heavy libraries a fresh interpreter has after a program."""
    end = f"\nimport sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", program + end], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_the_library_imports_nothing_else() -> None:
    assert imported("import viz_core; dir(viz_core)") == set()


def test_a_name_brings_what_it_needs() -> None:
    """The app imports the hub; only a model that is asked for brings the heavy libraries."""
    found = imported("import viz_core.hub; from viz_core import load_hub, record")
    assert "torch" in found
    assert not {"transformers", "huggingface_hub"} & found, "imported with the first model"


def test_each_name_is_the_one_of_its_folder() -> None:
    assert set(viz_core.__all__) == set(viz_core._MODULES) <= set(dir(viz_core))
    assert sorted(viz_core.__all__) == viz_core.__all__
    for name, module in viz_core._MODULES.items():
        assert getattr(viz_core, name) is getattr(import_module(module), name)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'attent'; it has attend, "):
        viz_core.attent  # noqa: B018


Case: TypeAlias = tuple[Callable[..., Any], dict[str, Any]]

Q, K, V = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 3)
MASK, BIAS = torch.ones(2, 1, 1, 6, dtype=torch.bool), torch.zeros(1, 4, 5, 6)
X, IDS, LENGTHS = torch.randn(2, 5, 8), torch.randint(0, 9, (2, 5)), torch.tensor([3, 5])
PICTURES, MAP = torch.randn(2, 3, 8, 8), torch.rand(5, 5).softmax(dim=-1)
ENCODER, DECODER = models.TransformerEncoder(9, 8, 16, 2, 1, 0.0), models.TransformerDecoder(9, 8, 16, 2, 1, 0.0)
READER, SPEAKER = models.Seq2SeqEncoder(9, 8, 8, 1), models.Seq2SeqAttentionDecoder(9, 8, 8, 1)
STATE, GRU_STATE = DECODER.init_state(X, LENGTHS), SPEAKER.init_state(READER(IDS))
LINE, GRID = positional.RelativePositionEmbedding1d(5, 8), positional.RelativePositionEmbedding2d(1, 5, 8)

TENSORS: dict[str, Case] = {
    "attend": (attend, {"queries": Q, "keys": K, "values": V, "mask": MASK, "bias": BIAS}),
    "attention_weights": (attention_weights, {"queries": Q, "keys": K, "mask": MASK, "bias": BIAS}),
    "masked_softmax": (attention.masked_softmax, {"scores": X, "valid_lens": LENGTHS}),
    "DotProductAttention": (attention.DotProductAttention(), dict.fromkeys(("queries", "keys", "values"), X)),
    "AdditiveAttention": (attention.AdditiveAttention(8, 8, 4), dict.fromkeys(("queries", "keys", "values"), X)),
    "MultiHeadAttention": (
        attention.MultiHeadAttention(8, 2),
        {**dict.fromkeys(("queries", "keys", "values"), X), "valid_lens": LENGTHS, "bias": torch.zeros(1, 1, 5, 5)},
    ),
    "nadaraya_watson": (
        lambda **given: attention.nadaraya_watson(**given, kernel=attention.gaussian()),
        {"x_train": torch.randn(5), "y_train": torch.randn(5), "x_val": torch.randn(3)},
    ),
    "kernel_weights": (lambda distances: kernel_weights(distances, attention.boxcar), {"distances": MAP}),
    **{f.__name__: (f, {"distances": MAP}) for f in (attention.boxcar, attention.constant, attention.triangular)},
    "epanechnikov": (attention.epanechnikov, {"distances": MAP}),
    "gaussian": (attention.gaussian(), {"distances": MAP}),
    "batch_product": (batch_product, {"X": X, "Y": X.mT}),
    "dot_scores": (dot_scores, {"queries": X, "keys": X}),
    "scaled_dot_scores": (scaled_dot_scores, {"queries": X, "keys": X}),
    "general_scores": (general_scores, {"queries": X, "keys": X, "M": torch.eye(8)}),
    "record_weights": (record_weights, {"weights": Q.softmax(dim=-1), "values": torch.randn(2, 1, 8, 3)}),
    "mean": (lambda of: mean(1, of), {"of": torch.randn(4, 3)}),
    "pattern": (lambda what: pattern(1, what), {"what": torch.eye(3)}),
    "apply_rotary": (positional.apply_rotary, {"x": Q, "positions": torch.arange(5.0)}),
    "Rotary.rotate": (positional.Rotary().rotate, {"x": Q}),
    "sinusoidal_rows": (lambda positions: positional.sinusoidal_rows(positions, 8), {"positions": torch.arange(5.0)}),
    "relative_to_absolute": (positional.relative_to_absolute, {"scores": torch.randn(2, 3, 5)}),
    "t5_relative_position_bucket": (positional.t5_relative_position_bucket, {"relative_position": torch.arange(4)}),
    "PositionalEncoding": (positional.PositionalEncoding(8), {"X": X}),
    "LearnedPositionalEmbedding": (positional.LearnedPositionalEmbedding(8, 8), {"X": X}),
    "AbsolutePositionEmbedding1d": (positional.AbsolutePositionEmbedding1d(5, 8), {"q": Q}),
    "RelativePositionEmbedding1d": (LINE, {"q": Q}),
    "RelativePositionEmbedding1d.bias": (lambda queries: LINE.bias(queries, 5), {"queries": Q}),
    "RelativePositionEmbedding2d": (GRID, {"q": Q}),
    "ALiBi.bias": (lambda queries: positional.ALiBi().bias(queries, 6), {"queries": Q}),
    "T5RelativeBias.bias": (lambda queries: positional.T5RelativeBias(4).bias(queries, 6), {"queries": Q}),
    "AddNorm": (models.AddNorm(8, 0.0), {"X": X, "Y": X}),
    "PositionWiseFFN": (models.PositionWiseFFN(16, 8), {"X": X}),
    "TransformerEncoderBlock": (models.TransformerEncoderBlock(8, 16, 2, 0.0), {"X": X}),
    "TransformerDecoderBlock": (lambda X: models.TransformerDecoderBlock(8, 16, 2, 0.0)(X, STATE), {"X": X}),
    "TransformerEncoder": (ENCODER, {"X": IDS, "valid_lens": LENGTHS}),
    "TransformerDecoder": (lambda X: DECODER(X, STATE), {"X": IDS}),
    "TransformerDecoder.init_state": (DECODER.init_state, {"enc_outputs": X}),
    "Seq2SeqEncoder": (READER, {"X": IDS, "valid_lens": LENGTHS}),
    "Seq2SeqAttentionDecoder": (lambda X: SPEAKER(X, GRU_STATE), {"X": IDS}),
    "ViTMLP": (models.ViTMLP(16, 8), {"x": X}),
    "ViTBlock": (models.ViTBlock(8, 8, 16, 2, 0.0), {"X": X}),
    "PatchEmbedding": (models.PatchEmbedding(8, 4, 8, 3), {"X": PICTURES}),
    "ViT": (models.ViT(8, 4, 8, 16, 2, 1, 0.0, 0.0), {"X": PICTURES}),
    **{f.__name__: (f, {"weights": MAP}) for f in (attention_entropy, diagonal_mass, query_information)},
    "offset_mass": (lambda weights: offset_mass(weights, 1), {"weights": MAP}),
    "key_mass": (lambda weights: key_mass(weights, [0]), {"weights": MAP}),
    "target_mass": (target_mass, {"weights": MAP, "targets": torch.eye(5, dtype=torch.bool)}),
    "total_variation": (total_variation, {"first": MAP, "second": MAP}),
    "combine_heads": (lambda weights: combine_heads(weights, "mean"), {"weights": MAP[None]}),
    "attention_rollout": (lambda weights: attention_rollout([weights]), {"weights": MAP[None]}),
    "merge_words": (lambda weights: merge_words(weights, range(5), range(5)), {"weights": MAP}),
    "mean_attention_distance": (lambda weights: mean_attention_distance(weights, (2, 2), (1, 1)), {"weights": MAP}),
}


def wrong(right: torch.Tensor) -> Iterator[Any]:
    """What somebody may hold in place of a tensor: lists, numpy's arrays, other kinds of numbers."""
    yield from (right.tolist(), right.numpy(), right.to(torch.complex64), "text", object())
    yield right.float() if right.dtype == torch.bool or not right.is_floating_point() else right.bool()
    if right.dtype != torch.bool:
        yield right.bool()


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("name", TENSORS)
def test_tensors_are_asked_for_by_name(name: str) -> None:
    function, right = TENSORS[name]
    function(**right)
    for argument, tensor in right.items():
        for thing in wrong(tensor):
            with pytest.raises(ValueError, match="expected"):
                function(**{**right, argument: thing})


_LEFT_ON_THE_CPU = ("apply_rotary", "Seq2SeqEncoder")  # positions and lengths: worked with there, wherever the rest is


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    "name", [name for name, (_, right) in TENSORS.items() if len(right) > 1 and name not in _LEFT_ON_THE_CPU]
)
def test_tensors_on_several_devices_are_refused(name: str) -> None:
    function, right = TENSORS[name]
    for argument in right:
        with pytest.raises(ValueError, match="expected"):
            function(**{**right, argument: right[argument].to("meta")})


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    "name", ["batch_product", "MultiHeadAttention", "AdditiveAttention", "PositionWiseFFN", "AddNorm", "ViT"]
)
def test_double_precision_among_floats_is_refused_by_name(name: str) -> None:
    function, right = TENSORS[name]
    argument = next(iter(right))
    with pytest.raises(ValueError, match=f"{argument}.*float64"):
        function(**{**right, argument: right[argument].double()})


SIZES: list[Case] = [
    (attention.AdditiveAttention, {"query_size": 8, "key_size": 8, "num_hiddens": 4}),
    (
        attention.MultiHeadAttention,
        {"num_hiddens": 8, "num_heads": 2, "num_key_heads": 1, "window": 3, "query_size": 8, "value_size": 8},
    ),
    (positional.alibi_bias, {"num_heads": 2, "num_queries": 3, "num_keys": 4}),
    (positional.angular_frequencies, {"num_hiddens": 8}),
    (positional.clipped_offsets, {"num_tokens": 4, "max_distance": 2}),
    (positional.LearnedPositionalEmbedding, {"max_len": 8, "num_hiddens": 8}),
    (positional.PositionalEncoding, {"num_hiddens": 8, "max_len": 9}),
    (positional.RelativePositionEmbedding1d, {"num_tokens": 5, "head_dim": 8, "num_heads": 2}),
    (positional.sinusoidal_table, {"num_positions": 4, "num_hiddens": 8}),
    (positional.T5RelativeBias, {"num_heads": 4, "num_buckets": 8, "max_distance": 16}),
    (models.PositionWiseFFN, {"ffn_num_hiddens": 8, "ffn_num_outputs": 8, "ffn_num_inputs": 4}),
    (
        lambda **sizes: models.TransformerEncoder(**sizes, dropout=0.0),
        {"vocab_size": 9, "num_hiddens": 8, "ffn_num_hiddens": 16, "num_heads": 2, "num_blks": 1},
    ),
    (models.Seq2SeqEncoder, {"vocab_size": 9, "embed_size": 8, "num_hiddens": 8, "num_layers": 1}),
    (models.PatchEmbedding, {"img_size": 8, "patch_size": 4, "num_hiddens": 8, "num_channels": 3}),
]


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(("function", "right"), SIZES)
def test_sizes_are_whole_numbers_of_python_or_numpy(function: Callable[..., Any], right: dict[str, Any]) -> None:
    function(**{name: np.int64(size) for name, size in right.items()})
    for argument in right:
        for size in (2.5, float("nan"), True, "8", [8], -1, torch.tensor(8.0)):
            with pytest.raises(ValueError, match="expected"):
                function(**{**right, argument: size})


@pytest.mark.usefixtures("shapes_unchecked")
def test_token_ids_outside_the_vocabulary_are_refused() -> None:
    for ids, why in ((IDS + 9, "from 0 to 8"), (IDS - 20, "from 0 to 8"), (IDS.to(torch.int16), "int32 or int64")):
        with pytest.raises(ValueError, match=why):
            ENCODER(ids)
    for lengths, why in ((torch.tensor([3, 6]), "from 0 to 5"), (torch.tensor([-1, 5]), "from 0 to 5")):
        with pytest.raises(ValueError, match=why):
            READER(IDS, lengths)


@pytest.mark.usefixtures("shapes_unchecked")
def test_heads_and_places_are_numbers_of_python_or_numpy() -> None:
    assert off(np.int64(1)).heads == off(1).heads == (1,)
    for heads in (range(1, 3), [1, 2], np.array([1, 2]), torch.tensor([1, 2])):
        assert knock_out(heads, query=heads).heads == (1, 2)
    for heads in (
        True,
        1.5,
        "1",
        np.array([0.5]),
        slice(1, 2),
        object(),
        -1,
        torch.ones(1, dtype=torch.int64, device="meta"),
    ):
        with pytest.raises(ValueError, match="heads: expected numbers from 0 on"):
            knock_out(heads)
    for factor in (None, "1", [0.5], True, float("nan"), torch.tensor(1)):
        with pytest.raises(ValueError, match="factor: expected a f"):
            gate(1, factor)


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_is_no_recording_is_refused_where_one_is_read() -> None:
    with record() as trace:
        attend(Q, K, V)
    for read in (head_outputs, viz_core.trace.find_sites, viz_core.trace.Trace.merge):
        for thing in (trace, "text", None):
            with pytest.raises(ValueError, match="expected"):
                read(thing)
    with pytest.raises(ValueError, match="edits: expected"), viz_core.intervene([off(1)]):
        pass


def test_under_autocast_layers_take_the_types_that_torch_brings() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        states, _ = DECODER.hidden(IDS, DECODER.init_state(ENCODER(IDS), LENGTHS))
    assert states.isfinite().all()
