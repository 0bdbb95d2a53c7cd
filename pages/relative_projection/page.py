"""Relative projection: one matrix moves every position by the same offset."""

from pages.relative_projection.parts import (
    THE_HAND,
    choose_move,
    matrix_and_pairs,
    place_the_hand,
    proof,
    residuals_of,
    rotation,
    sources,
)
from ui.chapter.chapter import Chapter
from viz_core.lessons.relative_projection import projection_residual, proof_lines, rotation_spread, rounding_bound
from viz_core.positional import relative_projection, sinusoidal_rows

chapter = Chapter("relative-projection")
chapter.question()
chapter.definition()
hides_answer = chapter.hides_answer("hand", THE_HAND)
with chapter.card("main", has_question=True):
    with chapter.main_controls():
        move = choose_move(chapter)
        broken = "" if hides_answer else chapter.break_it("mirrored")
    chapter.side_by_side(broken, lambda setting: rotation(chapter, move, setting, hides_answer, bool(broken)))

place_the_hand(chapter)
chapter.takeaways()
chapter.next()


def code() -> None:
    """Draw the source card, the library's code and the downloads."""
    sources(chapter)
    chapter.code(
        relative_projection, sinusoidal_rows, proof_lines, projection_residual, rotation_spread, rounding_bound
    )
    chapter.downloads(
        {"matrix": lambda: move.matrix().double().numpy(), "residual": lambda: residuals_of(move).numpy()}
    )


chapter.deeper({"pairs": lambda: matrix_and_pairs(chapter, move), "proof": lambda: proof(chapter, move), "code": code})
