"""The component that plays a walk, and what it says in the reader's language.

The component in assets/components/walk gets one forward pass as bytes. The header (see `framing`) holds

    key           identifies the pass; blocks that a browser already has stay valid while it is the same
    kind          "writer", "translator" or "picture"
    stacks        name, tokens, vectors {embedded, positions or null}, small maps of each block, and the head of each
                  of its attentions that is shown first, with its pattern or null; `opens`: the block to show first
    block         [stack, number] of the block that follows; blocks are sent one at a time
    input, attentions, neurons, ffn, output
                  of that block; an attention is {site, crosses, heads, key_heads, rows, columns, masked, arrays...}
    choices       {words, logits, probabilities, chosen, before} of each step; `before`: {probabilities, chosen} of the
                  model without the changes, or null where it has none after the same words
    outcomes      null without changes; otherwise {before, now}, each {text, words: [[word, probability or null]]}
    given, edits, picture, state, language, words, links, small

An array is {offset, shape, type}: "f4", "f2", or "i1" for vectors that are only coloured, with the value of 127 as
`scale`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from ui.text.words import Words, load_words
from ui.widgets.component import component
from viz_core.view.components import Sections, frame, unframe

if TYPE_CHECKING:  # it brings torch, which a page with a small walk need not wait for
    from viz_core.lab.walk_records import Attention, Block, Choice, Edits, Stack, Walk

CHAPTERS = {
    "tokens": "vision-transformer",
    "positions": "sinusoidal-encoding",
    "rotation": "position-embeddings",
    "projections": "queries-keys-values",
    "scores": "scoring-functions",
    "mask": "scoring-functions",
    "softmax": "scoring-functions",
    "sum": "attention-pooling",
    "heads": "multi-head",
    "residual": "transformer",
    "feed-forward": "transformer",
    "logits": "model-lab",
    "choice": "model-lab",
}
"""The chapter that explains a stage of the walk."""

mount_walk: Callable[..., Any] = component("walk")


def walk_links(words: Words) -> dict[str, tuple[str, str]]:
    """Return address and title of the chapter that explains a stage, by stage."""
    titles = {chapter: load_words(chapter, words.language).title for chapter in CHAPTERS.values()}
    return {stage: (f"./{chapter}", titles[chapter]) for stage, chapter in CHAPTERS.items() if stage != "tokens"}


def walk_words(words: Words) -> dict[str, str]:
    """Return what the component says, and the words for patterns of heads, which the attention view has too."""
    others = load_words("attention-view", words.language).sections
    return words.group("view") | {
        name: other for name, other in others.items() if name.startswith(("measure_", "pattern_"))
    }


def in_language(data: bytes, words: Words, height: int) -> bytes:
    """Return a stored walk with its words in a language, for a small picture of so many pixels."""
    header, start = unframe(data)
    sections = Sections()
    sections.data += data[start:]
    spoken = {"words": walk_words(words), "links": walk_links(words), "language": words.language}
    spoken["small"] = height
    return frame({**header, **spoken}, sections)


_EXACT = 1 << 12  # numbers of an array that are sent in 32 bits; longer ones in 16
_THUMBNAIL = 24


def encode_walk(
    walk: Walk,
    *,
    key: str,
    kind: str,
    block: tuple[int, int | None],
    edits: Edits,
    before: Walk | None,
    words: Mapping[str, str],
    links: Mapping[str, tuple[str, str]],
    language: str,
    state: str = "",
    small: int = 0,
) -> bytes:
    """Return a walk with one of its blocks in full.

    Args:
        block: numbers of the stack and of the block; None for the one that this stack shows first.
        before: the walk without what the reader changed: edits, temperature and top-k, the text.
        links: address and title of the chapter that explains a stage.
        state: the place that is open at first, as assets/components/walk/input.js writes it.
        small: height in pixels of a walk that only plays, without the controls; 0 for one with all of them.
    """
    sections = Sections()
    openings = [_opening(walk, each) for each in walk.stacks]
    stack = block[0]
    number = openings[stack]["opens"] if block[1] is None else block[1]
    opened = walk.stacks[stack].blocks[number]
    header: dict[str, Any] = {
        "key": key,
        "kind": kind,
        "stacks": [
            {
                "name": each.name,
                "tokens": each.tokens,
                "embedded": _coloured(sections, each.embedded),
                "positions": None if each.positions is None else _coloured(sections, each.positions),
                "maps": [[_thumbnails(sections, call) for call in one.attentions] for one in each.blocks],
                **opening,
            }
            for each, opening in zip(walk.stacks, openings, strict=True)
        ],
        "block": [stack, number],
        **_block(sections, opened),
        "choices": [
            {
                "words": choice.words,
                "logits": choice.logits,
                "probabilities": choice.probabilities(choice.numbers),
                "chosen": choice.chosen,
                "before": None if before is None or not walk.follows(before, step) else _before(before, choice, step),
            }
            for step, choice in enumerate(walk.choices)
        ],
        "outcomes": None if before is None else {"before": _outcome(before), "now": _outcome(walk)},
        "given": walk.num_given,
        "edits": [list(edit) for edit in edits],
        "picture": None if walk.picture is None else _picture(walk),
        "state": state,
        "language": language,
        "words": dict(words),
        "links": dict(links),
        "small": small,
    }
    return frame(header, sections)


def _opening(walk: Walk, stack: Stack) -> dict[str, Any]:
    """Return the block that is shown first, by its last attention, and the head of every attention."""
    from viz_core.lab.walk import opening_heads
    from viz_core.maps.measures import Patches

    patches = None if walk.picture is None else Patches(walk.picture[1], num_special=1)
    found = [
        opening_heads(calls, walk.stacks[0].tokens, walk.alignment_errors)
        if calls[0].crosses
        else opening_heads(calls, stack.tokens, patches=patches)
        for calls in zip(*(block.attentions for block in stack.blocks), strict=True)
    ]
    return {"opens": found[-1][0], "opening": list(zip(*(heads for _, heads in found), strict=True))}


def _outcome(walk: Walk) -> dict[str, Any]:
    text, words = walk.outcome
    return {"text": text, "words": words}


def _before(before: Walk, choice: Choice, step: int) -> dict[str, Any]:
    """Return what the model without the changes gives the same words after the same text."""
    own = before.choices[step]
    return {"probabilities": own.probabilities(choice.numbers), "chosen": own.chosen}


def _block(sections: Sections, block: Block) -> dict[str, Any]:
    return {
        "input": _coloured(sections, block.input),
        "attentions": [_attention(sections, call) for call in block.attentions],
        "neurons": _coloured(sections, block.neurons),
        "ffn": _coloured(sections, block.ffn),
        "output": _coloured(sections, block.output),
    }


def _attention(sections: Sections, call: Attention) -> dict[str, Any]:
    heads, rows, columns = call.weights.shape
    return {
        "site": call.site,
        "crosses": call.crosses,
        "heads": heads,
        "key_heads": len(call.keys),
        "rows": rows,
        "columns": columns,
        "masked": not bool(call.allowed.all()),
        "allowed": _array(sections, call.allowed.astype(np.uint8), "u1"),
        **{name: _numbers(sections, getattr(call, name)) for name in ("queries", "keys", "values", "scores")},
        **{name: _numbers(sections, getattr(call, name)) for name in ("weights", "outputs")},
        **{name: _coloured(sections, getattr(call, name)) for name in ("joined", "added", "state")},
    }


def _numbers(sections: Sections, values: np.ndarray) -> dict[str, Any]:
    """Numbers that a reader can see."""
    kind = "f4" if values.size <= _EXACT else "f2"
    return _array(sections, values.astype(f"<{kind}"), kind)


def _coloured(sections: Sections, values: np.ndarray) -> dict[str, Any]:
    """Numbers that are only coloured, as multiples of the largest divided by 127."""
    scale = float(np.abs(values).max()) or 1.0
    return {**_array(sections, np.round(values * (127 / scale)).astype(np.int8), "i1"), "scale": scale}


def _array(sections: Sections, values: np.ndarray, kind: str) -> dict[str, Any]:
    return {"offset": sections.add(np.ascontiguousarray(values)), "shape": values.shape, "type": kind}


def _thumbnails(sections: Sections, call: Attention) -> dict[str, Any]:
    """The weights of each head in 8 bits; of large maps the largest of each tile."""
    weights = call.weights
    step = -(-max(weights.shape[1:]) // _THUMBNAIL)
    if step > 1:
        fill = [(0, 0), *((0, -side % step) for side in weights.shape[1:])]
        padded = np.pad(weights, fill)
        heads, rows, columns = padded.shape
        weights = padded.reshape(heads, rows // step, step, columns // step, step).max(axis=(2, 4))
    return _array(sections, np.round(weights * 255).clip(0, 255).astype(np.uint8), "u1")


def _picture(walk: Walk) -> dict[str, Any]:
    assert walk.picture is not None
    image, grid = walk.picture
    file = BytesIO()
    image.save(file, "PNG")
    return {"source": "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii"), "grid": grid}
