"""From queries and keys back to weights, and steps of a generation as one map: brute force, torch and a BERT."""

import copy
from typing import Any

import pytest
import torch

from tests.viz_core.hub.families import in_memory
from tests.viz_core.trace.attention_cases import CASES, H, brute_force, recorded
from viz_core.hub import instrument, restore
from viz_core.trace import Trace, attend, attention_weights, record, record_weights
from viz_core.view import view


@pytest.mark.parametrize("case", CASES)
def test_weights_equal_brute_force_and_make_the_output(case: str) -> None:
    (queries, keys, values), options = CASES[case]
    call, output = recorded(case)
    expected = brute_force(queries, keys, **options)
    weights = call.weights()
    assert weights.dtype == torch.float32
    assert (call.num_heads, call.num_queries, call.num_keys) == tuple(expected.shape[1:])
    torch.testing.assert_close(weights.double(), expected, atol=1e-6, rtol=0)
    exact = attention_weights(queries.double(), keys.double(), **options)
    torch.testing.assert_close(exact, expected, atol=1e-12, rtol=0)
    spread = values.double().repeat_interleave(H // values.shape[1], dim=1)
    torch.testing.assert_close(output.double(), expected @ spread, atol=1e-5, rtol=0)


@pytest.mark.parametrize("direct", [False, True])
def test_what_a_reader_does_to_a_map_stays_with_the_reader(direct: bool) -> None:
    with record() as trace:
        if direct:
            record_weights(torch.full((1, 2, 3, 4), 0.25))
        else:
            attend(torch.zeros(1, 2, 3, 5), torch.zeros(1, 2, 4, 5), torch.zeros(1, 2, 4, 5))
    (call,) = trace
    expected = torch.full((1, 2, 3, 4), 0.25)
    for read in (call.weights, call.overview, lambda: call.weights(head=0), lambda: call.weights(keys=slice(0, 2))):
        read().zero_()
        assert torch.equal(call.weights(), expected)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@torch.no_grad()
def test_a_decoder(family: str) -> None:
    """Two prompts, one padded on the left."""
    model = in_memory(family)
    instrument(model)
    prompt = torch.tensor([[5, 9, 3, 17], [0, 0, 12, 30]])
    inputs = {"input_ids": prompt, "attention_mask": (prompt > 0).long()}
    with record() as trace:
        ids = model.generate(**inputs, max_new_tokens=5, min_new_tokens=5, do_sample=False, pad_token_id=0)
    assert trace.sites[-1] == "decoder.1.self@5"
    mask = torch.cat([inputs["attention_mask"], torch.ones(2, 4, dtype=torch.long)], dim=1)
    positions = (mask.cumsum(dim=-1) - 1).clamp_min(0)
    with record() as whole:
        model(ids[:, :-1], attention_mask=mask, position_ids=positions)
    found = trace.stitched()
    assert found.sites == ("decoder.0.self", "decoder.1.self")
    for call in found:
        expected = whole[call.site]
        assert torch.equal(call.key_mask, expected.key_mask)
        assert torch.equal(call.query_mask, expected.query_mask)
        for row in range(2):
            torch.testing.assert_close(call.text(row).weights(), expected.text(row).weights(), atol=1e-6, rtol=0)
        tile = call.weights(head=2, queries=slice(2, 7, 2), keys=slice(1, 4))
        torch.testing.assert_close(tile, call.weights()[:, 2, 2:7:2, 1:4])
        assert call.weights(queries=-1).shape == (2, 4, 8)
    assert [(len(group.query_tokens), len(group.key_tokens)) for group in view(trace).groups] == [(8, 8)]


@torch.no_grad()
def test_an_encoder_and_a_decoder() -> None:
    model = in_memory("bart")
    instrument(model)
    with record() as trace:
        model.generate(torch.tensor([[5, 9, 3]]), max_new_tokens=4, min_new_tokens=4, do_sample=False, num_beams=1)
    found = trace.stitched()
    sizes = {call.site: (call.num_queries, call.num_keys) for call in found}
    assert sizes["encoder.1.self"] == (3, 3)
    assert sizes["decoder.1.self"] == (4, 4)
    assert sizes["decoder.1.cross"] == (4, 3)
    torch.testing.assert_close(found["decoder.0.cross"].weights().sum(dim=-1), torch.ones(1, 4, 4))


def writer(family: str = "llama", **sizes: object) -> Any:
    model = in_memory(family, **sizes)
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.2)
    instrument(model)
    return model


PROMPT = torch.tensor([[5, 9, 13, 17, 22, 8]])
WRITING = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False, "pad_token_id": 0}


def assert_one_map(model: Any, found: Trace, ids: torch.Tensor) -> None:
    with torch.no_grad(), record() as whole:
        model(ids[:, :-1])
    assert found.sites == whole.sites
    for call in found:
        torch.testing.assert_close(call.weights(), whole[call.site].weights(), atol=1e-5, rtol=0)
        assert torch.equal(call.key_mask, whole[call.site].key_mask)


@pytest.mark.parametrize("seed", range(2))
@torch.no_grad()
def test_a_beam_search_is_refused_or_followed(seed: int) -> None:
    torch.manual_seed(seed)
    model = writer()
    options = {"num_beams": 3, "num_return_sequences": 2, "return_dict_in_generate": True, "output_scores": True}
    with record(values=True) as trace:
        written = model.generate(PROMPT, **WRITING, **options)
    with pytest.raises(ValueError, match="changed places"):
        trace.stitched()
    assert_one_map(model, trace.stitched(beams=written.beam_indices), written.sequences)
    assert_one_map(model, trace.stitched(beams=written.beam_indices[1:].tolist()), written.sequences[1:])
    with pytest.raises(ValueError, match="steps"):
        trace.stitched(beams=written.beam_indices[:, :3])


@pytest.mark.parametrize("is_inference", [False, True])  # torch does not count there how often a cache is written over
@pytest.mark.parametrize("cache", ["rejections", "lookup", "static", "window", "static window"])
@torch.no_grad()
def test_any_cache_gives_one_map(cache: str, is_inference: bool) -> None:
    torch.manual_seed(0)
    model = writer("mistral" if cache.endswith("window") else "llama")
    options: dict[str, Any] = {"lookup": {"prompt_lookup_num_tokens": 3}}
    if cache == "rejections":
        helper = copy.deepcopy(model)
        restore(helper)
        for weight in helper.parameters():
            weight += 0.05 * torch.randn_like(weight)
        options[cache] = {"assistant_model": helper}
    if cache.startswith("static"):
        options[cache] = {"cache_implementation": "static", "disable_compile": True}
    with torch.inference_mode(is_inference), record() as trace:
        ids = model.generate(PROMPT, **WRITING, **options.get(cache, {}))
    assert len(trace) > 4
    assert_one_map(model, trace.stitched(), ids)


@torch.no_grad()
def test_two_texts_after_one_another_and_a_step_that_follows_none() -> None:
    model = writer()
    with record() as trace:
        for prompt in (PROMPT, PROMPT.flip(1)):
            model.generate(prompt, **WRITING)
    assert trace.stitched().sites == tuple(f"decoder.{i}.self{again}" for i in (0, 1) for again in ("", "@2"))
    with record() as trace:
        first = model(PROMPT, use_cache=True)
        model(PROMPT.flip(1), use_cache=True)
        model(PROMPT[:, :1], past_key_values=first.past_key_values)
    with pytest.raises(ValueError, match="record a pass over the whole text"):
        trace.stitched()
