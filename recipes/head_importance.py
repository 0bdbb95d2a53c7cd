"""Measure the importance of each head of a shipped model: python -m recipes head-importance NAME --data DIR.

The score on the whole test split without each head, and with each alone in its layer (Michel 2019, tables 1 and 2),
with paired bootstrap intervals; beside it the estimate from gradients (its equation 2). Written as it goes into
heads.json beside the checkpoint, from which an interrupted run goes on, with the heads' means over a reference set and
a section of the card.
"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from safetensors.torch import save_file
from torch import Tensor

from recipes import classifiers
from recipes.classification import predict
from recipes.files import add_section, format_seconds, write_json
from recipes.picture_sets import Pictures
from recipes.sentence_pairs import (
    Pair,
    PairBatch,
    collate,
    encode_pairs,
    group_references,
    load_pairs,
    split_pairs,
    translate_all,
)
from viz_core.pretrained import MAX_SOURCE_TOKENS, ImageClassifier, Translator, load
from viz_core.pretrained.bleu import bleu_of, bleu_statistics, paired_bootstrap, percentage_right
from viz_core.pretrained.decoding import greedy_search
from viz_core.trace import Edit, Trace, gate, head_outputs, intervene, off, record

_REFERENCE = 512  # examples the means are taken over
_ROWS = 64

B = TypeVar("B", PairBatch, Pictures)


class Subject(Generic[B]):
    """A model with its test split, and examples that are not for the test."""

    metric: str  # "bleu" or "accuracy"
    device: torch.device  # of the model
    test: Sequence[B]  # the test split in batches
    others: Sequence[B]  # the examples that the heads' means are taken over, in batches

    def trace(self) -> Trace:
        """One example, recorded: its sites and heads."""
        raise NotImplementedError

    def statistics(self, edits: Mapping[str, Sequence[Edit]]) -> Float[np.ndarray, "examples k"]:
        """What the score needs of each test example, with heads edited."""
        raise NotImplementedError

    def score(self, sums: Float[np.ndarray, " k"]) -> float:
        """The score, from statistics added up."""
        raise NotImplementedError

    def loss(self, batch: B) -> Float[Tensor, ""]:
        """Negative log-likelihood of what is right, added up over a batch."""
        raise NotImplementedError

    def counted(self, batch: B) -> dict[str, Bool[Tensor, "batch queries"]]:  # noqa: ARG002, all of a picture
        """Return which queries of a batch are not padding, by the name of the stack; all of those not named."""
        return {}

    def gradients(self) -> dict[str, Float[Tensor, " heads"]]:
        """E_x |d L(x) / d xi_h| over the test split (Michel 2019, equation 2), L the loss of one example."""
        trace, found = self.trace(), []
        for batch in self.test:
            rows = len(batch[0])
            xi = {c.site: torch.ones(rows, c.num_heads, device=self.device, requires_grad=True) for c in trace}
            with intervene({site: gate(range(each.shape[1]), each) for site, each in xi.items()}):
                loss = self.loss(batch)
            gradients = torch.autograd.grad(loss, list(xi.values()))
            found.append(dict(zip(xi, (each.abs() for each in gradients), strict=True)))
        return _means(found)

    @torch.inference_mode()
    def means(self) -> dict[str, Float[Tensor, "heads v"]]:
        """What each head writes on average over the other examples; padding does not count."""
        found = []
        for batch in self.others:
            with record(values=True) as trace:
                self.loss(batch)
            found.append(_outputs(trace, self.counted(batch)))
        return _means(found)


class TranslatorSubject(Subject[PairBatch]):
    """A Transformer that translates, by BLEU of greedy search with all references."""

    metric = "bleu"

    def __init__(self, translator: Translator, data: Path, every: int = 1) -> None:
        self._translator, self.device = translator, translator.device
        split = split_pairs(load_pairs(data))
        references = dict(list(group_references(split.test).items())[::every])
        self._sentences, self._references = list(references), list(references.values())
        self.test = self._batches([Pair(s, r[0]) for s, r in references.items()])
        self.others = self._batches(split.validation[:_REFERENCE])

    def trace(self) -> Trace:
        """The first step of the first sentence, recorded."""
        return self._translator.translate(self._sentences[0], max_new_tokens=1).trace

    def statistics(self, edits: Mapping[str, Sequence[Edit]]) -> Float[np.ndarray, "examples k"]:
        """What BLEU needs of each sentence's translation."""
        model, tokenizer = self._translator.model, self._translator.tokenizer
        with intervene(edits):
            texts = translate_all(model, tokenizer, self._sentences, greedy_search, self.device)
        return bleu_statistics(texts, self._references)

    def score(self, sums: Float[np.ndarray, " k"]) -> float:
        """BLEU, 0 to 100."""
        return bleu_of(sums)

    def loss(self, batch: PairBatch) -> Float[Tensor, ""]:
        """Of the first translations, all their tokens together."""
        logits = self._translator.model(batch.source, batch.target[:, :-1], batch.valid_lens)
        pad = self._translator.special.pad
        return F.cross_entropy(logits.transpose(1, 2), batch.target[:, 1:], ignore_index=pad, reduction="sum")

    def counted(self, batch: PairBatch) -> dict[str, Bool[Tensor, "batch queries"]]:
        """Tokens that are read, and steps that write one."""
        read = torch.arange(batch.source.shape[1], device=self.device) < batch.valid_lens[:, None]
        return {"encoder": read, "decoder": batch.target[:, 1:] != self._translator.special.pad}

    def _batches(self, pairs: Sequence[Pair]) -> list[PairBatch]:
        translator = self._translator
        examples = encode_pairs(translator.tokenizer, pairs, MAX_SOURCE_TOKENS)
        order = sorted(examples, key=lambda e: (len(e.target), len(e.source)))
        parts = (order[i : i + _ROWS] for i in range(0, len(order), _ROWS))
        return [collate(part, translator.special.pad).to(self.device) for part in parts]


class ClassifierSubject(Subject[Pictures]):
    """A vision transformer, by the percentage of test pictures that it names rightly."""

    metric = "accuracy"

    def __init__(self, classifier: ImageClassifier, data: Path, every: int = 1) -> None:
        self._classifier, self.device = classifier, classifier.device
        split = classifiers.CLASSIFIERS[classifier.card.name].data.load(data)
        self._pictures = split.test.part(torch.arange(0, len(split.test.labels), every))
        self.test = [self._pictures.part(rows) for rows in torch.arange(len(self._pictures.labels)).split(_ROWS)]
        self.others = [split.train.part(rows) for rows in torch.arange(_REFERENCE).split(_ROWS)]

    def trace(self) -> Trace:
        """The first picture, recorded."""
        with record() as trace, torch.inference_mode():
            self.loss(self._pictures.part(torch.arange(1)))
        return trace

    def statistics(self, edits: Mapping[str, Sequence[Edit]]) -> Float[np.ndarray, "examples k"]:
        """Whether each picture is named rightly, and 1."""
        with intervene(edits):
            log_p = predict(self._classifier.model, self._pictures, self._classifier.preparation)
        right = (log_p.argmax(dim=-1) == self._pictures.labels).double()
        return torch.stack([right, torch.ones_like(right)], dim=1).numpy()

    def score(self, sums: Float[np.ndarray, " k"]) -> float:
        """Percentage of pictures named rightly."""
        return percentage_right(sums)

    def loss(self, batch: Pictures) -> Float[Tensor, ""]:
        """Of the right labels."""
        classifier, part = self._classifier, batch.to(self.device)
        return F.cross_entropy(
            classifier.model(classifier.preparation.normalise(part.pixels)), part.labels, reduction="sum"
        )


def _means(parts: Sequence[Mapping[str, Float[Tensor, " rows *shape"]]]) -> dict[str, Tensor]:
    """The mean over all rows, which come in parts, for each name."""
    return {name: torch.cat([part[name].cpu() for part in parts]).double().mean(dim=0).float() for name in parts[0]}


def _outputs(trace: Trace, counted: Mapping[str, Bool[Tensor, "batch queries"]]) -> dict[str, Tensor]:
    """What each head of each site wrote, a row a query that counts."""
    found = {}
    for call in trace:
        outputs = head_outputs(call).transpose(1, 2)
        rows = counted.get(call.stack)
        found[call.site] = outputs.flatten(0, 1) if rows is None else outputs[rows.cpu()]
    return found


IMPORTANCE, MEANS = "heads.json", "head_means.safetensors"


def measure_shipped(name: str, checkpoints: Path, data: Path, every: int = 1) -> None:
    """Measure what each head of a model with scaled dot-product attention is worth on the test split.

    Args:
        every: take each such example alone; all 2,197 sentences take four hours of a CPU, and minutes of a GPU.
    """
    model = load(name, folder=checkpoints)
    kind = TranslatorSubject if isinstance(model, Translator) else ClassifierSubject
    subject: Subject[Any] = kind(model, data, every)  # type: ignore[arg-type]
    measure(subject, checkpoints / name, model.card.config.get("sha256"))


def measure(subject: Subject[Any], folder: Path, sha256: str | None) -> dict[str, Any]:
    """Measure all heads, or go on with an interrupted run; write heads.json, the means and a section of card.md."""
    start, trace = time.monotonic(), subject.trace()
    base = subject.statistics({})
    content = _begun(folder / IMPORTANCE, sha256, len(base)) or {
        "sha256": sha256,
        "metric": subject.metric,
        "base": round(subject.score(base.sum(axis=0)), 2),
        "examples": len(base),
        "seconds": 0,
        "heads": _estimates(subject, trace),
    }
    before = content["seconds"]
    save_file(subject.means(), folder / MEANS)
    todo = [(kind, entry) for kind in ("without", "alone") for entry in content["heads"] if kind not in entry]
    for number, (kind, entry) in enumerate(todo, 1):
        heads = range(trace[entry["site"]].num_heads)
        closed = [h for h in heads if (h == entry["head"]) is (kind == "without")]
        entry[kind] = _difference(subject, base, {entry["site"]: [off(*closed)]} if closed else {})
        seconds = time.monotonic() - start
        content["seconds"] = round(before + seconds)
        write_json(folder / IMPORTANCE, content)
        left = format_seconds(seconds / number * (len(todo) - number))
        line = f"{entry['site']} head {entry['head']} {kind}: {entry[kind][0]:+.2f}"
        print(f"{number}/{len(todo)}  {line}  {left} left", flush=True)
    add_section(folder / "card.md", _section(content))
    return content


def _begun(path: Path, sha256: str | None, examples: int) -> dict[str, Any] | None:
    """What an earlier run of the same weights, over as many examples, wrote."""
    if not path.is_file():
        return None
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content if (content.get("sha256"), content.get("examples")) == (sha256, examples) else None


def _estimates(subject: Subject[Any], trace: Trace) -> list[dict[str, Any]]:
    gradients = subject.gradients()
    return [
        {"site": call.site, "head": head, "gradient": round(float(gradients[call.site][head]), 5)}
        for call in trace
        for head in range(call.num_heads)
    ]


def _difference(subject: Subject[Any], base: np.ndarray, edits: Any) -> list[float]:
    return [round(number, 3) for number in paired_bootstrap(subject.score, base, subject.statistics(edits))]


def _section(content: dict[str, Any]) -> str:
    """The card's section on heads."""
    metric = {"bleu": "BLEU (greedy)", "accuracy": "percentage of pictures right"}[content["metric"]]
    heads = content["heads"]
    sure = [entry for entry in heads if entry["without"][1] > 0 or entry["without"][2] < 0]
    better = [entry for entry in sure if entry["without"][0] > 0]
    rows = [
        f"| {_named(e)} | {_interval(e['without'])} | {_interval(e['alone'])} | {e['gradient']:.3f} |"
        for e in sorted(heads, key=lambda entry: entry["without"][0])[:10]
    ]
    table = "\n".join(rows)
    return f"""## Heads

What the {metric} of {content["base"]:.2f} on the {content["examples"]:,} examples of the test split changes by without
each head, and with each alone in its layer, with 95% intervals of a paired bootstrap of 1,000 rounds; and the estimate
E |dL/dxi| from gradients (Michel 2019, equation 2). Without {len(sure)} of {len(heads)} heads the interval does not
hold 0, and without {len(better)} of these the score is better; by chance alone that would happen at about
{round(len(heads) / 20)}. The ten that cost most; all are in heads.json.

| head | without it | alone in its layer | gradient |
| --- | --- | --- | --- |
{table}
"""


def _named(entry: Mapping[str, Any]) -> str:
    """Return the name of a head as on the pages, counted from 1: head 4 of layer 3 (cross-attention)."""
    stack, layer, kind = entry["site"].split(".")
    return f"head {entry['head'] + 1} of layer {int(layer) + 1} ({'cross-attention' if kind == 'cross' else stack})"


def _interval(difference: Sequence[float]) -> str:
    value, low, high = difference
    return f"{value:+.2f} ({low:+.2f} to {high:+.2f})"
