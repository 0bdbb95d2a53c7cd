"""What the Transformer chapter says of its pictures, held against what was drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import drawn, figures, finding, number, one_line, stands
from viz_core.pretrained import load

OpenPage = Callable[..., AppTest]


@pytest.mark.parametrize("text", ["Go.", "The black cat is sleeping on my bed."])
def test_of_lengths_through_the_encoder(open_page: OpenPage, text: str) -> None:
    app = open_page("transformer", **{"t-text": text, "t-section": "Inside the encoder"})
    stands(app)
    main = drawn(app, "depth")[0]["y"]  # embedding, scaled, with its position, then after each normalisation
    assert number(app, "takes the embedding's length from") == pytest.approx(main[0], abs=0.06)
    assert number(app, "with its position a token has length") == pytest.approx(main[2], abs=0.06)


def test_of_the_tree_of_beam_search(open_page: OpenPage) -> None:
    """Beam search could be chosen, and no beam was shown."""
    app = open_page("transformer", **{"t-text": "Go."})
    stands(app)
    assert finding(app, "The beam keeps greedy search's words until step 5", "Both searches find the same")
    assert "| beam | Mon frère a poli l'argent. | -4.65 | -1.99 |" in one_line(app)
    nodes = {trace["name"]: trace for trace in drawn(app, "tree") if trace["mode"] == "markers+text"}
    assert {trace["marker"]["symbol"] for trace in nodes.values()} == {"circle", "square", "x"}
    assert "poursui<br>−6.00" in nodes["pruned"]["text"]
    assert "&lt;eos&gt;<br>−4.65" in nodes["ended"]["text"]
    assert len(nodes["kept"]["text"]) + len(nodes["ended"]["text"]) == 9 * 4
    own = open_page("transformer", **{"t-text": "Go.", "t-tree": "own"})
    assert not finding(own, "The beam keeps greedy", "Both searches find the same")


def test_of_one_value_that_would_flatten_all_others(open_page: OpenPage) -> None:
    """Lengths from 1.4 to 405 are drawn on a logarithmic axis."""
    app = open_page("transformer", **{"t-section": "Inside the encoder"})
    layout = figures(app, "depth")[0]["layout"]
    lengths = [length for trace in drawn(app, "depth") for length in trace["y"]]
    assert max(lengths) > 100 * min(lengths)
    assert layout["yaxis"]["type"] == "log"
    assert min(layout["yaxis"]["tickvals"]) < 2 < 100 < max(layout["yaxis"]["tickvals"])


def test_of_heads_that_moved_a_logit(open_page: OpenPage) -> None:
    """The answer was the feed-forward net or the bias, among sixty unsorted bars."""
    app = open_page("transformer", **{"t-text": "I'm home.", "t-section": "Through the layers"})
    stands(app)
    bars = drawn(app, "split")[0]
    assert list(bars["x"]) == sorted(bars["x"], reverse=True)
    assert all("attention" in name for name in bars["y"])
    assert "minus that of **J" in one_line(app)
    kind, place = bars["y"][0].split("<br>")
    assert f"[{place} ({kind})](#head=" in one_line(app)
    total = number(app, "Logit of **Je** minus that of **J'**:")
    assert total == pytest.approx(number(app, f"{total} =") + number(app, "from 48 heads,"), abs=0.011)
    assert finding(app, "final words are the most likely before layer 3", "None of the")
    assert number(app, "mean probability") < 20 < 80 < number(app, "layer 3 raises it to")


def test_of_heads_that_align(open_page: OpenPage) -> None:
    """A head that looks at the source of the word just read was said to pair the words."""
    app = open_page("transformer", **{"t-text": "Go.", "t-section": "How it was trained"})
    stands(app)
    measured = load("transformer-en-fr").card.training["alignments"]
    best = {}
    for reading in ("written", "read"):
        rates = np.array(measured[reading])
        layer, head = np.unravel_index(rates.argmin(), rates.shape)
        best[reading] = (int(layer) + 1, int(head) + 1, f"{rates.min():.1%}")
    writer, reader = (
        f"[layer {layer}, head {head}](#head=cross.{layer - 1}.{head - 1})" for layer, head, _ in best.values()
    )
    assert f"{writer} aligns the word being **written** best" in one_line(app)
    assert f"error rate {best['written'][2]}" in one_line(app)
    assert f"{reader} the word just **read**" in one_line(app)
    assert f"By position alone: {measured['diagonal']:.1%}" in one_line(app)
