"""Atom mapping: a head with a job, found by measuring and tested against truth."""

from functools import partial

from pages.atom_mapping.parts import choose_reaction, find, main_figure, maps, numbers_of, switched_off, table, twenty
from ui.chapter.chapter import Chapter
from viz_core.lab.atom_maps import atom_weights, map_with_neighbours, read_reaction, strongest_atoms

chapter = Chapter("atom-mapping")
chapter.question()
chapter.definition()
with chapter.card("main", has_question=True):
    with chapter.main_controls():
        choice, broken = choose_reaction(chapter)
    chapter.side_by_side(broken, partial(main_figure, chapter, choice))

chapter.exercise("which-maps")
chapter.takeaways()
chapter.next()


def code() -> None:
    """Draw sources, source code and downloads."""
    chapter.sources({"head": numbers_of("golden")["places"]["best"]})
    chapter.code(read_reaction, atom_weights, strongest_atoms, map_with_neighbours)


chapter.deeper(
    {
        "find": partial(find, chapter),
        "table": partial(table, chapter),
        "maps": partial(maps, chapter, choice),
        "off": partial(switched_off, chapter),
        "twenty": partial(twenty, chapter),
        "code": code,
    }
)
