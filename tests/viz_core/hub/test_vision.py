"""Vision models behind the shipped classifiers' face, and a speech model: the same numbers as transformers gives."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from PIL import Image
from torch import Tensor

from tests.viz_core.hub.conftest import Tiny, TinyModel
from tests.viz_core.hub.test_families import eager
from tests.viz_core.hub.tiny_talkers import ALIGNING, SECONDS, TWO_TOWERS
from viz_core.hub import HubError, HubModel, HubRun, HubVision, coverage, instrument, load_hub
from viz_core.hub.runs.sound_input import aligning_heads, languages_of, tasks_of
from viz_core.hub.word_timestamps import word_times
from viz_core.lab.heads_off import switchable
from viz_core.lessons.vision_transformer import patchify
from viz_core.maps.alignments import token_starts
from viz_core.maps.rollout import gradient_relevance
from viz_core.sounds.sound import RATE, Sound, tone_sequence
from viz_core.view import view

FAMILIES = {"vit": 1, "deit": 2, "dinov2": 1, "registers": 5}


@pytest.mark.parametrize(("family", "special"), FAMILIES.items())
def test_it_is_the_model_that_the_lab_runs(
    tiny_model: TinyModel, family: str, special: int, picture: Image.Image
) -> None:
    model, run = HubVision(tiny_model(family)), tiny_model(family).run(image=picture)
    found = model.classify_prepared(model.prepare(picture))
    assert (found.grid, run.grid, found.num_special) == ((4, 4), (4, 4), special)
    for call, other in zip(found.trace, run.trace, strict=True):
        assert torch.equal(call.weights(), other.weights())
    names = {"deit": ["[CLS]", "[DIST]"], "registers": ["[CLS]", *(f"[REG {i}]" for i in range(1, 5))]}
    places = [f"{r}, {c}" for r in range(1, 5) for c in range(1, 5)]
    assert [token.label for token in run.tokens] == [*names.get(family, ["[CLS]"]), *places]
    if family == "vit":
        torch.testing.assert_close(model.predict(found.prepared.pixels)[0], run.output.softmax(dim=-1))
        assert found.probabilities == pytest.approx({each.text: each.probability for each in run.labels})
    pixels, parts = found.prepared.pixels, tiny_model(family).engine.model.modules()
    vectors = patchify(pixels, model.patch_size) @ model.filters.flatten(start_dim=1).T + model.filter_bias
    with torch.no_grad():
        expected = next(part for part in parts if type(part).__name__.endswith("PatchEmbeddings"))(pixels)
    torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=1e-5)
    table, larger = model.position_table((4, 4)), model.position_table((6, 5))
    own = next(p for p in tiny_model(family).positions if p.scheme == "learned").values
    assert table is not None
    assert torch.equal(table[0], own[-16:])
    assert larger is not None
    assert larger.shape == (1, 30, 32)


def test_relevance_by_finite_weights(tiny: Tiny, tiny_model: TinyModel, picture: Image.Image) -> None:
    model = HubVision(tiny_model("vit"))
    prepared = model.prepare(picture)
    found = model.relevance(prepared, model.labels[2])
    result = eager(tiny_model("vit"), tiny("vit"))(pixel_values=prepared.pixels, output_attentions=True)
    gradients = torch.autograd.grad(result.logits[0, 2], result.attentions)
    expected = gradient_relevance([w[0].detach() for w in result.attentions], [g[0] for g in gradients])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_what_is_refused(tiny_model: TinyModel, picture: Image.Image) -> None:
    for family, why in (("bert", "takes a text"), ("clip", "a picture and a text")):
        with pytest.raises(HubError, match=why):
            HubVision(tiny_model(family))
    model = HubVision(tiny_model("dinov2"))
    with pytest.raises(HubError, match="names no classes"):
        model.predict(model.prepare(picture).pixels)
    with pytest.raises(HubError, match="no label 'cat'"):
        HubVision(tiny_model("vit")).relevance(model.prepare(picture), "cat")


TEXT = "a cat on the mat"


def inputs_of(path: Path, picture: Image.Image) -> Any:
    images = transformers.AutoImageProcessor.from_pretrained(path, backend="pil")
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    options: dict[str, Any] = {"return_tensors": "pt", "return_token_type_ids": False}
    if path.name == "clip":
        return transformers.CLIPProcessor(images, tokenizer)(images=picture, text=TEXT, **options)
    options |= {"padding": "max_length", "max_length": 24, "return_attention_mask": False}
    return transformers.SiglipProcessor(images, tokenizer)(images=picture, text=TEXT, **options)


@pytest.mark.parametrize("family", TWO_TOWERS)
def test_the_cosine_of_both_towers(family: str, tiny: Tiny, tiny_model: TinyModel, picture: Image.Image) -> None:
    model = tiny_model(family)
    run = model.run(TEXT, image=picture)
    inputs, plain = inputs_of(tiny(family), picture), eager(model, tiny(family))
    assert [token.id for token in run.tokens] == inputs["input_ids"][0].tolist()
    with torch.no_grad():
        expected = plain(**inputs)
    assert run.output.shape == (17,)
    logit = float((expected.logits_per_image - getattr(plain, "logit_bias", 0)).detach())
    assert float(run.output[0]) * plain.logit_scale.exp().item() == pytest.approx(logit, abs=1e-4)
    torch.testing.assert_close(model.rerun(run), run.output)


def test_a_patch_is_read_as_the_class_token_is(tiny: Tiny, tiny_model: TinyModel, picture: Image.Image) -> None:
    """Put in the class token's place, a patch's last state gives its cosine as the model's own logit."""
    run = tiny_model("clip").run(TEXT, image=picture)
    inputs, plain = inputs_of(tiny("clip"), picture), eager(tiny_model("clip"), tiny("clip"))
    for token in (3, 16):

        def in_its_place(_module: Any, _inputs: Any, output: Any, token: int = token) -> None:
            output.last_hidden_state[:, 0] = output.last_hidden_state[:, token].clone()

        hook = plain.vision_model.encoder.register_forward_hook(in_its_place)
        with torch.no_grad():
            logit = float(plain(**inputs).logits_per_image)
        hook.remove()
        assert float(run.output[token]) * plain.logit_scale.exp().item() == pytest.approx(logit, abs=1e-4)


def test_what_each_head_of_the_pooling_looks_at(tiny: Tiny, tiny_model: TinyModel, picture: Image.Image) -> None:
    """softmax(q k / sqrt(d)) by hand, from the halves of torch's one matrix for queries, keys and values."""
    model = tiny_model("siglip")
    run, plain = model.run(TEXT, image=picture), eager(model, tiny("siglip"))
    states = plain.vision_model(inputs_of(tiny("siglip"), picture)["pixel_values"])
    head = plain.vision_model.head
    queries, keys, _ = zip(head.attention.in_proj_weight.chunk(3), head.attention.in_proj_bias.chunk(3), strict=True)
    q = F.linear(head.probe[0], *queries).reshape(2, 1, 8)
    k = F.linear(states.last_hidden_state[0], *keys).reshape(16, 2, 8).transpose(0, 1)
    by_hand = (q @ k.mT / 8**0.5).softmax(dim=-1)[:, 0]
    found = run.trace["vision.head.cross"].weights()[0, :, 0]
    torch.testing.assert_close(found, by_hand.detach(), atol=1e-6, rtol=0)
    assert set(instrument(plain)) == set(run.trace.sites) == {row.site for row in coverage(model.network, "encoder")}
    group = next(group for group in view(run).groups if group.id == "vision-head-cross")
    assert group.image is not None
    assert (group.image.of_queries, len(group.query_tokens), len(group.key_tokens)) == (False, 1, 16)
    assert switchable(model, run) == ()


SPOKEN = "the cat sat, on the mat"
SOUND = tone_sequence()


@pytest.fixture(scope="module")
def model(tiny: Tiny) -> HubModel:
    return load_hub(tiny("whisper"), device="cpu")


@pytest.fixture(scope="module")
def run(model: HubModel) -> HubRun:
    return model.run(sound=SOUND, max_new_tokens=9)


@pytest.fixture(scope="module")
def plain(model: HubModel, tiny: Tiny) -> Any:
    return eager(model, tiny("whisper"))


def features_of(sound: Sound) -> dict[str, Tensor]:
    from transformers import WhisperFeatureExtractor

    extractor = WhisperFeatureExtractor(feature_size=20, chunk_length=SECONDS)
    return dict(extractor(sound.samples, sampling_rate=RATE, return_tensors="pt", return_attention_mask=True))


def test_what_it_writes_and_when_is_what_transformers_says(model: HubModel, run: HubRun, plain: Any) -> None:
    """transformers tells when each token ends, by the step that reads it: the step that writes the next begins then."""
    options = {"return_timestamps": False, "return_token_timestamps": True, "return_dict_in_generate": True}
    options |= {"force_unique_generate_call": True, "max_new_tokens": 9}
    with torch.no_grad():
        expected = plain.generate(**features_of(SOUND), **options)
    ids = expected["sequences"][0].tolist()
    assert [token.id for token in (*run.decoder_tokens, run.target_tokens[-1])] == ids
    sound = run.sound
    assert sound is not None
    assert sound.num_prompt_tokens == 4, "start, language, task, no times"
    cross = {call.layer: call for call in run.trace if call.kind == "cross"}
    rows, keys = slice(sound.num_prompt_tokens, None), slice(sound.num_keys)
    weights = torch.stack([cross[layer].weights(head=head, queries=rows, keys=keys)[0] for layer, head in ALIGNING])
    expected_times = expected["token_timestamps"][0][sound.num_prompt_tokens : -1].numpy()
    assert len(set(expected_times.tolist())) > 3, "times that are all alike would prove nothing"
    assert np.allclose(token_starts(weights) * sound.key_seconds, expected_times, atol=1e-6)


def test_language_and_task_reach_the_model(model: HubModel, plain: Any) -> None:
    assert (model.card.languages, model.card.tasks) == (("en", "fr"), ("transcribe", "translate"))
    run = model.run(sound=SOUND, language="fr", task="translate", max_new_tokens=3)
    begin = ["<|startoftranscript|>", "<|fr|>", "<|translate|>", "<|notimestamps|>"]
    assert [token.text for token in run.decoder_tokens[:4]] == begin
    with torch.no_grad():
        expected = plain.generate(**features_of(SOUND), language="fr", task="translate", max_new_tokens=3)
    assert expected[0].tolist()[-3:] == [token.id for token in run.target_tokens[-3:]]
    run = model.run(sound=SOUND, language="fr", target=SPOKEN)
    assert [token.text for token in run.decoder_tokens[1:3]] == ["<|fr|>", "<|transcribe|>"]


def test_its_sound_is_the_input_of_the_model(run: HubRun) -> None:
    sound = run.sound
    assert sound is not None
    made = features_of(SOUND)
    frames = int(made["attention_mask"].sum())
    assert torch.equal(sound.spectrogram, made["input_features"][0, :, :frames])
    assert (sound.frame_seconds, sound.key_seconds) == (0.01, 0.02)
    assert sound.num_keys == frames // 2 == 135 == SOUND.seconds / 0.02
    assert (sound.aligning, sound.aligning_named) == (((0, 1), (1, 2)), True)
    assert [run.tokens[i].label for i in (0, 1, 62, 149)] == ["0.00 s", "0.02 s", "1.24 s", "2.98 s"]
    sizes = {maps.id: (len(maps.query_tokens), len(maps.key_tokens)) for maps in run.maps}
    assert sizes == {"encoder-self": (150, 150), "decoder-self": (12, 12), "decoder-cross": (12, 150)}


def test_words_of_a_text_that_is_given(model: HubModel) -> None:
    run = model.run(sound=SOUND, target=SPOKEN)
    words = word_times(model, run)
    assert [word.text for word in words] == ["the", "cat", "sat,", "on", "the", "mat"]
    assert run.text == SPOKEN
    assert words[0].start == 0
    assert all(word.start <= word.end for word in words)
    assert all(word.end == then.start for word, then in pairwise(words))
    assert words[-1].end <= SOUND.seconds
    for word in words:
        tokens = run.target_tokens[slice(*word.steps)]
        assert "".join(token.text for token in tokens) == word.text
    assert word_times(model, run, [(0, 0)]) != words, "another head tells other times"
    with pytest.raises(ValueError, match="expected a layer and head"):
        word_times(model, run, [(0, 4)])
    short = model.run(sound=Sound(np.full(100, 0.1, np.float32)), max_new_tokens=3)
    assert word_times(model, short)


SCRIPTS = {
    "猫が座る": [*"猫が座る"],
    "it's 5 o'clock!": ["it's", "5", "o'clock!"],
    "café 😀": ["café", "😀"],
    "=1+1": ["=1+1"],
}


@pytest.mark.parametrize("text", SCRIPTS)
def test_words_of_any_script(model: HubModel, text: str) -> None:
    assert [word.text for word in word_times(model, model.run(sound=SOUND, target=text))] == SCRIPTS[text]


def test_aligning_heads_are_those_that_there_are() -> None:
    later_half = (((1, 0), (1, 1)), False)
    assert aligning_heads([[0, 1], [1, 0]], 2, 2) == (((0, 1), (1, 0)), True)
    assert aligning_heads([[1, 1], [1, 1], [5, 5]], 2, 2) == (((1, 1),), True)
    for named in (None, [[9, 9], ["a", 0], [0], 7, [0, -1]], "none"):
        assert aligning_heads(named, 2, 2) == later_half

    for languages, tasks in ((["<|en|>"], 7), ({"<|en|>": 99, "en": 1, "<|../x|>": 1, 3: 4}, {"sing": 1})):
        nothing = SimpleNamespace(is_multilingual=True, lang_to_id=languages, task_to_id=tasks)
        assert (languages_of(nothing, 50), tasks_of(nothing, 50)) == ((), ())
