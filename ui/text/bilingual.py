"""A text in two languages: each sentence of the second under the same sentence of the first."""

from __future__ import annotations

import re

_ITEM = re.compile(r"^( *)(?:[-*]|\d+\.) ")
# A sentence ends at its full stop. Full stops inside formulas, code, links and numbers do not count.
_WHOLE = re.compile(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|\[[^\]]*\]\([^)]*\)", re.DOTALL)
_END = re.compile(r"(?<=[.!?…])[*”\")]*\s+(?=[^\s\d(])|(?<=[。！？])(?![」』）*])\s*(?=\S)")
_NO_PROSE = ("$$", "|", "```", "#", "<")


def interleave(first: str, second: str) -> str:
    """Return the Markdown of `first` with the translation `second` in block quotes in between.

    Sentences are paired where a paragraph has as many in both languages, otherwise whole paragraphs, otherwise whole
    texts. Formulas, tables and code, which are the same in both, are not repeated.
    """
    blocks, others = _blocks(first), _blocks(second)
    if len(blocks) != len(others):
        return f"{first}\n\n{_quote(second)}"
    return "\n\n".join(_pair(block, other) for block, other in zip(blocks, others, strict=True))


def _blocks(text: str) -> list[str]:
    """Return paragraphs and list items, in order."""
    blocks: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = paragraph.splitlines()
        if not any(_ITEM.match(line) for line in lines) or paragraph.startswith(_NO_PROSE):
            blocks.append(paragraph)
            continue
        for i, line in enumerate(lines):
            if i and not _ITEM.match(line):
                blocks[-1] += f"\n{line}"
            else:
                blocks.append(line)
    return blocks


def _pair(block: str, other: str) -> str:
    if block == other or block.startswith(_NO_PROSE):
        return block
    item = _ITEM.match(block)
    if item:
        indent = " " * len(item[0])
        return f"{block}\n\n{_quote(_ITEM.sub('', other), indent)}"
    sentences, translated = split_sentences(block), split_sentences(other)
    if len(sentences) != len(translated) or any(piece.count("**") % 2 for piece in sentences + translated):
        return f"{block}\n\n{_quote(other)}"
    return "\n\n".join(f"{a}\n\n{_quote(b)}" if a != b else a for a, b in zip(sentences, translated, strict=True))


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph, with their Markdown.

    >>> split_sentences("It is $a. B$. Two of 3.5 remain.")
    ['It is $a. B$.', 'Two of 3.5 remain.']
    >>> split_sentences("它是對的。「好。」然後呢？")
    ['它是對的。', '「好。」然後呢？']
    """
    masked = _WHOLE.sub(lambda match: "x" * len(match[0]), text)
    ends = [match.end() for match in _END.finditer(masked)]
    pieces = [text[a:b].strip() for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
    return [piece for piece in pieces if piece]


def _quote(text: str, indent: str = "") -> str:
    return "\n".join(f"{indent}> {line}".rstrip() for line in text.splitlines())
