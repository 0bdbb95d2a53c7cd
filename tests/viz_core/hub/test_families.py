"""Every family of models against what must hold for all: exact maps, the same output, states, padding, heads off."""

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.viz_core.hub import families
from tests.viz_core.hub.conftest import Tiny, TinyModel, noise
from tests.viz_core.hub.test_linear_attention import IDS, MASK, Spy
from tests.viz_core.hub.tiny_talkers import TWO_TOWERS
from viz_core.hub import HubModel, instrument, restore
from viz_core.maps.fingerprints import future_weight, measure_layer
from viz_core.maps.score_products import score_products
from viz_core.sounds.sound import tone_sequence
from viz_core.trace import Trace, intervene, off, record, site_of, zero

SOFTMAX = (*families.FAMILIES, *families.FAMILIES_IN_MEMORY)
PICTURES = [family for family, (_, _, tokenizer) in families.FAMILIES.items() if tokenizer == "picture"]
OWN_CODE = ("bloom", "deberta", "falcon", "fsmt", "xglm")
# Added after a norm of its own; by a mixer beside another; in a layer with a factor of its own.
OTHERWISE_ADDED = ("bert", "bert-fills", "sorter", "roberta", "roberta-fills", "albert", "marian", "bart", "deberta")
OTHERWISE_ADDED += ("fsmt", "falcon_h1", "minimax", "nemotron_h")


def made(family: str) -> Any:
    return families.hybrid(family) if family in families.HYBRIDS else families.in_memory(family)


def recorded(model: Any, inputs: dict[str, Tensor]) -> Trace:
    with torch.no_grad(), record() as trace:
        model(**inputs)
    return trace


def difference(softmaxes: Tensor, model: Any, site: str) -> Tensor:
    """Return softmax_1 - lambda softmax_2 of a layer of DiffLlama (Ye 2024, equation 1)."""
    own = model.model.layers[int(site.split(".")[1])].self_attn
    factor = (own.lambda_q1 @ own.lambda_k1).exp() - (own.lambda_q2 @ own.lambda_k2).exp() + own.lambda_init
    first, second = softmaxes.chunk(2, dim=1)
    return first - factor * second


# Without layers of another family, and experts and a table of positions that do not run in float64.
LEFT_OUT = ("bert-fills", "roberta-fills", "sorter", "gpt-oss", "mixtral", "xglm")


@torch.no_grad()
@pytest.mark.parametrize("family", [family for family in SOFTMAX if family not in LEFT_OUT])
def test_maps_are_those_of_eager_code_in_float64(family: str) -> None:
    model, twin = families.in_memory(family), families.in_memory(family, attn_implementation="eager").double()
    inputs = families.inputs_of(model)
    wide = {name: each.double() if each.is_floating_point() else each for name, each in inputs.items()}
    instrument(model)
    writes = type(model).__name__.endswith(("ForCausalLM", "LMHeadModel", "XGLMModel"))
    expected = families.maps_of(twin(**wide, output_attentions=True), "decoder" if writes else "encoder")
    trace = recorded(model, inputs)
    real = inputs["attention_mask"].bool() if "attention_mask" in inputs else None
    for call in trace:
        maps = difference(expected[call.site], twin, call.site) if family == "diffllama" else expected[call.site]
        errors = (call.weights() - maps).abs().amax(dim=(1, 3))
        assert float((errors[real] if real is not None and real.shape == errors.shape else errors).max()) < 1e-6


@torch.no_grad()
@pytest.mark.parametrize("family", [family for family in families.HYBRIDS if family != "xlstm"])
def test_maps_are_what_the_own_rule_gives(family: str) -> None:
    model = families.hybrid(family)
    instrument(model)
    with Spy(model) as spy, record(values=True) as trace:
        model(IDS, attention_mask=MASK, use_cache=False)
    assert max(spy.residual(call) for call in trace if call.signed) < 1e-6


@torch.no_grad()
@pytest.mark.parametrize("family", [*SOFTMAX, *families.HYBRIDS])
def test_the_output_stays_and_all_is_restored(family: str) -> None:
    model = made(family)
    inputs, before = (
        families.inputs_of(model),
        (model.config.to_dict(), families.implementations(model), families.hooks(model)),
    )
    plain = families.output_of(model(**inputs))
    sites = instrument(model)
    seen = families.output_of(model(**inputs))
    with record(values=True, states=True) as trace:
        assert torch.equal(families.output_of(model(**inputs)), seen), "recording changes no bit"
    assert {site.partition("@")[0] for site in trace.sites} == {*sites}
    torch.testing.assert_close(seen, plain, atol=1e-5, rtol=1e-5)
    restore(model)
    assert torch.equal(families.output_of(model(**inputs)), plain)
    assert (model.config.to_dict(), families.implementations(model), families.hooks(model)) == before
    assert all(site_of(module) is None for module in model.modules())
    assert recorded(model, inputs).sites == ()


@torch.no_grad()
@pytest.mark.parametrize("family", [family for family in (*SOFTMAX, *families.HYBRIDS) if family != "albert"])
def test_states_are_the_models_own_and_add_up(family: str) -> None:
    model = made(family)
    inputs = families.inputs_of(model)
    instrument(model)
    with record(states=True) as trace:
        own = model(**inputs, output_hidden_states=True)
    states = trace.states
    for stack in {name.partition(".")[0] for name in states}:
        hidden = own.get(f"{stack}_hidden_states", own.get("hidden_states"))
        residuals = [name for name in states if name.startswith(f"{stack}.") and name.endswith(".residual")]
        streams = [f"{stack}.embedding", *residuals]
        assert residuals
        for name, expected in zip(streams[: len(hidden) - 1], hidden, strict=False):  # the last may be normalised
            assert family in ("fsmt", "mamba2") or torch.equal(states[name], expected), name
        for name, before in zip(residuals, streams, strict=False):
            layer = name.removesuffix(".residual")
            added = [states[f"{layer}.{part}"] for part in ("attention", "cross", "mlp") if f"{layer}.{part}" in states]
            if family not in OTHERWISE_ADDED:
                torch.testing.assert_close(states[before] + sum(added), states[name], atol=1e-5, rtol=1e-5)
    logits, last = families.output_of(model(**inputs)), residuals[-1]
    with intervene({last: zero()}), record(states=True) as edited:
        assert not torch.equal(families.output_of(model(**inputs)), logits)
    assert not edited.states[last].any()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", [family for family in SOFTMAX if family not in (*PICTURES, "fsmt", "gpt-oss")])
def test_padding_counts_nowhere(family: str, side: str) -> None:
    model = made(family)
    instrument(model)
    inputs = families.inputs_of(model)
    real = inputs["attention_mask"].bool()
    if side == "left":
        if "position_ids" not in inspect.signature(model.forward).parameters:
            return  # places are counted from the padding
        inputs = {name: each.flip(1) for name, each in inputs.items()}
        inputs["position_ids"] = (inputs["attention_mask"].cumsum(dim=1) - 1).clamp_min(0)
        real = real.flip(1)
    alone = {name: each[1:, real[1]] if each.shape == real.shape else each[1:] for name, each in inputs.items()}
    trace, own = recorded(model, inputs), recorded(model, alone)
    assert trace.sites == own.sites
    for site in own.sites:
        torch.testing.assert_close(trace[site].text(1).weights(), own[site].weights(), atol=1e-5, rtol=0)
        if site.endswith("cross"):
            continue
        found, expected = measure_layer(trace[site], 1).fingerprints, measure_layer(own[site]).fingerprints
        assert all(one == pytest.approx(other, abs=1e-5) for one, other in zip(found, expected, strict=True)), site


@torch.no_grad()
@pytest.mark.parametrize("family", [family for family in SOFTMAX if family not in (*OWN_CODE, "diffllama", "albert")])
def test_a_head_that_is_off_is_its_columns_of_the_output_projection_at_zero(family: str) -> None:
    model = made(family)
    sites, inputs = instrument(model), families.inputs_of(model)
    site = next((each for each in sites if each.endswith("1.cross")), sites[1])
    before = families.output_of(model(**inputs))
    with intervene({site: off(2)}):
        found = families.output_of(model(**inputs))
    families.zero_head(model, site, 2)
    torch.testing.assert_close(found, families.output_of(model(**inputs)), atol=1e-6, rtol=0)
    assert float((found - before).abs().max()) > 1e-3


TEXT = "The cat sat on the unbelievable mat and looked at nobody."


def eager(model: HubModel, path: Path) -> Any:
    return type(model.engine.model).from_pretrained(path, attn_implementation="eager").eval()


def assert_same_maps(trace: Trace, expected: dict[str, Tensor]) -> None:
    """The same sites, and maps that differ by float32's rounding at most; a learned sink, which is first, is ours.

    SigLIP's pooling head, whose weights transformers does not return, is held by test_what_each_head_of_the_pooling.
    """
    assert set(trace.sites) - {"vision.head.cross"} == set(expected)
    for site, weights in expected.items():
        got = trace[site].weights()[..., -weights.shape[-1] :]
        assert got.shape == weights.shape
        assert weights.std() > min(0.01, weights.mean() / 2), "maps that are all alike would prove nothing"
        assert float((got - weights).abs().max()) < 2e-6, site


def given_to(family: str) -> dict[str, Any]:
    if family == "whisper":
        return {"sound": tone_sequence()}
    if family in PICTURES:
        return {"image": noise(2)}
    return {"text": TEXT, "image": noise(2)} if family in TWO_TOWERS else {"text": TEXT}


# One of each kind of tokenizer, stack and head; the maps of all families are held against eager ones above.
RUN = "roberta albert bert-fills sorter gpt2 gemma2 gpt-oss bloom marian t5 vit registers".split()


@pytest.mark.parametrize("family", [*RUN, *TWO_TOWERS, "whisper"])
def test_a_run_is_what_transformers_computes(family: str, tiny: Tiny, tiny_model: TinyModel) -> None:
    model, plain, given = tiny_model(family), eager(tiny_model(family), tiny(family)), given_to(family)
    writes = model.card.head == "words"
    run = model.run(**given, **({"max_new_tokens": 5} if writes else {}))
    with torch.no_grad():
        expected = plain(**run.inputs, output_attentions=True)
        if writes and "text" in given:
            source = model.engine.encode(TEXT)["input_ids"]
            options = {"attention_mask": torch.ones_like(source), "do_sample": False, "num_beams": 1}
            ids = plain.generate(source, max_new_tokens=5, **options)
            read = run.decoder_tokens or run.tokens
            assert [token.id for token in (*read, *run.target_tokens[-1:])] == ids[0].tolist()
    if family in TWO_TOWERS:
        towers = {"encoder": expected.text_model_output, "vision": expected.vision_model_output}
        maps = {
            site: weights for stack, own in towers.items() for site, weights in families.maps_of(own, stack).items()
        }
    else:
        maps = families.maps_of(expected, model.engine.stack or "")
        states = expected.hidden_states[-1] if model.card.head == "mask" else families.output_of(expected)
        torch.testing.assert_close(run.output, states[0], atol=1e-5, rtol=1e-5)
    assert_same_maps(run.trace, maps)
    assert all(future_weight(call) == 0 for call in run.trace if (call.stack, call.kind) == ("decoder", "self"))


@pytest.mark.parametrize("family", ["bert", "llama", "qwen3", "gemma2", "gpt-oss", "t5", "vit"])
def test_the_softmax_of_what_the_terms_add_up_to_is_the_map(family: str, tiny_model: Callable[[str], HubModel]) -> None:
    model = tiny_model(family)
    run = model.run(image=Image.new("RGB", (16, 16), "red")) if family == "vit" else model.run("The cat sat on the mat")
    call = next(call for call in run.trace if call.kind == "self")
    query, head = call.num_queries - 1, call.num_heads - 1
    found = [score_products(call, head, query, key) for key in range(call.num_keys)]
    assert max(each.residual for each in found) < 1e-5
    parts = np.array([0.0 if each.hidden else math.exp(each.total) for each in found])
    np.testing.assert_allclose(parts / parts.sum(), call.weights(head=head, queries=query)[0], atol=1e-6)
    sink, *tokens = found
    assert sink.products.any() == (family != "gpt-oss"), "a learned sink is a score and no key"
    assert any(each.cap for each in found) == (family == "gemma2")
    assert any(each.bias for each in tokens if not each.hidden) == (family == "t5")
