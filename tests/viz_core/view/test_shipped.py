"""Results of shipped models as groups: a translation, and attention over a picture on the wire."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.view_bytes import decode_view
from tests.viz_core.view.attention_groups import make_group, read_requests
from viz_core.pretrained import Translation, load
from viz_core.view.components import view_words
from viz_core.view.map_group import MapGroup, MapPicture
from viz_core.view.payload import View, encode_view
from viz_core.view.requests import Pin
from viz_core.view.responses import every_request
from viz_core.view.shipped import linked_sentences, open_translation, token_names, translation_groups
from viz_core.view.state import DisplayOptions, ViewState, read_message

LABELS = {name: name.title() for name in ("encoder-self", "decoder-self", "cross", "english", "french", "written")}


@pytest.fixture(scope="module")
def translation() -> Translation:
    return load("transformer-en-fr").translate("The black cat is sleeping on my bed.")


def test_every_kind_of_map_has_every_layer_and_its_own_tokens(translation: Translation) -> None:
    encoder, decoder, cross = translation_groups(translation, LABELS)
    assert [call.site for call in encoder.calls] == ["encoder.0.self", "encoder.1.self", "encoder.2.self"]
    assert [call.site for call in decoder.calls] == ["decoder.0.self", "decoder.1.self", "decoder.2.self"]
    assert [call.site for call in cross.calls] == ["decoder.0.cross", "decoder.1.cross", "decoder.2.cross"]
    assert encoder.query_tokens == encoder.key_tokens == translation.source_tokens
    assert (decoder.query_tokens, decoder.key_tokens) == (translation.target_tokens, translation.decoder_tokens)
    assert (cross.query_tokens, cross.key_tokens) == (translation.target_tokens, translation.source_tokens)
    assert decoder.key_tokens[0] == "<bos>"


START = ViewState("self", 1, 2, display=DisplayOptions(mode="picture"))


def picture_group(special: int = 1, rows: int = 2, columns: int = 3, **changes: Any) -> MapGroup:
    """Patches of 4 x 4 pixels, each of another grey."""
    names = token_names((rows, columns), special)
    greys = np.arange(rows * columns, dtype=np.uint8).reshape(rows, columns) * 9
    pixels = np.repeat(np.kron(greys, np.ones((4, 4), dtype=np.uint8))[..., None], 3, axis=2)
    image = changes.pop("image", MapPicture(pixels, (rows, columns), special))
    return make_group(len(names), len(names), "self", query_tokens=names, key_tokens=names, image=image, **changes)


@pytest.fixture
def group() -> MapGroup:
    return picture_group()


@pytest.fixture
def view(group: MapGroup) -> View:
    return View([group, make_group(7, 5)], view_words())


def test_tokens_are_named_by_row_and_column() -> None:
    assert token_names((2, 2), 3) == ("[CLS]", "[REG 1]", "[REG 2]", "1, 1", "1, 2", "2, 1", "2, 2")
    assert token_names((1, 2), 0) == ("1, 1", "1, 2")


def test_a_picture_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 8 queries and keys, its special tokens and patches, got 7 and 7"):
        picture_group(image=MapPicture(np.zeros((8, 12, 3), np.uint8), (2, 3), 2))


def test_a_first_answer_holds_the_picture_and_what_the_pinned_tokens_look_at(view: View, group: MapGroup) -> None:
    for pins, tokens in (((), [0]), ((Pin("query", 4), Pin("query", 2)), [4, 2])):
        decoded = decode_view(encode_view(view, replace(START, pins=pins)))
        rows = {f"token 0 self {layer} q{token}" for layer in range(2) for token in tokens}
        assert set(decoded.parts) == {"picture 0 self 0", "picture 0 self 1", "image 0 self", *rows}
        assert decoded.header["base"]["groups"][0][0]["image"] == {"grid": [2, 3], "special": 1}
        assert decoded.header["base"]["groups"][0][1]["image"] is None
        assert torch.equal(decoded.parts["image 0 self"], torch.from_numpy(group.image.pixels))  # type: ignore[union-attr]
        for layer in range(2):
            for token in tokens:
                expected = group.calls[layer].weights()[0, :, token]
                assert torch.equal(decoded.parts[f"token 0 self {layer} q{token}"], expected)


def test_who_looks_at_a_token(view: View, group: MapGroup) -> None:
    parts = decode_view(encode_view(view, START, known=True, wants=read_requests("token 0 self 1 k5"))).parts
    assert torch.equal(parts["token 0 self 1 k5"], group.calls[1].weights()[0, :, :, 5])


@pytest.mark.parametrize(
    "name",
    ["image 0 cross", "image 1 self", "token 0 self 2 q0", "token 0 self 0 q7", "token 0 self 0 z1", "token 0 no 0 q0"],
)
def test_what_is_not_there_is_named_as_missing(view: View, name: str) -> None:
    decoded = decode_view(encode_view(view, START, known=True, wants=read_requests(name)))
    assert decoded.header["missing"] == [name]


def test_a_file_holds_the_picture_and_the_class_tokens_look(view: View) -> None:
    assert {"image 0 self", "token 0 self 0 q0", "token 0 self 1 q0"} <= set(
        map(str, every_request(view.groups, (), 0))
    )


def test_only_groups_with_a_picture_are_shown_over_one(view: View) -> None:
    message = {"group": "cross", "layer": 0, "head": 0, "display": {"mode": "picture"}}
    assert read_message(message, view.groups, START) is None


def test_weights_between_words_follow_from_those_between_pieces() -> None:
    model = load("transformer-en-fr", device="cpu")
    translation = model.translate("Photographers photographed the unbelievable sunset.")
    groups, opened = open_translation(translation, "en")
    found = linked_sentences(groups)
    source, target = found["lines"]
    assert len(source) < len(translation.source_tokens)
    assert "".join(source) == "".join(translation.source_tokens)
    assert "".join(target) == "".join(translation.target_tokens)
    across = found["across"]
    assert (across["layer"], across["head"], across["pattern"]) == (opened.layer, opened.head, "written")
    weights = translation.trace[f"decoder.{opened.layer}.cross"].weights(head=opened.head)[0]
    rows, columns = (
        [[i for i, own in enumerate(numbers) if own == word] for word in range(numbers[-1] + 1)]
        for numbers in (translation.target_words, translation.source_words)
    )
    for query, own in zip(rows, across["weights"], strict=True):
        assert own == pytest.approx([float(weights[query][:, key].sum(dim=1).mean()) for key in columns], abs=6e-4)
    assert found["within"] is None or found["within"]["pattern"] in ("previous", "next")
