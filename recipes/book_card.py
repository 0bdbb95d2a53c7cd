"""Cards of the book's runs: the book's printed results beside ours."""

from __future__ import annotations

from typing import Any

from recipes.book_pairs import BOOK_SIZES
from recipes.files import settings_table
from recipes.picture_sets import FASHION_MNIST
from recipes.sentence_pairs import ARCHIVE_URL, LICENCE, SOURCE
from viz_core.pretrained.bleu import book_sentence_bleu


def translation_card(name: str, title: str, section: str, differs: str, record: dict[str, Any]) -> str:
    """The card of one of the book's translators, from what its training recorded."""
    references = list(record["references"].values())
    columns = {"the book printed": list(record["printed"].values())}
    columns |= {f"seed {run['seed']}": run["translations"] for run in record["runs"]}
    head = " | ".join(f"{column} | the book's BLEU" for column in columns)
    rows = "\n".join(
        f"| {english} | {' | '.join(f'{texts[i]} | {_bleu(texts[i], references[i])}' for texts in columns.values())} |"
        for i, english in enumerate(record["references"])
    )
    sizes = "{} and {}".format(*record["vocabularies"])
    return f"""# {title}

`{name}`: the run of Dive into Deep Learning, section {section},
trained from scratch on {record["pairs"]} sentence pairs with vocabularies of
{sizes} words (the book, from the whole archive: {BOOK_SIZES[0]} and {BOOK_SIZES[1]}).

## What the book printed, and what came out

| English | {head} |
| --- |{" --- | --- |" * len(columns)}
{rows}

The book's BLEU is that with k = 2, against {", ".join(f"“{reference}”" for reference in references)}

## Training

{_curves(record)}

| setting | value |
| --- | --- |
{settings_table(record["settings"])}

## Where this differs from the book

{differs}
Greedy search never writes padding or a second beginning. Where the data is not the whole archive, other sentences
are among the first, and so other words.

## Data

{SOURCE}; {ARCHIVE_URL}. Licence: {LICENCE}.
"""


def picture_card(record: dict[str, Any]) -> str:
    """The card of the book's Vision Transformer."""
    train, test = record["pictures"]
    return f"""# The book's Vision Transformer, Fashion-MNIST

`book-vit`: the run of Dive into Deep Learning, section 11.8, trained from scratch on {train:,} pictures. The book draws
its curves without printing a number.

## Training

{_curves(record)}

| setting | value |
| --- | --- |
{settings_table(record["settings"])}

The optimiser is stochastic gradient descent without momentum, as for every classifier of the book. As in the book, the
{test:,} pictures measured after each epoch are test pictures.

## Data

{FASHION_MNIST.source}. Licence: {FASHION_MNIST.licence}.
"""


def _bleu(text: str, reference: str) -> str:
    return f"{book_sentence_bleu(text, [reference]):.3f}"


def _curves(record: dict[str, Any]) -> str:
    """The last point of each run's curve, as a table."""
    names = list(record["runs"][0]["curve"][-1])
    rows = [[run["seed"], *run["curve"][-1].values()] for run in record["runs"]]
    lines = [["seed", *names], ["---"] * (len(names) + 1), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
