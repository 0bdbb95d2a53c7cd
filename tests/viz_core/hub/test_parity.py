"""Every map equals what transformers itself computes with eager attention, and so does every output."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor

from viz_core.hub import ATTENTION_IMPLEMENTATION, HubModel, instrument
from viz_core.hub.attention import with_sink
from viz_core.maps.residuals import future_weight
from viz_core.trace import Trace, attention_weights, record

Tiny = Callable[[str], Path]
TinyModel = Callable[[str], HubModel]
READERS = ["bert", "roberta", "albert", "sorter"]
WRITERS = ["gpt2", "llama", "qwen3", "mistral", "gemma", "gemma2", "bloom"]
TRANSLATORS = ["marian", "bart", "t5"]
LOOKERS = ["vit", "deit", "dinov2", "registers"]
TEXT = "The cat sat on the unbelievable mat and looked at nobody."


def eager(model: HubModel, path: Path) -> Any:
    """The same model as transformers runs it when asked for maps."""
    return type(model.engine.model).from_pretrained(path, attn_implementation="eager").eval()


def maps_of(result: Any, stack: str) -> dict[str, Tensor]:
    kinds = {
        "attentions": f"{stack}.{{}}.self",
        "encoder_attentions": "encoder.{}.self",
        "decoder_attentions": "decoder.{}.self",
        "cross_attentions": "decoder.{}.cross",
    }
    found = {}
    for name, site in kinds.items():
        for layer, weights in enumerate(getattr(result, name, None) or ()):
            found[site.format(layer)] = weights
    return found


def assert_same_maps(trace: Trace, expected: dict[str, Tensor], rows: Tensor | None = None) -> None:
    """The same sites, and maps that differ by float32's rounding at most; `rows` says which queries count."""
    assert set(trace.sites) == set(expected)
    for site, weights in expected.items():
        got = trace[site].weights()
        assert got.shape == weights.shape
        assert weights.std() > 0.01, "maps that are all alike would prove nothing"
        difference = (got - weights).abs().amax(dim=(1, 3))
        assert float((difference if rows is None else difference[rows]).max()) < 1e-6, site


@pytest.mark.parametrize("family", READERS)
def test_encoders(family: str, tiny: Tiny, tiny_model: TinyModel) -> None:
    model = tiny_model(family)
    run = model.run(TEXT)
    inputs = model.engine.encode(TEXT)
    with torch.no_grad():
        expected = eager(model, tiny(family))(**inputs, output_attentions=True)
    assert_same_maps(run.trace, maps_of(expected, "encoder"))
    output = expected.logits[0] if family == "sorter" else expected.last_hidden_state[0]
    torch.testing.assert_close(run.output, output, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", WRITERS)
def test_decoders(family: str, tiny: Tiny, tiny_model: TinyModel) -> None:
    model = tiny_model(family)
    run = model.run(TEXT, max_new_tokens=5)
    plain = eager(model, tiny(family))
    prompt = model.engine.encode(TEXT)["input_ids"]
    with torch.no_grad():
        ids = plain.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=5, do_sample=False)
        expected = plain(ids, output_attentions=True)
    assert [token.id for token in run.tokens] == ids[0].tolist()
    assert run.num_prompt_tokens == prompt.shape[1]
    assert_same_maps(run.trace, maps_of(expected, "decoder"))
    torch.testing.assert_close(run.output, expected.logits[0], atol=1e-5, rtol=1e-5)
    future = torch.ones(len(run.tokens), len(run.tokens), dtype=torch.bool).triu(diagonal=1)
    assert all(bool((call.weights()[0, :, future] == 0).all()) for call in run.trace)


def test_learned_sinks_are_one_more_column(tiny: Tiny, tiny_model: TinyModel) -> None:
    """transformers' own maps leave the sink out, so that their rows do not sum to 1; with its column they do."""
    model, plain = tiny_model("gpt-oss"), eager(tiny_model("gpt-oss"), tiny("gpt-oss"))
    run = model.run(TEXT, max_new_tokens=3)
    ids = torch.tensor([[token.id for token in run.tokens]])
    with torch.no_grad():
        expected = plain(ids, output_attentions=True)
    torch.testing.assert_close(run.output, expected.logits[0], atol=1e-5, rtol=1e-5)
    for site, weights in maps_of(expected, "decoder").items():
        got = run.trace[site].weights()
        assert float((got[..., 1:] - weights).abs().max()) < 1e-6
        torch.testing.assert_close(got[..., 0], 1 - weights.sum(dim=-1))
        assert float(got[..., 0].min()) > 0
    (maps,) = run.maps
    assert [token.label for token in maps.key_tokens] == ["sink", *(token.label for token in run.tokens)]
    assert all(future_weight(call) == 0 for call in run.trace)
    assert instrument(plain) == run.trace.sites
    with record() as again, torch.no_grad():
        plain(ids)
    assert torch.equal(again["decoder.0.self"].weights(), run.trace["decoder.0.self"].weights())


def test_a_sink_beside_a_bias_by_hand() -> None:
    """Scores 0 (the sink's is ln 3) and 0, ln 2 by their bias: of 3 + 1 + 2 parts the sink has 3."""
    key, value = torch.zeros(2, 1, 1, 2, 4)
    bias = torch.tensor([0.0, math.log(2)]).reshape(1, 1, 1, 2)
    key, value, mask, bias = with_sink(key, value, None, bias, torch.full((1, 1, 1, 1), math.log(3)))
    assert mask is None
    weights = attention_weights(torch.ones(1, 1, 1, 4), key, bias=bias)
    assert weights.flatten().tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 3])


@pytest.mark.parametrize("family", TRANSLATORS)
def test_encoder_decoders(family: str, tiny: Tiny, tiny_model: TinyModel) -> None:
    model = tiny_model(family)
    run = model.run(TEXT, max_new_tokens=6)
    plain = eager(model, tiny(family))
    source = model.engine.encode(TEXT)["input_ids"]
    with torch.no_grad():
        ids = plain.generate(source, attention_mask=torch.ones_like(source), max_new_tokens=6, num_beams=1)
        expected = plain(source, decoder_input_ids=ids[:, :-1], output_attentions=True)
    assert [token.id for token in run.decoder_tokens] == ids[0, :-1].tolist()
    assert [token.id for token in run.target_tokens] == ids[0, 1:].tolist()
    assert_same_maps(run.trace, maps_of(expected, ""))
    torch.testing.assert_close(run.output, expected.logits[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", LOOKERS)
def test_vision_models(family: str, tiny: Tiny, tiny_model: TinyModel) -> None:
    model = tiny_model(family)
    image = Image.effect_noise((20, 30), 90).convert("RGB")
    run = model.run(image=image)
    pixels = model.engine.processor.encode(image)
    with torch.no_grad():
        expected = eager(model, tiny(family))(pixels, output_attentions=True)
    assert_same_maps(run.trace, maps_of(expected, "encoder"))
    output = expected.logits[0] if family == "vit" else expected.last_hidden_state[0]
    torch.testing.assert_close(run.output, output, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ["bert", *WRITERS[:-1], *TRANSLATORS])
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_in_a_batch(family: str, side: str, tiny: Tiny, tiny_model: TinyModel) -> None:
    """Anyone's batch, not only our runs: the registered function sees padding as transformers does."""
    model = tiny_model(family)
    lengths = torch.tensor([9, 5, 1])
    places = torch.arange(9).expand(3, 9)
    real = places < lengths[:, None] if side == "right" else places >= 9 - lengths[:, None]
    inputs = {"input_ids": torch.randint(4, 390, (3, 9)).where(real, 0), "attention_mask": real.long()}
    if family in TRANSLATORS:
        inputs["decoder_input_ids"] = torch.randint(4, 390, (3, 7))
    options = {} if family == "bert" else {"use_cache": False}
    with torch.no_grad():
        with record() as trace:
            model.engine.model(**inputs, **options)
        expected = eager(model, tiny(family))(**inputs, **options, output_attentions=True)
    maps = maps_of(expected, model.engine.stack or "")
    # Queries that are padding see what they like; all 7 queries of a translator's decoder are real.
    ours = {site: trace[site].weights() for site in trace.sites}
    assert set(ours) == set(maps)
    for site, weights in maps.items():
        rows = real if weights.shape[2] == 9 else torch.ones(3, 7, dtype=torch.bool)
        difference = (ours[site] - weights).abs().amax(dim=(1, 3))[rows]
        assert float(difference.max()) < 1e-6, site
        if weights.shape[3] == 9:
            attended = ours[site].amax(dim=1).masked_fill(~rows[:, :, None], 0).amax(dim=1)
            assert bool((attended[~real] == 0).all()), f"{site}: padding is looked at"


def test_the_fused_kernel_is_what_runs(tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, calls = torch.nn.functional.scaled_dot_product_attention, []

    def counted(*args: Any, **options: Any) -> Tensor:
        calls.append(options)
        return kernel(*args, **options)

    monkeypatch.setattr("torch.nn.functional.scaled_dot_product_attention", counted)
    inputs: dict[str, dict[str, Any]] = {
        "bert": {"text": TEXT},
        "llama": {"text": TEXT, "max_new_tokens": 0},
        "t5": {"text": TEXT, "target": "a cat"},
        "dinov2": {"image": Image.new("RGB", (16, 16))},
    }
    for family, given in inputs.items():
        calls.clear()
        model = tiny_model(family)
        assert model.engine.model.config._attn_implementation == ATTENTION_IMPLEMENTATION
        run = model.run(**given)
        assert len(calls) == len(run.trace) > 0
        if family != "t5":
            assert all(call["attn_mask"] is None for call in calls), "no mask is made in vain"
            assert all(call["is_causal"] == (family == "llama") for call in calls)


def test_a_sliding_window_shows_in_the_maps(tiny_model: TinyModel) -> None:
    run = tiny_model("mistral").run(TEXT, max_new_tokens=0)
    n = len(run.tokens)
    i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]
    hidden = (j > i) | (j <= i - 5)
    for call in run.trace:
        weights = call.weights()[0]
        assert bool((weights[:, hidden] == 0).all())
        assert bool((weights[:, ~hidden] > 0).all())


def test_grouped_queries_hold_fewer_bytes_than_they_show(tiny_model: TinyModel) -> None:
    run = tiny_model("llama").run(TEXT, max_new_tokens=0)
    n = len(run.tokens)
    assert all(call.source.keys.shape[1] == 2 and call.num_heads == 4 for call in run.trace)
    assert run.trace.nbytes == 2 * n * (4 + 2) * 8 * 4  # layers, tokens, query and key heads, width, float32
