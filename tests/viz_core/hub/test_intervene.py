"""Heads of models in memory edited: exactly what editing their weights does, with a cache and without."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.hub.in_memory import (
    FAMILIES,
    in_memory,
    inputs_of,
    output_of,
)
from viz_core.hub import instrument
from viz_core.trace import intervene, knock_out, off, pattern, site_of


def projection_of(model: Any, site: str) -> Any:
    """The output projection of the layer at a site."""
    layer = next(module for module in model.modules() if site_of(module) == site)
    names = ("o_proj", "out_proj", "c_proj", "o", "dense")
    inner = [module for name, module in layer.named_modules() if name.rsplit(".", 1)[-1] in names]
    outer = [m for name, m in model.named_modules() if name.endswith(("attention.output.dense", "attention.o_proj"))]
    return inner[0] if inner else outer[int(site.split(".")[1])]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_that_is_off_is_its_columns_of_the_output_projection_at_zero(family: str) -> None:
    model = in_memory(family)
    sites, inputs = instrument(model), inputs_of(model)
    site = next((each for each in sites if each.endswith("1.cross")), sites[1])
    before = output_of(model(**inputs))
    with intervene({site: off(2)}):
        found = output_of(model(**inputs))
    with torch.no_grad():
        weight = projection_of(model, site).weight
        columns = weight.T if type(projection_of(model, site)).__name__ == "Conv1D" else weight
        width = columns.shape[1] // 4
        columns[:, 2 * width : 3 * width] = 0
    torch.testing.assert_close(found, output_of(model(**inputs)), atol=1e-6, rtol=0)
    assert float((found - before).detach().abs().max()) > 1e-3


@pytest.mark.parametrize("family", ["gpt2", "llama", "marian", "t5"])
def test_places_are_counted_through_generation_with_a_cache(family: str) -> None:
    model = in_memory(family)
    sites = instrument(model)
    last = sites[-1].rsplit(".", 1)[0]
    edits = {f"{last}.self": knock_out(None, query=(4, 7), key=(1, 2))}
    if f"{last}.cross" in sites:
        edits[f"{last}.cross"] = [pattern(1, "diagonal"), knock_out(None, query=3, key=0)]
    ids = torch.tensor([[7, 8, 9, 10, 11, 12]])
    options = {"do_sample": False, "max_new_tokens": 6, "min_new_tokens": 6}

    @torch.no_grad()
    def logits(use_cache: bool) -> Tensor:
        found = model.generate(ids, **options, use_cache=use_cache, output_logits=True, return_dict_in_generate=True)
        return torch.stack(found.logits, dim=1)

    plain = logits(use_cache=True)
    with intervene(edits):
        cached, whole = logits(use_cache=True), logits(use_cache=False)
    torch.testing.assert_close(cached, whole, atol=1e-4, rtol=0)
    assert float((cached - plain).abs().max()) > 1e-3, "an edit that changes nothing would prove nothing"
