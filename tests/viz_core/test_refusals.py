"""`import viz_core` brings every name, and whoever gives a public function the wrong thing is told what it wanted."""

import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch

import viz_core
from tests.viz_core.maps.test_measures import call_of, proteins
from viz_core import attention, models, positional
from viz_core.attention.kernel_pooling import kernel_weights
from viz_core.attention.linear import delta_rule, gated_decay, linear_attention
from viz_core.attention.scores import batch_product, dot_scores, general_scores, scaled_dot_scores
from viz_core.lab.scan_results import Alignment
from viz_core.maps.alignments import alignment, warping_path
from viz_core.maps.contacts import fit_contacts
from viz_core.maps.fingerprints import measure_layer
from viz_core.maps.measures import (
    Patches,
    attention_entropy,
    combine_heads,
    diagonal_mass,
    induction_mass,
    mean_attention_distance,
    query_information,
    target_mass,
    total_variation,
)
from viz_core.maps.register import RoleTargets
from viz_core.maps.rollout import attention_rollout, gradient_relevance
from viz_core.maps.word_maps import merge_words
from viz_core.models.decoding_step import begin_decoding
from viz_core.models.vit import interpolate_positions
from viz_core.trace import attend, attention_weights, gate, knock_out, mean, off, pattern, record_weights

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


Case: TypeAlias = tuple[Callable[..., Any], dict[str, Any]]
Refused: TypeAlias = tuple[Callable[[], Any], str]

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
    "RelativePositionEmbedding1d": (LINE, {"q": Q}),
    "RelativePositionEmbedding1d.bias": (lambda queries: LINE.bias(queries, 5), {"queries": Q}),
    "RelativePositionEmbedding2d": (GRID, {"q": Q}),
    "AddNorm": (models.AddNorm(8, 0.0), {"X": X, "Y": X}),
    "PositionWiseFFN": (models.PositionWiseFFN(16, 8), {"X": X}),
    "TransformerDecoderBlock": (lambda X: models.TransformerDecoderBlock(8, 16, 2, 0.0)(X, STATE), {"X": X}),
    "TransformerEncoder": (ENCODER, {"X": IDS, "valid_lens": LENGTHS}),
    "TransformerDecoder": (lambda X: DECODER(X, STATE), {"X": IDS}),
    "TransformerDecoder.init_state": (DECODER.init_state, {"enc_outputs": X}),
    "Seq2SeqEncoder": (READER, {"X": IDS, "valid_lens": LENGTHS}),
    "Seq2SeqAttentionDecoder": (lambda X: SPEAKER(X, GRU_STATE), {"X": IDS}),
    "PatchEmbedding": (models.PatchEmbedding(8, 4, 8, 3), {"X": PICTURES}),
    "ViT": (models.ViT(8, 4, 8, 16, 2, 1, 0.0, 0.0), {"X": PICTURES}),
    **{f.__name__: (f, {"weights": MAP}) for f in (attention_entropy, diagonal_mass, query_information)},
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
def test_heads_and_places_are_numbers_of_python_or_numpy() -> None:
    assert off(np.int64(1)).heads == off(1).heads == (1,)
    for heads in (range(1, 3), [1, 2], np.array([1, 2]), torch.tensor([1, 2])):
        assert knock_out(heads, query=heads).heads == (1, 2)
    for heads in (True, 1.5, np.array([0.5]), slice(1, 2), -1):
        with pytest.raises(ValueError, match="heads: expected numbers from 0 on"):
            knock_out(heads)
    for factor in ("1", True, float("nan")):
        with pytest.raises(ValueError, match="factor: expected a f"):
            gate(1, factor)


def test_under_autocast_layers_take_the_types_that_torch_brings() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        states, _ = DECODER.hidden(IDS, DECODER.init_state(ENCODER(IDS), LENGTHS))
    assert states.isfinite().all()


ONE = torch.ones(1, 1, 1, 1)
CALL, CROSS = call_of(torch.eye(3)[None]), call_of(torch.eye(3)[None], "decoder.0.cross")


def attended(**given: Any) -> torch.Tensor:
    return attend(**{"queries": Q, "keys": K, "values": V} | given)


def multi_head(**options: Any) -> attention.MultiHeadAttention:
    return attention.MultiHeadAttention(8, 4, **options)


def step_past_the_table() -> None:
    step, state = begin_decoding(DECODER.eval(), X, LENGTHS)
    step(IDS[:, :1], state._replace(num_steps=1000))  # type: ignore[attr-defined]


ATTENTION: list[Refused] = [
    (lambda: attended(queries=Q[0]), "(batch, heads, n, width), got [(4, 5, 8)"),
    (lambda: attended(queries=Q[:1], mask=None), "of one batch size, got 1 and 2"),  # they would broadcast
    (lambda: attended(values=V[:, :, :5]), "one value for each key, got shapes (2, 2, 6, 8) and"),
    (lambda: attended(keys=K[:, [0, 1, 1]], values=V[:, [0, 1, 1]]), "key heads to divide query heads"),
    (lambda: attended(keys=K.half()), "of one dtype, got queries torch.float32, keys torch.float16"),
    (lambda: attended(values=V.to("meta")), "of one device, got keys cpu, values meta"),
    (lambda: attended(mask=BIAS), "mask: expected booleans"),
    (lambda: attended(bias=MASK), "booleans are a mask"),  # would add 1 where a query may look
    (lambda: attended(softcap=0.0), "softcap: expected a positive number"),
    (lambda: attended(scale=math.nan), "scale: expected a finite number, got nan"),
    (lambda: attended(dropout=-1), "dropout: expected a number from 0 to 1, got -1"),  # torch's kernel took it for 0
    (lambda: attention.masked_softmax(X, torch.tensor([-3, 1])), "got -3 to 1"),
    (lambda: attention.masked_softmax(X, torch.tensor([1, 9])), "got 1 to 9"),
    (lambda: attention.masked_softmax(X, torch.tensor([3])), "expected shape (2,) or (2, 5), got (1,)"),
    (lambda: attention.masked_softmax(X, torch.tensor([2.5, 1.0])), "got float32 of shape (2,)"),
    (lambda: attention.masked_softmax(X, X[0, :2] > 0), "got bool of shape (2, 8); a mask goes to attend"),
    (lambda: multi_head(key_size=5)(X, X, X), "keys: expected shape (batch, n, 5), got (2, 5, 8)"),
    (lambda: multi_head()(X, X, X, torch.ones(2, 7).long()), "valid_lens: expected shape (2,) or (2, 5), got (2, 7)"),
    (lambda: multi_head(num_key_heads=3), "num_key_heads: expected a divisor of num_heads=4, got 3"),
    (lambda: multi_head(positions="rotary"), "positions: expected a scheme, as"),
    (
        lambda: multi_head()(X, X, X, bias=torch.zeros(4, 3, 2)),
        "bias: expected a shape that broadcasts to (2, 4, 5, 5)",
    ),
    (lambda: multi_head(window=2)(X, X[:, :2], X[:, :2]), "num_keys: expected at least num_queries=5, got 2"),
    (
        lambda: multi_head(positions=positional.Rotary())(X, X[:, :2], X[:, :2]),
        "as many keys as queries or more, got -3",
    ),
    (lambda: general_scores(X, X, torch.ones(8, 4)), "M: expected shape (8, 8), got (8, 4)"),
    (lambda: linear_attention(ONE, ONE, torch.tensor([2])), "from 0 to 1"),
    (lambda: gated_decay(ONE, ONE, 0.1 * ONE[0]), "at most 0"),
    (lambda: delta_rule(ONE, ONE, math.nan * ONE[0]), "finite"),
    (lambda: linear_attention(ONE, ONE).masked(MASK[:1, 0, 0, :2]), "mask: expected shape"),
    (
        lambda: attention.nadaraya_watson(LENGTHS * 1.0, X[0, 0], X[0, 0], attention.boxcar),
        "one value for each key, got",
    ),
    (
        lambda: kernel_weights(MAP, lambda u: -torch.ones_like(u)),
        "kernel: expected finite values of at least 0, got -1",
    ),
]
POSITIONS: list[Refused] = [
    (lambda: positional.relative_to_absolute(torch.zeros(2, 3, 6)), "scores: expected (..., n, 2n - 1)"),
    (
        lambda: positional.RelativePositionEmbedding1d(4, 8)(Q),
        "q: expected shape (batch, heads, 4, 8), got (2, 4, 5, 8)",
    ),
    (lambda: GRID.bias(Q, 6), "num_keys: expected 1 x 5 tokens, got 6"),
    (lambda: positional.LearnedPositionalEmbedding(7, 8)(X, 6), "at most max_len=7 positions, got 11"),
    (lambda: positional.angular_frequencies(4, math.nan), "base: expected a positive number"),
    (lambda: positional.apply_rotary(Q, torch.zeros(1)), "positions: expected shape (5,) or (2, 5), got (1,)"),
    (lambda: positional.apply_rotary(Q, torch.zeros(4, 5)), "positions: expected shape (5,) or (2, 5), got (4, 5)"),
    (lambda: positional.apply_rotary(Q[..., :7], torch.arange(5)), "n, d) with an even d, got shape (2, 4, 5, 7)"),
    (lambda: models.ViT(8, 4, 8, 16, 2, 1, 0.0, 0.0)(PICTURES[:, :1]), "expected pictures of shape (batch, 3, height"),
    (lambda: models.ViT(8, 4, 8, 16, 2, 1, 0.0, 0.0)(PICTURES[..., :6]), "patches of 4 x 4 pixels divide, got 8 x 6"),
    (lambda: interpolate_positions(X, (3, 3), (2, 2)), "expected 1 + 3 x 3 positions, got 5"),
    (lambda: ENCODER(IDS.repeat(1, 300)), "at most max_len=1000 positions, got 1500"),
    (lambda: ENCODER(IDS + 9), "from 0 to 8"),
    (lambda: READER(IDS, torch.tensor([3, 6])), "from 0 to 5"),
    (step_past_the_table, "max_len=1000"),
]
MAPS: list[Refused] = [
    (lambda: alignment(CALL), "expected cross-attention, got AttentionCall"),
    (lambda: alignment(CROSS, target_words=(0, 1)), "words for 3 target and 3 source tokens, got 2 and 3"),
    (lambda: warping_path(np.full((2, 2), np.nan)), "expected at least one cell and no NaN"),
    (lambda: merge_words(MAP, (0,), range(5)), "words for (5, 5) queries and keys, got 1 and 5"),
    (lambda: attention_entropy(torch.tensor([[1.5, -0.5]])), "none below 0, got -0.5"),
    (lambda: induction_mass(torch.eye(3), "abc"), "that all differ"),
    (lambda: target_mass(MAP, MAP < 0), "a query that has one, got none"),
    (lambda: total_variation(MAP, MAP[:, :3]), "two maps of one size, got (5, 5) and (5, 3)"),
    (lambda: measure_layer(CALL, patches=Patches((2, 2), 1)), "1 special tokens and 2 x 2 patches, a side of 5"),
    (lambda: mean_attention_distance(MAP[1:, 1:], (2, 2), (1, 1)), "a side of 5, got maps of 4 x 4"),
    (lambda: RoleTargets.of(["a"], ["a", "b"], on_itself=True), "got 1 and 2"),
    (lambda: attention_rollout([MAP[None], MAP[None, 1:, 1:]]), "of one n, got shapes"),
    (lambda: attention_rollout([MAP[None]], discard_ratio=-0.1), "discard_ratio: expected at least 0 and below 1"),
    (lambda: gradient_relevance([], []), "expected weights and gradients of one or more layers"),
    (lambda: Alignment.of(5, [(0, 5)], [1]), "positions from 0 to 4"),
    (lambda: Alignment.of(5, [(0, 2)], [1]), "keys of all pairs among [1], got 2"),
    (lambda: fit_contacts(proteins()[0], proteins()[1][:1], penalty=1.0), "each protein's features"),
]


@pytest.mark.parametrize(("call", "message"), [*ATTENTION, *POSITIONS, *MAPS])
@pytest.mark.usefixtures("shapes_unchecked")
def test_what_cannot_be_computed_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
