"""Decoders that continue a text: GPT-2, Llama and their kin."""

import inspect
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from viz_core.hub.kinds.base import ConfigFacts, Head, InputControl, TextKind, ids_of
from viz_core.hub.runs.generation import write
from viz_core.hub.runs.run import HubRun, RunInputs


@dataclass(frozen=True, eq=False)
class DecoderKind(TextKind):
    """Continues a text, then reads all of it once."""

    name = "decoder"
    order = 3
    stack = "decoder"
    inputs = frozenset({"text", "target"})
    controls: ClassVar[tuple[InputControl, ...]] = (
        InputControl("start", "shared-text", "text", initial="start.decoder"),
        InputControl("new", "writing", least=0, default=12),
    )
    takes_token_ids = True
    in_batches = True
    features = frozenset({"lens", "switches", "window"})
    new_tokens = 20

    @classmethod
    def recognise(cls, facts: ConfigFacts) -> tuple[str, Head] | None:
        writes = facts.architecture.endswith(("CausalLM", "LMHeadModel")) or not facts.has_model_for("masked-lm")
        return ("AutoModelForCausalLM", "words") if facts.has_model_for("causal-lm") and writes else None

    def run(self, inputs: RunInputs) -> HubRun:
        prompt, whole = self.encode_prompt(inputs.read, inputs.max_tokens), None
        if inputs.target is not None and isinstance(inputs.read, str):
            whole = ids_of(self.encode(inputs.read + inputs.target, most=inputs.max_tokens))
        elif inputs.target is not None:
            added = self.tokenizer.encode(inputs.target, add_special_tokens=False)
            whole = [*inputs.read, *ids_of(added)]
            self.check_length(len(whole), self.max_positions("decoder"), inputs.max_tokens)
        return self.continued(prompt, whole, inputs)

    def extra_inputs(self, prompt: dict[str, Tensor], num_tokens: int) -> Mapping[str, Tensor]:  # noqa: ARG002
        """What the model takes beside the ids of a prompt that has grown to so many tokens."""
        return {}

    def never_written(self) -> tuple[int, ...]:
        """Tokens that are never written."""
        return ()

    def options_of_pass(self, num_logits: int) -> dict[str, Any]:
        """What a recorded pass is given beside its tokens; logits of the last ones suffice where the model says so."""
        keeps = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        return {"use_cache": False} | ({"logits_to_keep": num_logits} if keeps else {})

    def continued(self, prompt: dict[str, Tensor], whole: list[int] | None, inputs: RunInputs) -> HubRun:
        """What the model writes after a prompt, or `whole`, recorded in one pass.

        Args:
            prompt: encoded, with a mask and what else the prompt brings.
            whole: ids of the prompt and the target, where a target is given.
        """
        prompt_ids, complete = ids_of(prompt), True
        if whole is not None:
            ids = whole
            shared = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(prompt_ids, ids, strict=False))
            prompt_ids = [i for i, _ in shared]  # its last token may merge with what follows
        else:
            longest = self.max_decoder_positions(inputs.max_tokens)
            budget = inputs.budget if longest is None else min(inputs.budget, longest - len(prompt_ids))
            options = inputs.sampling, inputs.max_seconds, self.never_written()
            ids = write(self.model, prompt, budget, *options) if budget > 0 else prompt_ids
            complete = inputs.budget == 0 or ids[-1] in self.ends()
        options_of_pass = self.options_of_pass(self.num_logits(len(ids)))
        read = {"input_ids": torch.tensor([ids], device=self.device), **self.extra_inputs(prompt, len(ids))}
        result, trace = self.recorded(read, len(ids), **options_of_pass)
        return HubRun(
            self.tokenizer.read(ids),
            trace,
            self.last_logits(result.logits),
            num_prompt_tokens=len(prompt_ids),
            text=self.tokenizer.decode(ids[len(prompt_ids) :]),
            complete=complete,
            inputs={**read, **options_of_pass},
            num_unknown=self.tokenizer.num_unknown(prompt_ids),
        )
