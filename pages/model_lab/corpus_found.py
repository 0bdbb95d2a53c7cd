"""Results of a corpus: heads by role, strongest examples, heads of a word, tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd
import streamlit as st

from pages.model_lab.corpus_figures import interval_text, offsets_figure, roles_figure
from serving.requests.corpus import CorpusFound
from serving.requests.corpus_kind import Firing, KindFound
from ui.chapter.chapter import Chapter
from ui.text.errors import explain
from ui.text.head_link import head_link
from ui.text.markdown import escape
from ui.text.numbers import localised, separators, series
from ui.text.words import load_words
from ui.widgets.shared_sentence import set_text
from viz_core.hub import HubCard
from viz_core.hub.runs.token_text import SPACE
from viz_core.maps.roles import COLUMNS, ROLES, SURE, beyond_chance

_AROUND = 10  # tokens shown on either side of a pair
_LISTED = 12  # heads of a role
UNASKED = "—"  # no head has a role; in a table: no sentence has a place where this role could show


def show_found(chapter: Chapter, card: HubCard, found: CorpusFound, texts: tuple[str, ...], opened: str) -> None:
    """Show the results for the chosen kind of maps and role.

    Args:
        opened: the sentence that the view above shows.
    """
    chapter.text("corpus-read", sentences=f"{found.sentences:,}", tokens=f"{found.tokens:,}")
    if found.left_out:
        number, why = found.why[0]
        st.caption(
            chapter.words("corpus-left", count=f"{found.left_out:,}", number=f"{number + 1:,}", why=explain(why))
        )
    if not found.kinds:
        return
    ids = tuple(found.kinds)
    name = str(chapter.controls.choice("maps", ids, ids[0])) if len(ids) > 1 else ids[0]
    kind = found.kinds[name]
    _named(chapter, kind, name)
    role = str(chapter.controls.choice("role", tuple(ROLES), next(iter(ROLES))))
    chapter.text(f"role.{role}")
    _grid(chapter, kind, role)
    table, means = table_of(chapter, kind), st.column_config.NumberColumn(format="localized")
    columns = dict.fromkeys(list(table)[2:], means)
    columns[chapter.words("figure.role")] = st.column_config.TextColumn(width=120)
    key = f"{chapter.controls.key('roles')}-{name}"
    st.dataframe(table, hide_index=True, column_config=columns, key=key, placeholder=UNASKED)
    ranked = sorted(range(len(kind.heads)), key=lambda place: -_number(kind, place, role))
    heads = {_id(kind, place): place for place in ranked}
    if st.session_state.get(chapter.controls.key("of-head"), next(iter(heads))) not in heads:  # of other maps
        del st.session_state[chapter.controls.key("of-head")]
    first = next(iter(heads))
    place = heads[chapter.controls.select("of-head", tuple(heads), first, lambda each: _title(kind, heads[each]))]
    _head(chapter, card, found, name, place, texts, opened)
    _word(chapter, kind, texts)
    with st.container(horizontal=True, key="downloads-corpus"):
        chapter.download_table("roles", partial(_roles_table, found))
        chapter.download_table("strongest", partial(_strongest_table, found))


def table_of(chapter: Chapter, kind: KindFound) -> pd.DataFrame:
    """A row a head: the role it has for sure, and its mean for each."""
    names = {role: chapter.words(f"option.{role}") for role in ROLES}
    labels = chapter.words.group("figure")
    rows = []
    for place in range(len(kind.heads)):
        role = kind.role_of(place)
        means = {names[each]: round(kind.measured(place, column).value, 3) for each, column in ROLES.items()}
        rows.append({labels["head"]: _title(kind, place), labels["role"]: names[role] if role else ""} | means)
    return pd.DataFrame(rows)


def _grid(chapter: Chapter, kind: KindFound, role: str) -> None:
    place = max(range(len(kind.heads)), key=lambda place: _number(kind, place, role))
    most = kind.measured(place, ROLES[role])
    if not most.sentences:
        st.info(chapter.words("corpus-unasked"), icon=":material/info:")
        return

    def choose(point: object) -> None:
        at = int(point["customdata"][1])  # type: ignore[index]
        st.session_state[chapter.controls.key("of-head")] = _id(kind, at)

    chapter.figure(
        "roles",
        roles_figure(kind, role, chapter.words.group("figure"), separators(chapter.words.language)),
        on_click=choose,
        role=chapter.words(f"option.{role}"),
        head=_title(kind, place),
        most=interval_text(most),
        chance=f"{most.chance:.3f}",
        beyond=f"{beyond_chance(most.value, most.chance):.2f}",
        sentences=f"{most.sentences:,}",
    )


def _named(chapter: Chapter, kind: KindFound, name: str) -> None:
    """List the heads with a significant role; each opens by a click."""
    of_role: dict[str, list[str]] = {}
    for place, (layer, head) in enumerate(kind.heads):
        if role := kind.role_of(place):
            of_role.setdefault(role, []).append(head_link(name, layer, head))
    listed = []
    for role in (role for role in ROLES if role in of_role):
        more = " …" if len(of_role[role]) > _LISTED else ""
        links = series(of_role[role][:_LISTED], chapter.words.language)
        listed.append(f"**{chapter.words(f'option.{role}')}** {links}{more}")
    chapter.text("corpus-named", heads=" · ".join(listed) or UNASKED, sure=f"{SURE:g}")


def _head(
    chapter: Chapter,
    card: HubCard,
    found: CorpusFound,
    name: str,
    place: int,
    texts: tuple[str, ...],
    opened: str,
) -> None:
    """Show one head by offset and its sentences at quantiles of their largest weights; each opens in the view."""
    kind = found.kinds[name]
    if kind.measured(place, "+0").sentences:
        labels, signs = chapter.words.group("figure"), separators(chapter.words.language)
        figure = partial(offsets_figure, kind, place, labels, signs)
        chapter.figure("offsets", figure, height=300, head=_title(kind, place))
    chapter.text("corpus-strongest", head=_title(kind, place))
    for rank, (quantile, one) in enumerate(kind.at_quantiles(place)):
        with st.container(horizontal=True, vertical_alignment="center", key=f"strongest-{rank}"):
            weight, share = (
                localised(each, chapter.words.language) for each in (f"{one.weight:.2f}", f"{quantile:.0%}")
            )
            st.markdown(f"**{weight}** :gray[{share}] {_marked(found, name, one)}")
            text, (layer, head) = texts[one.sentence], kind.heads[place]
            if text == opened:
                st.markdown(head_link(name, layer, head, chapter.words("corpus-opened")))
                continue
            st.button(
                chapter.words("corpus-open"),
                key=chapter.controls.key(f"open-{rank}"),
                icon=":material/open_in_full:",
                type="tertiary",
                on_click=_open,
                args=(chapter, card, text, f"{name}.{layer}.{head}", one.query),
            )


def _open(chapter: Chapter, card: HubCard, text: str, head: str, query: int) -> None:
    """Callback: open this sentence and head in the view above, the query pinned."""
    controls = chapter.controls
    set_text(controls.key(card.kind_class.text_control()), text)
    for name in ("pair", "target"):
        if st.session_state.get(controls.key(name)):
            st.session_state[controls.key(name)] = ""
    st.query_params.update({"head": head, "pin": f"q{query}"})


def _marked(found: CorpusFound, name: str, one: Firing) -> str:
    """The sentence around a pair: the query in blue, the key in orange; of two sequences, first that of the query."""
    queries, keys = found.sides[name, one.sentence]
    if name.endswith("cross"):
        return f"{_side(queries, {one.query: 'blue'})} → {_side(keys, {one.key: 'orange'})}"
    both = {one.key: "orange"} | {one.query: "violet" if one.query == one.key else "blue"}
    return _side(queries, both)


def _side(tokens: tuple[str, ...], marks: dict[int, str]) -> str:
    first, last = max(0, min(marks) - _AROUND), min(len(tokens), max(marks) + _AROUND + 1)
    parts = []
    for i in range(first, last):
        text = escape(tokens[i].removeprefix(SPACE))
        gap = " " if tokens[i].startswith(SPACE) or i - 1 in marks or i in marks else ""
        parts.append(gap + (f":{marks[i]}-background[{text}]" if i in marks else text))
    return f"{'… ' if first else ''}{''.join(parts).strip()}{' …' if last < len(tokens) else ''}"


def _word(chapter: Chapter, kind: KindFound, texts: tuple[str, ...]) -> None:
    """Show the heads that attend to a word, and sentences with it."""
    word = chapter.controls.text("of-word", "", placeholder=chapter.words("placeholder.word")).strip()
    if not word:
        return
    heads = kind.heads_attending_to(word)
    if not heads:
        st.caption(chapter.words("corpus-no-word", word=escape(word[:80]), words=f"{len(kind.words):,}"))
        return
    seen = kind.words[word.casefold()]
    listed = [f"**{_title(kind, place)}** {given:.3f}" for place, given in heads]
    chapter.text("corpus-word", word=escape(word[:80]), count=f"{seen.count:,}", heads=listed)
    st.markdown("\n".join(f"- {escape(texts[number])}" for number in seen.sentences))


def _number(kind: KindFound, place: int, role: str) -> float:
    """What a head gives to a role; below all where no sentence asks."""
    one = kind.measured(place, ROLES[role])
    return one.value if one.sentences else -1.0


def _id(kind: KindFound, place: int) -> str:
    """ "2.5" in links: layer and head from 1."""
    layer, head = kind.heads[place]
    return f"{layer + 1}.{head + 1}"


def _title(kind: KindFound, place: int) -> str:
    """ "head 5 of layer 2"."""
    layer, head = kind.heads[place]
    return load_words("common")("head-title", layer=layer + 1, head=head + 1)


def _roles_table(found: CorpusFound) -> pd.DataFrame:
    """A row for each head and each role or offset."""

    def rows() -> Iterator[dict[str, object]]:
        names = {column: role for role, column in ROLES.items()}
        for name, kind in found.kinds.items():
            for place, (layer, head) in enumerate(kind.heads):
                for column in COLUMNS:
                    yield {
                        "maps": name,
                        "layer": layer + 1,
                        "head": head + 1,
                        "role": names.get(column, f"offset {column}"),
                        **kind.measured(place, column)._asdict(),
                    }

    return pd.DataFrame(rows())


def _strongest_table(found: CorpusFound) -> pd.DataFrame:
    """A row for each sentence in which a head fires most."""

    def rows() -> Iterator[dict[str, object]]:
        for name, kind in found.kinds.items():
            for (layer, head), strongest in zip(kind.heads, kind.strongest, strict=True):
                for one in strongest:
                    queries, keys = found.sides[name, one.sentence]
                    yield {
                        "maps": name,
                        "layer": layer + 1,
                        "head": head + 1,
                        "weight": one.weight,
                        "sentence": one.sentence + 1,
                        "query": queries[one.query],
                        "key": keys[one.key],
                        "query place": one.query + 1,
                        "key place": one.key + 1,
                    }

    return pd.DataFrame(rows())
