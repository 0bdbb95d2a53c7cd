"""Parts of the page: each step of the decoder, alignment, a recorded comparison, and the book's material."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from statistics import mean
from typing import Any, NamedTuple

import streamlit as st
from PIL import Image

from pages.bahdanau import figures
from pages.bahdanau.figures import attention_model, balanced_figure, curves_figure, plain_model
from serving.requests.shipped import TranslationRequest
from ui.blocks.translation import alignment_picture
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, sentence_request, translation, translator
from ui.text.markdown import escape
from ui.widgets.choices import Mark, Marks
from viz_core.lessons.bahdanau import (
    DecoderSteps,
    decoder_shapes,
    decoder_steps,
    step_residuals,
    word_weights,
    wrong_weights,
)
from viz_core.pretrained import Translation
from viz_core.pretrained.bleu import Difference, book_bleu
from viz_core.pretrained.samples import sentence
from viz_core.pretrained.tokenization import whole_words
from viz_core.runtime.assets import ASSETS, reading

PLAIN, ATTENTION = "seq2seq-en-fr", "bahdanau-en-fr"


CHANCE = 0.05  # half the 95% interval of a difference of alignment error rates over 100 resampled sentences


def how_well_aligned(chapter: Chapter) -> None:
    """How well the map agrees with hand-aligned sentences."""
    measured = translator(ATTENTION).card.training.get("alignments")
    if measured:
        (written,), (read,) = measured["written"][0], measured["read"][0]
        values = {"pairs": measured["pairs"]}
        rates = {"written": written, "read": read, "diagonal": measured["diagonal"]}
        values |= {name: f"{rate:.1%}" for name, rate in rates.items()}
        chapter.finding("aligned", abs(written - measured["diagonal"]) <= CHANCE, **values)


def without_attention(chapter: Chapter, request: TranslationRequest) -> None:
    """What the model without attention makes of the same sentence."""

    def draw() -> None:
        chapter.text("plain", plain=escape(translation(sentence_request(PLAIN, request.text)).text))

    chapter.lazy("plain", draw, 60)


def diagrams(chapter: Chapter) -> None:
    """Both networks: one state between encoder and decoder, or all of them."""
    names = chapter.words.group("figure")
    plain, attention = st.columns(2, gap="large")
    with plain:
        chapter.figure("plain-model", lambda: plain_model(names), height=108)
    with attention:
        chapter.figure("attention-model", lambda: attention_model(names), height=171)


def printed(chapter: Chapter) -> None:
    """The shapes the book checks, its BLEU, and its settings."""
    chapter.lazy("book", lambda: _printed(chapter), 520)


def _printed(chapter: Chapter) -> None:
    shapes = decoder_shapes()
    card = translator(ATTENTION).card
    sizes, recipe = card.config["model"], card.training["recipe"]
    left, right = st.columns(2, gap="large")
    with left:
        chapter.source_card("output-shape", shapes["output"])
        chapter.source_card("keys-shape", shapes["keys"])
        chapter.source_card("hidden-shape", shapes["hidden"])
    with right:
        chapter.source_card("mouille", book_bleu("il est mouillé .".split(), "il est calme .".split()))
        settings = [sizes[name] for name in ("embed_size", "num_hiddens", "num_layers", "dropout")]
        chapter.source_card("settings", [*settings, recipe["adam_lr"]], vocabulary=f"{sizes['vocab_size']:,}")


_ALIKE = ASSETS / "book" / "alike.json"


class Scores(NamedTuple):
    """BLEU of both models on the same sentences, a number for each seed, and what attention adds with its interval."""

    sentences: int
    plain: tuple[float, ...]
    attention: tuple[float, ...]
    difference: Difference

    def spread(self, name: str) -> tuple[float, float, float]:
        """Mean, lowest and highest over the seeds of the model of this name, "plain" or "attention"."""
        runs: tuple[float, ...] = getattr(self, name)
        return mean(runs), min(runs), max(runs)

    @property
    def times(self) -> float:
        """How many times the plain model's score the one with attention has, means over the seeds."""
        return mean(self.attention) / mean(self.plain)


@dataclass(frozen=True)
class Alike:
    """Two models, as many updates, several seeds.

    Attributes:
        recipe: how they were built and trained.
        updates: steps of the optimiser, the same number in every run.
        parameters: numbers that each model learns, by its name.
        validation_loss: nats a token by model, a row for each seed, a number for each epoch.
        bins: scores by source tokens (from, to), as many sentences in each.
        balanced: over the sentences of all bins.
    """

    recipe: Mapping[str, Any]
    updates: int
    parameters: Mapping[str, int]
    validation_loss: Mapping[str, tuple[tuple[float, ...], ...]]
    bins: Mapping[tuple[int, int], Scores]
    balanced: Scores

    @property
    def last_gain(self) -> float:
        """The largest part of its validation loss that any run lost in its last epoch: how far from done they were."""
        rows = [row for rows in self.validation_loss.values() for row in rows]
        return max(1 - row[-1] / row[-2] for row in rows)

    def curve(self, name: str) -> list[dict[str, float]]:
        """A model's validation loss by epoch, mean over its seeds."""
        epochs = zip(*self.validation_loss[name], strict=True)
        return [{"epoch": epoch, "validation_loss": mean(each)} for epoch, each in enumerate(epochs, 1)]

    @property
    def grows(self) -> bool:
        """Whether attention adds more in every bin than in the one of shorter sentences before it."""
        return all(after > before for before, after in pairwise(each.difference.value for each in self.bins.values()))


@cache
def alike() -> Alike:
    """The recorded comparison."""
    with reading(_ALIKE):
        found: dict[str, Any] = json.loads(_ALIKE.read_text(encoding="utf-8"))
        return Alike(
            found["recipe"],
            found["updates"],
            found["parameters"],
            {name: tuple(map(tuple, rows)) for name, rows in found["validation_loss"].items()},
            {(each["from"], each["to"]): _scores(each) for each in found["bins"]},
            _scores(found["balanced"]),
        )


def _scores(found: Mapping[str, Any]) -> Scores:
    bleu = found["bleu"]
    return Scores(found["sentences"], tuple(bleu["plain"]), tuple(bleu["attention"]), Difference(*found["difference"]))


DONE = 0.02  # part of its loss that a run which has learned all it can still loses in an epoch, at most


def all_else_alike(chapter: Chapter) -> None:
    """How both were trained, scores by length from every seed, what attention adds, and whether training was done."""
    found, names = alike(), chapter.words.group("figure")
    recipe = found.recipe
    titles = {"plain": chapter.words("model.seq2seq-en-fr"), "attention": chapter.words("model.bahdanau-en-fr")}
    chapter.text(
        "alike",
        width=recipe["num_hiddens"],
        seeds=len(found.balanced.plain),
        vocabulary=f"{recipe['vocab_size']:,}",
        updates=f"{found.updates:,}",
        epochs=recipe["epochs"],
        each=next(iter(found.bins.values())).sentences,
        **{f"{name}_parameters": f"{found.parameters[name]:,}" for name in titles},
    )
    models = {
        title: [(*ends, *each.spread(name)) for ends, each in found.bins.items()] for name, title in titles.items()
    }
    values: dict[str, Any] = {"value": f"{found.balanced.difference.value:.1f}", "all": found.balanced.sentences}
    chapter.figure("alike", lambda: balanced_figure(models, names), height=380, **values)
    rows = [chapter.words("alike.head", **titles)]
    rows += [_row(chapter, f"{low}–{high}", each) for (low, high), each in found.bins.items()]
    rows.append(_row(chapter, chapter.words("alike.all", count=found.balanced.sentences), found.balanced))
    st.markdown("\n".join(rows))
    chapter.finding("alike", all(each.difference.low > 0 for each in found.bins.values()), **_added(found.balanced))
    times = [f"{scores.times:.1f}" for scores in found.bins.values()]
    chapter.finding("alike-grows", found.grows, times=times)
    curves = {title: found.curve(name) for name, title in titles.items()}
    losses: dict[str, Any] = {name: f"{found.curve(name)[-1]['validation_loss']:.2f}" for name in titles}
    chapter.figure("alike-curves", lambda: curves_figure(curves, names["epoch"], names["loss"]), height=320, **losses)
    chapter.finding("alike-done", found.last_gain <= DONE, gain=f"{found.last_gain:.1%}")


def _row(chapter: Chapter, length: str, scores: Scores) -> str:
    values = {name: f"{scores.spread(name)[0]:.1f}" for name in ("plain", "attention")}
    return chapter.words("alike.row", length=length, **values, **_added(scores))


def _added(scores: Scores) -> dict[str, str]:
    return {name: f"{number:.1f}" for name, number in scores.difference._asdict().items()}


def gallery_picture() -> Image.Image:
    """The head that aligns French and English, on one of the long samples."""
    return alignment_picture("bahdanau-en-fr", "letter")


TOP = 6  # next tokens shown
FIRST = 8  # the step that is open: most rows show, and the question's does not
ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms

_CAT = {"text": sentence("cat"), "search": "greedy"}
ANSWERS = Marks(
    "figure-weights",
    tuple(Mark((place - 0.45, place + 0.45), (8.55, 9.45)) for place in (6, 7, 8)),
    {**_CAT, "step": 8},
    {**_CAT, "step": 10},
)
"""The cells of "my", "bed" and the full stop in the row of "lit", which is written at step 10."""

BROKEN = ("undivided", "no-tanh")


def step_control(chapter: Chapter, result: Translation) -> int:
    """Draw a slider over the words written and a button for the next one; return the step, counted from 0."""
    last = len(result.target_tokens)
    step = first = min(FIRST, last)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if last > 1:
            with st.container():
                chapter.controls.clamp("step", last)
                step = int(chapter.controls.slider("step", 1, last, first))
            st.button(
                chapter.words("next"),
                key=chapter.controls.key("next"),
                icon=":material/skip_next:",
                on_click=_next,
                args=(chapter.controls.key("step"), first, last),
            )
    return step - 1


def draw_step(chapter: Chapter, request: TranslationRequest, result: Translation, step: int, setting: str) -> None:
    """Draw the map up to a step with this setting, and its claims."""
    steps = evaluate(request, decoder_steps)
    if setting:
        steps = replace(steps, weights=evaluate(request, wrong_weights, setting))
    _weights(chapter, "weights-broken" if setting else "weights", steps, step, result)
    residuals = cache(lambda: evaluate(request, step_residuals, setting))
    with chapter.claim_row("main"):
        for name in ("rows", "formula", "contexts"):
            chapter.claim(name, lambda name=name: residuals()[name], ROUNDING)


def states(chapter: Chapter, request: TranslationRequest, result: Translation, step: int) -> None:
    """The likeliest words, the query and the context of the step chosen above."""
    steps = evaluate(request, decoder_steps)
    _choice(chapter, steps, step, result)
    chapter.figure(
        "states",
        figures.states_figure(steps, step, chapter.words.group("figure")),
        step=step + 1,
        query=steps.queries.shape[1],
        context=steps.contexts.shape[1],
    )


def _weights(chapter: Chapter, name: str, steps: DecoderSteps, step: int, result: Translation) -> None:
    weights = word_weights(steps.weights, result.source_words)
    words = whole_words(result.source_tokens, result.source_words)
    most = int(weights[step].argmax())
    chapter.figure(
        name,
        figures.map_figure(weights, step, words, result.target_tokens, chapter.words.group("figure")),
        step=step + 1,
        written=escape(result.target_tokens[step]),
        word=escape(words[most]),
        weight=f"{float(weights[step, most]):,.2f}",
        total=f"{float(weights[step].sum()):,.2f}",
    )


def _choice(chapter: Chapter, steps: DecoderSteps, step: int, result: Translation) -> None:
    top = steps.likeliest(step, TOP)
    ids = [token for token, _ in top]
    readable = translator(ATTENTION).readable_tokens(ids)
    written = result.target_ids[step]
    chapter.figure(
        "choice",
        figures.choice_figure(
            list(zip(readable, (p for _, p in top), strict=True)),
            ids.index(written) if written in ids else None,
            chapter.words.group("figure"),
        ),
        written=escape(result.target_tokens[step]),
        summary=[f"{escape(word)} {p:.2f}" for word, (_, p) in zip(readable, top, strict=True)],
    )
    if written != ids[0]:
        chapter.text("less-probable")


def _next(key: str, first: int, last: int) -> None:
    """Go one step on; from the last step back to the first."""
    st.session_state[key] = int(st.session_state.get(key, first)) % last + 1
