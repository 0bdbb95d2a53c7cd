"""Models whose head importance is measured, with scores of their test split under head edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from recipes import classifiers
from recipes.batches import Example, PairBatch, collate, encode_pairs, translate_all
from recipes.classification import predict
from recipes.picture_sets import Pictures
from recipes.sentence_pairs import Pair, group_references, load_pairs, split_pairs
from viz_core.pretrained import MAX_SOURCE_TOKENS, ImageClassifier, Translator
from viz_core.pretrained.bleu import bleu_of, bleu_statistics
from viz_core.pretrained.bootstrap import percentage_right
from viz_core.pretrained.decoding import greedy_search
from viz_core.trace import Edit, Trace, gate, head_outputs, intervene, record

_REFERENCE = 512  # examples the means are taken over
_ROWS = 64

Gates = dict[str, Float[Tensor, "batch heads"]]


@runtime_checkable
class Subject(Protocol):
    """A model with its test split."""

    metric: str

    def trace(self) -> Trace:
        """One example, recorded: its sites and heads."""
        ...

    def statistics(self, edits: Mapping[str, Sequence[Edit]]) -> Float[np.ndarray, "examples k"]:
        """What the score needs of each test example, with heads edited."""
        ...

    def score(self, sums: Float[np.ndarray, " k"]) -> float:
        """The score, from statistics added up."""
        ...

    def gradients(self) -> dict[str, Float[Tensor, " heads"]]:
        """E_x |d L(x) / d xi_h| over the test split (Michel 2019, equation 2), L the loss of one example."""
        ...

    def means(self) -> dict[str, Float[Tensor, "heads v"]]:
        """What each head writes on average over examples that are not for the test."""
        ...


class TranslatorSubject:
    """A Transformer that translates, by BLEU of greedy search with all references."""

    metric = "bleu"

    def __init__(self, translator: Translator, data: Path) -> None:
        self._translator = translator
        split = split_pairs(load_pairs(data))
        references = group_references(split.test)
        self._sentences, self._references = list(references), list(references.values())
        self._test, self._others = [Pair(s, r[0]) for s, r in references.items()], split.validation[:_REFERENCE]

    def trace(self) -> Trace:
        """The first step of the first sentence, recorded."""
        return self._translator.translate(self._sentences[0], max_new_tokens=1).trace

    def statistics(self, edits: Mapping[str, Sequence[Edit]]) -> Float[np.ndarray, "examples k"]:
        """What BLEU needs of each sentence's translation."""
        model, tokenizer, device = self._translator.model, self._translator.tokenizer, self._translator.device
        with intervene(edits):
            texts = translate_all(model, tokenizer, self._sentences, greedy_search, device)
        return bleu_statistics(texts, self._references)

    def score(self, sums: Float[np.ndarray, " k"]) -> float:
        """BLEU, 0 to 100."""
        return bleu_of(sums)

    def gradients(self) -> dict[str, Float[Tensor, " heads"]]:
        """Of a first translation's negative log-likelihood, all its tokens together."""
        total, trace = _Mean(), self.trace()
        for batch in self._batches(self._test):
            gates = _open_gates(trace, len(batch.source), self._translator.device)
            with intervene(_gated(gates)):
                logits = self._translator.model(batch.source, batch.target[:, :-1], batch.valid_lens)
            pad = self._translator.special.pad
            F.cross_entropy(logits.transpose(1, 2), batch.target[:, 1:], ignore_index=pad, reduction="sum").backward()
            total.add({site: _gradient(gates[site]).abs() for site in gates})
        return total.found

    @torch.inference_mode()
    def means(self) -> dict[str, Float[Tensor, "heads v"]]:
        """Over sentences that are for validation; padding does not count."""
        total = _Mean()
        for batch in self._batches(self._others):
            target = batch.target[:, :-1]
            with record(values=True) as trace:
                self._translator.model(batch.source, target, batch.valid_lens)
            read = torch.arange(batch.source.shape[1], device=target.device) < batch.valid_lens[:, None]
            written = batch.target[:, 1:] != self._translator.special.pad
            total.add(_outputs(trace, {"encoder": read, "decoder": written}))
        return total.found

    def _batches(self, pairs: Sequence[Pair]) -> list[PairBatch]:
        translator = self._translator
        examples: list[Example] = encode_pairs(translator.tokenizer, pairs, MAX_SOURCE_TOKENS)
        order = sorted(examples, key=lambda e: (len(e.target), len(e.source)))
        parts = (order[i : i + _ROWS] for i in range(0, len(order), _ROWS))
        return [collate(part, translator.special.pad).to(translator.device) for part in parts]


class ClassifierSubject:
    """A vision transformer, by the percentage of test pictures that it names rightly."""

    metric = "accuracy"

    def __init__(self, classifier: ImageClassifier, data: Path) -> None:
        self._classifier = classifier
        split = classifiers.CLASSIFIERS[classifier.card.name].data.load(data)
        self._test, self._others = split.test, split.train.part(torch.arange(_REFERENCE))

    def trace(self) -> Trace:
        """The first picture, recorded."""
        with record() as trace, torch.inference_mode():
            self._logits(self._test.part(torch.arange(1)))
        return trace

    def statistics(self, edits: Mapping[str, Sequence[Edit]]) -> Float[np.ndarray, "examples k"]:
        """Whether each picture is named rightly, and 1."""
        with intervene(edits):
            log_p = predict(self._classifier.model, self._test, self._classifier.preparation)
        right = (log_p.argmax(dim=-1) == self._test.labels).double()
        return torch.stack([right, torch.ones_like(right)], dim=1).numpy()

    def score(self, sums: Float[np.ndarray, " k"]) -> float:
        """Percentage of pictures named rightly."""
        return percentage_right(sums)

    def gradients(self) -> dict[str, Float[Tensor, " heads"]]:
        """Of the right label's negative log-likelihood."""
        total, trace = _Mean(), self.trace()
        for rows in torch.arange(len(self._test.labels)).split(_ROWS):
            gates = _open_gates(trace, len(rows), self._classifier.device)
            part = self._test.part(rows)
            with intervene(_gated(gates)):
                logits = self._logits(part)
            F.cross_entropy(logits, part.labels.to(logits.device), reduction="sum").backward()
            total.add({site: _gradient(gates[site]).abs() for site in gates})
        return total.found

    @torch.inference_mode()
    def means(self) -> dict[str, Float[Tensor, "heads v"]]:
        """Over pictures that were trained on."""
        total = _Mean()
        for rows in torch.arange(_REFERENCE).split(_ROWS):
            with record(values=True) as trace:
                self._logits(self._others.part(rows))
            total.add(_outputs(trace, {}))
        return total.found

    def _logits(self, pictures: Pictures) -> Float[Tensor, "batch classes"]:
        classifier = self._classifier
        return classifier.model(classifier.preparation.normalise(pictures.pixels.to(classifier.device)))


class _Mean:
    """The mean of rows that come in parts, for each of several names."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, parts: Mapping[str, Float[Tensor, " rows *shape"]]) -> None:
        for name, rows in parts.items():
            self._sums[name] = self._sums.get(name, torch.zeros(())) + rows.double().sum(dim=0).cpu()
            self._counts[name] = self._counts.get(name, 0) + len(rows)

    @property
    def found(self) -> dict[str, Tensor]:
        return {name: (total / self._counts[name]).float() for name, total in self._sums.items()}


def _outputs(trace: Trace, counted: Mapping[str, Bool[Tensor, "batch queries"]]) -> dict[str, Tensor]:
    """What each head of each site wrote, a row a query that counts."""
    found = {}
    for call in trace:
        outputs = head_outputs(call).transpose(1, 2)
        rows = counted.get(call.stack)
        found[call.site] = outputs.flatten(0, 1) if rows is None else outputs[rows.cpu()]
    return found


def _open_gates(trace: Trace, rows: int, device: torch.device) -> Gates:
    return {call.site: torch.ones(rows, call.num_heads, device=device, requires_grad=True) for call in trace}


def _gated(gates: Gates) -> dict[str, Edit]:
    return {site: gate(range(xi.shape[1]), xi) for site, xi in gates.items()}


def _gradient(tensor: Tensor) -> Tensor:
    assert tensor.grad is not None
    return tensor.grad
