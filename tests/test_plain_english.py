"""Phrases that must not come back: mannered English, Latin abbreviations, codes of heads, words private to the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXTS = [
    *sorted(ROOT.glob("assets/text/en/*.md")),
    *(path for path in sorted(ROOT.glob("docs/*.md")) if path.name != "attacks.md"),  # it quotes what attackers sent
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
]

# What not to write, as a regular expression, and what to write.
PHRASES = {
    r"\be\.g\.": "for example",
    r"\bi\.e\.": "that is",
    r"\bcf\.": "see",
    r"\bviz\.": "namely",
    r"\betc\.": "name them, or write 'and so on'",
    r"\bvs\.": "against",
    r"\bL\d+H\d+\b": "head 3 of layer 3",
    r"(?<![`=/\w-])(cross|encoder|decoder|vision)-\d+\.\d+(?!`)": "head 3 of layer 3",
    r"\bhold 0\b|\bholds 0\b": "exclude 0; significant",
    r"tells nobody": "stays in your browser",
    r"held against": "compared with",
    r"all else together": "less than 50%",
    r"likeliest so many": "top-k",
    r"mean taken off": "mean subtracted",
    r"is taken off": "is subtracted",
    r"is no fraction": "is irrational",
    r"nobody looks": "choose at least one head",
    r"as at first": "reset",
    r"what it is asked": "accuracy",
    r"must be true, and is": "must hold, and does",
    r"who saves": "every cheaper layer",
    r"strangers are for": "a public server",
    r"ask at this moment": "the server is busy",
    r"where many people visit": "on a shared server",
    r"most words it may have": "stopped at the limit of tokens",
    r"nats a token": "nats per token",
    r"asks for / what it gets": "attention weights / length of what each key adds",
    r"that 95% of": "95% of ... are below",
    r"as many updates as you like": "however long it trains",
    r"fires most": "largest weights",
    r"\bheard of\b": "reached by a signal from",
    r"to be heard": "visible",
    r"\bhears? of\b": "receives a signal from",
    r"\bkin\b": "similar layers",
    r"answers? louder": "gets a larger weight",
    r"\bopinions?\b": "scores",
    r"weights? speak": "weights show",
    r"\bcomes out as\b": "is",
    r"what comes of it": "the result",
    r"at one's leisure": "later",
    r"\bspread-out-ness\b": "entropy",
    r"likeliest": "most likely",
    r"so many tokens at most": "at most {n} tokens",
    r"\bof its own accord\b": "automatically",
    r"by and by": "gradually",
    r"\bno (?:boolean|integer) at all\b": "not a boolean",
    r"\bbrings? to nought\b": "makes 0",
    r"\bthereby\b|\bwherein\b|\bwhereof\b|\bhence\b|\bthereof\b": "plain words",
    r"\bupon\b": "on",
    r"\bwhilst\b|\bamongst\b": "while, among",
    r"\butili[sz]e": "use",
    r"\bin order to\b": "to",
    r"\bdue to the fact\b": "because",
    r"\ba number of\b(?! key| head| token)": "several",
    r"\bleverag": "use",
    r"\bsimply put\b|\bneedless to say\b|\bit is worth noting\b|\bnote that\b": "say it",
    r"\bvery unique\b": "unique",
    r"\bnever fear\b": "delete",
    r"\bdoes not care (?!which|about)": "does not depend on",
    r"\bin stripes\b": "constant diagonals",
    r"\bone value for each offset, in\b": "one value per offset (constant diagonals)",
    r"\ba row a query\b|\ba column a key\b": "rows are queries, columns are keys",
    r"\b(?:a|one) (?:curve|row|column|map|bar|line|head) a (?:layer|query|key|head|token|word)\b": "one for each",
    r"\bdearer\b(?! than restricted)": "more expensive",
    r"\bnear-sighted\b": "attends only to near tokens",
    r"\bknows? nothing of\b": "is independent of",
    r"\bhas nothing to do\b": "is not related",
    r"\bstands? for\b": "is",
    r"\bstand? at the foot\b": "below",
    r"\bit is they that\b": "they",
    r"\bsuch a one\b": "one",
    r"\bis none\b": "does not exist",
    r"\bno sooner\b": "as soon as",
    r"\bnot a whit\b": "not",
    r"\bthe lot of them\b": "all of them",
    r"\bby \+\d+%": "by 14 percentage points",
    r"\bhow it fares\b": "how accurate it is",
    r"\blets? go of\b": "releases",
    r"\bat a stretch\b": "without a break",
    r"\bmakes nothing of\b": "ignores",
    r"\bpasses for everybody\b": "cannot fail",
    r"\bnobody trained\b": "untrained",
}


def _findings(path: Path) -> Iterator[str]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for phrase, better in PHRASES.items():
            if found := re.search(phrase, line, re.IGNORECASE):
                yield f"{path.relative_to(ROOT)}:{number}: {found[0]!r}: write {better!r}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_phrase_that_was_removed_comes_back(path: Path) -> None:
    assert list(_findings(path)) == []


def test_a_phrase_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    text = tmp_path / "page.md"
    text.write_text("# Page\n\nHeld against 100 sentences, L3H3 is best, e.g. here.\n", encoding="utf-8")
    assert {line.split(": ")[1] for line in _findings(text)} == {"'Held against'", "'L3H3'", "'e.g.'"}
