"""Text from outside in Markdown, and in what is read aloud."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ui.text.markdown import escape, plain_text, unescape
from ui.text.words import Words


def test_signs_of_markdown_are_signs() -> None:
    assert escape("**a** $x$ <b> :red[c]") == r"\*\*a\*\* \$x\$ \<b\> \:red\[c\]"


@given(st.text())
def test_what_is_read_aloud_is_what_came(text: str) -> None:
    assert unescape(escape(text)) == text


def test_a_product_is_not_read_aloud_as_the_name_of_its_sign() -> None:
    assert plain_text(r"$2 \cdot 4096$ numbers") == "2 · 4096 numbers"
    assert plain_text(r"$\omega_0 = 1$, so $2\pi \approx 6.283$") == "ω_0 = 1, so 2π ≈ 6.283"
    assert plain_text(r"$\hat p = \frac1n \sum_i K$") == "p\u0302 = 1/n Σ_i K"
    assert plain_text(r"$\nabla_q \sum_i a_i k_i$, $-\log a_c$") == "∇_q Σ_i a_i k_i, −log a_c"
    assert plain_text(r"$\mathbf q^\top \mathbf k$, $\delta = 5$, $k_i - \bar k$") == "q^T k, δ = 5, k_i − k\u0304"
    assert plain_text(r"$\nabla_q \operatorname{sen} 2$") == "∇_q sen 2"


def test_a_number_that_somebody_typed_stays_as_it_was_typed() -> None:
    text = Words("x", {}, {"a": "{typed}, {measured}"}, "pt-BR")("a", typed=escape("1e9"), measured="1e+09")
    assert text == "1e9, 10⁹"
