"""Every kind of model in the register: what it takes and gives, what it offers, and that there are words for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from PIL import Image

from tests.viz_core.hub.families import FAMILIES
from tests.viz_core.hub.tiny_talkers import FAMILIES as TALKERS
from tests.viz_core.hub.tiny_talkers import TWO_TOWERS
from viz_core.hub import HubError, HubModel
from viz_core.hub.kinds import KINDS, ModelKind, kind_named, recognise
from viz_core.hub.kinds.base import Feature
from viz_core.hub.runs.run import PAYLOADS, RunInputs
from viz_core.images.drawn import drawn_picture
from viz_core.images.video import Video
from viz_core.runtime.assets import ASSETS
from viz_core.sounds.sound import RATE, Sound

TinyModel = Callable[[str], HubModel]
ANY_FAMILY = (*FAMILIES, *TALKERS, *TWO_TOWERS, "whisper")
LAB = [(path.parent.name, path) for path in sorted((ASSETS / "text").glob("*/model-lab.md"))]


def payloads(kind: type[ModelKind]) -> dict[str, Any]:
    """One of everything that a kind needs."""
    given = {
        "text": "the cat sat",
        "image": drawn_picture("airplane"),
        "sound": Sound(torch.sin(torch.arange(RATE) / 20.0).numpy()),
    }
    return {name: value for name, value in given.items() if name in kind.takes}


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> type[ModelKind]:
    return KINDS[request.param]


@pytest.fixture
def model(kind: type[ModelKind], tiny: Callable[[str], Path], tiny_model: TinyModel) -> HubModel:
    """A tiny random model of the kind: a new kind needs a family of tiny models that it recognises."""
    from transformers import AutoConfig

    for family in ANY_FAMILY:
        if recognise(AutoConfig.from_pretrained(tiny(family)), family).kind is kind:
            return tiny_model(family)
    pytest.fail(f"tests/viz_core/hub/families.py has no family of the kind {kind.name}")


def test_a_run_has_tokens_and_maps_whose_rows_sum_to_1(kind: type[ModelKind], model: HubModel) -> None:
    assert model.card.kind == kind.name
    assert model.card.kind_class is kind is type(model.engine)
    run = model.run(**payloads(kind), **({"max_new_tokens": 4} if kind.writes() else {}))
    assert run.tokens
    assert all(token.label for token in run.tokens)
    assert len(run.trace)
    for maps in run.maps:
        for call in maps.calls:
            assert call.weights().shape[-2:] == (len(maps.query_tokens), len(maps.key_tokens)), maps.id
            torch.testing.assert_close(call.weights().sum(dim=-1), torch.ones(call.weights().shape[:-1]))
    assert run.output.isfinite().all()
    torch.testing.assert_close(model.again(run), run.output)


def test_what_it_writes_has_next_words(kind: type[ModelKind], model: HubModel) -> None:
    run = model.run(**payloads(kind))
    if not kind.writes():
        assert model.card.head != "words"
        assert not run.text
        return
    likeliest = model.next_words(run, count=3)
    assert len(likeliest) == 3
    assert likeliest[0].probability == max(word.probability for word in likeliest)


def test_each_payload_that_it_does_not_take_is_refused(kind: type[ModelKind], model: HubModel) -> None:
    everything = {
        "text": "the cat",
        "text_pair": "sat",
        "target": "the mat",
        "image": Image.new("RGB", (8, 8)),
        "video": Video.of([Image.new("RGB", (8, 8))] * 2),
        "sound": Sound(torch.zeros(RATE).numpy()),
    }
    assert set(everything) == set(PAYLOADS)
    for name in set(PAYLOADS) - kind.takes:
        with pytest.raises(HubError):
            model.run_inputs(RunInputs(**{**payloads(kind), name: everything[name]}))
    for name in payloads(kind):
        given = {field: value for field, value in payloads(kind).items() if field != name}
        with pytest.raises(HubError):
            model.run_inputs(RunInputs(**given))


def test_its_controls_ask_for_what_it_takes(kind: type[ModelKind]) -> None:
    fields = {control.field for control in kind.controls if control.field}
    assert fields <= kind.takes
    assert fields >= kind.takes - {"target", "video"}, "a page may leave the target to the model"
    assert "image" in fields or "video" not in kind.takes, "a page asks for a video in place of a picture"
    assert bool([control for control in kind.controls if control.widget == "writing"]) == kind.writes()
    assert kind.features <= set(get_args(Feature))
    names = [control.name for control in kind.controls]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("language", "path"), LAB, ids=[language for language, _ in LAB])
def test_there_are_words_for_it(kind: type[ModelKind], language: str, path: Path) -> None:
    """Without the app, whose own tests open its page: sections by their headings."""
    sections = {line.removeprefix("## ") for line in path.read_text(encoding="utf-8").splitlines() if line[:3] == "## "}
    needed = {f"kind.{kind.name}", f"reads-{kind.reads}"}
    needed |= {name for control in kind.controls for name in (control.initial, control.placeholder) if name}
    assert needed <= sections, language


def test_there_are_three_languages() -> None:
    assert len(LAB) == 3


def test_a_name_that_no_kind_has() -> None:
    with pytest.raises(ValueError, match="expected one of .*'sideways'"):
        kind_named("sideways")
