"""Examples in messages and placeholders: the box they are for reads each of them, in each language."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from pages.scoring_functions.softmax import EXAMPLES, _in_language
from pages.scoring_functions.typed_numbers import read_batches, read_lengths
from ui.text.words import languages
from viz_core.maps.register import MEASURES
from viz_core.view.components import COMPONENTS, view_words

LANGUAGES = list(languages())


def _full_width(text: str) -> str:
    """The text as an input method for Chinese may write it."""
    return text.translate({code: code - 0x21 + 0xFF01 for code in range(0x21, 0x7F)})


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_scores_and_lengths_that_a_button_types(name: str, language: str) -> None:
    scores, lengths = EXAMPLES[name]
    meant = read_batches(scores)
    seen = read_lengths(lengths, *meant.shape)
    typed = _in_language(scores, language)
    for box, numbers in ((typed, lengths), (_full_width(typed), _full_width(lengths))):
        assert read_batches(box).equal(meant)
        again = read_lengths(numbers, *meant.shape)
        assert again is None if seen is None else again is not None and again.equal(seen)


# A group of four layers of two heads, and what its filters let through.
_SCRIPT = """
import { filterExample, filterNames, readFilter } from "./attention_view/measures.js";
import { makeWords } from "./attention_view/tokens.js";
const { templates, language, measures, values } = JSON.parse(process.argv[2]);
const layers = values.map((heads, layer) => ({ number: layer + 1, heads: heads.length }));
const found = [];
for (const seen of [null, { grid: [1, 1], special: 0 }]) for (const first of measures) {
  const listed = [first, ...measures.filter((name) => name !== first)];
  const group = { id: "g", seen, layers, measures: listed.map((name) => ({ name })) };
  const print = (value) => Object.fromEntries(measures.map((name) => [name, name === first ? value : -1]));
  const picture = (heads) => ({ shape: [heads.length, 1, 1], measures: heads.map(print) });
  const parts = new Map(values.map((heads, layer) => [`picture 0 g ${layer}`, picture(heads)]));
  const store = { base: { groups: [[group]] }, parts };
  const view = { words: makeWords(templates, language), state: { group: "g" }, store };
  const hint = filterExample(view), names = filterNames(view).map(([, , name]) => name);
  const message = view.words.text("filter_unreadable", { example: hint, names: view.words.row(names) });
  const own = names[2], value = view.words.plain(1.35);
  const advice = message.match(/[“「](.*)[”」]/)[1];
  const typed = { hint, advice, least: `${own} <= ${value}`, bare: `${own}>${value}`, wide: `${own}＞${value}` };
  const lets = (filter) => {
    const reads = readFilter(view, filter);
    return reads && values.map((heads, layer) => heads.map((_, head) => reads([layer, head])));
  };
  found.push([own, Object.fromEntries(Object.entries(typed).map(([kind, filter]) => [kind, lets(filter)]))]);
}
console.log(JSON.stringify(found));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js on this machine")
@pytest.mark.parametrize("language", LANGUAGES)
def test_filters(language: str, tmp_path: Path) -> None:
    """The hint, the advice in the message, and every name that the message lists, of each measure of heads."""
    for folder in ("attention_view", "shared"):
        shutil.copytree(COMPONENTS / folder, tmp_path / folder)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "run.js").write_text(_SCRIPT, encoding="utf-8")
    values = [[0.3, 2.4], [0.6, 2.1], [0.9, 1.8], [1.2, 1.5]]
    given = {"templates": view_words(language), "language": language, "measures": list(MEASURES), "values": values}
    script = ["node", str(tmp_path / "run.js"), json.dumps(given)]
    found = json.loads(subprocess.run(script, capture_output=True, check=True, timeout=60).stdout)
    assert len(found) == 2 * len(MEASURES)
    large = [[value > 1.35 for value in heads] for heads in values]
    expected = {
        "hint": large,
        "advice": [heads if layer < 2 else [False, False] for layer, heads in enumerate(large)],
        "least": [[not each for each in heads] for heads in large],
        "bare": large,
        "wide": large,
    }
    for name, read in found:
        assert read == expected, name
