"""An exercise of the book on a page: a question with answers, and an experiment that decides which of them is true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Exercise:
    """Where an exercise is put, and what decides it.

    Attributes:
        chapter, name: the prediction, `exercise.NAME` among the words of this chapter.
        shown: the section of words with which the page shows what comes out.
        decide: whether each answer on offer is true, in the order of the page, by what the page computes or what was
            recorded; never by what the words say.
    """

    chapter: str
    name: str
    shown: str
    decide: Callable[[], tuple[bool, ...]]
