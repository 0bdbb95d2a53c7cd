"""Each takeaway names a place on its page and a measure that shows it; the measure is taken there, from what is drawn.

A takeaway ends with a link: its text is the measure, its target a section or a part of the main figure. Here each has a
function that takes the measure from the page's own data and says whether the takeaway is true of it.
"""

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.view_bytes import DecodedView, decode_view
from pages.atom_mapping.parts import lost_weights, reactions
from tests.pages.reading import charts, claim_names, components, drawn, heatmap, one_line, value_of
from tests.visits import CHAPTERS, Visits
from ui.chapter.contents import page_file
from ui.compute.heads import head_importance
from ui.text.words import ENGLISH, languages, load_words
from viz_core.lessons.multi_head import multi_head_steps, trained_input, trained_layer
from viz_core.positional.sinusoidal import sinusoidal_table
from viz_core.pretrained import load

Measure = Callable[[Visits], Any]
_LINE = re.compile(r"- .+ \[[^\]]+\]\(#(section|part)-([\w-]+)\)")


def claimed(visits: Visits, chapter: str, names: str, **address: str) -> bool:
    """Whether these claims are on the page and hold."""
    app = visits(chapter, **address)
    return set(names.split()) <= set(claim_names(app)) - set(claim_names(app, failing=True))


def series(visits: Visits, chapter: str, figure: str, **address: str) -> dict[str, np.ndarray]:
    """The heights of a figure's named traces."""
    return {
        trace["name"]: np.asarray(trace["y"]) for trace in drawn(visits(chapter, **address), figure) if "name" in trace
    }


def view(visits: Visits, chapter: str, **address: str) -> tuple[DecodedView, list[np.ndarray]]:
    """The attention view of a page, and the maps that came with it."""
    found = decode_view(components(visits(chapter, **address), "attention_view")[0].bytes)
    return found, [part.numpy() for name, part in found.parts.items() if name.startswith("map ")]


def ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values))


def smallest_weight(visits: Visits) -> bool:
    return min(drawn(visits("queries-keys-values"), "weights")[0]["x"]) > 0


def curve_from_the_points(visits: Visits) -> bool:
    """A Gaussian kernel of the drawn points alone gives the drawn curve."""
    traces = {trace["name"]: trace for trace in drawn(visits("attention-pooling"), "fit") if "name" in trace}
    points, fit = traces["keys and values"], traces["fit"]
    weights = np.exp(-((np.asarray(fit["x"])[:, None] - np.asarray(points["x"])) ** 2) / (2 * 0.5**2))
    return np.allclose(weights @ points["y"] / weights.sum(1), fit["y"], atol=1e-3)


def wide_fits_are_flat(visits: Visits) -> bool:
    fits = [trace["y"] for trace in drawn(visits("attention-pooling"), "widths") if trace.get("name") == "fit"]
    ups_and_downs = [float(np.abs(np.diff(fit)).sum()) for fit in fits]
    return len(fits) == 4 and ups_and_downs == sorted(ups_and_downs, reverse=True)


def steps_differ(visits: Visits) -> bool:
    """No two steps of the decoder have the same weights."""
    (steps,) = view(visits, "bahdanau")[1]
    return min(float(np.abs(a - b).max()) for a, b in itertools.combinations(steps, 2)) > 0.01


def better_at_every_length(visits: Visits) -> bool:
    lines = series(visits, "bahdanau", "alike")
    return bool((lines["GRU with attention"] > lines["GRU, plain"]).all())


def training_makes_heads_differ(visits: Visits) -> bool:
    """Trained, some head puts most weight on the previous word and another on the next; untrained, none does."""
    most = []
    for address in ({}, {"mh-source": "Fresh weights"}):
        (heads,) = (
            part["measures"] for part in view(visits, "multi-head", **address)[0].header["parts"] if "measures" in part
        )
        most.append([max(head[pattern] for head in heads) for pattern in ("previous", "next")])
    return min(most[0]) > 0.5 > max(most[1])


def cost_by_heads(visits: Visits) -> bool:
    (table,) = (frame.value for frame in visits("multi-head").dataframe)
    heads, fixed, weights = table.iloc[:, 0], table.iloc[:, 2:-1], table.iloc[:, -1]
    return (fixed.nunique() == 1).all() and (weights / heads).nunique() == 1


def order_of_heads(visits: Visits) -> bool:
    """The parts of the heads, added from the last to the first, give the layer's output on the page's sentence."""
    translator = load("transformer-en-fr", device="cpu")
    text = visits("multi-head").text_input(key="mh-text").value
    layer = trained_layer(translator, 2, 8)
    steps = multi_head_steps(layer, trained_input(translator, text, 2, 64).X[None])
    heads = steps.attended[0].detach().numpy()
    matrices = np.split(layer.W_o.weight.detach().numpy(), len(heads), axis=1)
    total = sum(head @ part.T for head, part in reversed(list(zip(heads, matrices, strict=True))))
    assert isinstance(total, np.ndarray)
    return np.allclose(total, steps.output[0].detach().numpy(), atol=1e-5)


def one_after_another(visits: Visits) -> bool:
    """Of the layers in the table, the recurrent one alone takes a step for each token."""
    rows = re.findall(
        r"\| ([\w, -]+) \| \$[^|]+\| [\d,]+ \| \*[\d,]+\* \| [^|]+\| (\d+) \|", one_line(visits("architectures"))
    )
    steps = {name.strip(): int(count) for name, count in rows}
    return steps.pop("Recurrent") == 8 and len(steps) == 4 and set(steps.values()) == {1}


def squared_cells(visits: Visits) -> bool:
    (before,) = drawn(visits("architectures"), "map-before")
    return np.shape(before["z"]) == (9, 9) and np.allclose(np.sum(before["z"], axis=1), 1, atol=1e-3)


def values_mix(visits: Visits) -> bool:
    """No letter's value comes back exactly from the sum; orthogonal keys give each its own."""
    errors = series(visits, "linear-attention", "errors")
    orthogonal = claimed(visits, "linear-attention", "orthogonal")
    return orthogonal and bool(min(errors["sum"].min(), errors["delta rule"].max()) > 0.1)


def fast_and_slow_pairs(visits: Visits) -> bool:
    """A step changes the first column most; the last sine alone still grows from the first position to the last."""
    table = heatmap(visits("sinusoidal-encoding"))[1].astype(int)
    first, last = np.diff(table[:, 0]), np.diff(table[:, -2])
    return np.abs(first).mean() > 20 * np.abs(last).mean() and (first < 0).any() and (last >= 0).all()


def highest_score_at_the_offset(visits: Visits) -> bool:
    """With the matrix drawn, the position that scores highest is the offset away, from each of 100 positions."""
    (matrix,) = drawn(visits("relative-projection"), "matrix")
    rows = sinusoidal_table(120, 32).numpy()
    scores = rows @ np.nan_to_num(np.asarray(matrix["z"], dtype=float)).T @ rows.T
    return (scores[:100].argmax(1) - np.arange(100) == 5).all()


def maps_added(visits: Visits) -> dict[str, np.ndarray]:
    return {alt.split(":")[0]: np.asarray(data[0]["z"]) for alt, data in charts(visits("position-embeddings"), "small")}


def every_scheme_changes_scores(visits: Visits) -> bool:
    return {name for name, added in maps_added(visits).items() if not added.any()} == {"No positions"}


def relative_maps_are_striped(visits: Visits) -> bool:
    striped = {
        name
        for name, added in maps_added(visits).items()
        if max(float(np.ptp(added.diagonal(offset))) for offset in range(-8, 9)) < 1e-4
    }
    relative = {"Relative, 1-D", "Clipped (Shaw)", "Relative, 2-D", "Rotary", "ALiBi", "T5 buckets"}
    return striped - {"No positions"} == relative


def later_words(visits: Visits) -> bool:
    """Every encoder head gives later words weight; no decoder head does."""
    encoder, decoder = (
        [float(np.triu(each, 1).sum()) for each in view(visits, "transformer", head=f"{group}.0.0")[1]]
        for group in ("encoder-self", "decoder-self")
    )
    return min(encoder) > 0 and max(decoder) == 0


def rows_and_columns_of_cross(visits: Visits) -> bool:
    found, maps = view(visits, "transformer")
    (group,) = (each for each in found.header["base"]["groups"][0] if each["id"] == "cross")
    sizes = {each.shape for each in maps}
    return (
        sizes == {(len(group["query_tokens"]), len(group["key_tokens"]))}
        and group["query_tokens"] != group["key_tokens"]
    )


def aligner_is_not_needed(visits: Visits) -> bool:
    """The head that the page opens, which aligns best, costs no BLEU that can be told from 0."""
    state = view(visits, "transformer")[0].header["state"]
    measured = head_importance("transformer-en-fr")
    assert measured is not None
    (head,) = (
        each for each in measured.heads if (each.site, each.head) == (f"decoder.{state['layer']}.cross", state["head"])
    )
    return (state["layer"], state["head"]) == (2, 2) and not head.sure


def first_layer_reaches_far(visits: Visits) -> bool:
    """The widest head of layer 1 attends nearly as far as uniform attention does."""
    heads, uniform = drawn(visits("vision-transformer"), "distance")
    first = np.asarray(heads["y"])[np.round(heads["x"]) == 1]
    return len(first) == 6 and first.max() > 0.9 * uniform["y"][0]


def confidence_is_accuracy(visits: Visits) -> bool:
    """Within a tenth, beyond two standard errors of a share of so many pictures: the first bin holds three."""
    (line,) = (each for each in drawn(visits("vision-transformer"), "calibration") if each.get("name") == "measured")
    bins = load("vit-fashion-mnist").card.training["calibration"]["bins"]
    confidence, accuracy = np.array(line["x"]), np.array(line["y"])
    assert accuracy == pytest.approx([each["accuracy"] for each in bins], abs=1e-4)
    errors = np.sqrt(accuracy * (1 - accuracy) / [each["pictures"] for each in bins])
    return bool((np.abs(confidence - accuracy) < 0.1 + 2 * errors).all())


def heads_form_with_accuracy(visits: Visits) -> bool:
    """Three quarters of what each curve gains, it gains within 100 updates (ten shots), all at the same time."""
    curves = list(series(visits, "learning", "together").values())
    gains = [max(curve[10:] - curve[:-10]) / np.ptp(curve) for curve in curves]
    return len(curves) == 3 and min(gains) > 0.75 and float(np.corrcoef(curves).min()) > 0.9


def two_layers(visits: Visits) -> bool:
    accuracy = [
        value_of(re.findall(r"updates: \*\*(\d+)%", one_line(visits("learning", **address)))[-1])
        for address in ({"l-run": "repeat, one layer"}, {})
    ]
    return accuracy[1] > 2.5 * accuracy[0]


def past_the_trained_length(visits: Visits) -> bool:
    """At the longest length drawn."""
    end = {name: values[-1] for name, values in series(visits, "learning", "reach").items()}
    far = [end["clipped (Shaw)"], end["ALiBi"]]
    return min(far) > 0.8 and max(end["learned"], end["rotary"]) < 0.4


def role_and_worth(visits: Visits) -> bool:
    """The head with the strongest role is not the one that is worth most, nor are the two orders alike."""
    points = [each for each in drawn(visits("heads"), "heads") if str(each.get("name", "")).startswith("layer")]
    role, worth = (np.concatenate([np.asarray(each[axis]) for each in points]) for axis in "xy")
    return role.argmax() != worth.argmax() and float(np.corrcoef(ranks(role), ranks(worth))[0, 1]) < 0.5


def sets_differ(visits: Visits) -> bool:
    """Heads do not keep their order from one set to the other."""
    dots = drawn(visits("heads"), "sets")[0]
    return (ranks(np.asarray(dots["x"])) != ranks(np.asarray(dots["y"]))).sum() >= 4


def passes(visits: Visits) -> np.ndarray:
    """Accuracy of every head, (8, 12)."""
    return np.array(
        [each["y"] for each in drawn(visits("atom-mapping"), "heads") if each.get("name", "").startswith("head")]
    )


def one_head_has_the_job(visits: Visits) -> bool:
    best = passes(visits).max(1)
    return best.argmax() == 5 and best[5] > 0.9 and np.delete(best, 5).max() < 0.6


def wrong_input_still_maps(visits: Visits) -> bool:
    """Without a reactant the check fails, no number of the map is missing, and hardly a weight is on reactants."""
    intact, missing = np.concatenate([lost_weights(each) for each in reactions().values()], axis=1).mean(axis=1)
    if not missing < 0.1 < 0.5 < intact:
        return False
    option = load_words("atom-mapping", ENGLISH)("option.missing")
    app = visits("atom-mapping", **{"am-break": option})
    return "right" in claim_names(app, failing=True) and not app.error


# Of each takeaway: the claims that show it, by name, or a function that measures it.
MEASURES: dict[str, tuple[Measure | str, Measure | str, Measure | str]] = {
    "queries-keys-values": ("copies", "sums average", smallest_weight),
    "attention-pooling": (curve_from_the_points, wide_fits_are_flat, "attention"),
    "scoring-functions": ("row-sum positive", "variance flat", "hidden"),
    "bahdanau": ("bottleneck", steps_differ, better_at_every_length),
    "multi-head": (training_makes_heads_differ, cost_by_heads, order_of_heads),
    "architectures": ("too-early in-time", one_after_another, squared_cells),
    "linear-attention": ("same chunks", "written age", values_mix),
    "sinusoidal-encoding": ("distinct", fast_and_slow_pairs, "offset"),
    "relative-projection": ("moves", "constant", highest_score_at_the_offset),
    "position-embeddings": (
        lambda visits: claimed(visits, "position-embeddings", "blind", **{"pe-main-scheme": "No positions"}),
        every_scheme_changes_scores,
        relative_maps_are_striped,
    ),
    "transformer": (later_words, rows_and_columns_of_cross, aligner_is_not_needed),
    "vision-transformer": ("bag", first_layer_reaches_far, confidence_is_accuracy),
    "learning": (heads_form_with_accuracy, two_layers, past_the_trained_length),
    "heads": ("uniform", role_and_worth, sets_differ),
    "atom-mapping": (one_head_has_the_job, lambda visits: (passes(visits)[5] > 0.8).sum() >= 3, wrong_input_still_maps),
}
TEACHING = [chapter for chapter in CHAPTERS if "chapter.takeaways()" in page_file(chapter).read_text(encoding="utf-8")]


@pytest.mark.parametrize("chapter", TEACHING)
def test_a_takeaway_names_its_measure_and_where_it_is_shown(visits: Visits, chapter: str) -> None:
    """A section below, or a part that the definition, too, points at."""
    for language in languages():
        words = load_words(chapter, language)
        lines = words("takeaways").strip().splitlines()
        assert len(lines) == len(MEASURES[chapter])
        for line in lines:
            found = _LINE.fullmatch(line)
            assert found, line
            in_section = found[1] == "section" and words.has(f"section.{found[2]}")
            assert in_section or f"(#part-{found[2]})" in words("definition"), line


@pytest.mark.parametrize(("chapter", "line"), [(chapter, line) for chapter in TEACHING for line in range(3)])
def test_a_takeaway_is_true_of_its_page(visits: Visits, chapter: str, line: int) -> None:
    measure = MEASURES[chapter][line]
    holds = claimed(visits, chapter, measure) if isinstance(measure, str) else measure(visits)
    assert holds, load_words(chapter, ENGLISH)("takeaways").splitlines()[line]
