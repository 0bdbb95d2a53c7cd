"""What circuits, paths, scores and logits cannot be made of, and the words that say so."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from transformers import Gemma3nTextConfig, Gemma3nTextModel

from tests.viz_core.circuits.hooked import CLEAN, HEADS, made, metric
from tests.viz_core.circuits.test_weights import cross
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
from viz_core.hub import instrument, restore
from viz_core.models import TransformerDecoder
from viz_core.trace import Trace, intervene, off, record

SITE, SENDER = "decoder.1.self", ("decoder.0.self", 1)
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


def path(*ends: Any) -> Any:
    return path_patch(*runs(), metric, *ends)


def two_kinds_of_attention() -> None:
    ids = {"input_ids": CLEAN}
    path_patch(with_instruments(hybrid("falcon_h1")), ids, ids, metric, ("decoder.0.mamba.self", 1))


def in_training(function: Callable[..., Any], *more: Any) -> None:
    model, _, clean, corrupted, _ = made("gpt2")
    function(model.train(), clean, corrupted, metric, *more)


def without_instruments() -> None:
    model, _, clean, corrupted, _ = made("gpt2")
    restore(model)
    attribution_patch(model, clean, corrupted, metric)


def several_streams() -> Any:
    sizes = {"vocab_size": 20, "vocab_size_per_layer_input": 20, "hidden_size": 16, "intermediate_size": 32}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "hidden_size_per_layer_input": 4}
    layers_of = {"num_hidden_layers": 2, "num_kv_shared_layers": 0, "activation_sparsity_pattern": [0.0] * 2}
    config = Gemma3nTextConfig(**sizes, **heads, **layers_of, laurel_rank=4, altup_num_inputs=2)
    return with_instruments(Gemma3nTextModel(config).eval())


def tokens(model: Any, site: str) -> Any:
    return direction_tokens(model, ov_circuit(model, site, 1), 0)


def score(*place: int, model: Any = None, inputs: Any = None, site: str = SITE, **options: bool) -> Any:
    model, inputs = (runs()[0], runs()[1]) if model is None else (model, inputs or inputs_of(model))
    return score_attribution(model, recorded(model, inputs, **options), site, *place)


def score_of_an_edited_head() -> None:
    with intervene({SITE: off(1)}):
        score(1, 3, 1)


def score_without_the_encoder() -> None:
    decoder = TransformerDecoder(20, 32, 24, HEADS, 2, 0.0).eval()
    inputs = {"X": CLEAN, "state": decoder.init_state(torch.randn(2, 5, 32))}
    score(1, 3, 1, model=decoder, inputs=inputs, site="decoder.1.cross")


def logit(token: int = 3, passes: int = 1, changed: bool = False, states: bool = True, **options: Any) -> Any:
    model = family("gpt2")
    stored = EVERYTHING if states else {"values": True}
    trace = recorded(model, {"input_ids": torch.tensor([[5, 6]])}, passes, **stored)
    if changed:
        trace.states["decoder.output"] = torch.randn_like(trace.states["decoder.output"])
    return logit_attribution(model, trace, token, **options)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: path(SENDER, (SITE, HEADS)), "heads: expected 0 to 3"),
    (lambda: path(("decoder.7.self", 1)), "no site 'decoder.7.self'"),
    (lambda: path(SENDER, (SITE, 0), "query"), "to: expected 'queries', 'keys' or 'values'"),
    (lambda: path(SENDER, None, "query"), "to: expected 'queries', 'keys' or 'values', got 'query'"),
    (two_kinds_of_attention, "decoder.0: expected one attention of a kind"),
    *(
        (lambda call=call: in_training(*call), "model: expected evaluation mode, got training mode")
        for call in ((patch_sweep,), (attribution_patch,), (path_patch, SENDER))
    ),
    (
        lambda: patch_sweep(*runs()[:2], {name: each[:, :5] for name, each in runs()[2].items()}, metric),
        "texts of the same lengths",
    ),
    (lambda: patch_sweep(*runs(), metric, "x"), "what: expected 'heads', 'cross-heads' or one of"),
    (lambda: attribution_patch(*runs(), lambda x: x.argmax().float()), "metric: expected a differentiable number"),
    (without_instruments, "what: expected 'heads', 'cross-heads' or one of none"),
    (lambda: qk_circuit(family("qwen3"), SITE, 1), "got one that normalises or rounds"),  # queries and keys
    (lambda: ov_circuit(family("gemma2"), SITE, 1), "got one that normalises or rounds"),  # what attention writes
    (lambda: ov_circuit(family("bloom"), SITE, 1), "expected a layer that runs alone"),
    (lambda: ov_circuit(family("gpt2"), SITE, HEADS), "head: expected 0 to 3, got 4"),
    (lambda: ov_circuit(family("bart"), "decoder.9.self", 1), "site: expected one of encoder.0.self"),
    (lambda: ov_circuit(several_streams(), SITE, 1), "Gemma3nRotaryEmbedding, which needs more than positions"),
    (lambda: qk_circuit(with_instruments(quantised(in_memory("llama"))), SITE, 1), "got one that normalises or rounds"),
    (lambda: tokens(made("bert-fills")[0], "encoder.0.self"), "at most a norm before one output layer"),
    (lambda: tokens(family("vit"), "encoder.0.self"), "expected a table of tokens 32 wide"),
    (
        lambda: tokens(cross("ours, norm last")[0], "decoder.1.cross"),
        "model: expected the encoder that 'decoder.1.cross' reads, got none",
    ),
    (lambda: score(1, 1, 3), "key: expected one that query 1 may attend to, got 3"),
    (lambda: score(4, 3, 1), "head: expected 0 to 3"),
    (score_of_an_edited_head, "expected a head without interventions"),
    (lambda: score(1, 3, 1, values=True), "record(values=True, states=True)"),
    (lambda: score(1, 3, 1, model=family("qwen3")), "expected queries that are linear"),
    (lambda: score(1, 3, 1, model=family("bloom")), "expected queries and keys"),
    (score_without_the_encoder, "with the encoder, got one without"),
    (lambda: score(1, 3, 0, model=family("gpt-oss")), "key: expected a token of this pass, got 0"),
    *((lambda token=token: logit(token), "token: expected 0 to") for token in (-1, 10**6)),
    *((lambda token=token: logit(against=token), "against: expected 0 to") for token in (-1, 10**6)),
    (lambda: logit(passes=2), "expected one pass"),
    (lambda: logit(states=False), "states=True"),
    (lambda: logit(position=2), "position: expected one of the 2 tokens"),
    (lambda: logit(changed=True), "expected logits that are a norm and an output layer"),
]


@pytest.mark.filterwarnings("ignore:record:UserWarning")
@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_cannot_be_made_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, KeyError, IndexError), match=re.escape(message)):
        call()
