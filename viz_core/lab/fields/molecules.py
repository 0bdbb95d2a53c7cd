"""Reactions: a place for each atom, in its molecule as RDKit lays it out, and in the SMILES."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from viz_core.lab.atom_maps import Reaction, ReactionError
from viz_core.lab.places import Drawing, Panel, Place
from viz_core.runtime.packages import require

_BOND = 34  # px
_RADIUS = 14  # of an atom's circle
_GAP = 11.5  # between an atom's middle and its bonds, where it has a label
_AROUND = (30, 32)  # of a molecule: left and right, top and bottom
_SHIFTS = {1: (0.0,), 2: (-2.7, 2.7), 3: (-4.8, 0.0, 4.8)}  # of the strokes of a bond
_LABEL = re.compile(r"([A-Z*][a-z]?)(H[₀-₉]*)?(.*)")
_SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SUPERSCRIPT = str.maketrans("0123456789+−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")

TERMS = ("reactant", "product")


def draw_molecules(smiles: str) -> list[dict[str, Any]]:
    """Return a drawing of each molecule of a reaction, in the order of its atoms, laid out by RDKit.

    Returns:
        For each molecule "product", whether it is behind ">>"; "atoms", a list of x, y (in bond lengths, y downwards)
        and label ("" for a carbon with bonds); "bonds", a list of first atom, second atom and order 1, 2 or 3.
    """
    require("chemistry", "rdkit")
    from rdkit import Chem, RDLogger
    from rdkit.Chem import rdDepictor

    RDLogger.DisableLog("rdApp.*")
    found = []
    for side, text in enumerate(smiles.split(">>")):
        for part in text.replace("~", ".").split("."):
            molecule = Chem.MolFromSmiles(part)
            if molecule is None:
                raise ReactionError("{text} is spelled like a molecule, but no such molecule exists.", text=part[:60])
            Chem.Kekulize(molecule, clearAromaticFlags=True)
            rdDepictor.Compute2DCoords(molecule)
            at = molecule.GetConformer().GetPositions() / 1.5
            found.append(
                {
                    "product": bool(side),
                    "atoms": [
                        [round(float(x), 2), round(-float(y), 2), _text_of(a)]
                        for (x, y, _), a in zip(at, molecule.GetAtoms(), strict=True)
                    ],
                    "bonds": [
                        [b.GetBeginAtomIdx(), b.GetEndAtomIdx(), int(b.GetBondTypeAsDouble())]
                        for b in molecule.GetBonds()
                    ],
                }
            )
    return found


def _text_of(atom: Any) -> str:
    """Symbol, hydrogens and charge; "" for a carbon that its bonds show."""
    charge, hydrogens = atom.GetFormalCharge(), atom.GetTotalNumHs()
    if atom.GetSymbol() == "C" and atom.GetDegree() and not charge:
        return ""
    many = str(hydrogens).translate(_SUBSCRIPT) if hydrogens > 1 else ""
    sign = "" if not charge else f"{abs(charge) if abs(charge) > 1 else ''}{'+' if charge > 0 else '−'}"
    return f"{atom.GetSymbol()}{'H' + many if hydrogens else ''}{sign.translate(_SUPERSCRIPT)}"


def name_atoms(reaction: Reaction, templates: Mapping[str, str], reagents: Collection[int] = ()) -> list[str]:
    """Return a name for each atom: element and number on its side, in one of these templates with "{atom}".

    Args:
        templates: of "reactant", "product" and, where there are such molecules, "reagent".
    """
    n, found = reaction.num_reactants, []
    for i, (element, molecule) in enumerate(zip(reaction.elements, reaction.molecules, strict=True)):
        role = "product" if i >= n else "reagent" if molecule in reagents else "reactant"
        found.append(templates[role].format(atom=f"{element}{i + 1 - n * (i >= n)}"))
    return found


def draw_reaction(
    molecules: Sequence[Mapping[str, Any]],
    reaction: Reaction,
    names: Sequence[str],
    masked: Collection[int] = (),
    captions: Mapping[int, str] | None = None,
) -> Drawing:
    """Return the molecules side by side, their atoms in the order of the reaction's.

    Args:
        molecules: of `draw_molecules`; none of them: the text alone has places.
        names: of all atoms, as of `name_atoms`.
        masked: atoms that are no keys.
        captions: what stands below molecules, by their numbers.
    """
    n, boxes, panels = reaction.num_reactants, [], []
    for i, molecule in enumerate(molecules):
        sign = "" if i == 0 else "+" if molecule["product"] == molecules[i - 1]["product"] else "→"
        panel, own = _draw_molecule(molecule, i, sign, (captions or {}).get(i, ""))
        panels.append(panel)
        boxes += own
    places = tuple(
        Place(names[atom], (boxes[atom],) if boxes else (), token, atom in masked)
        for atom, token in enumerate(reaction.places)
    )
    return Drawing(tuple(panels), places, n, reaction.tokens, TERMS, round=True)


def _draw_molecule(
    molecule: Mapping[str, Any], number: int, sign: str, caption: str
) -> tuple[Panel, list[tuple[int, float, float, float, float]]]:
    atoms = [(_BOND * x, _BOND * y, label) for x, y, label in molecule["atoms"]]
    strokes = [
        _stroke(atoms[a], atoms[b], shift)
        for a, b, order in molecule["bonds"]
        for shift in _SHIFTS.get(order, _SHIFTS[1])
    ]
    labels = []
    for i, (x, y, label) in enumerate(atoms):
        if label:
            offsets = [atoms[b if a == i else a][0] - x for a, b, _ in molecule["bonds"] if i in (a, b)]
            labels.append(_label(x, y, label, sum(offsets)))
    xs, ys = [x for x, _, _ in atoms], [y for _, y, _ in atoms]
    left, top = min(xs) - _AROUND[0], min(ys) - _AROUND[1]
    box = (left, top, max(xs) + _AROUND[0] - left, max(ys) + _AROUND[1] - top)
    if caption:
        labels.append((left + box[2] / 2, top + box[3] - 7, caption, "middle"))
    panel = Panel(box, " ".join(strokes), tuple(labels), sign=sign, term=TERMS[molecule["product"]])
    return panel, [(number, x - _RADIUS, y - _RADIUS, 2 * _RADIUS, 2 * _RADIUS) for x, y, _ in atoms]


def _stroke(a: tuple[float, float, str], b: tuple[float, float, str], shift: float) -> str:
    """One stroke of a bond; it ends before a label."""
    length = math.dist(a[:2], b[:2]) or 1.0
    dx, dy = (b[0] - a[0]) / length, (b[1] - a[1]) / length
    ends = [
        (x + s * dx - dy * shift, y + s * dy + dx * shift)
        for (x, y, text), sign in ((a, 1), (b, -1))
        for s in [_GAP * sign * bool(text)]
    ]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in ends)


def _label(x: float, y: float, label: str, to_neighbours: float) -> tuple[float, float, str, str]:
    """The label with its symbol in the middle, and its hydrogens away from the atom's neighbours."""
    match = _LABEL.fullmatch(label)
    symbol, hydrogens, charge = match.groups("") if match else (label, "", "")
    half = 9 if len(symbol) > 1 else 6
    if hydrogens and to_neighbours > 3:
        return x + half, y, hydrogens + symbol + charge, "end"
    return x - half, y, symbol + hydrogens + charge, "start"
