"""A scan against a plain loop over recorded runs, padded, in half precision, without a causal mask and interrupted."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from tests.viz_core.hub.conftest import TinyModel
from tests.viz_core.hub.families import drawn, save_tokenizer
from viz_core.hub import HubModel, HubRun, Token, load_hub
from viz_core.lab.heads_off import without_heads
from viz_core.lab.scan import _line, read_heads, read_repeats, scan
from viz_core.lab.scan_results import PERCENTILES, Line, Scan
from viz_core.maps.measures import attention_entropy
from viz_core.maps.register import COLUMNS, ROLES, RoleTargets, role_masses
from viz_core.pretrained.samples import held_out
from viz_core.trace import attend, intervene, record, uniform

TEXTS = ["A cat sat on the mat, and the cat slept.", "No.", "He is calm, they said.", "I went home late.", "Why not?"]
ONE_STACK = ("bert", "roberta", "albert", "gpt2", "llama", "mistral", "gemma2", "gpt-oss")


@pytest.fixture(autouse=True)
def few_repeats_except_for_induction(request: pytest.FixtureRequest) -> None:
    if "induction" not in request.node.name:
        request.getfixturevalue("few_repeats")


def plain(model: HubModel, texts: list[str], place: int, causal: bool) -> dict[str, np.ndarray]:
    """Values of one head in a loop over runs, a text at a time."""
    rows = []
    for text in texts:
        run = model.run(text, max_new_tokens=0)
        (maps,) = run.maps
        weights = torch.cat([call.weights()[0] for call in maps.calls])
        tokens = [token.text for token in run.tokens]
        targets = RoleTargets.of(tokens, tokens, on_itself=True, causal=causal)
        own = weights[place : place + 1, :, -len(tokens) :]
        masses = role_masses(own, targets)[0]
        row = {name: float(masses[COLUMNS.index(column)]) for name, column in ROLES.items() if name != "induction"}
        rows.append(row | {"entropy": float(attention_entropy(weights[place]).mean())})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.parametrize("family", ONE_STACK)
def test_a_padded_batch_equals_a_plain_loop(tiny_model: TinyModel, family: str) -> None:
    model = tiny_model(family)
    found = scan(model, TEXTS, batch=5)
    assert not found.alone
    (kind,) = found.kinds.values()
    for place in (0, len(kind.heads) - 1):
        expected = plain(model, TEXTS, place, causal=model.engine.stack == "decoder")
        if family in ("mistral", "gemma2", "gpt-oss"):  # a copy outside a query's window is not a target of it
            del expected["same-word"]
        for name in (name for name in expected if name in kind.values):
            np.testing.assert_allclose(kind.values[name][:, place], expected[name], atol=2e-6, err_msg=name)
        left_out = [name for name in expected if name not in kind.values]
        assert all(np.isnan(expected[name]).all() for name in left_out)


def test_a_batch_whose_padding_changes_the_weights_is_run_one_by_one(tiny_model, monkeypatch):
    model = tiny_model("bert")
    recorded = type(model.engine).recorded

    def without_mask(engine: Any, inputs: dict[str, Any], *args: Any, **options: Any) -> Any:
        return recorded(engine, {k: v for k, v in inputs.items() if k != "attention_mask"}, *args, **options)

    expected = scan(model, TEXTS)
    monkeypatch.setattr(type(model.engine), "recorded", without_mask)
    found = scan(model, TEXTS)
    assert found.alone
    assert not expected.alone
    assert not scan(model, TEXTS[:2], batch=1).alone
    np.testing.assert_allclose(
        found.kinds["encoder-self"].values["entropy"], expected.kinds["encoder-self"].values["entropy"], atol=2e-6
    )


@pytest.mark.parametrize(("family", "dtype"), [("llama", torch.bfloat16), ("bert", torch.float16)])
def test_half_precision_equals_a_plain_loop_in_half_precision(tiny, family, dtype):
    model = load_hub(tiny(family), device="cpu")
    model.network.to(dtype)
    found = scan(model, TEXTS, batch=1)
    (kind,) = found.kinds.values()
    expected = plain(model, TEXTS, 3, causal=family == "llama")
    np.testing.assert_allclose(kind.values["entropy"][:, 3], expected["entropy"], atol=1e-5)
    np.testing.assert_allclose(kind.values["first"][:, 3], expected["first"], atol=1e-5)
    padded = scan(model, TEXTS, batch=5).kinds[next(iter(found.kinds))]
    np.testing.assert_allclose(padded.values["entropy"], kind.values["entropy"], atol=0.02)


def test_chance_follows_the_mask_of_each_layer(tiny_model: TinyModel) -> None:
    """A causal decoder, a sliding window of 5, and an encoder that sees everything."""
    text = [TEXTS[0]]
    n = {family: scan(tiny_model(family), text).tokens for family in ("llama", "mistral", "bert")}

    def first(family: str) -> float:
        (kind,) = scan(tiny_model(family), text).kinds.values()
        return float(kind.summary("first").chance[0])

    assert first("bert") == pytest.approx(1 / n["bert"], abs=1e-6)
    assert first("llama") == pytest.approx(sum(1 / (i + 1) for i in range(n["llama"])) / n["llama"], abs=1e-6)
    assert first("mistral") == pytest.approx(sum(1 / (i + 1) for i in range(5)) / n["mistral"], abs=1e-6)


def test_very_sharp_heads_do_not_narrow_what_is_visible() -> None:
    """All heads of the translator's first layer have weights that round to 0; a uniform head sees all keys."""
    model = load_hub("transformer-en-fr", device="cpu")
    found = scan(model, [held_out()[0].english], max_new_tokens=4)
    kind = found.kinds["encoder-self"]
    run = model.run(held_out()[0].english, max_new_tokens=4)
    np.testing.assert_allclose(kind.summary("separator").chance, 1 / len(run.tokens), atol=1e-6)


@pytest.mark.parametrize(("size", "sequences"), [(4, 0), (5, 16)])  # four special tokens, and a word
def test_induction_is_measured_where_there_are_words_for_it(size: int, sequences: int, tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2")
    model = replace(model, card=replace(model.card, vocabulary_size=size))
    assert len(read_repeats(model)) == sequences
    assert ("induction" in scan(model, TEXTS[:1]).kinds["decoder-self"].values) == bool(sequences)


def test_worth_is_what_switching_a_head_off_costs() -> None:
    model = load_hub("writer-en", device="cpu")
    kind = scan(model, TEXTS[:2], worth=1).kinds["decoder-self"]
    assert np.isnan(kind.values["worth"][1]).all()
    assert np.isfinite(kind.summary("worth").mean).all()
    assert np.isnan(kind.summary("worth").low).all(), "one text has no interval"
    run = model.run(TEXTS[0], max_new_tokens=0)
    without = without_heads(model, run, (("decoder.1.self", 2),))
    assert without.perplexity is not None
    before, after = without.perplexity
    assert kind.values["worth"][0, kind.heads.index((1, 2))] == pytest.approx(math.log(after / before), abs=1e-6)
    assert kind.examples(0, "worth")[0].query == -1


def test_worth_is_that_of_the_layer_where_others_have_no_maps(tmp_path: Path) -> None:
    sizes = {"vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2}
    config = transformers.Lfm2Config(**sizes, layer_types=["full_attention", "conv", "full_attention"])
    drawn(transformers.Lfm2ForCausalLM, config, excluded="conv").save_pretrained(tmp_path)
    save_tokenizer("bytes", tmp_path, ends=False)
    model = load_hub(tmp_path, device="cpu")
    kind = scan(model, TEXTS[:1], worth=1).kinds["decoder-self"]
    run = model.run(TEXTS[0], max_new_tokens=0)
    assert run.trace.sites == ("decoder.0.self", "decoder.2.self")
    assert kind.heads == tuple((layer, head) for layer in (0, 2) for head in range(4))
    for place, (layer, head) in enumerate(kind.heads):
        before, after = without_heads(model, run, ((f"decoder.{layer}.self", head),)).perplexity or (1, 1)
        assert kind.values["worth"][0, place] == pytest.approx(math.log(after / before), abs=1e-6)


def test_examples_stand_at_the_percentiles_of_the_texts() -> None:
    model = load_hub("reader-en", device="cpu")
    texts = [sample.english for sample in held_out()[:20]]
    kind = scan(model, texts).kinds["encoder-self"]
    values = kind.values["previous"][:, 5]
    examples = kind.examples(5, "previous")
    assert tuple(each.percentile for each in examples) == PERCENTILES
    assert [each.value for each in examples] == [sorted(values)[rank] for rank in (0, 9, 18, 19)]
    for each in examples:
        run = model.run(texts[each.text])
        layer, head = kind.heads[5]
        weights = run.maps[0].calls[layer].weights()[0, head]
        assert each.value == values[each.text]
        assert each.query == 1 + int(weights.diagonal(-1).argmax())


@pytest.mark.parametrize("family", ["clip", "llava"])
def test_texts_with_pictures_equal_a_plain_loop(tiny_model: TinyModel, family: str) -> None:
    """Heads over text have neighbours, heads of the vision tower distances; what cannot be read is left out."""
    model = tiny_model(family)
    pictures = [Image.new("RGB", (40, 30), (shade, 90, 20)) for shade in (0, 200, 90)]
    texts = ("A cat.", "No.", "")
    given = [{"text": t, "image": p, "max_new_tokens": 0} for t, p in zip(texts, pictures, strict=True)]
    found = scan(model, given)
    assert [number for number, _ in found.left_out] == [2]
    own = next(name for name in found.kinds if name != "vision-self")
    assert set(found.kinds) == {own, "vision-self"}
    assert {"previous", "first"} <= set(found.kinds[own].values)
    assert "distance" in found.kinds["vision-self"].values
    assert "previous" not in found.kinds["vision-self"].values
    for number in range(2):
        for maps in model.run(**given[number]).maps:
            entropy = attention_entropy(maps.calls[1].weights()[0, 1]).mean()
            values, place = found.kinds[maps.id].values, found.kinds[maps.id].heads.index((1, 1))
            assert values["entropy"][number, place] == pytest.approx(float(entropy), abs=1e-5)


@pytest.mark.parametrize("family", ["bert", "mistral"])
def test_with_edits_in_force_it_is_the_edited_heads_and_the_chance_of_the_mask(tiny_model, family):
    model = tiny_model(family)
    (kind,) = scan(model, TEXTS).kinds.values()
    site = "encoder.0.self" if family == "bert" else "decoder.0.self"
    with intervene({site: uniform(1)}):
        (edited,) = scan(model, TEXTS).kinds.values()
    for name in ("first", "previous"):
        chance = kind.summary(name).chance
        np.testing.assert_allclose(edited.summary(name).chance, chance, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(edited.summary(name).mean[1], chance[1], atol=1e-6, err_msg=name)
        np.testing.assert_allclose(edited.values[name][:, 0], kind.values[name][:, 0], atol=1e-6, err_msg=name)


def test_distances_that_a_bias_hides_are_still_visible() -> None:
    """ALiBi takes so much from far keys that their weights round to 0; the mask does not hide them."""
    tokens = tuple(Token(i, f"t{i}", f"t{i}") for i in range(300))
    alibi = -10.0 * (torch.arange(300)[:, None] - torch.arange(300)).abs()
    with record() as trace:
        attend(*torch.zeros(3, 1, 2, 300, 4), bias=alibi[None, None], causal=True, site="decoder.0.self")
    line = _line(HubRun(tokens, trace, torch.zeros(0)))
    value, chance, _ = line["kinds"]["decoder-self"]["measures"]["first"]
    np.testing.assert_allclose(chance, sum(1 / (i + 1) for i in range(300)) / 300, atol=1e-6)
    assert value[0] < 0.01


def test_parts_add_up_to_the_scan_of_all_texts(tiny_model: TinyModel) -> None:
    """With worth and encoder-decoders, whose texts are written together."""
    model = load_hub("transformer-en-fr", device="cpu")
    whole = scan(model, TEXTS[1:3], worth=1, max_new_tokens=2)
    parts: list[Line] = []
    for start in (1, 2):
        parts += read_heads(model, TEXTS[start : start + 1], worth=2 - start, max_new_tokens=2)
    joined = Scan.of(parts)
    assert (joined.texts, joined.tokens, joined.left_out) == (whole.texts, whole.tokens, whole.left_out)
    for name, kind in whole.kinds.items():
        assert joined.kinds[name].values.keys() == kind.values.keys()
        for measure, values in kind.values.items():
            np.testing.assert_allclose(joined.kinds[name].values[measure], values, rtol=0, atol=1e-5)
    assert set(whole.kinds) == {"encoder-self", "decoder-self", "decoder-cross"}
    assert np.isfinite(whole.kinds["decoder-cross"].values["worth"][0]).all()
