"""What circuits, paths, scores and logits cannot be made of, and the words that say so."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
import transformers

from tests.viz_core.circuits.hooked import CLEAN, HEADS, made, metric
from tests.viz_core.circuits.test_paths import cross
from tests.viz_core.hub.families import hybrid, in_memory, inputs_of
from tests.viz_core.maps.test_contribution_shares import quantised
from viz_core.circuits import (
    attribution_patch,
    direction_tokens,
    logit_attribution,
    ov_circuit,
    patch_sweep,
    path_patch,
    qk_circuit,
    score_attribution,
)
from viz_core.hub import instrument
from viz_core.models import TransformerDecoder
from viz_core.trace import Trace, intervene, off, record

SITE = "decoder.1.self"
EVERYTHING = {"values": True, "states": True}


def with_instruments(model: Any) -> Any:
    instrument(model)
    return model


@cache
def family(name: str) -> Any:
    return with_instruments(in_memory(name))


@cache
def runs() -> tuple[Any, Any, Any]:
    model, _, clean, corrupted, _ = made("gpt2")
    return model, clean, corrupted


def recorded(model: Any, inputs: Any, passes: int = 1, **options: bool) -> Trace:
    with record(**(options or EVERYTHING)) as trace, torch.no_grad():
        for _ in range(passes):
            model(**inputs)
    return trace


def two_kinds_of_attention() -> None:
    ids = {"input_ids": CLEAN}
    path_patch(with_instruments(hybrid("falcon_h1")), ids, ids, metric, ("decoder.0.mamba.self", 1))


def in_training() -> None:
    model, _, clean, corrupted, _ = made("gpt2")
    patch_sweep(model.train(), clean, corrupted, metric)


def several_streams() -> Any:
    sizes = {"vocab_size": 20, "vocab_size_per_layer_input": 20, "hidden_size": 16, "intermediate_size": 32}
    sizes |= {"num_hidden_layers": 2, "num_kv_shared_layers": 0, "head_dim": 8, "hidden_size_per_layer_input": 4}
    config = transformers.Gemma3nTextConfig(**sizes, activation_sparsity_pattern=[0.0] * 2, laurel_rank=4)
    return with_instruments(transformers.Gemma3nTextModel(config).eval())


def tokens(model: Any, site: str) -> Any:
    return direction_tokens(model, ov_circuit(model, site, 1), 0)


def score(*place: int, model: Any = None, inputs: Any = None, site: str = SITE) -> Any:
    model, inputs = (runs()[0], runs()[1]) if model is None else (model, inputs or inputs_of(model))
    return score_attribution(model, recorded(model, inputs), site, *place)


def score_of_an_edited_head() -> None:
    with intervene({SITE: off(1)}):
        score(1, 3, 1)


def score_without_the_encoder() -> None:
    decoder = TransformerDecoder(20, 32, 24, HEADS, 2, 0.0).eval()
    inputs = {"X": CLEAN, "state": decoder.init_state(torch.randn(2, 5, 32))}
    score(1, 3, 1, model=decoder, inputs=inputs, site="decoder.1.cross")


def logit(passes: int = 1, changed: bool = False, states: bool = True) -> Any:
    model = family("gpt2")
    stored = EVERYTHING if states else {"values": True}
    trace = recorded(model, {"input_ids": torch.tensor([[5, 6]])}, passes, **stored)
    if changed:
        trace.states["decoder.output"] = torch.randn_like(trace.states["decoder.output"])
    return logit_attribution(model, trace, 3)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (two_kinds_of_attention, "decoder.0: expected one attention of a kind"),
    (in_training, "model: expected evaluation mode, got training mode"),
    (
        lambda: patch_sweep(*runs()[:2], {name: each[:, :5] for name, each in runs()[2].items()}, metric),
        "texts of the same lengths",
    ),
    (lambda: attribution_patch(*runs(), lambda x: x.argmax().float()), "metric: expected a differentiable number"),
    (lambda: qk_circuit(family("qwen3"), SITE, 1), "got one that normalises or rounds"),  # queries and keys
    (lambda: ov_circuit(family("gemma2"), SITE, 1), "got one that normalises or rounds"),  # what attention writes
    (lambda: ov_circuit(family("bloom"), SITE, 1), "expected a layer that runs alone"),
    (lambda: ov_circuit(several_streams(), SITE, 1), "Gemma3nRotaryEmbedding, which needs more than positions"),
    (lambda: qk_circuit(with_instruments(quantised(in_memory("llama"))), SITE, 1), "got one that normalises or rounds"),
    (lambda: tokens(made("bert-fills")[0], "encoder.0.self"), "at most a norm before one output layer"),
    (
        lambda: tokens(cross("ours, norm last")[0], "decoder.1.cross"),
        "model: expected the encoder that 'decoder.1.cross' reads, got none",
    ),
    (lambda: score(1, 1, 3), "key: expected one that query 1 may attend to, got 3"),
    (score_of_an_edited_head, "expected a head without interventions"),
    (lambda: score(1, 3, 1, model=family("qwen3")), "expected queries that are linear"),
    (score_without_the_encoder, "with the encoder, got one without"),
    (lambda: score(1, 3, 0, model=family("gpt-oss")), "key: expected a token of this pass, got 0"),
    (lambda: logit(passes=2), "expected one pass"),
    (lambda: logit(states=False), "states=True"),
    (lambda: logit(changed=True), "expected logits that are a norm and an output layer"),
]


@pytest.mark.filterwarnings("ignore:record:UserWarning")
@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_cannot_be_made_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, KeyError, IndexError), match=re.escape(message)):
        call()
