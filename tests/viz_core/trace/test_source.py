"""From queries and keys back to weights, and steps of a generation as one map: brute force, torch and a BERT."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.viz_core.hub.families import in_memory
from tests.viz_core.trace.attention_cases import (
    CASES,
    B,
    H,
    K,
    Q,
    V,
    brute_force,
    random_bias,
    recorded,
    tensors,
    with_an_empty_row,
)
from viz_core.attention import MultiHeadAttention
from viz_core.hub import instrument, restore
from viz_core.trace import Trace, attend, name_site, record, record_weights
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
    spread = values.double().repeat_interleave(H // values.shape[1], dim=1)
    torch.testing.assert_close(output.double(), expected @ spread, atol=1e-5, rtol=0)


def test_a_row_that_sees_nothing_is_zeros_in_weights_and_output() -> None:
    for case in ("empty row", "bias and mask", "additive mask"):
        call, output = recorded(case)
        assert torch.equal(call.weights()[1, :, 2], torch.zeros(H, K)), case
        assert torch.equal(output[1, :, 2], torch.zeros(H, V)), case
    call, output = recorded("causal, more queries than keys")
    assert torch.equal(call.weights()[:, :, : K - Q], torch.zeros(B, H, K - Q, Q))
    assert torch.equal(output[:, :, : K - Q], torch.zeros(B, H, K - Q, V))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_give_float32_weights_of_the_rounded_inputs(dtype: torch.dtype) -> None:
    queries, keys, values = (t.to(dtype) for t in tensors(key_heads=2))
    bias = random_bias(1, H, Q, K).to(dtype)
    mask = with_an_empty_row()
    with record() as trace:
        output = attend(queries, keys, values, mask=mask, bias=bias)
    weights = trace["attention.0"].weights()
    assert weights.dtype == torch.float32
    assert output.dtype == dtype
    torch.testing.assert_close(weights.double(), brute_force(queries, keys, mask, bias), atol=1e-6, rtol=0)
    rounding = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-5}[dtype]
    expected = weights.double() @ values.double().repeat_interleave(2, dim=1)
    torch.testing.assert_close(output.double(), expected, atol=rounding, rtol=0)


def test_direct_weights_are_behind_the_same_face() -> None:
    weights = torch.softmax(torch.randn(2, 3, 8, 9), dim=-1).half()
    with record() as trace:
        record_weights(weights, site="decoder.0.cross")
    call = trace["decoder.0.cross"]
    assert (call.num_heads, call.num_queries, call.num_keys) == (3, 8, 9)
    assert call.weights().dtype == torch.float32
    assert torch.equal(call.weights(), weights.float())
    assert torch.equal(
        call.weights(head=-1, queries=slice(2, 5), keys=slice(1, 9, 3)), weights[:, 2, 2:5, 1::3].float()
    )
    assert torch.equal(call.overview(4), F.adaptive_max_pool2d(weights.float(), 4))
    with pytest.raises(IndexError, match="head: expected 0 to 2, got 3"):
        call.weights(head=3)


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


@pytest.fixture(scope="module")
def bert() -> Any:
    from transformers import BertConfig, BertModel

    with torch.random.fork_rng():
        torch.manual_seed(8)
        config = BertConfig(
            vocab_size=50,
            hidden_size=24,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=32,
            max_position_embeddings=32,
            initializer_range=0.5,
        )
        return BertModel._from_config(config, attn_implementation="eager").eval()


@torch.no_grad()
def test_weights_equal_those_of_a_bert_with_the_same_parameters(bert: Any) -> None:
    ids = torch.randint(0, 50, (3, 11))
    lengths = torch.tensor([11, 7, 2])
    padding = (torch.arange(11) < lengths[:, None]).long()
    answer = bert(ids, attention_mask=padding, output_attentions=True, output_hidden_states=True)
    for i, layer in enumerate(bert.encoder.layer):
        ours = MultiHeadAttention(24, 4, bias=True).eval()
        name_site(ours, f"encoder.{i}.self")
        theirs = layer.attention
        pairs = [(ours.W_q, theirs.self.query), (ours.W_k, theirs.self.key), (ours.W_v, theirs.self.value)]
        for mine, other in [*pairs, (ours.W_o, theirs.output.dense)]:
            mine.load_state_dict(other.state_dict())
        X = answer.hidden_states[i]
        with record() as trace:
            output = ours(X, X, X, lengths)
        call = trace[f"encoder.{i}.self"]
        expected = answer.attentions[i]
        assert expected.amax(-1).mean() > 0.3  # the maps are not flat, so agreeing says something
        torch.testing.assert_close(call.weights(), expected, atol=1e-6, rtol=0)
        torch.testing.assert_close(call.overview(4), F.adaptive_max_pool2d(expected, 4), atol=1e-6, rtol=0)
        attended = theirs.output.LayerNorm(output + X)
        real = padding.bool()
        rest = layer.output(layer.intermediate(attended), attended)
        torch.testing.assert_close(rest[real], answer.hidden_states[i + 1][real], atol=1e-5, rtol=0)


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


def test_layers_that_share_their_weights_are_no_steps() -> None:
    model = in_memory("albert")
    instrument(model)
    with record() as trace, torch.no_grad():
        model(torch.tensor([[5, 9, 3]]))
    assert trace.stitched().sites == trace.sites == ("encoder.0.self", "encoder.1.self", "encoder.2.self")


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


@pytest.mark.parametrize("cache", ["rejections", "lookup", "static", "window"])
@torch.no_grad()
def test_any_cache_gives_one_map(cache: str) -> None:
    torch.manual_seed(0)
    model = writer("mistral" if cache == "window" else "llama")
    options: dict[str, Any] = {"lookup": {"prompt_lookup_num_tokens": 3}, "static": {"cache_implementation": "static"}}
    if cache == "rejections":
        helper = copy.deepcopy(model)
        restore(helper)
        for weight in helper.parameters():
            weight += 0.05 * torch.randn_like(weight)
        options[cache] = {"assistant_model": helper}
    if cache == "static":
        options[cache]["disable_compile"] = True
    with record() as trace:
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
