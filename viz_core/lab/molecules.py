"""Drawings of molecules, laid out by RDKit."""

from __future__ import annotations

from typing import Any

from viz_core.lab.atom_maps import ReactionError
from viz_core.runtime.packages import require

_SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SUPERSCRIPT = str.maketrans("0123456789+−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")


def draw_molecules(smiles: str) -> list[dict[str, Any]]:
    """Return a drawing of each molecule of a reaction, in the order of its atoms, laid out by RDKit.

    Returns:
        For each molecule "product", whether it is behind ">>"; "atoms", a list of x, y (in bond lengths, y downwards)
        and label ("" for a carbon with bonds); "bonds", a list of first atom, second atom and order 1, 2 or 3.

    Raises:
        ImportError: without the extra "chemistry".
        ReactionError: if RDKit takes a molecule for impossible.
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
                        [round(float(x), 2), round(-float(y), 2), _label(a)]
                        for (x, y, _), a in zip(at, molecule.GetAtoms(), strict=True)
                    ],
                    "bonds": [
                        [b.GetBeginAtomIdx(), b.GetEndAtomIdx(), int(b.GetBondTypeAsDouble())]
                        for b in molecule.GetBonds()
                    ],
                }
            )
    return found


def _label(atom: Any) -> str:
    """Symbol, hydrogens and charge; "" for a carbon that its bonds show."""
    charge, hydrogens = atom.GetFormalCharge(), atom.GetTotalNumHs()
    if atom.GetSymbol() == "C" and atom.GetDegree() and not charge:
        return ""
    many = str(hydrogens).translate(_SUBSCRIPT) if hydrogens > 1 else ""
    sign = "" if not charge else f"{abs(charge) if abs(charge) > 1 else ''}{'+' if charge > 0 else '−'}"
    return f"{atom.GetSymbol()}{'H' + many if hydrogens else ''}{sign.translate(_SUPERSCRIPT)}"
