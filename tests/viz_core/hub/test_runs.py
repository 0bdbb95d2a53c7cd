"""Running models: what comes in, what comes out, who may share one."""

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.viz_core.hub.conftest import TinyModel, noise
from viz_core.hub import HubError, Sampling, load_hub
from viz_core.images.open_image import Video
from viz_core.positional import BY_NAME, alibi_slopes, angular_frequencies, t5_relative_position_bucket
from viz_core.sounds.sound import RATE, Sound, tone_sequence

TEXT = "The cat sat on the mat."


def test_maps_of_an_encoder_decoder_have_their_tokens(tiny_model: TinyModel) -> None:
    run = tiny_model("marian").run(TEXT, max_new_tokens=4)
    by_id = {maps.id: maps for maps in run.maps}
    assert list(by_id) == ["encoder-self", "decoder-self", "decoder-cross"]
    assert [call.site for call in by_id["decoder-cross"].calls] == ["decoder.0.cross", "decoder.1.cross"]
    for maps in run.maps:
        for call in maps.calls:
            assert (call.num_queries, call.num_keys) == (len(maps.query_tokens), len(maps.key_tokens))
    assert by_id["decoder-self"].key_tokens[0].label == "<pad>"  # where Marian's decoder begins
    assert by_id["decoder-self"].key_tokens[1:] == by_id["decoder-self"].query_tokens[:-1]
    assert by_id["encoder-self"].key_tokens[-1].label == "<eos>"


@pytest.mark.parametrize("family", ["marian", "bart", "t5"])
def test_a_given_translation_is_what_the_decoder_writes(family: str, tiny_model: TinyModel) -> None:
    run = tiny_model(family).run(TEXT, target="She reads a book")
    assert (run.text, run.target_tokens[-1].label) == ("She reads a book", "<eos>")
    assert [t.id for t in run.decoder_tokens[1:]] == [t.id for t in run.target_tokens[:-1]]


def test_a_decoder_continues_as_told(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2")
    run = model.run("The cat", target=" sat on the mat")
    assert run.text == "sat on the mat"
    assert run.num_prompt_tokens == len(model.run("The cat", max_new_tokens=0).tokens)
    assert "".join(token.label for token in run.tokens).replace("·", " ") == "The cat sat on the mat"
    assert model.run("The cat", target=" sat\n on the mat\n").text == "sat\n on the mat\n", "line breaks stay"
    only_read = model.run(TEXT, max_new_tokens=0)
    assert (only_read.text, only_read.complete, only_read.num_prompt_tokens) == ("", True, len(only_read.tokens))
    cut_short = model.run(TEXT, max_new_tokens=3)
    assert (len(cut_short.tokens) - cut_short.num_prompt_tokens, cut_short.complete) == (3, False)
    for wrong in ({"temperature": -1.0}, {"temperature": 101.0}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Sampling(**wrong)  # type: ignore[arg-type]


def test_what_is_written_fits_the_model(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2")  # 64 positions
    prompt = " cat" * 60
    assert len(model.run(prompt, max_new_tokens=50).tokens) <= 64
    assert len(model.run(TEXT, max_new_tokens=50, max_tokens=15).tokens) <= 15


def test_sampling_is_by_seed_and_leaves_global_random_numbers_alone(tiny_model: TinyModel) -> None:
    model = tiny_model("llama")

    def write(**options: Any) -> list[int]:
        run = model.run(TEXT, max_new_tokens=8, sampling=Sampling(**options))
        return [token.id for token in run.tokens[run.num_prompt_tokens :]]

    torch.manual_seed(5)
    before = torch.get_rng_state()
    drawn = [write(temperature=1.5, seed=seed) for seed in (0, 0, 1)]
    assert torch.equal(torch.get_rng_state(), before)
    assert drawn[0] == drawn[1] != drawn[2]
    assert write(temperature=1.5, top_k=1, seed=3) == write()
    assert write(temperature=1.5, top_p=1e-6, seed=3) == write()


def test_drawing_follows_the_probabilities() -> None:
    from viz_core.hub.runs.generation import GumbelNoise

    logits = torch.tensor([[2.0, 0.0, -1.0, 1.0]])
    noise = GumbelNoise(0)
    drawn = torch.stack([noise(torch.zeros(1, 1, dtype=torch.long), logits).argmax() for _ in range(4000)])
    shares = torch.bincount(drawn, minlength=4) / len(drawn)
    torch.testing.assert_close(shares, logits[0].softmax(dim=-1), atol=0.025, rtol=0)


def test_next_words_and_classes_are_softmaxes(tiny_model: TinyModel) -> None:
    model = tiny_model("qwen3")
    run = model.run(TEXT, max_new_tokens=1)
    before_last = model.next_words(run, position=-2, count=400)
    assert before_last[0].token.id == run.tokens[-1].id  # greedy took the likeliest
    assert sum(word.probability for word in before_last) == pytest.approx(1, abs=1e-5)
    cold = model.next_words(run, position=-2, count=3, temperature=0.5)
    expected = (run.output[-2] / 0.5).softmax(dim=-1).topk(3)
    assert [word.token.id for word in cold] == expected.indices.tolist()
    assert [word.probability for word in cold] == pytest.approx(expected.values.tolist())
    sorted_text = tiny_model("sorter").run(TEXT)
    falling = sorted_text.output.argsort(descending=True).tolist()
    assert [label.text for label in sorted_text.labels] == [f"LABEL_{i}" for i in falling]
    assert sum(label.probability for label in sorted_text.labels) == pytest.approx(1, abs=1e-5)


def test_only_the_last_logits_are_kept(tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, dict[str, Any]] = {"llama": {"max_new_tokens": 0}, "bart": {"target": "a cat sat on the mat"}}
    whole = {family: tiny_model(family).run(TEXT, **options) for family, options in given.items()}
    monkeypatch.setattr("viz_core.hub.kinds.base._LOGIT_BYTES", 3 * 400 * 4)
    for family in ("llama", "bart"):
        short = tiny_model(family).run(TEXT, **given[family])
        assert short.output.shape == (3, 400)
        torch.testing.assert_close(short.output, whole[family].output[-3:])


PICTURE, SOUND = noise(2), tone_sequence()
VIDEO = Video.of([PICTURE] * 3, fps=2)
LONG_SOUND = Sound(np.zeros(3 * RATE + 1, np.float32))
REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "bert": [
        ({"text": " \n\t"}, "nothing to read"),
        ({"text": "\0\x01"}, "nothing to read"),
        ({"text": "a", "text_pair": " "}, "both texts"),
        ({"text": "a", "target": "b"}, "only reads"),
        ({"text": "a", "language": "en"}, "offers no choice of language or task"),
        ({"text": "a", "video": VIDEO}, "takes no video"),
        ({"text": "cat " * 63}, "65 tokens; the model takes at most 64"),
        ({"text": "the cat", "max_tokens": 3}, "4 tokens; at most 3 are allowed"),
    ],
    "roberta": [({"text": "t" * 100}, "the model takes at most 63")],
    "gpt2": [({"text": ""}, "nothing to read"), ({"text": "a", "target": ""}, "nothing to write")],
    "marian": [({"text": "a", "target": "zq " * 100}, "the model takes at most 64")],
    "vit": [({"image": PICTURE, "text": "a"}, "takes a picture")],
    "clip": [
        ({"text": " ", "image": PICTURE}, "nothing to read"),
        ({"text": TEXT * 9, "image": PICTURE}, "at most 24"),
    ],
    "whisper": [
        ({"sound": LONG_SOUND}, "hears at most 3 s"),
        ({"sound": SOUND, "target": " "}, "type the target"),
        ({"sound": SOUND, "target": "cat " * 80}, "writes at most 56"),
        ({"sound": SOUND, "language": "de"}, "accepts en, fr, transcribe, translate, not"),
    ],
    "llava": [
        ({"text": "<image>", "image": PICTURE}, "nothing to read yet"),
        ({"text": "a <image> and <image>", "image": PICTURE}, "more than once"),
        ({"text": TEXT, "image": PICTURE, "max_tokens": 20}, "picture and the text together have .* at most 20"),
        ({"text": TEXT, "video": VIDEO}, "not trained on videos"),
    ],
    "qwen2_vl": [
        ({"text": "a <|image_pad|> of a cat", "image": PICTURE}, "leave it out"),
        ({"text": TEXT, "image": Image.new("RGB", (2000, 2))}, "cannot be prepared"),
        ({"text": TEXT, "video": VIDEO, "max_tokens": 20}, "picture and the text together have .* at most 20"),
    ],
    "smolvlm": [({"text": TEXT, "video": VIDEO, "image": PICTURE}, "a picture or a video, not both")],
    "transformer-en-fr": [
        ({"text": TEXT, "max_tokens": 3}, "at most 3 are allowed"),
        ({"text": TEXT, "sampling": Sampling(1.0)}, "set the temperature to 0"),
    ],
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_input_that_cannot_be_taken_is_one_sentence(name: str, tiny_model: TinyModel) -> None:
    model = load_hub(name, device="cpu") if "-" in name else tiny_model(name)
    for given, why in REFUSED[name]:
        with pytest.raises(HubError, match=why) as error:
            model.run(**given)
        assert "\n" not in str(error.value)


def test_a_model_with_attention_of_its_own_holds_maps_within_bounds(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("bloom")
    assert model.card.recording == "maps"
    run = model.run(TEXT, max_new_tokens=0)
    assert run.trace.nbytes == 2 * (4 * len(run.tokens) ** 2 * 4 + len(run.tokens))  # and which keys are tokens
    monkeypatch.setattr("viz_core.hub.kinds.base._MAP_BYTES", 1000)
    with pytest.raises(HubError, match="whole maps.*at most about"):
        model.run(TEXT, max_new_tokens=0)


TABLES = {
    "bert": ("embeddings.position_embeddings.weight", 0),
    "roberta": ("embeddings.position_embeddings.weight", 1),  # rows up to padding's are free
    "gpt2": ("transformer.wpe.weight", 0),
    "bart": ("model.encoder.embed_positions.weight", 2),
}
_ANGLES = torch.arange(64)[:, None] * angular_frequencies(32)
OTHERS = {
    "marian": ("sinusoidal", torch.cat([_ANGLES.sin(), _ANGLES.cos()], dim=1).float()),
    "llama": ("rotary", angular_frequencies(8, 10000.0).float()),
    "bloom": ("alibi", alibi_slopes(4).float()),
}
SPECIAL = {"vit": 1, "deit": 2, "dinov2": 1}


@pytest.mark.parametrize("family", [*TABLES, *OTHERS, *SPECIAL])
def test_positions(family: str, tiny_model: TinyModel) -> None:
    model = tiny_model(family)
    positions, *others = model.positions
    scheme, expected = OTHERS.get(family, ("learned", None))
    assert scheme in BY_NAME
    assert [each.scheme for each in others] == ([scheme] if family in ("bart", "marian") else [])
    assert (positions.scheme, positions.num_special) == (scheme, SPECIAL.get(family, 0))
    if family in TABLES:
        table, first = model.network.get_parameter(TABLES[family][0]), TABLES[family][1]
        assert torch.equal(positions.values, table[first:])
        assert positions.values.data_ptr() != table.data_ptr(), "what is given away is a copy"
        assert model.card.max_tokens == len(table) - first
    elif expected is None:
        assert tuple(positions.values.shape) == (16 + SPECIAL[family], 32)
    else:
        torch.testing.assert_close(positions.values, expected, atol=1e-5, rtol=1e-6)


def test_t5_biases_are_those_added_to_the_scores(tiny_model: TinyModel) -> None:
    model = tiny_model("t5")
    encoder, decoder = model.positions
    assert [(p.stack, p.bidirectional, p.max_distance, tuple(p.values.shape)) for p in model.positions] == [
        ("encoder", True, 128, (8, 4)),
        ("decoder", False, 128, (8, 4)),
    ]
    run = model.run("The cat sat", target="a cat")
    for positions, site in ((encoder, "encoder.0.self"), (decoder, "decoder.0.self")):
        bias = run.trace[site].source.bias[0]
        n = bias.shape[-1]
        offsets = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        buckets = t5_relative_position_bucket(offsets, positions.bidirectional, 8, 128)
        assert torch.equal(bias, positions.values[buckets].permute(2, 0, 1))
