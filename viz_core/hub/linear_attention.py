"""Record and edit the layers of a transformers model whose rule is linear in its values."""

import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from viz_core.hub.transformers_internals import (
    FUSED,
    RULES,
    STEPS,
    Read,
    is_lightning,
    read_lightning,
    read_mlstm,
    rules_of,
)
from viz_core.trace import site_of
from viz_core.trace.edits import Edits
from viz_core.trace.intervene import edits_at, edits_of, is_editing
from viz_core.trace.linear_rule import LinearRule
from viz_core.trace.outputs import edited_output, on_output
from viz_core.trace.trace import current_trace


def finish_rule(
    output: Float[Tensor, "batch heads queries v"],
    source: LinearRule,
    values: Tensor,
    site: str | None,
    follows_convolution: bool = False,
) -> Float[Tensor, "batch heads queries v"]:
    """Return what a layer's rule gave, with its edited heads; recorded within `record()`.

    ValueError if an edit changes scores, which the rule does not have, or is to hide a token that a convolution carries
    on; or if the recording is differentiable.

    Args:
        follows_convolution: whether keys and values are made of several tokens, by a short convolution.
    """
    trace = current_trace()
    if trace is not None and trace.differentiable:
        raise ValueError(
            f"site {site!r}: expected no differentiable where a {source.rule} runs, which weighs no scores"
        )
    edits = edits_of(source, site)
    if edits is not None and any(edit.needs_softmax for edit in edits.edits):
        raise ValueError(
            f"site {site!r}: expected off, gate, mean, knock_out, window or patch of outputs, by which a {source.rule} "
            "can be edited: it has no scores"
        )
    if edits is not None and follows_convolution and _hides_a_token(edits, source):
        raise ValueError(
            f"site {site!r}: expected pairs of query and key to cut, got a token cut from all that follow it, in all "
            f"heads: a short convolution before the {source.rule} carries it on to the next tokens"
        )
    if trace is not None:
        own: dict[str, Any] = {name: tensor.detach() for name, tensor in source.named_tensors().items()}
        if trace.values:
            own["values"] = values.detach()
        trace.add(replace(source, **own, edits=edits), site)
    if edits is None:
        return output
    edited = edited_output(output.float(), replace(source, edits=edits), values.float())
    return edited.to(output.dtype)


def _hides_a_token(edits: Edits, source: LinearRule) -> bool:
    """Whether edits cut some token in all heads from all tokens after it."""
    cuts = replace(edits, edits=tuple(edit for edit in edits.edits if edit.cuts_pairs))
    batch, heads, n, _ = source.shape
    if not all(map(cuts.of, range(heads))):
        return False
    queries, keys = cuts.positions
    later = (keys[:, None] >= 0) & (queries[..., None] > keys[:, None])
    scores = torch.zeros(batch, 1, n, n, device=source.keys.device)
    uncut = [cuts.edit_scores(scores, [head], slice(0, n))[:, 0] == 0 for head in range(heads)]
    return bool((later.any(dim=1) & ~(later & torch.stack(uncut).any(dim=0)).any(dim=1)).any())


@dataclass
class _Running:
    """A call of a layer that is recorded or edited."""

    layer: nn.Module
    given: dict[str, Any]  # its arguments by name
    projected: Tensor | None = None  # of lightning attention

    def finish(self, output: Tensor, read: Read) -> Tensor:
        """Return the output of the rule, (batch, heads, n, v), with its edited heads."""
        if read.state is not None and bool(read.state.any()):
            return self.step(output)
        tokens = self.given.get("attention_mask")
        if isinstance(tokens, Tensor) and tokens.shape == (output.shape[0], output.shape[2]):
            read = read._replace(source=replace(read.source, key_tokens=tokens.bool()))
        has_convolution = any(isinstance(part, nn.Conv1d) for part in self.layer.modules())
        edited = finish_rule(output, read.source, read.values, site_of(self.layer), has_convolution)
        on_output(current_trace(), edited)
        return edited

    def step(self, output: Tensor) -> Tensor:
        """Return the output of a step from a state, edited; it is not recorded: the keys before it are gone."""
        site = site_of(self.layer)
        edits = edits_at(site, (*output.shape[:3], output.shape[2]), True, lambda: None, output.device)
        if current_trace() is not None:
            warnings.warn(
                f"{site}: a step from a state is not recorded, as its keys are gone; run the whole text in one pass",
                stacklevel=2,
            )
        if edits is None:
            return output
        if any(edit.needs_positions for edit in edits.edits):
            raise ValueError(f"site {site!r}: expected off, gate or mean for a step from a state, which has no keys")
        heads = [edits.edit_output(own, head) for head, own in enumerate(output.unbind(dim=1))]
        return torch.stack(heads, dim=1)


_running: ContextVar[_Running | None] = ContextVar("running", default=None)
_wrapping = threading.Lock()


def watch_linear(layers: Iterable[nn.Module]) -> list[RemovableHandle]:
    """Record and edit the rules of these layers from now on."""
    handles = []
    for layer in layers:
        handles.append(layer.register_forward_pre_hook(_before, with_kwargs=True))
        handles.append(layer.register_forward_hook(_after, always_call=True))
        if is_lightning(layer):
            parts: Any = layer
            handles.append(parts.qkv_proj.register_forward_hook(_after_projection))
            handles.append(parts.norm.register_forward_pre_hook(_before_norm))
        if (backend := getattr(layer, "mlstm_backend", None)) is not None:
            handles.append(backend.register_forward_hook(_after_mlstm, with_kwargs=True))
    return handles


def _before(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if current_trace() is None and not is_editing():
        return
    _wrap_rules(type(layer))
    _running.set(_Running(layer, inspect.signature(layer.forward).bind_partial(*args, **kwargs).arguments))


def _after(_layer: nn.Module, _inputs: Any, _result: Any) -> None:
    if not torch.compiler.is_compiling():
        _running.set(None)


def _after_projection(_projection: nn.Module, _inputs: Any, projected: Tensor) -> None:
    running = _now()
    if running is not None:
        running.projected = projected


def _before_norm(_norm: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor] | None:
    running = _now()
    if running is None or running.projected is None:
        return None
    read = read_lightning(running.layer, running.projected, running.given)
    batch, heads, n, _ = read.values.shape
    output = inputs[0].reshape(batch, n, heads, -1).transpose(1, 2)
    return (running.finish(output, read).transpose(1, 2).reshape(inputs[0].shape),)


def _after_mlstm(backend: nn.Module, _inputs: Any, given: dict[str, Any], result: Any) -> Any:
    running = _now()
    if running is None:
        return result
    output, *state = result if isinstance(result, tuple) else (result,)
    edited = running.finish(output, read_mlstm(backend, given))
    return (edited, *state) if isinstance(result, tuple) else edited


def _now() -> _Running | None:
    return None if torch.compiler.is_compiling() else _running.get()


def _wrap_rules(layer: type[nn.Module]) -> None:
    """Wrap the rules that a class of layers calls by name; outside a recorded or edited call they do what they did."""
    with _wrapping:
        names = rules_of(layer)
        for name in {*RULES, *STEPS, *FUSED} & {*names}:
            if not hasattr(names[name], "is_wrapped_rule"):
                names[name] = _wrapped(name, names[name])


def _wrapped(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(rule)

    @functools.wraps(rule)
    def run(*args: Any, **kwargs: Any) -> Any:
        running = _now()
        if running is None:
            return rule(*args, **kwargs)
        if name in FUSED:
            return None
        result = rule(*args, **kwargs)
        if name in STEPS:
            return running.step(result[:, :, None])[:, :, 0]
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        output, *rest = result if isinstance(result, tuple) else (result,)
        edited = running.finish(output.transpose(1, 2), RULES[name](bound.arguments)).transpose(1, 2).contiguous()
        return (edited, *rest) if isinstance(result, tuple) else edited

    run.is_wrapped_rule = True  # type: ignore[attr-defined]
    return run
