"""Looking a name up, exactly or softly, gradients of both, and special cases of attention weights."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace import attend


def edit_table(query: str, key: str) -> list[list[int]]:
    """table[i][j] is the fewest edits from the query's first i letters to the key's first j (Wagner and Fischer 1974).

    table[i][j] = min(table[i-1][j] + 1                         delete query[i-1]
                      table[i][j-1] + 1                         insert key[j-1]
                      table[i-1][j-1] + (query[i-1] != key[j-1]))  replace or keep

    The corner is the distance of the whole words; the smallest entry of the last row is the
    distance to the best beginning of the key (Sellers 1980).
    """
    table = [list(range(len(key) + 1))]
    for i, letter in enumerate(query, start=1):
        row = [i]
        for j, other in enumerate(key, start=1):
            row.append(min(table[i - 1][j] + 1, row[j - 1] + 1, table[i - 1][j - 1] + (letter != other)))
        table.append(row)
    return table


def edit_distance(query: str, key: str) -> int:
    """The fewest single-letter edits that make the key of the query (Levenshtein 1966)."""
    return edit_table(query, key)[-1][-1]


def beginning_distance(query: str, key: str) -> int:
    """The fewest edits that make some beginning of the key of the query: 0 where the key starts with it."""
    return min(edit_table(query, key)[-1])


BOOK_DATABASE = (
    ("Zhang", "Aston"),
    ("Lipton", "Zachary"),
    ("Li", "Mu"),
    ("Smola", "Alex"),
    ("Hu", "Rachel"),
    ("Werness", "Brent"),
)
"""Keys and values of Dive into Deep Learning, section "Queries, Keys, and Values"."""


Weigh: TypeAlias = Callable[[Sequence[str], Sequence[str], float], Tensor]
"""Weights of every key for every query at a temperature."""


class Found(NamedTuple):
    """A key within reach of the query: its place in the database, and how many edits away it is."""

    place: int
    edits: int


def exact_lookup(query: str, keys: Sequence[str]) -> list[int]:
    """The places of all keys that are the query, letter for letter."""
    return [place for place, key in enumerate(keys) if key == query]


def approximate_lookup(
    query: str, keys: Sequence[str], max_edits: int, distance: Callable[[str, str], int] = edit_distance
) -> list[Found]:
    """Every key at most so many edits away, nearest first; equally near ones by their whole length, then in order."""
    found = [Found(place, distance(query, key)) for place, key in enumerate(keys)]
    within = [f for f in found if f.edits <= max_edits]
    return sorted(within, key=lambda f: (f.edits, edit_distance(query, keys[f.place]), f.place))


def letter_features(word: str) -> Counter[str]:
    """How often each letter and each pair of neighbours is in a word, its start and end counted as letters.

    "Li" has l, i, ^l, li and i$. Capital letters count as small ones.
    """
    letters = word.casefold()
    edged = f"^{letters}$"
    return Counter([*letters, *(edged[i : i + 2] for i in range(len(edged) - 1))])


def embed_words(words: Sequence[str]) -> Float[Tensor, "words features"]:
    """A vector of length 1 for each word, from the counts of its letters and pairs: alike words have alike vectors."""
    counts = [letter_features(word) for word in words]
    places = {feature: i for i, feature in enumerate(sorted(set().union(*counts)))}
    vectors = torch.zeros(len(words), max(1, len(places)), dtype=torch.float64)
    for row, count in zip(vectors, counts, strict=True):
        for feature, times in count.items():
            row[places[feature]] = times
    return torch.nn.functional.normalize(vectors, dim=-1)


def similarity(queries: Sequence[str], keys: Sequence[str]) -> Float[Tensor, "queries keys"]:
    """q . k of the words' vectors: 1 for the same letters in the same pairs, 0 where nothing is shared."""
    vectors = embed_words([*queries, *keys])
    return vectors[: len(queries)] @ vectors[len(queries) :].T


def top_lookup(query: str, keys: Sequence[str], most: int) -> list[tuple[int, float]]:
    """Places and scores q . k of the `most` keys that score highest, the best first; equal scores in their order."""
    if not keys:
        return []
    scores = similarity([query], keys)[0]
    return [(place, float(scores[place])) for place in scores.argsort(descending=True, stable=True)[:most].tolist()]


def soft_lookup(queries: Sequence[str], keys: Sequence[str], temperature: float) -> Float[Tensor, "queries keys"]:
    """The weight of every key for every query: a_ij = softmax_j(q_i . k_j / temperature).

    This is an attention call whose values are the rows of the identity matrix: its outputs are the weights themselves.
    """
    vectors = embed_words([*queries, *keys])
    q, k = vectors[: len(queries)], vectors[len(queries) :]
    identity = torch.eye(len(keys), dtype=q.dtype)
    return attend(q[None, None], k[None, None], identity[None, None], scale=1 / temperature, site="names.lookup")[0, 0]


def undivided(queries: Sequence[str], keys: Sequence[str], temperature: float) -> Float[Tensor, "queries keys"]:
    """exp(q_i . k_j / temperature), a softmax without its division: positive, but rows do not sum to 1."""
    return (similarity(queries, keys) / temperature).exp()


def without_exponential(
    queries: Sequence[str], keys: Sequence[str], temperature: float
) -> Float[Tensor, "queries keys"]:
    """Scores divided by their sum, without the exponential: the temperature cancels; NaN where all scores are 0."""
    scores = similarity(queries, keys) / temperature
    return scores / scores.sum(dim=1, keepdim=True)


def first_weights(wanted: Mapping[str, str], keys: Sequence[str], temperature: float) -> list[float] | None:
    """The weight of each query's wanted key, where each is that query's largest and the query itself is not a key.

    None where a query is a key, a wanted key is not there, or another key has more weight.
    """
    if not set(wanted.values()) <= set(keys) or set(wanted) & set(keys):
        return None
    weights = soft_lookup(list(wanted), keys, temperature)
    own = [float(row[keys.index(key)]) for row, key in zip(weights, wanted.values(), strict=True)]
    return own if all(first == float(row.max()) for first, row in zip(own, weights, strict=True)) else None


def identity_error(keys: Sequence[str], temperature: float, weigh: Weigh = soft_lookup) -> float:
    """max |A - I| where A holds the weights of every key looked up among all keys; at least 1/2 for equal keys."""
    weights = weigh(keys, keys, temperature)
    return float((weights - torch.eye(len(keys), dtype=weights.dtype)).abs().max())


def uniform_error(query: str, keys: Sequence[str], temperature: float, weigh: Weigh = soft_lookup) -> float:
    """max |a_j - 1/m|: the distance of one query's weights on m keys from those of an average."""
    return float((weigh([query], keys, temperature) - 1 / len(keys)).abs().max())


GAPS = torch.linspace(-1, 1, 201, dtype=torch.float64)
"""Differences of two scores, for a curve."""


def two_keys(
    gaps: Float[Tensor, " gaps"], temperature: float
) -> tuple[Float[Tensor, " gaps"], Float[Tensor, " gaps"], Float[Tensor, " gaps"]]:
    """The weight of one of two keys by how far its score s lies above the other's: soft, hard, and the soft slope.

    soft a = 1 / (1 + e^(-s/T)), hard 1 for s > 0 else 0, slope da/ds = a (1 - a) / T. The hard one is flat wherever it
    has a slope, so no gradient passes: it was trained by reinforcement (Mnih 2014, section 3).
    """
    soft = torch.sigmoid(gaps / temperature)
    return soft, (gaps > 0).to(gaps.dtype), soft * torch.sigmoid(-gaps / temperature) / temperature


def smallest_gradient(query: str, keys: Sequence[str], temperature: float) -> float:
    """min_j da_j/ds_j = a_j (1 - a_j) / T over the keys, 1 - a_j added up from the others so that it is not rounded.

    Above 0 by the formula wherever there are two keys; with one key nothing can change, and it is 0.
    """
    logs = (similarity([query], keys)[0] / temperature).log_softmax(dim=0)
    others = logs.expand(len(keys), -1).masked_fill(torch.eye(len(keys), dtype=torch.bool), -torch.inf)
    return float(((logs + others.logsumexp(dim=1)).exp() / temperature).min())


def identity_lookup(num_keys: int, temperature: float) -> Float[Tensor, "keys keys"]:
    """The weights where query i is key i and no two keys share anything: a softmax of the identity matrix over T.

    e^(1/T) / (e^(1/T) + n - 1) on the diagonal: near the identity matrix at a low temperature (Dive into Deep
    Learning, section "Visualization", shows the identity itself, for 10 keys).
    """
    identity = torch.eye(num_keys, dtype=torch.float64)[None, None]
    return attend(identity, identity, identity, scale=1 / temperature, site="keys.identity")[0, 0]


def copy_error(weights: Float[Tensor, " values"]) -> float:
    """max |w I - w|: with the identity matrix for values, the output is the weights themselves."""
    return float((weights @ torch.eye(len(weights), dtype=weights.dtype) - weights).abs().max())
