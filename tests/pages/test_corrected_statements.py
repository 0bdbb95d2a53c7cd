"""What pages once said and was not true: each statement as it is now, held against what is measured.

Others stand beside what they are about: errors of the plane and of exercises of the book, the gradient that reaches a
query, measures of heads without separators, the example of a filter.
"""

from __future__ import annotations

import math
import re

import pytest
import torch

from pages.bahdanau.parts import alike
from pages.learning.figures import read_reaches
from pages.learning.parts import measured
from tests.pages.reading import charts, claims, one_line, texts
from tests.visits import Visits
from ui.chapter.source_cards import everything_printed
from ui.text.words import load_words
from viz_core.lessons.architectures.costs import LayerSizes, path_length
from viz_core.lessons.attention_pooling.curve_fit import errors_by_rate
from viz_core.positional import apply_rotary
from viz_core.positional.register import SCHEMES

# Cards whose values no source prints: they follow from its formula.
FOLLOWS = {
    "sinusoidal-encoding": {"table", "norm", "wavelengths", "similarity"},
    "scoring-functions": {"masked-softmax"},
    "attention-pooling": {"curve", "kernel"},
    "relative-projection": {"pair"},
}


@pytest.mark.parametrize("chapter", FOLLOWS)
def test_what_follows_from_a_formula_is_not_called_printed(chapter: str) -> None:
    formulas = {row.name for row in everything_printed() if row.chapter == chapter and row.kind == "formula"}
    assert formulas >= FOLLOWS[chapter]


def test_no_card_compares_a_published_number_with_itself(visits: Visits) -> None:
    """BLEU by number of heads is a quotation: nothing is computed here."""
    (heads,) = [row for row in everything_printed() if (row.chapter, row.name) == ("multi-head", "heads")]
    (card,) = [text.value for text in visits("multi-head").markdown if f"`{heads.printed}`" in text.value]
    assert load_words("common", "en")("book.ours") not in card


def test_the_error_of_pooling_is_measured_away_from_the_ends() -> None:
    """Without noise what remains is squared bias; near the ends, where neighbours are on one side, it is far larger."""
    words = load_words("attention-pooling", "en")("consistent")
    assert "for $1 \\le x \\le 4$" in words
    x = torch.linspace(0, 5, 2000, dtype=torch.float64)
    truth = 2 * x.sin() + x
    weights = torch.softmax(-0.5 * ((x[:, None] - x) / 0.5).square(), dim=1)
    bias = (weights @ truth - truth).square()
    inside = (x >= 1) & (x <= 4)
    measured = errors_by_rate((0.0,), 32, 2000, noise=0.0, draws=3)[0.0].error
    assert measured == pytest.approx(float(bias[inside].mean()), rel=0.25)  # its points are drawn at random
    assert float(bias[~inside].sum() / bias.sum()) > 0.7


def test_defined_at_any_length_does_not_mean_good_at_any_length() -> None:
    words = load_words("position-embeddings", "en")
    assert "defined at any length" in words("extends-yes")
    for name in ("sinusoidal", "rotary"):
        assert "accuracy falls" in words(f"extends.{name}")
    assert all(words.has(f"extends.{scheme.name}") for scheme in SCHEMES)


@pytest.mark.parametrize(("base", "d"), [("1", "32"), ("1", "64"), ("10000", "32")])
def test_the_distance_of_the_closest_two_positions_names_them(visits: Visits, base: str, d: str) -> None:
    """At base 1 all pairs turn alike: more dimensions change no order of distances."""
    app = visits("sinusoidal-encoding", **{"se-base": base, "se-d": d, "se-n": "60"})
    (claim,) = [text for text in claims(app) if "rows differ" in text]
    omega = torch.tensor(float(base), dtype=torch.float64) ** (-2 * torch.arange(int(d) // 2) / int(d))
    offsets = torch.arange(1, 60, dtype=torch.float64)
    apart = (2 - 2 * (offsets[:, None] * omega).cos()).sum(dim=1).sqrt()
    assert f"at offset {int(apart.argmin()) + 1}" in claim
    measured = re.search(r"measured `([\d.e+-]+)`", claim)
    assert measured
    assert float(measured[1]) == pytest.approx(float(apart.min()), rel=0.06)
    assert "more dimensions" not in texts(app)


def test_rotary_products_depend_on_the_vectors_and_on_the_offset() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, other = torch.randn(3, 1, 1, 1, 8, generator=generator)

    def product(left: torch.Tensor, right: torch.Tensor, m: int, n: int) -> float:
        turned = apply_rotary(left, torch.tensor([m])), apply_rotary(right, torch.tensor([n]))
        return float((turned[0] * turned[1]).sum())

    assert product(q, k, 3, 10) == pytest.approx(product(q, k, 53, 60), abs=1e-4)
    assert abs(product(q, k, 3, 10) - product(q, other, 3, 10)) > 0.1
    assert "depends on the two vectors and the offset" in load_words("position-embeddings", "en")("about.rotary")


def test_the_proof_names_no_side_that_a_phone_puts_elsewhere() -> None:
    words = load_words("relative-projection", "en")
    assert not re.search(r"\b(left|right)\b", words("proof") + words("after"), re.IGNORECASE)


def test_no_text_says_where_the_steps_of_the_encoder_are() -> None:
    words = load_words("transformer", "en")
    assert not re.search(r"\b(above|below)\b", words("inside"))


def test_layers_are_compared_as_they_are_drawn(visits: Visits) -> None:
    """All five read earlier tokens only, self-attention too: no map has a path backwards."""
    (_, traces), *_ = charts(visits("architectures"), "pairs")
    assert len(traces) == 5
    for trace in traces:
        n = len(trace["z"])
        assert torch.tensor(trace["z"])[torch.ones(n, n).tril(-1).bool()].isnan().all()
    assert "read earlier tokens only" in load_words("architectures", "en")("backwards")
    assert "both sides" not in one_line(visits("architectures"))


def test_which_positions_extrapolate() -> None:
    """At three times the longest trained length, as the takeaway of learning and its review question say."""
    accuracy = {scheme: float(reach.mean[-1]) for scheme, reach in read_reaches(measured()).items()}
    assert min(accuracy["alibi"], accuracy["relative"]) > 0.8
    assert max(accuracy["learned"], accuracy["rotary"]) < 0.4


@pytest.mark.parametrize("distance", [1, 2, 11, 100])
def test_the_path_through_a_convolution_is_counted(distance: int) -> None:
    """ceil(D / (k - 1)) layers, by following which tokens each layer sees; not D / k."""
    for k in (2, 3, 5):
        seen, layers = 1, 0
        while seen <= distance:
            seen, layers = seen + k - 1, layers + 1
        sizes = LayerSizes(n=distance + 1, d=8, k=k, r=2)
        assert path_length("convolution", 0, distance, sizes) == layers == math.ceil(distance / (k - 1))


def test_attention_translates_better_at_every_length() -> None:
    assert all(each.difference.low > 0 for each in alike().bins.values())


def test_the_division_helps_where_its_section_opens(visits: Visits) -> None:
    words = load_words("scoring-functions", "en")
    app = visits("scoring-functions", **{"sf-section": words("section.scaling")})
    assert words("finding.gradient", d=512) in texts(app)
