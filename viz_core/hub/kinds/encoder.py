"""Encoders of texts: BERT and its kin."""

from dataclasses import dataclass
from typing import Any

from viz_core.hub.kinds.base import ConfigFacts, Head, InputControl, TextKind, ids_of
from viz_core.hub.runs.run import HubRun, RunInputs


@dataclass(frozen=True, eq=False)
class EncoderKind(TextKind):
    """Reads a text, or two."""

    name = "encoder"
    order = 4
    stack = "encoder"
    inputs = frozenset({"text", "text_pair"})
    controls = (
        InputControl("text", "shared-text", "text", initial="start.encoder"),
        InputControl("pair", "line", "text_pair", placeholder="placeholder.pair"),
    )
    takes_token_ids = True
    in_batches = True
    features = frozenset({"lens", "switches", "hidden-tokens"})

    @classmethod
    def recognise(cls, facts: ConfigFacts) -> tuple[str, Head] | None:
        reads_text = facts.has_model_for("masked-lm", "text-classification")
        if reads_text and "ForSequenceClassification" in facts.architecture:
            return "AutoModelForSequenceClassification", "labels"
        if facts.has_model_for("masked-lm") and facts.architecture.endswith("ForMaskedLM"):
            return "AutoModelForMaskedLM", "mask"
        return ("AutoModel", "") if reads_text and facts.has_model_for("base") else None

    def run(self, inputs: RunInputs) -> HubRun:
        encoded = self.encode(inputs.read, inputs.text_pair, most=inputs.max_tokens)
        ids = ids_of(encoded)
        states: dict[str, Any] = {"output_hidden_states": True} if self.head == "mask" else {}
        result, trace = self.recorded(encoded, len(ids), **states)
        output, labels = self.output_of(result)
        return HubRun(
            self.tokenizer.read(ids),
            trace,
            output,
            num_prompt_tokens=len(ids),
            labels=labels,
            inputs={**encoded, **states},
            num_unknown=self.tokenizer.num_unknown(ids),
        )
