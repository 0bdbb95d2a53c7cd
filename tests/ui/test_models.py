"""Models and their results in caches, and what garbage collection leaves out."""

import gc
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit import config

from serving.compute.cache import MISSING, LRUCache
from serving.compute.slots import in_slot, reset_singletons
from serving.process import background as garbage
from serving.requests.models import NoModel
from serving.runners.runner import Runner
from tests.tiny_models import TINY
from ui.compute.models import (
    evaluate,
    evaluate_model,
    local_models,
    run,
    runner,
    sentence_request,
    translation,
    translation_maps,
    translator,
)
from ui.compute.slots import metrics, results
from viz_core.lessons.transformer.layers import future_leak, translation_residuals
from viz_core.pretrained import Translator, shipped

TEXT = "The dog is in the house."


@pytest.fixture(autouse=True)
def fresh(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shipped, "CHECKPOINTS", checkpoints)
    reset_singletons()
    yield
    reset_singletons()


def values_by_type(cache: LRUCache) -> dict[str, list[object]]:
    """What is kept, by what it is."""
    found = defaultdict(list)
    for value, _ in cache._entries.values():
        found[type(value).__name__].append(value)
    return found


def title(model: Translator) -> str:
    return model.card.title


def test_whatever_is_asked_about_a_sentence_it_is_cut_and_run_and_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, cut = translator(TINY).tokenizer, list[str]()
    encode = tokenizer.encode
    monkeypatch.setattr(tokenizer, "encode", lambda text: cut.append(text) or encode(text))
    first = translation(sentence_request(TINY, TEXT))
    assert len(results()) == 1
    maps = translation_maps(sentence_request(TINY, TEXT), "en")
    residuals = evaluate(sentence_request(TINY, TEXT), translation_residuals)
    assert translation(sentence_request(TINY, TEXT)) is first
    assert translation_maps(sentence_request(TINY, TEXT), "en") is maps
    assert evaluate(sentence_request(TINY, TEXT), translation_residuals) is residuals
    assert maps[0].calls[0] in list(first.trace)
    counts = {name: len(values) for name, values in values_by_type(results()).items()}
    assert counts == {"Translation": 1, "tuple": 1, "dict": 1}
    assert cut == [TEXT]
    text = metrics().text().decode()
    assert 'atlas_computations_total{kind="translation",outcome="done"} 1.0' in text, "what is found takes no slot"


def test_the_maps_alone_keep_the_run_as_well() -> None:
    """A card of the home page asks for them first; the chapter then finds the translation."""
    translation_maps(sentence_request(TINY, TEXT), "en")
    [made] = values_by_type(results())["Translation"]
    assert translation(sentence_request(TINY, TEXT)) is made
    text = metrics().text().decode()
    assert 'kind="translation"' not in text
    assert 'atlas_computations_total{kind="maps",outcome="done"} 1.0' in text


def test_answers_differ_by_their_arguments() -> None:
    request = sentence_request(TINY, TEXT)
    evaluate(request, future_leak, 1)
    evaluate(request, future_leak, step=2)
    evaluate(request, future_leak, 1)
    assert len(values_by_type(results())["float"]) == 2
    assert evaluate_model(request.model, title) == evaluate_model(request.model, title) == "A tiny Transformer"
    assert len(values_by_type(results())["str"]) == 1


def test_what_is_wrong_is_told_and_nothing_is_kept() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="nothing to translate yet"):
            run(sentence_request(TINY, " "), "translation")
    assert len(results()) == 0
    assert runner().find(sentence_request(TINY, " ")) is None
    assert results().get(("run", sentence_request(TINY, " "))) is MISSING


@pytest.mark.attack("models")
def test_models_on_the_machine_are_listed_in_a_slot_beside_the_models_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    listed: list[bool] = []

    def evaluate_model(_runner: Runner, _model: NoModel, _function: object) -> tuple[str, ...]:
        listed.append(in_slot())
        return (f"model {len(listed)}",)

    monkeypatch.setattr(Runner, "evaluate_model", evaluate_model)
    found = [local_models((tmp_path,)), local_models((tmp_path,)), local_models((tmp_path,), 0), local_models(())]
    assert found == [("model 1",), ("model 1",), ("model 2",), ("model 3",)]
    assert listed == [True] * 3


def test_garbage_is_collected_before_it_would_be_frozen_and_as_memory_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    size = [0]
    monkeypatch.setattr(garbage, "_num_modules", 0)
    monkeypatch.setattr(garbage, "_size", 0)
    monkeypatch.setattr(garbage, "_resident_bytes", lambda: size[0] * 2**20)
    monkeypatch.setattr(gc, "collect", lambda: done.append(size[0]))
    monkeypatch.setattr(gc, "freeze", lambda: done.append("freeze"))
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    for size[0] in (500, 501):
        garbage.freeze_imported_modules()
    assert done == [500, "freeze"]
    for size[0] in (500, 627, 628, 700, 755, 756, 600, 727, 728):
        garbage.collect_by_allocation()
    assert done[2:] == [628, 756, 728], "after each growth by 128 MB, from the smallest size since the last time"
    assert config.get_option("runner.postScriptGC") is False, "Streamlit leaves it to us"
