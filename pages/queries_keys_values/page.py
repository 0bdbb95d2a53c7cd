"""Queries, keys and values: one table of names looked up in three ways, and what weights can be."""

from functools import partial

import streamlit as st

from pages.queries_keys_values import book, exercises, lookup, weights_plane
from pages.queries_keys_values.names import is_answerable, is_the_books, query_input, table_input
from pages.queries_keys_values.predictions import THE_MIXTURE, THE_ROW, THE_STAR, place_the_star, shade_the_row
from pages.queries_keys_values.weights_plane import Mixture
from ui.chapter.chapter import Chapter
from viz_core.lessons.queries_keys_values.edit_distance import edit_table
from viz_core.lessons.queries_keys_values.hard_and_soft import identity_lookup, two_keys
from viz_core.lessons.queries_keys_values.lookup import (
    approximate_lookup,
    exact_lookup,
    letter_features,
    soft_lookup,
    top_lookup,
)
from viz_core.lessons.queries_keys_values.plane import cone_arcs, convex_hull, distance_to_hull
from viz_core.lessons.queries_keys_values.weight_cases import weights_of_case
from viz_core.trace import attend, attention_weights

chapter = Chapter("queries-keys-values")
chapter.question()
asks = chapter.hides_answer("warm", THE_ROW)
with chapter.card("lookup"):
    query_column, answer_column = st.columns([2, 3], gap="large")
    with query_column:
        question = query_input(chapter)
        database = table_input(chapter)
    with answer_column:
        answerable, the_books = is_answerable(chapter, database, question), is_the_books(database)
        if the_books and answerable:
            shade_the_row(chapter)
        if answerable:
            lookup.answers(chapter, database, question, the_books and asks)
chapter.text("motive")

book.lookups(chapter)
if answerable:
    chapter.exercise("approximate", reveal=partial(exercises.approximate, chapter, database, question))
    chapter.text("properties")
    edits, identity = st.columns(2, gap="large")
    with edits:
        chapter.heading("edits")
        lookup.edits(chapter, database, question)
    with identity:
        chapter.heading("identity")
        lookup.identity(chapter, database, question)
    chapter.text("mathematics")
    book.diagram(chapter, database, question)
    chapter.heading("hard")
    hard, identities = st.columns(2, gap="large")
    with hard:
        book.gradient(chapter, database, question)
    with identities:
        book.identities(chapter)
    chapter.exercise("search", reveal=partial(exercises.search, chapter, database, question))

chapter.heading("plane")
place_the_star(chapter)
with chapter.card("plane"):
    without_star = chapter.hides_answer("star", THE_STAR)
    case = weights_plane.choose_case(chapter)
    rows, picture = st.columns([5, 6], gap="large")
    with rows:
        if chapter.is_drawn_on("star"):
            mixture: Mixture | None = THE_MIXTURE
            chapter.text("star-held")
        else:
            mixture = weights_plane.choose_mixture(chapter, case)
        if mixture is not None and not without_star:
            weights_plane.readout(chapter, mixture)
    with picture:
        figure = weights_plane.plane(chapter, mixture, without_star) if mixture is not None else None

with chapter.claims():
    broken = chapter.break_and_explain("undivided", "twins", "cold", "negative")
    if answerable:
        lookup.lookup_claims(chapter, database, question, broken)
    if mixture is not None:
        weights_plane.plane_claims(chapter, mixture, broken)

if answerable:
    chapter.exercise("covariance", reveal=partial(exercises.covariance, chapter, database, question))
chapter.exercise("gates", reveal=partial(exercises.gates, chapter))
chapter.exercise("temperature")
chapter.code(
    attention_weights,
    soft_lookup,
    exact_lookup,
    approximate_lookup,
    top_lookup,
    two_keys,
    identity_lookup,
    edit_table,
    letter_features,
    weights_of_case,
    convex_hull,
    cone_arcs,
    distance_to_hull,
    attend,
)
data = {"lookup": lookup.weights(database, question).numpy()} if answerable else {}
if mixture is not None:
    data |= {"values": mixture.points.numpy(), "weights": mixture.weights.numpy(), "output": mixture.output.numpy()}
if data:
    if answerable:
        weight = [chapter.words("figure.weight")]
        chapter.downloads(data, figure=figure, rows=database.keys, columns=weight, corner="lookup")
    else:
        chapter.downloads(data, figure=figure, corner="values")
chapter.next()
