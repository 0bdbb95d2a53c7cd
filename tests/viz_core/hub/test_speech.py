"""A speech model: its maps, what it writes and its times are those of transformers."""

from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.viz_core.hub.conftest import Tiny
from tests.viz_core.hub.test_families import eager
from tests.viz_core.hub.tiny_talkers import ALIGNING, SECONDS
from viz_core.hub import HubModel, HubRun, load_hub
from viz_core.hub.runs.sound_input import aligning_heads, languages_of, tasks_of
from viz_core.hub.word_timestamps import word_times
from viz_core.maps.alignments import token_starts
from viz_core.sounds.sound import RATE, Sound, tone_sequence

TEXT = "the cat sat, on the mat"
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


def test_it_is_told_what_is_spoken_and_what_to_write(model: HubModel, plain: Any) -> None:
    assert (model.card.languages, model.card.tasks) == (("en", "fr"), ("transcribe", "translate"))
    run = model.run(sound=SOUND, language="fr", task="translate", max_new_tokens=3)
    begin = ["<|startoftranscript|>", "<|fr|>", "<|translate|>", "<|notimestamps|>"]
    assert [token.text for token in run.decoder_tokens[:4]] == begin
    with torch.no_grad():
        expected = plain.generate(**features_of(SOUND), language="fr", task="translate", max_new_tokens=3)
    assert expected[0].tolist()[-3:] == [token.id for token in run.target_tokens[-3:]]
    run = model.run(sound=SOUND, language="fr", target=TEXT)
    assert [token.text for token in run.decoder_tokens[1:3]] == ["<|fr|>", "<|transcribe|>"]


UNSPOKEN: list[dict[str, Any]] = [
    {"lang_to_id": {"<|en|>": 1}, "task_to_id": {"translate": 2}},
    {"is_multilingual": False, "lang_to_id": {"<|en|>": 1}, "task_to_id": {"translate": 2}},
    {"is_multilingual": True, "lang_to_id": ["<|en|>"], "task_to_id": 7},
    {"is_multilingual": True, "lang_to_id": {"<|en|>": 99, "en": 1, "<|../x|>": 1, 3: 4}, "task_to_id": {"sing": 1}},
]


def test_nothing_is_offered_where_nothing_can_be_shown() -> None:
    for config in UNSPOKEN:
        named = SimpleNamespace(**config)
        assert (languages_of(named, 50), tasks_of(named, 50)) == ((), ())


def test_what_it_heard_is_what_the_model_was_given(run: HubRun) -> None:
    sound = run.sound
    assert sound is not None
    made = features_of(SOUND)
    frames = int(made["attention_mask"].sum())
    assert torch.equal(sound.spectrogram, made["input_features"][0, :, :frames])
    assert (sound.frame_seconds, sound.key_seconds) == (0.01, 0.02)
    assert sound.num_keys == frames // 2 == 135 == SOUND.seconds / 0.02
    assert (sound.aligning, sound.aligning_named) == (((0, 1), (1, 2)), True)
    assert [run.tokens[i].label for i in (0, 1, 62, 149)] == ["0.00 s", "0.02 s", "1.24 s", "2.98 s"]
    assert not run.complete
    assert run.text.split()
    assert [(maps.id, len(maps.query_tokens), len(maps.key_tokens)) for maps in run.maps] == [
        ("encoder-self", 150, 150),
        ("decoder-self", 12, 12),
        ("decoder-cross", 12, 150),
    ]


def test_words_of_a_text_that_is_given(model: HubModel) -> None:
    run = model.run(sound=SOUND, target=TEXT)
    words = word_times(model, run)
    assert [word.text for word in words] == ["the", "cat", "sat,", "on", "the", "mat"]
    assert run.text == TEXT
    assert run.complete
    assert run.target_tokens[-1].text == "<|endoftext|>"
    assert words[0].start == 0
    assert all(word.start <= word.end for word in words)
    assert all(word.end == then.start for word, then in pairwise(words))
    assert words[-1].end <= SOUND.seconds
    for word in words:
        tokens = run.target_tokens[slice(*word.steps)]
        assert "".join(token.text for token in tokens) == word.text
    assert word_times(model, run, [(0, 0)]) != words, "another head tells other times"
    for head in ((2, 0), (0, 4), (0, -1)):
        with pytest.raises(ValueError, match="expected a layer and head"):
            word_times(model, run, [head])
    with pytest.raises(ValueError, match="heard a sound"):
        word_times(model, HubRun((), run.trace, torch.zeros(1)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("猫が座る", ["猫", "が", "座", "る"]),
        ("it's 5 o'clock!", ["it's", "5", "o'clock!"]),
        ("naïve café 😀", ["naïve", "café", "😀"]),
        ("=1+1", ["=1+1"]),
    ],
)
def test_words_of_any_script(model: HubModel, text: str, words: list[str]) -> None:
    run = model.run(sound=SOUND, target=text)
    assert [word.text for word in word_times(model, run)] == words


def test_a_short_sound_and_one_of_silence(model: HubModel) -> None:
    for samples in (np.full(100, 0.1, np.float32), np.zeros(RATE, np.float32)):
        run = model.run(sound=Sound(samples), max_new_tokens=3)
        assert run.sound is not None
        assert run.sound.num_keys == max(1, len(samples) // 320)
        assert word_times(model, run)


def test_aligning_heads_are_those_that_there_are() -> None:
    later_half = (((1, 0), (1, 1)), False)
    assert aligning_heads([[0, 1], [1, 0]], 2, 2) == (((0, 1), (1, 0)), True)
    assert aligning_heads([[1, 1], [1, 1], [5, 5]], 2, 2) == (((1, 1),), True)
    for named in (None, [[9, 9], ["a", 0], [0], 7, [0, -1]], "none"):
        assert aligning_heads(named, 2, 2) == later_half


def test_a_model_without_its_extractor(copy: Tiny, refused: Callable[..., str]) -> None:
    path = copy("whisper")
    (path / "preprocessor_config.json").unlink()
    refused(path, "lacks its preprocessor_config.json")
