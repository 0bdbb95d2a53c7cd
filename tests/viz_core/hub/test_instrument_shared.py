"""Models that share what `instrument` changes, copies of them, and a hand that changes it as well."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from tests.viz_core.hub.families import implementations, in_memory
from viz_core.hub import instrument, restore
from viz_core.trace import record, site_of

IDS = torch.tensor([[5, 6, 7]])
SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 99}
SITES = ("encoder.0.self",)


def seen(model: Any) -> tuple[str, ...]:
    with torch.no_grad(), record() as trace:
        model(IDS)
    return trace.sites


@pytest.fixture
def pair() -> Iterator[tuple[Any, Any]]:
    """Two models built from one config object."""
    config = transformers.BertConfig(**SIZES)
    models = transformers.BertModel(config), transformers.BertModel(config)
    before = implementations(models[0])
    yield models
    assert implementations(models[0]) == before, "what the first found, the last puts back"


@pytest.mark.parametrize("first", [0, 1])
def test_two_models_of_one_config(first: int, pair: tuple[Any, Any]) -> None:
    assert instrument(pair[0]) == instrument(pair[1]) == SITES
    gone, left = pair[first], pair[1 - first]
    restore(gone)
    assert seen(left) == SITES
    assert site_of(gone.encoder.layer[0].attention.self) is None
    restore(left)
    assert seen(left) == seen(gone) == ()


@pytest.mark.parametrize("whole_first", [False, True])
def test_a_model_and_its_body(whole_first: bool) -> None:
    model = in_memory("llama")
    before = implementations(model)
    order = [model, model.model] if whole_first else [model.model, model]
    for each in order:
        assert instrument(each) == ("decoder.0.self", "decoder.1.self")
    restore(order[0])
    assert seen(model) == ("decoder.0.self", "decoder.1.self")
    restore(order[1])
    assert implementations(model) == before
    assert all(site_of(module) is None for module in model.modules())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_is_restored_by_itself(copied: Any) -> None:
    model = transformers.BertModel(transformers.BertConfig(**SIZES, attn_implementation="eager"))
    instrument(model)
    other = copied(model)
    restore(model)
    assert seen(model) == ()
    assert seen(other) == SITES
    restore(other)
    assert set(implementations(other)) == {"eager"}
    assert all(site_of(module) is None for module in other.modules())


def test_who_sets_another_attention_instruments_again(pair: tuple[Any, Any]) -> None:
    model = pair[0]
    instrument(model)
    model.set_attn_implementation("eager")
    assert seen(model) == ()
    assert instrument(model) == SITES
    assert seen(model) == SITES
    restore(model)


def test_a_class_of_a_notebook() -> None:
    """It has no module whose code could be read; the layers within it have."""
    namespace: dict[str, Any] = {"transformers": transformers, "torch": torch, "__name__": "a notebook"}
    cell = """
class Sorter(transformers.BertPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.bert, self.head = transformers.BertModel(config), torch.nn.Linear(32, 2)
        self.post_init()

    def forward(self, ids):
        return self.head(self.bert(ids).pooler_output)
"""
    exec(cell, namespace)
    model = namespace["Sorter"](transformers.BertConfig(**SIZES)).eval()
    plain: Tensor = model(IDS)
    assert instrument(model) == SITES
    assert seen(model) == SITES
    torch.testing.assert_close(model(IDS), plain)
