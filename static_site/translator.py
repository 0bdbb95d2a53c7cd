"""The pages of the shipped translator and of its walk."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from static_site.files import SiteFiles
from static_site.model_files import tokenizer_json
from static_site.model_pages import ModelPage, add_model, common_data, example_buttons, input_part, text_area
from static_site.pages import PAGES, Words, whole_page
from static_site.translator_graph import export_translator
from ui.text.words import load_words
from ui.widgets.walk import encode_walk, walk_links, walk_words
from viz_core.lab.walk import walk_translation
from viz_core.pretrained import Translator, load
from viz_core.trace import Trace
from viz_core.view.components import group_labels

NAME = "transformer-en-fr"
BEAMS = (1, 4)
EXAMPLE = "preset.letter"
PRESETS = ("preset.go", "preset.calm", "preset.home", "preset.cat", "preset.book", "preset.rain")
PROBLEMS = {
    "too-long": "This text has {count:,} characters; at most {most:,} can be translated.",
    "empty": "There is nothing to translate yet: type an English sentence.",
    "unknown": "The model knows no word or sign in this text. It was trained on English in Latin letters.",
    "too-many": "This text has {count:,} tokens; the model takes at most {most:,}. Shorten it.",
}
RESULT = '<p lang="fr" class="translation" data-part="result">&nbsp;</p>'


def load_model() -> Translator:
    """The translator on the CPU."""
    translator = load(NAME, device="cpu")
    assert isinstance(translator, Translator)
    return translator


def add_files(files: SiteFiles, translator: Translator) -> dict[str, Any]:
    """Add the translator's graphs, weights and tokenizer."""
    graphs, store = export_translator(translator.model)
    return add_model(files, NAME, graphs, store, tokenizer=tokenizer_json(translator.tokenizer))


def page(words: Words) -> ModelPage:
    """The translator's parts of the page."""
    named = {beam: "greedy" if beam == 1 else f"beam {beam}" for beam in BEAMS}
    searches = {beam: html.escape(words.of("transformer", f"option.{option}")) for beam, option in named.items()}
    options = "".join(f'<option value="{beam}">{text}</option>' for beam, text in searches.items())
    label = html.escape(words.label("transformer", "search"))
    return ModelPage(
        "transformer",
        "transformer",
        words.title("transformer"),
        text_area(words.label("transformer", "text"), words.of("translation", "placeholder"))
        + f'<label>{label}<select name="beam">{options}</select></label>'
        + f'<button type="submit">{words.of("translation", "translate")}</button>',
        example_buttons(words, [words.of("translation", name) for name in PRESETS]),
        RESULT,
        words.of("transformer", "look.maps"),
        ("rows", "cache"),
        lang=' lang="fr"',
    )


def recorded(words: Words, translator: Translator) -> tuple[dict[str, Any], Trace]:
    """The translation of the example, as `translate` of translator.js returns it."""
    found = translator.translate(words.of("translation", EXAMPLE))
    sides = {"source": found.source_tokens, "target": found.target_tokens, "decoder": found.decoder_tokens}
    numbers = {"source": found.source_words, "target": found.target_words, "decoder": found.decoder_words}
    return {
        "text": found.text,
        "sourceText": found.made.text,
        "source": found.source_ids,
        "target": found.target_ids,
        **{f"{side}Tokens": tokens for side, tokens in sides.items()},
        **{f"{side}Words": words for side, words in numbers.items()},
        "logProbability": found.log_probability,
        "cacheError": found.cache_error,
        "numUnknown": found.num_unknown,
        "isComplete": found.complete,
    }, found.trace


def data(words: Words, translator: Translator, files: dict[str, Any]) -> dict[str, Any]:
    """What the translator's script reads."""
    blocks = translator.model.encoder.blocks
    layers, heads, size = len(blocks), blocks[0].attention.num_heads, blocks[0].attention.head_dim
    alignments = translator.card.training["alignments"]
    best = np.unravel_index(np.argmin(alignments["written"]), (layers, heads))
    names = (("translation", "measured"), ("translation", "incomplete"), ("translation", "unknown", "unknown-count"))
    groups = ("encoder-self", "decoder-self", "cross")
    return common_data(words, PROBLEMS, *names) | {
        "labels": group_labels("translation", words.language),
        "files": files,
        "sizes": {"layers": layers, "heads": heads, "size": size},
        "heads": [f"{group}.{layer}.{head}" for group in groups for layer in range(layers) for head in range(heads)],
        "errors": [alignments["written"], alignments["read"]],
        "open": ".".join(["cross", *map(str, best)]),
        "model": translator.card.name,
        "revision": translator.card.revision,
        "example": words.of("translation", EXAMPLE),
        "beams": BEAMS,
    }


WALK_EXAMPLE = "preset.cat"
_EDIT = ("hide-key", "show-key")
"""Words for what the graphs cannot do; without them the component does not offer it."""


def walk_page(files: SiteFiles, words: Words, translator: Translator, own: dict[str, Any], app: str) -> str:
    """The page of the walk, which opens with its first picture recorded.

    Args:
        own: data of the translator's page, whose model this page runs.
    """
    chapter, text = load_words("walk", words.language), words.of("translation", WALK_EXAMPLE)
    texts: dict[str, Any] = {
        "words": {name: word for name, word in walk_words(chapter).items() if name not in _EDIT},
        "links": {
            stage: (f"{PAGES.get(link[2:], link[2:])}.html", title)
            for stage, (link, title) in walk_links(chapter).items()
        },
        "language": words.language,
    }
    walk = walk_translation(translator, text)
    first = encode_walk(walk, key=f"{text} ", kind="translator", block=(0, 0), edits=(), before=None, **texts)
    data = common_data(words, PROBLEMS) | {
        "texts": texts,
        "example": text,
        "recorded": files.add(f"models/recorded/walk.{words.language}.bin", first),
        **{name: own[name] for name in ("files", "sizes", "heads")},
    }
    button = f'<button type="submit">{words.of("translation", "translate")}</button>'
    controls = text_area(words.label("walk", "text"), words.of("walk", "placeholder")) + button
    body = (
        input_part(words, controls, example_buttons(words, [words.of("translation", name) for name in PRESETS]))
        + f'<div class="walk-host" data-part="walk"></div><p class="note">{html.escape(words.of("walk", "hint"))}</p>'
    )
    return whole_page(
        words, "walk", words.title("walk"), words.of("walk", "question"), body, data, chapter="walk", app=app
    )
