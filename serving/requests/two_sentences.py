"""Two sentences that differ in a word: sweeps and patches between their runs, in the form that a runner calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from serving.settings import settings
from viz_core.circuits import Edge, circuit_edges, circuits_alone, patch_sweep
from viz_core.circuits.path import Head
from viz_core.circuits.sweep import logits_of, recorded_runs
from viz_core.hub import HubError, HubModel, HubRun
from viz_core.hub.runs.token_text import Token
from viz_core.pretrained.tokenization import UNK
from viz_core.trace import Edit, intervene, no_recording, patch, patch_state

DRAWS = 100
"""Random circuits."""
MOST_HEADS = 8
"""Heads of a circuit, at most: there is a path for each pair of them."""
MOST_TOKENS = 48
"""Tokens of a sentence, at most: a sweep runs the model once for each layer and token."""
HEADS = {"heads": "self", "cross-heads": "cross"}
"""The sweeps over heads, and the kind of their attention."""
_WRITTEN = 24  # tokens that an encoder-decoder writes, to find where its two translations part
_LISTED = 4  # predictions of each run
_LEAST_CHANGE = 1e-3  # logits


@dataclass(frozen=True)
class TwoSentences:
    """Two sentences, and the words after them whose logits are compared; "" for the model's own choice."""

    clean: str
    corrupted: str
    answer: str = ""
    other: str = ""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What two runs have in common, and what each predicts.

    Attributes:
        tokens: of each stack that reads them: pairs, of the first and the second sentence.
        answers: the two words that are compared.
        clean, corrupted: the difference of their logits, first minus second, after each sentence.
        sweeps: what can be swept, by stack.
    """

    tokens: dict[str, tuple[tuple[str, str], ...]]
    answers: tuple[str, str]
    clean: float
    corrupted: float
    sweeps: dict[str, tuple[str, ...]]

    def recovered(self, difference: Any) -> Any:
        """Share of the change that a difference of logits has: 0 as after the second sentence, 1 as after the first."""
        return (difference - self.corrupted) / (self.clean - self.corrupted)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Next words of three runs: after the first sentence, after the second, and after the second with a cell patched.

    Attributes:
        words: the likeliest of any of them, the likeliest after the patch first.
        difference: of the two answers' logits after the patch.
    """

    words: tuple[str, ...]
    probabilities: Float[np.ndarray, "3 words"]
    difference: float


@dataclass(frozen=True, eq=False)
class CircuitFound:
    """The heads that recover most, the paths between them, and what they do alone, as differences of logits.

    Attributes:
        heads: the strongest first; all of them if the model has fewer.
        alone: after the first sentence, with all other heads as after the second.
        random: the same of random circuits with as many heads.
    """

    heads: tuple[Head, ...]
    edges: tuple[Edge, ...]
    alone: float
    random: Float[np.ndarray, " circuits"]


@dataclass(frozen=True, eq=False)
class Pair:
    """A model's inputs for both sentences, and the ids of the two answers."""

    clean: dict[str, Any]
    corrupted: dict[str, Any]
    answers: tuple[int, int]
    runs: tuple[HubRun, HubRun]

    def metric(self, logits: Float[Tensor, "1 n vocab"]) -> Float[Tensor, ""]:
        """Return the logit of the first answer minus that of the second, after the last token."""
        return logits[0, -1, self.answers[0]] - logits[0, -1, self.answers[1]]


@torch.inference_mode()
def compare(model: HubModel, sentences: TwoSentences) -> Comparison:
    """Return what the two runs have in common.

    Raises:
        HubError: if the sentences cannot be compared; the message says why.
    """
    pair = _pair(model, sentences)
    first, second = pair.runs
    with model.engine.serial, no_recording():
        clean, _, logits = recorded_runs(model.network, pair.clean, pair.corrupted)
        before = float(pair.metric(logits_of(model.network, pair.clean)))
    after = float(pair.metric(logits))
    answers = tuple(_plain(token) for token in model.read(pair.answers))
    if abs(before - after) < _LEAST_CHANGE:
        raise HubError(
            "After both sentences the logits of {answer} and {other} differ equally: choose other words.",
            answer=f"“{answers[0]}”",
            other=f"“{answers[1]}”",
        )
    tokens = {call.stack: _labels(first.tokens, second.tokens) for call in clean}
    if first.decoder_tokens:
        tokens["decoder"] = _labels(first.decoder_tokens, second.decoder_tokens)
    sweeps = {}
    for stack in tokens:
        found = {name.rpartition(".")[2] for name in clean.states if name.startswith(f"{stack}.")}
        kinds = {call.kind for call in clean if call.stack == stack}
        states = [name for name in ("residual", "attention", "cross", "mlp") if name in found]
        sweeps[stack] = (*states, *(name for name, kind in HEADS.items() if kind in kinds))
    return Comparison(tokens, (answers[0], answers[1]), before, after, sweeps)


@torch.inference_mode()
def sweep(model: HubModel, sentences: TwoSentences, stack: str, what: str) -> Float[Tensor, "layers columns"]:
    """Return the difference of the answers' logits after the second sentence with one cell taken from the first.

    Raises:
        HubError, ValueError: as `compare` and `patch_sweep`.
    """
    pair = _pair(model, sentences)
    with model.engine.serial, no_recording():
        return patch_sweep(model.network, pair.clean, pair.corrupted, pair.metric, what, stack=stack)


@torch.inference_mode()
def predictions(
    model: HubModel, sentences: TwoSentences, stack: str, what: str, layer: int, column: int
) -> Predictions:
    """Return what follows the first sentence, the second, and the second with one cell of the first.

    Raises:
        HubError, ValueError: as `compare`.
        IndexError: if there is no such cell.
    """
    pair = _pair(model, sentences)
    with model.engine.serial, no_recording():
        clean, _, corrupted = recorded_runs(model.network, pair.clean, pair.corrupted)
        edit: Edit
        if what in HEADS:
            calls = [call for call in clean if (call.stack, call.kind) == (stack, HEADS[what])]
            name, edit = calls[layer].site, patch(column, calls[layer], "output")
        else:
            names = [name for name in clean.states if name.startswith(f"{stack}.") and name.endswith(f".{what}")]
            name, edit = names[layer], patch_state(clean.states[names[layer]], queries=column)
        before = logits_of(model.network, pair.clean)
        with intervene({name: edit}):
            patched = logits_of(model.network, pair.corrupted)
    runs = torch.stack([logits[0, -1].float().softmax(dim=-1).cpu() for logits in (before, corrupted, patched)])
    shown = dict.fromkeys(int(i) for run in (2, 1, 0) for i in runs[run].topk(_LISTED).indices)
    chosen = sorted(shown, key=lambda i: -float(runs[2, i]))
    words = tuple(token.label for token in model.read(chosen))
    return Predictions(words, runs[:, chosen].numpy(), float(pair.metric(patched)))


@torch.inference_mode()
def circuit(model: HubModel, sentences: TwoSentences, count: int) -> CircuitFound:
    """Return the circuit of so many heads.

    Raises:
        HubError, ValueError: as `compare` and `circuit_edges`.
    """
    pair = _pair(model, sentences)
    with model.engine.serial, no_recording():
        return find_circuit(model.network, pair.clean, pair.corrupted, pair.metric, count)


@torch.no_grad()
def find_circuit(
    network: torch.nn.Module,
    clean: Mapping[str, Any],
    corrupted: Mapping[str, Any],
    metric: Callable[[Tensor], Tensor],
    count: int,
) -> CircuitFound:
    """Return the circuit of the heads whose patch changes the metric most.

    Raises:
        ValueError: as `circuit_edges`.
    """
    inputs = network, clean, corrupted, metric
    run, _, logits = recorded_runs(network, clean, corrupted)
    effects: dict[Head, float] = {}
    for stack, kind in dict.fromkeys((call.stack, call.kind) for call in run):
        sites = [call.site for call in run if (call.stack, call.kind) == (stack, kind)]
        what = next(name for name, each in HEADS.items() if each == kind)
        grid = (patch_sweep(*inputs, what, stack=stack) - metric(logits).float().cpu()).abs()
        effects |= {(site, head): float(grid[i, head]) for i, site in enumerate(sites) for head in range(grid.shape[1])}
    ranked = sorted(effects, key=lambda head: -effects[head])
    generator = torch.Generator().manual_seed(0)
    draws = [torch.randperm(len(ranked), generator=generator)[:count].tolist() for _ in range(DRAWS)]
    random = [[ranked[i] for i in draw] for draw in draws]
    alone = circuits_alone(*inputs, [ranked[:count], *random])
    edges = circuit_edges(*inputs, ranked[:count])
    return CircuitFound(tuple(ranked[:count]), edges, float(alone[0]), alone[1:].numpy())


def _pair(model: HubModel, sentences: TwoSentences) -> Pair:
    """Return the inputs of both sentences.

    Raises:
        HubError: if they differ in length, or in nothing; if the words after them cannot be compared.
    """
    letters, allowed = max(len(sentences.clean), len(sentences.corrupted)), settings().max_characters
    if allowed is not None and letters > allowed:
        raise HubError(
            "This text has {count:,} characters; at most {most:,} are allowed here. Shorten it.",
            count=letters,
            most=allowed,
        )
    most = min(MOST_TOKENS, settings().max_tokens or MOST_TOKENS)
    writes = "encoder" in model.card.num_layers
    first, second = (
        model.run(text, max_new_tokens=_WRITTEN if writes else 0, max_tokens=most)
        for text in (sentences.clean, sentences.corrupted)
    )
    if any(len(run.tokens) > most for run in (first, second)):
        raise HubError(
            "This text has {count:,} tokens; at most {most:,} are allowed here. Shorten it.",
            count=max(len(first.tokens), len(second.tokens)),
            most=most,
        )
    if [token.id for token in first.tokens] == [token.id for token in second.tokens]:
        raise HubError("Both sentences have the same tokens: change a word of one.")
    if len(first.tokens) != len(second.tokens):
        mine, theirs = sentences.clean.split(), sentences.corrupted.split()
        raise HubError(
            "The sentences need equally many tokens, but have {first:,} and {second:,}. They differ in {words} and "
            "{others}: choose words with as many tokens.",
            first=len(first.tokens),
            second=len(second.tokens),
            words=_among(mine, theirs),
            others=_among(theirs, mine),
        )
    if writes:
        first, second = _until_they_part(first, second, bool(sentences.answer and sentences.other))
    answers = [
        _answer(model, run, text, typed, writes)
        for run, text, typed in zip(
            (first, second),
            (sentences.clean, sentences.corrupted),
            (sentences.answer, sentences.other),
            strict=True,
        )
    ]
    if answers[0] == answers[1]:
        word = f"“{_plain(model.read(answers[:1])[0])}”"
        raise HubError("The word after both sentences is {word}: type two different words to compare.", word=word)
    inputs = [{name: each for name, each in run.inputs.items() if name != "logits_to_keep"} for run in (first, second)]
    return Pair(inputs[0], inputs[1], (answers[0], answers[1]), (first, second))


def _until_they_part(first: HubRun, second: HubRun, typed: bool) -> tuple[HubRun, HubRun]:
    """Return two translations cut before the first token in which they differ.

    Raises:
        HubError: if they are the same, and no words are given.
    """
    written = [[token.id for token in run.target_tokens] for run in (first, second)]
    pairs = enumerate(zip(*written, strict=False))
    place = next((i for i, (a, b) in pairs if a != b), min(map(len, written)))
    if place == min(map(len, written)):
        if not typed:
            raise HubError("The model translates both sentences alike: type two words to compare.")
        place = 0
    cut = []
    for run in (first, second):
        name = "decoder_input_ids" if "decoder_input_ids" in run.inputs else "target"
        inputs = {**run.inputs, name: run.inputs[name][:, : place + 1]}
        cut.append(
            replace(
                run,
                inputs=inputs,
                decoder_tokens=run.decoder_tokens[: place + 1],
                target_tokens=run.target_tokens[: place + 1],
                output=run.output[: place + 1],
            )
        )
    return cut[0], cut[1]


def _answer(model: HubModel, run: HubRun, text: str, typed: str, writes: bool) -> int:
    """Return the id of the word that is compared: that which was typed, or the likeliest.

    Raises:
        HubError: if it is not one token that the model knows.
    """
    if not typed.strip():
        return int(run.output[-1].argmax())
    word, counts, tokenizer = typed.strip(), [], getattr(model.engine, "tokenizer", None)
    if writes:
        reads = [model.run(text, target=word)]
        found = [[token for token in each.target_tokens if not token.special] for each in reads]
    else:
        before = len(run.tokens)
        reads = [model.run(f"{text.rstrip()}{gap}{word}", max_new_tokens=0) for gap in (" ", "")]
        found = [list(each.tokens[before:]) for each in reads]
    for tokens in found:
        ids = [token.id for token in tokens]
        unknown = tokenizer.num_unknown(ids) if tokenizer else any(token.text == UNK for token in tokens)
        if len(ids) == 1 and not unknown and not tokens[0].special:
            return ids[0]
        counts.append(len(ids))
    if counts[0] < 2:
        raise HubError("The model does not know {word}: choose another word.", word=f"“{word[:40]}”")
    raise HubError(
        "{word} is {count} tokens of this model: choose a word that is one.", word=f"“{word[:40]}”", count=counts[0]
    )


def _among(words: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return the words in which a sentence differs from another, quoted."""
    shared, found = list(others), []
    for word in words:
        if word in shared:
            shared.remove(word)
        else:
            found.append(f"“{word[:40]}”")
    return tuple(found[:4]) or ("–",)


def _plain(token: Token) -> str:
    return token.text or token.label


def _labels(first: Sequence[Token], second: Sequence[Token]) -> tuple[tuple[str, str], ...]:
    return tuple((a.label, b.label) for a, b in zip(first, second, strict=True))
