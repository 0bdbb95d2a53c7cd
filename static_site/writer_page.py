"""The page of the shipped writer."""

from __future__ import annotations

import html
from typing import Any

from static_site.model_pages import ModelPage, add_model, common_data, example_buttons, text_area
from static_site.pages import Words
from static_site.site_files import SiteFiles
from static_site.tokenizers import add_text_tokenizer
from static_site.words import html_of
from static_site.writer_graph import export_writer
from viz_core.hub import HubModel, load_hub
from viz_core.view.words import group_labels

NAME = "writer-en"
GROUP = "decoder-self"
PROBLEMS = {
    "empty": "There is nothing to read yet: type a text.",
    "too-many": "This text has {count:,} tokens; the model takes at most {most:,}. Shorten it.",
}
NUMBERS = {"new": (0, 100, 1, 12), "temperature": (0, 2, 0.05, 0), "topk": (0, 200, 1, 0), "seed": (0, 9999, 1, 0)}
"""The controls with a number, as in the model lab: least, most, step and first value."""

RESULT = """<p class="note" data-part="whole-caption" hidden></p>
<p lang="en" class="translation whole" data-part="whole" hidden></p>
<p class="note" data-part="caption" hidden></p>
<p lang="en" class="translation"><span data-part="given"></span><mark data-part="result">&nbsp;</mark></p>"""


def load_model() -> HubModel:
    """The writer on the CPU."""
    return load_hub(NAME, device="cpu", offline=True)


def add_files(files: SiteFiles, writer: HubModel) -> dict[str, Any]:
    """Add the writer's graph and weights, and the tokenizer."""
    return add_model(files, NAME, *export_writer(writer.network)) | {"tokenizer": add_text_tokenizer(files, NAME)}


def page(words: Words) -> ModelPage:
    """The writer's parts of the page."""
    fields = "".join(
        f'<label class="number">{html.escape(words.label("model-lab", name))}<input type="number" name="{name}" '
        f'min="{least}" max="{most}" step="{step}" value="{first}"></label>'
        for name, (least, most, step, first) in NUMBERS.items()
    )
    button = f'<button type="submit">{words.of("site", "write")}</button>'
    return ModelPage(
        "writer",
        "model-lab",
        words.of("walk", "option.writer"),
        text_area(words.label("model-lab", "start")) + fields + button,
        example_buttons(words, [words.of("walk", "start.writer"), words.of("model-lab", "start.decoder")]),
        RESULT,
        words.of("model-lab", "look.maps"),
        ("rows", "cache"),
        html_of(words.of("site", "definition.writer")),
    )


def data(words: Words, writer: HubModel, files: dict[str, Any]) -> dict[str, Any]:
    """What the writer's script reads."""
    config = writer.network.config
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    names = (("translation", "measured"), ("model-lab", "incomplete"))
    return common_data(words, PROBLEMS, *names) | {
        "labels": group_labels("model-lab", words.language),
        "files": files,
        "sizes": {
            "layers": layers,
            "heads": heads,
            "keyHeads": config.num_key_value_heads,
            "size": config.head_dim,
            "room": config.max_position_embeddings,
        },
        "heads": [f"{GROUP}.{layer}.{head}" for layer in range(layers) for head in range(heads)],
        "open": f"{GROUP}.{layers // 2}.0",
        "model": writer.card.name,
        "revision": writer.card.revision,
        "example": words.of("walk", "start.writer"),
    }
