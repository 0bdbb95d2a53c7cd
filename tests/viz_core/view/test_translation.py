"""A translation's maps as groups, and which head opens first."""

from __future__ import annotations

import pytest

from viz_core.pretrained import Translation, load
from viz_core.view.shipped import aligning_head, translation_groups

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


def test_the_first_head_opened_aligns_the_words(translation: Translation) -> None:
    groups = translation_groups(translation, LABELS)
    view = aligning_head(groups)
    assert (view.group, view.layer) == ("cross", 2)
    weights = translation.trace["decoder.2.cross"].weights(head=view.head)[0]
    attended = {
        french: translation.source_tokens[int(row.argmax())]
        for french, row in zip(translation.target_tokens, weights, strict=True)
    }
    # French puts the colour behind the animal: the head follows the words, not the places.
    assert attended["chat"] == "cat"
    assert attended["noir"] == "black"
    assert attended["lit"] == "bed"
