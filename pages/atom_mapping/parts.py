"""The main figure, a reaction whose product atoms light reactant atoms; and the sections on how it was found."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import streamlit as st
from PIL import Image

from pages.atom_mapping.figures import heads_figure
from ui.blocks.over_picture import weights_image
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate_model, map_groups
from ui.text.head_names import head_place
from ui.text.numbers import localised
from ui.text.translations import explain
from ui.text.words import current_language
from ui.widgets.attention_view import ViewState
from ui.widgets.places import draw_places
from viz_core.lab.atom_maps import (
    MODEL,
    Reaction,
    ReactionError,
    head_weights,
    read_reaction,
    reagents_of,
    runners_up,
    strongest_atoms,
)
from viz_core.lab.fields.molecules import draw_molecules, draw_reaction, name_atoms
from viz_core.runtime.assets import ASSETS, reading

if TYPE_CHECKING:  # it brings the hub's libraries, which only a model that is opened needs
    from serving.requests.hub import HubModelSpec

OWN = "own"
FIRST = "suzuki"
MASKED = "masked"
_MAX_CHARACTERS = 600


@lru_cache(maxsize=2)
def results(name: str) -> dict[str, Any]:
    """Results of `python -m recipes atom-maps`."""
    path = ASSETS / "atoms" / f"{name}.json"
    with reading(path):
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content


def reactions() -> dict[str, Any]:
    """The twenty reactions, each by version."""
    found: dict[str, Any] = results("reactions")["reactions"]
    return found


def numbers_of(data: Literal["golden", "twenty"]) -> dict[str, Any]:
    """Scores of all heads on the reactions mapped by hand, or on the twenty."""
    return results("scores") if data == "golden" else results("reactions")["scores"]


@dataclass(frozen=True)
class Choice:
    """What the controls ask for: one of the twenty in a version, or a text; layer, head and masked atoms from 0."""

    name: str
    version: str
    text: str
    head: tuple[int, int]
    masked: tuple[int, ...] = ()

    @property
    def smiles(self) -> str:
        """The reaction as it is drawn intact."""
        return self.text if self.name == OWN else str(reactions()[self.name][self.version]["smiles"])


def choose_reaction(chapter: Chapter) -> tuple[Choice, str]:
    """Draw the controls; return what they ask for, and what is broken of it."""
    controls, best = chapter.controls, tuple(results("reactions")["head"])
    name = str(controls.select("reaction", (*reactions(), OWN), FIRST))
    version, text, broken = "canonical", "", ""
    if name == OWN:
        text = controls.text("smiles", "CCO.CC(=O)Cl>>CCOC(C)=O", _MAX_CHARACTERS)
    else:
        version = str(controls.choice("version", ("canonical", "reordered"), "canonical"))
    with controls.more():
        accuracies = numbers_of("golden")["heads"]["mean"]
        names = {
            f"{i + 1}.{j + 1}": chapter.words("head-option", head=head_place(i + 1, j + 1), accuracy=f"{share:.0%}")
            for i, row in enumerate(accuracies)
            for j, share in enumerate(row)
        }
        head = str(controls.select("head", tuple(names), f"{best[0] + 1}.{best[1] + 1}", names.__getitem__))
        layer, _, number = head.partition(".")
        choice = Choice(name, version, text, (int(layer) - 1, int(number) - 1))
        choice = replace(choice, masked=_choose_masked(chapter, choice.smiles))
    if name != OWN and "missing" in reactions()[name]:
        broken = chapter.break_it("missing")
    return choice, broken


def _choose_masked(chapter: Chapter, smiles: str) -> tuple[int, ...]:
    """Draw the list of reactant atoms; return the chosen ones, from 0. A text that is no reaction has none."""
    try:
        reaction = read_reaction(smiles)
    except ReactionError:
        return ()
    atom = "{atom}"
    names = name_atoms(reaction, {"reactant": atom, "product": atom})
    atoms = range(1, reaction.num_reactants + 1)
    chosen = chapter.controls.multiselect(MASKED, atoms, (), labels=lambda atom: names[atom - 1])
    return tuple(sorted(atom - 1 for atom in chosen))


def _toggle_masked(chapter: Chapter, atom: int) -> None:
    """Mask an atom or show it again, in a callback before the page reruns."""
    key = chapter.controls.key(MASKED)
    before = st.session_state.get(key) or []
    st.session_state[key] = [each for each in before if each != atom + 1] + [atom + 1] * (atom + 1 not in before)


def model_spec() -> HubModelSpec:
    """The model that ships."""
    from serving.requests.hub import HubModelSpec

    return HubModelSpec(MODEL, offline=True)


def main_figure(chapter: Chapter, choice: Choice, setting: str) -> None:
    """Draw the molecules and the claim; a sentence in their place where the text is no reaction."""
    own = choice.name == OWN
    entry: dict[str, Any] = {"smiles": choice.text} if own else reactions()[choice.name][setting or choice.version]
    try:
        reaction = read_reaction(entry["smiles"])
        masked = () if setting else choice.masked  # a broken reaction has other atoms
        recorded = "weights" in entry and not masked and choice.head == tuple(results("reactions")["head"])
        inputs = (entry["smiles"], *choice.head, masked)
        weights = np.array(entry["weights"] if recorded else evaluate_model(model_spec(), head_weights, *inputs))
        molecules = entry.get("molecules") or _molecules(chapter, reaction)
    except ValueError as error:  # what is wrong with the text, or more tokens than the model takes
        st.warning(explain(error), icon=":material/edit:")
        return
    truth = entry.get("truth", [])
    strongest = strongest_atoms(weights, reaction)
    reagents = reagents_of(reaction, truth or strongest[:, None].tolist())
    names = name_atoms(reaction, chapter.words.group("atom"), reagents)
    draw_places(
        chapter.parts.unique_key("places"),
        draw_reaction(molecules, reaction, names, masked, dict.fromkeys(reagents, chapter.words("reagent"))),
        weights,
        chapter.words,
        start=_start(choice),
        truth=truth,
        strongest=strongest.tolist(),
        unclear=runners_up(weights, reaction).tolist(),
        first_row=None if setting else 1,  # behind [CLS]; the maps below are of the intact text
        on_mask=None if setting else partial(_toggle_masked, chapter),
    )
    chapter.guidance("places" if truth else "own", head=head_place(choice.head[0] + 1, choice.head[1] + 1))
    if truth:
        right = count_right(entry, weights)
        with chapter.claim_row("main"):
            chapter.claim_at_most("right", len(truth) - right, 0, right=right, count=len(truth))


def count_right(entry: dict[str, Any], weights: np.ndarray | None = None) -> int:
    """Return how many product atoms have a right reactant atom, or one equivalent to it, as the strongest."""
    own = np.array(entry["weights"]) if weights is None else weights
    found = strongest_atoms(own, read_reaction(entry["smiles"])).tolist()
    return sum(atom in right for atom, right in zip(found, entry["truth"], strict=True))


def _start(choice: Choice) -> int:
    """The product atom that is chosen at first: one whose reactant can be left out, where the spelling is the same."""
    versions = {} if choice.name == OWN or choice.version != "canonical" else reactions()[choice.name]
    truth: list[list[int]] = versions.get("missing", {}).get("truth", [])
    return next((atom for atom, right in enumerate(truth) if not right), 0)


def _molecules(chapter: Chapter, reaction: Reaction) -> list[dict[str, Any]]:
    """The molecules of a typed reaction, or none after a sentence: without RDKit, or where it reads other atoms."""
    try:
        found = draw_molecules("".join(reaction.tokens))
    except ImportError:
        st.caption(chapter.words("no-rdkit"))
        return []
    except ReactionError as error:
        st.caption(explain(error))
        return []
    return found if sum(len(each["atoms"]) for each in found) == len(reaction.elements) else []


def find(chapter: Chapter) -> None:
    """Draw the accuracy of every head, and say how far the first is ahead."""
    data = chapter.controls.choice("data", ("golden", "twenty"), "golden")
    scores = numbers_of("twenty" if data == "twenty" else "golden")
    chapter.text("find", reactions=f"{scores['reactions']:,}", atoms=f"{scores['atoms']:,}")
    ahead = scores["best_minus_next"]
    values: dict[str, Any] = {
        **{name: head_place(*(each + 1 for each in scores["places"][name])) for name in ("best", "next")},
        "accuracy": f"{scores['table']['best']['atoms']['mean']:.1%}",
        **{name: f"{100 * ahead[name]:+.2f}" for name in ("mean", "low", "high")},
    }
    chapter.figure("heads", heads_figure(scores, chapter.words.group("figure")), **values)


def table(chapter: Chapter) -> None:
    """Draw accuracies side by side, and the kinds of errors."""
    scores, words = numbers_of("golden"), chapter.words
    columns = words.group("column")
    places = {name: head_place(*(each + 1 for each in place)) for name, place in scores["places"].items()}
    read = places["read"]
    for text, measured in _MEASURED.items():
        rows = []
        for name, found in scores["table"].items():
            row = {columns["method"]: words(f"method.{name}", head=places.get(name, read))}
            rows.append(row | {columns[part]: _with_interval(found.get(part), words.language) for part in measured})
        chapter.text(text, reactions=f"{scores['reactions']:,}", atoms=f"{scores['atoms']:,}", head=read)
        st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")


_MEASURED = {"table": ("atoms", "reactions"), "errors": ("leaving-group", "reagent", "other-atom", "symmetry")}


def _with_interval(found: dict[str, float] | None, language: str) -> str:
    if found is None:
        return "–"
    mean, low, high = (localised(f"{100 * found[part]:.1f}", language) for part in ("mean", "low", "high"))
    return f"{mean}% [{low}; {high}]"


def maps(chapter: Chapter, choice: Choice) -> None:
    """Draw the maps of all 96 heads on the reaction, computed here."""
    from serving.requests.hub import HubRequest, RunInputs

    try:
        text = "".join(read_reaction(choice.smiles).tokens)
        groups = map_groups(HubRequest(model_spec(), RunInputs(text)), "model-lab", current_language())
    except ValueError as error:
        st.warning(explain(error), icon=":material/edit:")
        return
    chapter.text("maps")
    chapter.attention_view(groups, ViewState("encoder-self", *choice.head))


def switched_off(chapter: Chapter) -> None:
    """Draw what switching heads off costs where a product atom is hidden."""
    recorded, words = results("reactions"), chapter.words
    scores = recorded["scores"]
    names = {
        "head": head_place(*(each + 1 for each in recorded["head"])),
        "other": head_place(recorded["head"][0] + 1, scores["places"]["other-head"][1] + 1),
        "number": recorded["head"][1] + 1,
    }
    columns = words.group("column")
    rows = [
        {columns["off"]: words(f"off.{name}", **names), columns["probability"]: _with_interval(found, words.language)}
        for name, found in recorded["off"].items()
    ]

    def table() -> None:
        st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")

    chapter.text("off", **names)
    chapter.exercise("worth", reveal=table)


def twenty(chapter: Chapter) -> None:
    """State the rule of the twenty reactions; draw how many atoms are right, in each order, and what a lack does."""
    language, columns, rows = chapter.words.language, chapter.words.group("column"), []
    sums = {"canonical": 0, "reordered": 0, "count": 0}
    for name, versions in reactions().items():
        row, count = {columns["reaction"]: chapter.words(f"option.{name}")}, len(versions["canonical"]["truth"])
        sums["count"] += count
        for version in ("canonical", "reordered"):
            right = count_right(versions[version])
            sums[version] += right
            row[columns[version]] = f"{right} / {count}"
        means = [localised(f"{weights.mean():.2f}", language) for weights in lost_weights(versions) if weights.size]
        row[columns["missing"]] = " → ".join(means) or "–"
        rows.append(row | {columns["smiles"]: versions["canonical"]["smiles"]})
    lost = np.concatenate([lost_weights(versions) for versions in reactions().values()], axis=1)
    intact, missing = (localised(f"{weight:.2f}", language) for weight in lost.mean(axis=1))
    chapter.text("rule", **sums, lost=lost.shape[1], intact=intact, missing=missing)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")


def lost_weights(versions: dict[str, Any]) -> np.ndarray:
    """The largest weights on reactant atoms, intact and without a reactant, of product atoms that came from it."""
    lost = [i for i, right in enumerate(versions.get("missing", {}).get("truth", ())) if not right]
    found = [[max(versions[name]["weights"][i]) for i in lost] for name in ("canonical", "missing") if lost]
    return np.array(found).reshape(2, len(lost))


def gallery_picture() -> Image.Image:
    """Weights of the head that maps atoms: a row a product atom, a column a reactant atom."""
    return weights_image(np.array(reactions()[FIRST]["canonical"]["weights"], dtype=np.float32))
