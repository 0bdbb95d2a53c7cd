"""A page that shows a view of the site without a server (docs/site.md), whose models run in the browser."""

import html
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

import torch

from viz_core.images.drawn import GARMENTS, SCENES, drawn_picture
from viz_core.pretrained import load
from viz_core.runtime.provenance import Provenance
from viz_core.runtime.viewer import show
from viz_core.trace import intervene, switched_off
from viz_core.view.hub import run_shipped
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.state import ViewState
from viz_core.view.words import ENGLISH, languages

_PAGE = """<!doctype html>
<html lang="{language}"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<body style="margin: 0">
<iframe src="{address}" title="{title}" style="border: 0; width: 100%; height: 100vh"></iframe>
"""


def live_page(view: View, state: ViewState, site: str) -> str:
    """Return the page. The model runs here as on the site: ValueError if the site would not show these maps."""
    groups, made = view.groups, view.groups[0].made
    off = [
        (group, layer, head)
        for group in groups
        for layer, head in group.heads
        if not group.calls[layer].weights(head=head)[group.row].any()
    ]
    with intervene(switched_off((group.calls[layer].site, head) for group, layer, head in off)):
        runs = () if view.second else _runs(made, len(groups[0].query_tokens))
        found = next((run for run in runs if _same(groups, show(run[2]()).groups)), None)
    if found is None:
        raise ValueError(
            "live: expected a translation (greedy or 4 beams), a greedy continuation or a sample picture, by a shipped "
            f"model; the site does not compute these maps of {made.model!r}"
        )
    file, parameters, run = found
    changed = state.display.changes_from(show(run()).state.display)
    parameters |= {
        "off": "_".join(f"{group.id}.{layer}.{head}" for group, layer, head in off),
        "head": f"{state.group}.{state.layer}.{state.head}",
        "pin": ".".join(map(str, state.pins)),
        "look": "~".join(f"{name}-{value}" for name, value in sorted(changed.items())),
    }
    language = view.language if view.language in languages() else ENGLISH
    address = f"{site.rstrip('/')}/{language}/{file}.html#{urlencode({k: v for k, v in parameters.items() if v != ''})}"
    return _PAGE.format(language=language, title=html.escape(made.text or made.model), address=html.escape(address))


def _runs(made: Provenance, num_tokens: int) -> Iterator[tuple[str, dict[str, Any], Callable[[], object]]]:
    """File of the site, parameters of its address, and the same run here, for each view that may be meant."""
    name, text = made.model, made.text
    run: Callable[..., Any]
    if name == "transformer-en-fr":
        translator: Any = load(name)
        for beam in (1, 4):
            yield "view", {"text": text, "beam": beam}, partial(translator.translate, text, beam=beam)
    elif name == "writer-en":
        run = partial(run_shipped, name, text)
        new = num_tokens - len(run(max_new_tokens=0).tokens)
        yield "view-writer", {"text": text, "new": new}, partial(run, max_new_tokens=new)
    elif name in ("vit-fashion-mnist", "vit-cifar10"):
        classifier: Any = load(name)
        for sample in GARMENTS if name == "vit-fashion-mnist" else SCENES:
            run = partial(classifier.classify, drawn_picture(sample))
            yield "view-vision-transformer", {"model": name, "sample": sample}, run


def _same(groups: Sequence[MapGroup], others: Sequence[MapGroup]) -> bool:
    known = [[(each.id, each.query_tokens, each.key_tokens, each.made) for each in some] for some in (groups, others)]
    calls = [[call.weights().cpu() for each in some for call in each.calls] for some in (groups, others)]
    return known[0] == known[1] and all(torch.allclose(a, b, atol=1e-4) for a, b in zip(*calls, strict=True))
