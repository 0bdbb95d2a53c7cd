"""Queries, keys and values: a table of names as a database, and attention as a weighted lookup in it."""

from functools import partial

import streamlit as st

from pages.queries_keys_values import lookup, parts
from pages.queries_keys_values.parts import THE_ROW, answerable, is_the_books, query_input, shade_the_row, table_input
from ui.chapter.chapter import Chapter
from viz_core.lessons.queries_keys_values import (
    approximate_lookup,
    exact_lookup,
    identity_lookup,
    letter_features,
    soft_lookup,
    top_lookup,
    two_keys,
)
from viz_core.trace import attend, attention_weights

chapter = Chapter("queries-keys-values")
chapter.question()
chapter.definition()
hides_answer = chapter.hides_answer("warm", THE_ROW)
with chapter.card("lookup", has_question=True):
    with chapter.main_controls():
        question = query_input(chapter)
        broken = chapter.break_it("undivided", "no-exp", "twins")
    main_figure = st.container()
    with st.expander(
        chapter.words("edit-names"),
        icon=":material/edit:",
        key=chapter.controls.key("edit"),
        on_change="rerun",
        bind="query-params",
    ) as editor:
        database = table_input(chapter, bool(editor.open))
    with main_figure:
        found, the_books = answerable(chapter, database, question), is_the_books(database)
        question = found or question
        hides_answer = hides_answer and the_books
        if found:
            draw = partial(lookup.weights_and_claims, chapter, database, question, hides_answer)
            chapter.side_by_side("" if hides_answer else broken, draw)
if the_books:
    shade_the_row(chapter)
chapter.takeaways()
chapter.next()


def code() -> None:
    """Show the code behind the page, and its data."""
    chapter.code(
        attention_weights,
        soft_lookup,
        exact_lookup,
        approximate_lookup,
        top_lookup,
        two_keys,
        identity_lookup,
        letter_features,
        attend,
    )
    if found:
        weights = lookup.weights(database, question).numpy()
        columns = [chapter.words("figure.weight")]
        chapter.downloads({"lookup": weights}, rows=database.keys, columns=columns, corner="lookup")


of_the_table = {
    "softmax": partial(parts.softmax, chapter, database, question),
    "ways": partial(lookup.other_lookups, chapter, database, question, hides_answer),
    "identity": partial(lookup.identities, chapter),
    "hard": partial(parts.hard_and_soft, chapter, database, question),
}
chapter.deeper(
    {
        "motive": partial(chapter.text, "motive"),
        **(of_the_table if found else {}),
        "plane": partial(lookup.kinds_of_weights, chapter, lookup.weights(database, question) if found else None),
        "exercises": partial(parts.exercises, chapter),
        "code": code,
    }
)
