"""The page of the shipped reader, which predicts masked words."""

from __future__ import annotations

from typing import Any

from static_site.model_pages import ModelPage, add_model, common_data, example_buttons, text_area
from static_site.pages import Words
from static_site.reader_graph import export_reader
from static_site.site_files import SiteFiles
from static_site.tokenizers import add_text_tokenizer
from static_site.words import html_of
from static_site.writer_page import PROBLEMS
from viz_core.hub import HubModel, load_hub
from viz_core.view.words import group_labels

NAME = "reader-en"
GROUP = "encoder-self"
EXAMPLES = {
    "The cat is sleeping on the bed.": [7],
    "I want to help you.": [2],
    "I don't know what to say.": [3],
}
"""Texts, and the numbers of their masked words, as words of maps are counted: 0 is the token before the text."""

RESULT = """<p class="note" data-part="whole-caption" hidden></p>
<p lang="en" class="translation whole" data-part="whole" hidden></p>
<p class="note" data-part="caption" hidden></p>
<p lang="en" class="translation words" data-part="result">&nbsp;</p>
<div class="bars" lang="en" data-part="bars"></div>"""


def load_model() -> HubModel:
    """The reader on the CPU."""
    return load_hub(NAME, device="cpu", offline=True)


def add_files(files: SiteFiles, reader: HubModel) -> dict[str, Any]:
    """Add the reader's graph and weights, and the tokenizer."""
    return add_model(files, NAME, *export_reader(reader.network)) | {"tokenizer": add_text_tokenizer(files, NAME)}


def page(words: Words) -> ModelPage:
    """The reader's parts of the page."""
    return ModelPage(
        "reader",
        "model-lab",
        words.of("site", "reader"),
        text_area(words.label("model-lab", "start")) + f'<button type="submit">{words.of("site", "predict")}</button>',
        example_buttons(words, list(EXAMPLES)) + f'<p class="note">{words.of("site", "mask")}</p>',
        RESULT,
        words.of("model-lab", "look.maps"),
        ("rows",),
        html_of(words.of("site", "definition.reader")),
    )


def data(words: Words, reader: HubModel, files: dict[str, Any]) -> dict[str, Any]:
    """What the reader's script reads."""
    config = reader.network.config
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    return common_data(words, PROBLEMS) | {
        "labels": group_labels("model-lab", words.language),
        "files": files,
        "sizes": {
            "layers": layers,
            "heads": heads,
            "size": config.hidden_size // heads,
            "room": config.max_position_embeddings,
        },
        "heads": [f"{GROUP}.{layer}.{head}" for layer in range(layers) for head in range(heads)],
        "open": f"{GROUP}.{layers // 2}.0",
        "model": reader.card.name,
        "revision": reader.card.revision,
        "examples": EXAMPLES,
        "example": next(iter(EXAMPLES)),
        "mask": next(iter(EXAMPLES.values())),
    }
