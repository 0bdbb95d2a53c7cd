"""Every kind of model in the register: what it takes and gives, what it offers, and that there are words for it."""

import json
import os
import subprocess
import sys
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
from viz_core.images.open_image import Video
from viz_core.lab.atom_maps import atom_weights, map_with_neighbours, read_reaction
from viz_core.pretrained import load_classifier, load_translator
from viz_core.pretrained.samples import drawn_picture
from viz_core.runtime.assets import ASSETS
from viz_core.sounds.sound import RATE, Sound

ANY_FAMILY = (*FAMILIES, *TALKERS, *TWO_TOWERS, "whisper")


def payloads(kind: type[ModelKind]) -> dict[str, Any]:
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
    image = Image.new("RGB", (8, 8))
    everything = {"text": "the cat", "text_pair": "sat", "target": "the mat", "image": image}
    everything |= {"video": Video.of([image] * 2), "sound": Sound(torch.zeros(RATE).numpy())}
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
    assert kind.inputs - {"target", "video"} <= fields <= kind.inputs
    assert "image" in fields or "video" not in kind.inputs, "a page asks for a video in place of a picture"
    assert bool([control for control in kind.controls if control.widget == "writing"]) == kind.writes()
    assert kind.features <= set(get_args(Feature))


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
    for step, log_p in enumerate(own.log_probabilities):
        word = translating.next_words(run, step, 1)[0]
        assert word.token.id == own.target_ids[step]
        assert word.probability == pytest.approx(torch.tensor(log_p).exp().item(), rel=1e-4)


def test_a_picture_is_the_classifiers() -> None:
    image = drawn_picture("ankle-boot")
    model = load_hub("vit-fashion-mnist", device="cpu")
    run, own = model.run(image=image), load_classifier("vit-fashion-mnist", "cpu").classify(image)
    assert {label.text: label.probability for label in run.labels} == own.probabilities
    assert run.labels[0].text == own.label
    assert torch.equal(run.trace["encoder.5.self"].weights(), own.trace["encoder.5.self"].weights())
    torch.testing.assert_close(model.rerun(run), run.output, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "kind", "scheme"), [("writer-en", "decoder", "rotary"), ("reader-en", "encoder", "learned")]
)
def test_the_lab_opens_it_like_any_other_and_says_that_it_ships(name: str, kind: str, scheme: str) -> None:
    card = load_hub(name, device="cpu", offline=True).card
    assert (card.kind, card.source, card.licence) == (kind, "shipped", "cc-by-2.0")
    assert scheme in card.positions
    assert name in [model.name for model in local_models()]


# The model of reactions that ships: its tokens, and its maps against its own package.


@pytest.fixture(scope="module")
def mapper() -> HubModel:
    return load_hub("rxnmapper", device="cpu")


def test_tokens_are_those_of_smiles_and_nothing_is_dropped(mapper: HubModel) -> None:
    run = mapper.run("Cl[Na+]>>BrZz")
    assert [token.label for token in run.tokens] == ["[CLS]", "Cl", "[Na+]", ">>", "Br", "[UNK]", "[SEP]"]
    assert run.num_unknown == 1
    assert [token.id for token in run.tokens] == [12, 28, 46, 29, 37, 11, 13]
    assert (mapper.card.licence, mapper.card.source) == ("mit", "shipped")


PACKAGE = Path(sys.prefix) / "chemistry"
_PROGRAM = """
import json, sys, rxnmapper
reactions, mapper = json.load(sys.stdin), rxnmapper.RXNMapper()
found = mapper.get_attention_guided_atom_maps(reactions, canonicalize_rxns=False, detailed_output=True)
atoms = [list(map(int, each["pxr_mapping_vector"])) for each in found]
tokens = [each["tokens"] for each in found]
mapper.model.half().float()  # rounded as ours are
weights = [mapper.convert_batch_to_attns([each])[0].tolist() for each in reactions]
print(json.dumps([tokens, weights, atoms]))
"""


@pytest.mark.slow
def test_tokens_weights_and_atom_maps_are_those_of_the_package(mapper: HubModel) -> None:
    """Of the page's twenty reactions in each version; only for weights are those of the package rounded to float16."""
    if not (PACKAGE / "rxnmapper").is_dir():
        pytest.skip("rxnmapper is not in .venv/chemistry: `make test-chemistry` puts it there")
    recorded = json.loads((ASSETS / "atoms" / "reactions.json").read_text(encoding="utf-8"))
    layer, head = recorded["head"]
    smiles = [entry["smiles"] for versions in recorded["reactions"].values() for entry in versions.values()]
    found = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        input=json.dumps(smiles),
        capture_output=True,
        text=True,
        check=True,
    )
    for text, tokens, weights, atoms in zip(smiles, *json.loads(found.stdout.splitlines()[-1]), strict=True):
        run, reaction = mapper.run(text), read_reaction(text)
        assert [token.text for token in run.tokens] == tokens
        own = run.trace[f"encoder.{layer}.self"].weights(head=head)[0].squeeze()
        torch.testing.assert_close(own, torch.tensor(weights), atol=1e-5, rtol=0)
        forward, backward = (part[layer, head].numpy() for part in atom_weights(run.trace, reaction))
        assert map_with_neighbours(forward, backward, reaction).tolist() == atoms, text
