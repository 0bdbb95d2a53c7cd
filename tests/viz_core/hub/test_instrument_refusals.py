"""Models that cannot be instrumented, errors in a pass, and threads on one model."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from tests.viz_core.hub.families import (
    SIZES,
    implementations,
    in_memory,
    inputs_of,
)
from viz_core.hub import instrument, restore
from viz_core.trace import Trace, record

IDS = torch.tensor([[5, 6, 7]])
SMALL = {**SIZES, "num_hidden_layers": 1, "vocab_size": 99}
SITES = ("encoder.0.self",)
LAYERS = ("decoder.0.self", "decoder.1.self")


def test_a_forgotten_model_is_not_kept_alive() -> None:
    model = in_memory("gpt2")
    instrument(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def without_attention() -> Any:
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]}
    return transformers.ResNetModel(transformers.ResNetConfig(**sizes))


def longformer() -> Any:
    return transformers.LongformerModel(transformers.LongformerConfig(**SIZES, attention_window=4, vocab_size=99))


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Linear(2, 2), r"expected a model of transformers, got Linear; record\(torch_calls=True\) sees"),
        (lambda: "gpt2", r"expected a model of transformers, got str; record\(torch_calls=True\) sees"),
        (longformer, "expected attention that weighs all keys at once, got LongformerModel"),
        (without_attention, "expected a model with attention in layers, got ResNetModel"),
    ],
)
def test_refused_and_left_as_it_was(make: Any, message: str) -> None:
    model = make()
    before = implementations(model) if isinstance(model, nn.Module) else []
    with pytest.raises(ValueError, match=message):
        instrument(model)
    if isinstance(model, nn.Module):
        assert implementations(model) == before
        with pytest.raises(ValueError, match="restore: expected"):
            restore(model)


def test_an_error_leaves_nothing_behind() -> None:
    model = in_memory("bert")
    inputs = inputs_of(model)
    plain = model(**inputs).last_hidden_state
    sites = instrument(model)

    def fail(*_: Any) -> None:
        raise RuntimeError("of mine")

    hook = model.encoder.layer[1].attention.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="of mine"), record() as broken:
        model(**inputs)
    hook.remove()
    assert broken.sites == sites[:1]
    with record() as trace:
        assert torch.equal(model(**inputs).last_hidden_state, plain)
    assert trace.sites == sites


def test_threads_on_one_model() -> None:
    """Each thread's recording is its own, also where its neighbour does not record."""
    model = in_memory("llama")
    instrument(model)
    batches = [torch.randint(4, 390, (1, 4 + i)) for i in range(6)]

    def run(i: int) -> tuple[Tensor, dict[str, Tensor]]:
        listens = record() if i % 2 else contextlib.nullcontext(Trace())
        with torch.no_grad(), listens as trace:
            logits = model(batches[i % 6], use_cache=False).logits
        return logits, {call.site: call.weights() for call in trace}

    serial = [run(i) for i in range(6)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(6) as threads:
            parallel = list(threads.map(run, range(60)))
    finally:
        sys.setswitchinterval(interval)
    for i, (logits, maps) in enumerate(parallel):
        expected, expected_maps = serial[i % 6]
        assert torch.equal(logits, expected)
        assert tuple(maps) == tuple(expected_maps) == (LAYERS if i % 2 else ())
        assert all(torch.equal(maps[site], expected_maps[site]) for site in maps)
    with record() as trace:  # whose context a new thread does not have
        thread = threading.Thread(target=lambda: model(batches[0]))
        thread.start()
        thread.join()
    assert trace.sites == ()


@pytest.mark.parametrize("family", ["llama", "t5", "vit"])
def test_a_request_for_maps_says_what_to_do_instead(family: str) -> None:
    model = in_memory(family)
    instrument(model)
    warned = pytest.warns(UserWarning, match="output_attentions gives no maps of an instrumented model")
    with warned as caught:
        model(**inputs_of(model), output_attentions=True)
    assert len(caught) == 1
    restore(model)
    model.set_attn_implementation("eager")
    model.config.output_attentions = True
    instrument(model)
    with warned:
        model(**inputs_of(model))
    restore(model)
    own_code = in_memory("bloom")
    instrument(own_code)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(**inputs_of(model))
        assert len(own_code(**inputs_of(own_code), output_attentions=True).attentions) == 2
