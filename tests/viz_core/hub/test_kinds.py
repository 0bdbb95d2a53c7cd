"""Every kind of model in the register: what it takes and gives, what it offers, and that there are words for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from PIL import Image

from tests.viz_core.hub.conftest import TinyModel
from tests.viz_core.hub.families import FAMILIES
from tests.viz_core.hub.tiny_talkers import FAMILIES as TALKERS
from tests.viz_core.hub.tiny_talkers import TWO_TOWERS
from viz_core.hub import HubError, HubModel, load_hub, local_models
from viz_core.hub.kinds import KINDS, ModelKind, recognise
from viz_core.hub.kinds.base import Feature
from viz_core.hub.runs.run import PAYLOADS, RunInputs
from viz_core.hub.shipped import shipped_names
from viz_core.hub.store.files import SHIPPED_FOLDER
from viz_core.images.open_image import Video
from viz_core.lab.heads_off import switchable, without_heads
from viz_core.pretrained import load_classifier, load_translator
from viz_core.pretrained.samples import drawn_picture
from viz_core.runtime.assets import ASSETS
from viz_core.sounds.sound import RATE, Sound
from viz_core.trace import intervene, switched_off

ANY_FAMILY = (*FAMILIES, *TALKERS, *TWO_TOWERS, "whisper")


def payloads(kind: type[ModelKind]) -> dict[str, Any]:
    """One of everything that a kind needs."""
    given = {
        "text": "the cat sat",
        "image": drawn_picture("airplane"),
        "sound": Sound(torch.sin(torch.arange(RATE) / 20.0).numpy()),
    }
    return {name: value for name, value in given.items() if name in kind.inputs}


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
    torch.testing.assert_close(model.rerun(run), run.output)
    written = run.target_tokens or run.tokens[run.num_prompt_tokens :]
    assert kind.writes() == (model.card.head == "words") == bool(written)


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
    for name in set(PAYLOADS) - kind.inputs:
        with pytest.raises(HubError):
            model.run_inputs(RunInputs(**{**payloads(kind), name: everything[name]}))
    for name in payloads(kind):
        given = {field: value for field, value in payloads(kind).items() if field != name}
        with pytest.raises(HubError):
            model.run_inputs(RunInputs(**given))


def test_its_controls_ask_for_what_it_takes(kind: type[ModelKind]) -> None:
    fields = {control.field for control in kind.controls if control.field}
    assert fields <= kind.inputs
    assert fields >= kind.inputs - {"target", "video"}, "a page may leave the target to the model"
    assert "image" in fields or "video" not in kind.inputs, "a page asks for a video in place of a picture"
    assert bool([control for control in kind.controls if control.widget == "writing"]) == kind.writes()
    assert kind.features <= set(get_args(Feature))
    names = [control.name for control in kind.controls]
    assert len(names) == len(set(names))


TEXT = "He is calm."


@pytest.fixture(scope="module")
def translating() -> HubModel:
    assert shipped_names()[0] == "transformer-en-fr"
    assert set(shipped_names()) == {"transformer-en-fr", "vit-cifar10", "vit-fashion-mnist"}
    return load_hub("transformer-en-fr", device="cpu")


def test_a_translation_is_the_translators(translating: HubModel) -> None:
    run = translating.run(TEXT)
    own = load_translator("transformer-en-fr", "cpu").translate(TEXT)
    assert run.text == own.text
    assert run.trace.sites == own.trace.sites
    for site in own.trace.sites:
        assert torch.equal(run.trace[site].weights(), own.trace[site].weights())
    assert [token.id for token in run.tokens] == list(own.source_ids)
    assert [token.id for token in run.target_tokens] == list(own.target_ids)
    assert [token.label for token in run.tokens] == ["·He", "·is", "·calm", ".", "<eos>"]
    assert [token.special for token in run.tokens] == [False] * 4 + [True]
    assert {maps.id for maps in run.maps} == {"encoder-self", "decoder-self", "decoder-cross"}
    assert run.complete
    for step, log_p in enumerate(own.log_probabilities):
        word = translating.next_words(run, step, 1)[0]
        assert word.token.id == own.target_ids[step]
        assert word.probability == pytest.approx(torch.tensor(log_p).exp().item(), rel=1e-4)


def test_its_heads_are_switched_off_as_those_of_any_model(translating: HubModel) -> None:
    run = translating.run(TEXT)
    torch.testing.assert_close(translating.rerun(run), run.output)
    assert dict(switchable(translating, run)) == dict.fromkeys(run.trace.sites, 8)
    off = (("decoder.2.cross", 0),)
    found = without_heads(translating, run, off, 0)
    with intervene(switched_off(off)):
        after = load_translator("transformer-en-fr", "cpu").model(*run.inputs.values())[0, 0].softmax(dim=-1)
    assert {change.label: change.after for change in found.changes}["·Il"] == pytest.approx(float(after[195]), rel=1e-4)
    assert found.perplexity is not None
    image = drawn_picture("ankle-boot")
    classifier = load_hub("vit-fashion-mnist", device="cpu")
    seen = classifier.run(image=image)
    torch.testing.assert_close(classifier.rerun(seen), seen.output, atol=1e-5, rtol=1e-5)
    assert seen.labels[0].text in [
        change.label for change in without_heads(classifier, seen, (("encoder.0.self", 1),)).changes
    ]


def test_what_it_shall_write(translating: HubModel) -> None:
    run = translating.run(TEXT, target="Elle est calme.")
    assert run.text == "Elle est calme."
    assert not translating.run(TEXT, max_new_tokens=2).complete
    spelled = translating.run("He is 東.")  # by its bytes
    assert spelled.num_unknown == 0
    assert {"<0xE6>", "<0x9D>", "<0xB1>"} <= {token.label for token in spelled.tokens}


def test_a_picture_is_the_classifiers() -> None:
    image = drawn_picture("ankle-boot")
    model = load_hub("vit-fashion-mnist", device="cpu")
    run, own = model.run(image=image), load_classifier("vit-fashion-mnist", "cpu").classify(image)
    assert {label.text: label.probability for label in run.labels} == own.probabilities
    assert run.labels[0].text == own.label
    assert torch.equal(run.trace["encoder.5.self"].weights(), own.trace["encoder.5.self"].weights())
    assert (run.grid, len(run.tokens), run.tokens[0].label) == (own.grid, 50, "[CLS]")
    assert run.output.softmax(dim=-1).max() == pytest.approx(own.probabilities[own.label], rel=1e-5)
    assert (model.card.picture_channels, model.positions[0].num_special) == (1, 1)


MB = 1e6


@pytest.mark.parametrize(
    ("name", "kind", "scheme"), [("writer-en", "decoder", "rotary"), ("reader-en", "encoder", "learned")]
)
def test_the_lab_opens_it_like_any_other_and_says_that_it_ships(name: str, kind: str, scheme: str) -> None:
    card = load_hub(name, device="cpu", offline=True).card
    assert (card.kind, card.source, card.licence) == (kind, "shipped", "cc-by-2.0")
    assert scheme in card.positions
    assert name in [model.name for model in local_models()]


def test_all_weights_together_are_small() -> None:
    for folder in SHIPPED_FOLDER.iterdir():
        assert sum(file.stat().st_size for file in folder.iterdir()) < 6 * MB
    weights = [*(ASSETS / "checkpoints").rglob("*.safetensors"), *SHIPPED_FOLDER.rglob("*.safetensors")]
    assert sum(file.stat().st_size for file in weights) < 60 * MB
