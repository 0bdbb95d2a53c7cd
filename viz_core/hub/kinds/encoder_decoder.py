"""Encoder-decoders that write a text for a text: Marian, T5, BART."""

from dataclasses import dataclass

import torch

from viz_core.hub.kinds.base import ConfigFacts, Head, InputControl, TextKind, ids_of
from viz_core.hub.runs.generation import write
from viz_core.hub.runs.run import HubRun, RunInputs


@dataclass(frozen=True, eq=False)
class EncoderDecoderKind(TextKind):
    """Writes for a text, then goes through both once."""

    name = "encoder-decoder"
    order = 1
    stack = None
    inputs = frozenset({"text", "target"})
    controls = (
        InputControl("text", "shared-text", "text", initial="start.encoder"),
        InputControl("target", "line", "target", placeholder="placeholder.target"),
        InputControl("new", "writing", least=1, default=48),
    )
    takes_token_ids = True
    features = frozenset({"switches"})
    new_tokens = 64

    @classmethod
    def recognise(cls, facts: ConfigFacts) -> tuple[str, Head] | None:
        return ("AutoModelForSeq2SeqLM", "words") if facts.has_model_for("seq2seq-lm") else None

    def run(self, inputs: RunInputs) -> HubRun:
        source, most = self.encode_prompt(inputs.read, inputs.max_tokens), inputs.max_tokens
        complete = True
        if inputs.target is not None:
            written = self.encode(inputs.target, most=most, target=True)["input_ids"]
            read_ids = ids_of({"input_ids": self.model.prepare_decoder_input_ids_from_labels(labels=written)})
            target_ids = ids_of({"input_ids": written})
        else:
            longest = self.max_decoder_positions(most)
            budget = max(1, inputs.budget if longest is None else min(inputs.budget, longest - 1))
            ids = write(self.model, source, budget, inputs.sampling, inputs.max_seconds)
            read_ids, target_ids = ids[:-1], ids[1:]
            complete = target_ids[-1] in self.ends()
        decoder_ids = torch.tensor([read_ids], device=self.device)
        read = {**source, "decoder_input_ids": decoder_ids}
        result, trace = self.recorded(read, max(source["input_ids"].shape[1], len(read_ids)), use_cache=False)
        source_ids = ids_of(source)
        tokens = self.tokenizer.read(source_ids)
        return HubRun(
            tokens,
            trace,
            self.last_logits(result.logits),
            num_prompt_tokens=len(tokens),
            decoder_tokens=self.tokenizer.read(read_ids),
            target_tokens=self.tokenizer.read(target_ids),
            text=self.tokenizer.decode(target_ids),
            complete=complete,
            inputs={**read, "use_cache": False},
            num_unknown=self.tokenizer.num_unknown(source_ids),
        )
