"""A scan against a plain loop over recorded runs, padded, in half precision, without a causal mask and interrupted."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from recipes.scan import main, scan
from recipes.scanned import PERCENTILES, Scan, side_by_side
from tests.viz_core.hub.tiny_models import build
from viz_core.hub import HubModel, load_hub
from viz_core.maps.measures import attention_entropy, induction_mass
from viz_core.maps.roles import COLUMNS, ROLES, RoleTargets, role_masses
from viz_core.pretrained.samples import held_out
from viz_core.runtime.interruption import interruptible

TinyModel = Callable[[str], HubModel]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model of a family; made when first asked for."""

    @cache
    def folder(family: str) -> Path:
        path = tmp_path_factory.mktemp("hub") / family
        path.mkdir()
        build(family, path)
        return path

    return folder


@pytest.fixture(scope="module")
def tiny_model(tiny: Callable[[str], Path]) -> TinyModel:
    """A tiny model, loaded once."""
    return cache(lambda family: load_hub(tiny(family), device="cpu"))


TEXTS = ["A cat sat on the mat, and the cat slept.", "No.", "He is calm, they said.", "I went home late.", "Why not?"]
ONE_STACK = ("bert", "roberta", "albert", "gpt2", "llama", "mistral", "gemma2", "gpt-oss")


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


def same(one: Scan, other: Scan, tolerance: float = 0.0) -> None:
    assert (one.texts, one.tokens, one.left_out) == (other.texts, other.tokens, other.left_out)
    assert one.kinds.keys() == other.kinds.keys()
    for name, kind in one.kinds.items():
        assert kind.values.keys() == other.kinds[name].values.keys()
        for measure, values in kind.values.items():
            np.testing.assert_allclose(values, other.kinds[name].values[measure], rtol=0, atol=tolerance)
            np.testing.assert_allclose(
                kind.summary(measure).mean, other.kinds[name].summary(measure).mean, rtol=0, atol=tolerance
            )


@pytest.mark.parametrize("family", ONE_STACK)
def test_a_padded_batch_equals_a_plain_loop(tiny_model: TinyModel, family: str) -> None:
    model = tiny_model(family)
    found = scan(model, TEXTS, batch=5)
    assert not found.alone
    (kind,) = found.kinds.values()
    for place in (0, len(kind.heads) - 1):
        expected = plain(model, TEXTS, place, causal=model.engine.stack == "decoder")
        if family in ("mistral", "gemma2", "gpt-oss"):  # a copy outside a query's window is no target of it
            del expected["same-word"]
        for name in (name for name in expected if name in kind.values):
            np.testing.assert_allclose(kind.values[name][:, place], expected[name], atol=2e-6, err_msg=name)
        left_out = [name for name in expected if name not in kind.values]
        assert all(np.isnan(expected[name]).all() for name in left_out)


def test_a_batch_whose_padding_changes_the_weights_is_run_one_by_one(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("bert")
    recorded = type(model.engine).recorded

    def without_mask(engine: Any, inputs: dict[str, Any], *args: Any, **options: Any) -> Any:
        return recorded(engine, {k: v for k, v in inputs.items() if k != "attention_mask"}, *args, **options)

    expected = scan(model, TEXTS)
    monkeypatch.setattr(type(model.engine), "recorded", without_mask)
    found = scan(model, TEXTS)
    assert found.alone
    assert not expected.alone
    np.testing.assert_allclose(
        found.kinds["encoder-self"].values["entropy"], expected.kinds["encoder-self"].values["entropy"], atol=2e-6
    )


@pytest.mark.parametrize(("family", "dtype"), [("llama", torch.bfloat16), ("bert", torch.float16)])
def test_half_precision_equals_a_plain_loop_in_half_precision(
    tiny: Callable[[str], Path], family: str, dtype: torch.dtype
) -> None:
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


def test_induction_is_measured_on_random_tokens_that_repeat(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2")
    kind = scan(model, TEXTS[:1]).kinds["decoder-self"]
    values = kind.values["induction"]
    assert values.shape == (16, 8)
    assert len(np.unique(values[:, 0])) == 16
    summary = kind.summary("induction")
    assert (summary.low <= summary.mean).all()
    assert (summary.mean <= summary.high).all()
    # Random weights look at all keys about alike: what they give to repeats is what chance gives.
    np.testing.assert_allclose(summary.mean, summary.chance, atol=0.02)
    tokens = [*"abcd" * 4]
    even = torch.ones(1, 16, 16).tril() / torch.arange(1, 17)[:, None]
    assert 0 < float(induction_mass(even, tokens)[0]) < 0.3


@pytest.mark.parametrize("stop", [0, 1, 3])
def test_an_interrupted_scan_goes_on_and_equals_an_uninterrupted_one(
    tiny_model: TinyModel, tmp_path: Path, stop: int
) -> None:
    model, texts = tiny_model("llama"), [*TEXTS, "", *TEXTS]
    whole = scan(model, texts, batch=3)
    assert [number for number, _ in whole.left_out] == [5]
    save, seen = tmp_path / "scan.jsonl", []

    class StoppedError(Exception):
        pass

    def progress(done: int, count: int) -> None:
        seen.append((done, count))
        if len(seen) == stop + 1:
            raise StoppedError

    with pytest.raises(StoppedError):
        scan(model, texts, batch=3, save=save, progress=progress)
    with save.open("a", encoding="utf-8") as stream:
        stream.write('{"half": ')  # the process ended while it wrote
    again: list[int] = []
    found = scan(model, texts, batch=3, save=save, progress=lambda done, _: again.append(done))
    assert again == [*range(3 * stop, 11, 3), 11]
    same(found, whole)
    with pytest.raises(ValueError, match="same model, texts and settings"):
        scan(model, texts[1:], batch=3, save=save)


def test_a_scan_can_be_ended_from_outside(tiny_model: TinyModel) -> None:
    def end() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError), interruptible(end):
        scan(tiny_model("bert"), TEXTS)


def test_worth_is_what_switching_a_head_off_costs() -> None:
    model = load_hub("writer-en", device="cpu")
    kind = scan(model, TEXTS[:2], worth=1).kinds["decoder-self"]
    assert np.isnan(kind.values["worth"][1]).all()
    from viz_core.hub.heads_off import without_heads

    run = model.run(TEXTS[0], max_new_tokens=0)
    without = without_heads(model, run, (("decoder.1.self", 2),))
    assert without.perplexity is not None
    before, after = without.perplexity
    assert kind.values["worth"][0, kind.heads.index((1, 2))] == pytest.approx(math.log(after / before), abs=1e-6)
    assert kind.examples(0, "worth")[0].query == -1


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


def test_pictures_have_distances_and_no_neighbours() -> None:
    model = load_hub("vit-fashion-mnist", device="cpu")
    pictures = [Image.new("L", (28, 28), shade) for shade in (0, 200)]
    kind = scan(model, pictures, worth=1).kinds["encoder-self"]
    assert {"distance", "first", "diagonal", "entropy", "worth"} == set(kind.values)
    run = model.run(image=pictures[1])
    entropy = attention_entropy(run.maps[0].calls[0].weights()[0, 0]).mean()
    assert kind.values["entropy"][1, 0] == pytest.approx(float(entropy), abs=1e-5)


def test_narrow_and_broad_texts_stand_side_by_side() -> None:
    model = load_hub("writer-en", device="cpu")
    narrow, broad = scan(model, TEXTS), scan(model, [sample.english for sample in held_out()[:8]])
    rows = list(side_by_side(narrow, broad))
    row = next(row for row in rows if (row["layer"], row["head"], row["measure"]) == (2, 3, "entropy"))
    assert row["difference"] == pytest.approx(row["broad"] - row["narrow"])
    assert row["low"] < row["difference"] < row["high"]
    table = list(narrow.table())
    assert len({(row["layer"], row["head"]) for row in table}) == 16
    assert {"mean", "low", "high", "chance", "texts", "p5", "p50", "p95", "p100"} < table[0].keys()


def test_nothing_to_scan_is_refused(tiny_model: TinyModel) -> None:
    with pytest.raises(ValueError, match="at least one text"):
        scan(tiny_model("bert"), [])
    with pytest.raises(ValueError, match="batch of at least 1"):
        scan(tiny_model("bert"), TEXTS, batch=0)


def test_the_command_writes_a_row_for_each_head_and_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, out = tmp_path / "texts.txt", tmp_path / "heads.csv"
    texts.write_text("\n".join([*TEXTS, "word " * 600]) + "\n", encoding="utf-8")
    assert main(["writer-en", "--texts", str(texts), "--out", str(out)]) == 0
    rows = out.read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("maps,layer,head,measure,mean,low,high,chance,texts")
    assert len({row.split(",")[3] for row in rows[1:]}) * 16 == len(rows) - 1
    assert "line 6 was left out" in capsys.readouterr().err
    assert main(["writer-en", "--texts", str(tmp_path / "none"), "--out", str(out)]) == 1
