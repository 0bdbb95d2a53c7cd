"""A recording without any attention says why, and names what may compute some."""

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.hub import instrument
from viz_core.trace import record


class Head(nn.Module):
    """Attention whose class does not say so."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = self.qkv(x).chunk(3, dim=-1)
        return (queries @ keys.mT).softmax(-1) @ values  # type: ignore[no-any-return]


class Attention(Head):
    """Attention that is in no numbered list."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).softmax(-1)


class Block(nn.Module):
    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.inner = head

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("head", [Head, Attention])
def test_plain_layers_that_are_not_known(head: type[nn.Module]) -> None:
    model = nn.Sequential(Block(head())) if head is Head else Block(head())
    with (
        pytest.warns(UserWarning, match=rf"nothing was.*inner \({head.__name__}\)"),
        record(torch_calls=model),
    ):
        model(torch.randn(1, 4, 8))


@pytest.mark.parametrize("set_it", ["set_attn_implementation", "_attn_implementation"])
def test_attention_that_was_set_after_instrument(set_it: str) -> None:
    model: Any = in_memory("llama")
    instrument(model)
    if set_it == "set_attn_implementation":
        model.set_attn_implementation("sdpa")
    else:
        model.config._attn_implementation = "sdpa"
    with pytest.warns(UserWarning, match=r"set to sdpa after instrument\(model\)"), record():
        model(**inputs_of(model))
    instrument(model)
    with warnings.catch_warnings(), record() as trace:
        warnings.simplefilter("error")
        model(**inputs_of(model))
    assert len(trace) == 2


def test_a_model_that_was_never_instrumented() -> None:
    model = in_memory("llama")
    with pytest.warns(UserWarning, match="was not called for .*LlamaForCausalLM"), record():
        model(**inputs_of(model))
