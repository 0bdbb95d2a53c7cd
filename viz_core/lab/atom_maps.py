"""Which reactant atom each product atom of a reaction came from, read off attention maps and tested against truth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.runtime.refusal import RefusalError
from viz_core.trace import HeadsOff, Trace, intervene, knock_out, no_recording, switched_off

if TYPE_CHECKING:  # it brings the hub's libraries, which only a model that is opened needs
    from viz_core.hub.model import HubModel

MODEL = "rxnmapper"
"""The model of reactions that ships: the ALBERT of the package of that name."""
NEIGHBOUR_FACTOR = 90.0
"""What RXNMapper multiplies pairs of neighbours of a mapped pair with."""
UNCLEAR = 0.5
"""Share of the largest weight from which a runner-up makes an atom unclear."""

_TOKEN = re.compile(
    r"\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|/|:|~|@|\?|>>?|\*|\$|%[0-9]{2}|[0-9]"
)  # SMI_REGEX_PATTERN of rxnmapper 0.4.3
_BRACKET = re.compile(r"\[\d*([A-Za-z][a-z]?|\*)")
_AROMATIC = {"b", "c", "n", "o", "p", "s", "se", "as", "te"}


class ReactionError(RefusalError, ValueError):
    """A text that is no reaction in SMILES; the message is for a person."""


@dataclass(frozen=True)
class Reaction:
    """A reaction as the model reads it. Atoms are numbered from 0 through reactants, then products."""

    tokens: tuple[str, ...]  # of the SMILES; the model's sequence has one special token before them
    places: tuple[int, ...]  # the number of each atom's token among `tokens`
    elements: tuple[str, ...]  # symbol of each atom, aromatic or not, like "C"
    molecules: tuple[int, ...]  # number of each atom's molecule
    bonds: tuple[tuple[int, int], ...]  # pairs of atoms, each pair once
    num_reactants: int  # atoms before ">>", of reagents too

    @property
    def num_products(self) -> int:
        """Atoms behind ">>"."""
        return len(self.elements) - self.num_reactants

    @property
    def same_element(self) -> Bool[np.ndarray, "products reactants"]:
        """Whether a product atom and a reactant atom are of one element."""
        elements = np.array(self.elements)
        return elements[self.num_reactants :, None] == elements[None, : self.num_reactants]

    @property
    def adjacency(self) -> Bool[np.ndarray, "atoms atoms"]:
        """Whether two atoms share a bond."""
        found = np.zeros((len(self.elements),) * 2, dtype=bool)
        for a, b in self.bonds:
            found[a, b] = found[b, a] = True
        return found


def read_reaction(smiles: str) -> Reaction:
    """Return the tokens, atoms and bonds of "reactants>>products".

    Valences and aromaticity are not checked: this reads spelling, not chemistry. ReactionError if the text is not
    spelled like a reaction; the message says where.
    """
    text = "".join(smiles.split())
    tokens: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        _check_gap(text[end : match.start()])
        tokens.append(match[0])
        end = match.end()
    _check_gap(text[end:])
    if tokens.count(">>") != 1 or ">" in tokens or tokens[0] == ">>" or tokens[-1] == ">>":
        raise ReactionError("Write reactants, then >> once, then products: CCO.CC(=O)O>>CC(=O)OCC")
    return _read(tokens)


def _check_gap(text: str) -> None:
    if text:
        raise ReactionError("{text} is no atom or bond in SMILES.", text=text[:20])


def _read(tokens: Sequence[str]) -> Reaction:
    places: list[int] = []
    elements: list[str] = []
    molecules: list[int] = []
    bonds: list[tuple[int, int]] = []
    rings: dict[str, int] = {}
    branches: list[int | None] = []
    last: int | None = None
    molecule = num_reactants = 0
    for place, token in enumerate([*tokens, "."]):
        if token[0] in "[*" or token[0].isalpha():
            atom = len(elements)
            places.append(place)
            elements.append(_element(token))
            molecules.append(molecule)
            if last is not None:
                bonds.append((last, atom))
            last = atom
        elif token == "(":
            branches.append(last)
        elif token == ")":
            if not branches:
                raise ReactionError("A parenthesis ) closes no branch.")
            last = branches.pop()
        elif token.lstrip("%").isdigit():
            ring = token.lstrip("%")
            if last is None:
                raise ReactionError("{text} is no atom or bond in SMILES.", text=token)
            if ring in rings:
                bonds.append((rings.pop(ring), last))
            else:
                rings[ring] = last
        elif token in (".", "~", ">>"):
            if branches:
                raise ReactionError("A parenthesis ( is not closed.")
            if (token != "." and rings) or (token == "." and rings):
                raise ReactionError("Ring {ring} is opened and not closed.", ring=next(iter(rings)))
            last, molecule = None, molecule + 1
            if token == ">>":
                num_reactants = len(elements)
    if not 0 < num_reactants < len(elements):
        raise ReactionError("Write reactants, then >> once, then products: CCO.CC(=O)O>>CC(=O)OCC")
    return Reaction(tuple(tokens), tuple(places), tuple(elements), tuple(molecules), tuple(bonds), num_reactants)


def _element(token: str) -> str:
    match = _BRACKET.match(token)
    symbol = match[1] if match else token
    if token[0] == "[":
        if match is None:
            raise ReactionError("{text} is no atom or bond in SMILES.", text=token[:20])
        # "[nH]" and "[CH3]" are read as far as the element: a small second letter belongs to it, "H" does not
        symbol = symbol if symbol in _AROMATIC or symbol[0].isupper() else symbol[0]
    return symbol.capitalize() if symbol in _AROMATIC else symbol


def atom_weights(
    trace: Trace, reaction: Reaction
) -> tuple[Float[Tensor, "layers heads products reactants"], Float[Tensor, "layers heads products reactants"]]:
    """Return what each head gives from product atoms to reactant atoms, and from reactant atoms to product atoms.

    Weights of a row are shares of the attention on all tokens, so that those on atoms sum to at most 1. The second is
    transposed: [..., i, j] is the weight that reactant atom j gives product atom i.
    """
    places = torch.tensor(reaction.places) + 1  # behind [CLS]
    reactants, products = places[: reaction.num_reactants], places[reaction.num_reactants :]
    maps = torch.stack([trace[site].weights()[0] for site in trace.sites]).cpu()
    forward = maps[:, :, products][..., reactants]
    return forward, maps[:, :, reactants][..., products].transpose(-1, -2)


def strongest_atoms(
    weights: Float[np.ndarray, "*heads products reactants"], reaction: Reaction
) -> Int[np.ndarray, "*heads products"]:
    """Return the reactant atom of the same element with the largest weight for each product atom; -1: there is none."""
    allowed = reaction.same_element
    found = np.where(allowed, weights, -1.0).argmax(axis=-1)
    return np.where(allowed.any(axis=-1), found, -1)


def runners_up(
    weights: Float[np.ndarray, "products reactants"], reaction: Reaction, share: float = UNCLEAR
) -> Int[np.ndarray, " products"]:
    """Return the second strongest atom of the same element for each product atom that is unclear; -1 for the others.

    Unclear is an atom whose runner-up has at least `share` of the largest weight: by symmetry, or undecided.
    """
    allowed = np.where(reaction.same_element, weights, -1.0)
    if allowed.shape[1] < 2:
        return np.full(len(allowed), -1)
    second, first = np.argsort(allowed, axis=1, kind="stable")[:, -2:].T
    rows = np.arange(len(allowed))
    rivals = (allowed[rows, second] >= share * allowed[rows, first]) & (allowed[rows, second] >= 0)
    return np.where(rivals, second, -1)


def reagents_of(reaction: Reaction, sources: Iterable[Iterable[int]]) -> set[int]:
    """Return the numbers of the molecules before ">>" none of whose atoms is a source of a product atom.

    Args:
        sources: reactant atoms of each product atom, by a true map or a head's.
    """
    used = {reaction.molecules[atom] for atoms in sources for atom in atoms if atom >= 0}
    return set(reaction.molecules[: reaction.num_reactants]) - used


def map_with_neighbours(
    forward: Float[np.ndarray, "products reactants"],
    backward: Float[np.ndarray, "products reactants"],
    reaction: Reaction,
    factor: float = NEIGHBOUR_FACTOR,
) -> Int[np.ndarray, " products"]:
    """Return RXNMapper's map of one head: the reactant atom of each product atom, or -1.

    Both directions are added and kept for atoms of one element. Then, again and again, the pair with the largest share
    of its row is mapped, no atom twice, and pairs of its neighbours are multiplied by `factor`
    (Schwaller et al. 2021, Science Advances 7(15), eabe4166; rxnmapper 0.4.3, attention.py).
    """
    scores = np.where(reaction.same_element, forward + backward, 0.0)
    factors = np.ones_like(scores)
    adjacency, n = reaction.adjacency, reaction.num_reactants
    found = np.full(len(scores), -1)
    for _ in range(len(scores)):
        current = scores * factors
        sums = current.sum(axis=1, keepdims=True)
        shares = np.divide(current, sums, out=np.zeros_like(current), where=sums != 0)
        product = int(shares.max(axis=1).argmax())
        reactant = int(shares[product].argmax())
        if shares[product, reactant] < 1e-8:
            break
        found[product] = reactant
        factors[np.ix_(adjacency[n:, n:][product], adjacency[:n, :n][reactant])] *= factor
        factors[product] = 0
        factors[:, reactant] = 0
    return found


def measure_reaction(
    model: HubModel, smiles: str, masked: Sequence[int] = ()
) -> tuple[Float[np.ndarray, "layers heads products reactants"], Float[np.ndarray, "layers heads products reactants"]]:
    """Return `atom_weights` of a pass over a reaction.

    ReactionError if it is not spelled like one. HubError if the model cannot take it. ValueError if there is no such
    atom.

    Args:
        masked: atoms whose tokens no query of any head attends to: they are no keys.
    """
    reaction = read_reaction(smiles)
    if not all(0 <= atom < len(reaction.elements) for atom in masked):
        raise ValueError(f"masked: expected atoms below {len(reaction.elements)}, got {list(masked)}")
    keys = [reaction.places[atom] + 1 for atom in masked]  # behind [CLS]
    sites = range(model.card.num_layers["encoder"]) if keys else ()
    with intervene({f"encoder.{layer}.self": knock_out(None, key=keys) for layer in sites}):
        run = model.run("".join(reaction.tokens))
    forward, backward = atom_weights(run.trace, reaction)
    return forward.numpy(), backward.numpy()


def head_weights(
    model: HubModel, smiles: str, layer: int, head: int, masked: Sequence[int] = ()
) -> Float[np.ndarray, "products reactants"]:
    """Return what one head gives from product atoms to reactant atoms; masks and errors as of `measure_reaction`."""
    return measure_reaction(model, smiles, masked)[0][layer, head]


@torch.inference_mode()
def hidden_atoms(model: HubModel, smiles: str, off: HeadsOff = ()) -> Float[np.ndarray, " products"]:
    """Return the probability of the right token at each product atom, hidden behind [MASK] alone.

    Args:
        off: heads switched off in these passes.
    """
    reaction = read_reaction(smiles)
    run = model.run("".join(reaction.tokens))
    places = torch.tensor(reaction.places[reaction.num_reactants :]) + 1
    ids = run.inputs["input_ids"].repeat(len(places), 1)
    rows = torch.arange(len(places), device=ids.device)
    right = ids[rows, places]
    ids[rows, places] = model.run("[MASK]").tokens[1].id
    with intervene(switched_off(off)), no_recording():
        logits = model.engine.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    return logits[rows, places].softmax(dim=-1)[rows, right].float().cpu().numpy()
