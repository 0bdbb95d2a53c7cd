"""The residual stream of each layer and what its parts add to it: recorded, and edited, by hooks on the layers."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from viz_core.torch_internals import in_graph, refuse_second_run, remove_mode
from viz_core.trace.intervene import edits_states, edits_states_in, state_edits_at
from viz_core.trace.passes import begin_pass, call_layer, end_pass, holders_of, name_site, number_in_path, spread_layers
from viz_core.trace.sites import find_sites
from viz_core.trace.trace import States, Trace, recorder
from viz_core.trace.weights import allowed_keys, text_positions

_ADD = {torch.add, Tensor.add, Tensor.add_}
_SAME = {torch.clamp, Tensor.clamp, Tensor.view, Tensor.reshape}  # between two additions, in half precision or OPT
_NORM = {F.layer_norm, F.rms_norm}
LINEAR = {F.linear: 0, torch.addmm: 1}
"""Products with weights, and which argument is the input."""
_AROUND = frozenset(("embedding", "residual", "output"))  # states that are seen from outside of a layer
_PARTS = ("attention", "cross", "mlp", "mixer", "sublayers")
_KINDS = frozenset((*_AROUND, "neurons", *_PARTS, *(f"residual_{part}" for part in _PARTS)))


def state_kinds(states: bool | Collection[str]) -> frozenset[str]:
    """Return the kinds of states to record: the last part of their names; ValueError for others."""
    kinds = _KINDS if states is True else frozenset([states] if isinstance(states, str) else states or ())
    if not kinds <= _KINDS:
        raise ValueError(f"states: expected some of {', '.join(sorted(_KINDS))}, got {', '.join(kinds - _KINDS)}")
    return kinds


def before_layer(name: str, attends: bool, layer: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
    """Count a call of a layer, as a forward pre-hook, and follow it if states are recorded or edited around it."""
    if in_graph(name):
        return None
    name = call_layer(layer, name)
    trace = own if (own := recorder.get()) is not None and own.keeps_states else None
    given = args[0] if args else kwargs.get("hidden_states")
    if not isinstance(given, Tensor) or not given.is_floating_point() or (trace is None and not edits_states()):
        return None
    refuse_second_run(name)
    block = _FollowedLayer(name, attends, layer, given, trace, (args, kwargs))
    stack, *numbers = name.split(".")
    if set(numbers) == {"0"}:
        block.stream = block.edited(f"{stack}.embedding", given)
    _followed.set((*_followed.get(), block))
    if block.follows:
        block.__enter__()
    if block.stream is given:
        return None
    return ((block.stream, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": block.stream})


def after_layer(layer: nn.Module, _args: Any, output: Any) -> Any:
    """End what `before_layer` began, as a forward hook that is always called."""
    if in_graph() or not (blocks := _followed.get()) or blocks[-1].layer is not layer:
        return None
    _followed.set(blocks[:-1])
    if blocks[-1].follows:
        blocks[-1].__exit__(None, None, None)
    first = output[0] if isinstance(output, tuple | list) and output else output
    if not isinstance(first, Tensor):  # it failed
        return None
    edited = blocks[-1].finish(first)
    if edited is first:
        return None
    return type(output)((edited, *output[1:])) if isinstance(output, tuple | list) else edited


def _after_part(layer: nn.Module, _part: nn.Module, args: Any, output: Any) -> Any:
    """The same for a layer that is spread over several lists, as a hook of its last part, or of what holds them if that
    did not run."""
    edited = after_layer(layer, args, output if isinstance(output, Tensor) else None)
    return None if edited is None else edited.contiguous()  # the model changes it in place


def after_model(stack: str, _model: nn.Module, _args: Any, output: Any) -> None:
    """Record what a model returns, its logits where it has some, as a forward hook."""
    if not in_graph(stack) and (trace := recorder.get()) is not None and "output" in trace.keeps_states:
        first = getattr(output, "logits", output)
        first = first[0] if isinstance(first, tuple) else first
        if isinstance(first, Tensor):
            trace.add_state(f"{stack}.output", first)


def on_attention(site: str | None, _layer: nn.Module | None = None, _args: Any = None, output: Any = None) -> None:
    """Note that attention runs in the layer that is followed, and what it returned; also as a forward hook."""
    if not in_graph(site) and (blocks := _followed.get()):
        kind, ran = "cross" if (site or "").endswith("cross") else "attention", blocks[-1].ran
        if kind not in blocks[-1].added:
            ran[kind] = ran.get(kind) if output is None else output[0] if isinstance(output, tuple) else output


def _changed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return what a function of torch changes in place, if it does so."""
    name = getattr(func, "__name__", "")
    in_place = kwargs.get("inplace") or name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
    return kwargs.get("out", args[0] if args and in_place else None)


class _FollowedLayer(TorchFunctionMode):
    """The residual stream on its way through one layer: what is added to it, in order, is what its parts write.

    The stream is known by identity: what enters the layer, each sum of it, and, where the norm comes last, that sum
    normalised. If what leaves the layer is another tensor, its parts are not known, and not recorded.
    """

    def __init__(
        self, name: str, attends: bool, layer: nn.Module, stream: Tensor, trace: Trace | None, given: tuple[Any, Any]
    ) -> None:
        super().__init__()
        kinds = frozenset[str]() if trace is None else trace.keeps_states
        self.follows = bool(kinds - _AROUND) or edits_states_in(name, _AROUND)
        # Where nobody sees whether the next layer changes them in place.
        self._copies = bool(kinds) and (kinds <= _AROUND or getattr(layer, "attention_site", None) is not None)
        self.name, self.attends, self.layer, self.trace = name, attends, layer, trace
        self._given = [*given[0][1:], *given[1].values()]
        self._mask, self._steps = given[1].get("attention_mask"), self._earlier_steps() if edits_states() else 0
        self.stream, self._shape = stream, stream.shape
        self.found = States()
        self._same: list[Tensor] = []  # the stream as others see it: in another shape, clamped, normalised
        self.ran: dict[str, Tensor | None] = {}  # attention that is not added yet
        self._sums: dict[int, tuple[Tensor, list[tuple[str | None, Tensor]]]] = {}  # of parts, before the stream
        self._linear: tuple[Callable[..., Tensor], tuple[Any, ...], dict[str, Any], Tensor] | None = None
        self.added: list[str] = []

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function of torch; additions to the stream are those of edited parts."""
        if func in _ADD and len(args) == 2 and not kwargs and self._fits(*args):
            return self._add(func, *args)
        kwargs = kwargs or {}
        if isinstance(changed := _changed(func, args, kwargs), Tensor):
            self._copy_recorded(changed)
            if changed.untyped_storage().data_ptr() == self.stream.untyped_storage().data_ptr():
                self.stream, self._same = changed.clone(), []  # another tensor: what follows is not known
        output = func(*args, **kwargs)
        if func in LINEAR:
            self._linear = func, args, kwargs, output
        elif (func in _NORM or func in _SAME) and self._is_stream(args[0]) and self._fits(output, output):
            self._same.append(output)
        return output

    def __exit__(self, *_error: object) -> None:
        """Leave the stack of modes from wherever it is: attention that is a layer itself may be recorded within."""
        remove_mode(self)

    def edited(self, name: str, state: Tensor) -> Tensor:
        """Return a state after its edits, to be recorded."""
        for edit in state_edits_at(name):
            state = edit.state(name, state.reshape(*self._shape[:-1], -1), self._positions)
        self.found[name] = state.detach().clone() if self._copies else state
        return state

    def finish(self, output: Tensor) -> Tensor:
        """Record the states of the layer, and return its output after edits."""
        known = (
            not self.follows
            or self._is_stream(output)
            or (output.shape == self.stream.shape and torch.equal(output, self.stream))
        )
        if not known or len(set(self.added)) < len(self.added):
            for name in [name for name in self.found if not name.endswith(".embedding")]:
                del self.found[name]
        output = self.edited(f"{self.name}.residual", output)
        if self.trace is not None:
            for name in [name for name in self.found if name.rpartition(".")[2] in self.trace.keeps_states]:
                self.trace.add_state(name, self.found[name].reshape(*self._shape[:-1], -1))
        return output

    def _add(self, func: Any, a: Tensor, b: Tensor) -> Tensor:
        if not self._is_stream(a) and not self._is_stream(b):
            parts = [self._parts(each) for each in (a, b)]
            if func is Tensor.add_:
                parts[0] = [(kind, each.clone() if each is a else each) for kind, each in parts[0]]
            output: Tensor = func(a, b)
            self._sums[id(output)] = output, [*parts[0], *parts[1]]
            return output
        stream, branch = (a, b) if self._is_stream(a) else (b, a)
        if self.added:
            self.found[f"{self.name}.residual_{self.added[-1]}"] = stream
        named = self._named(branch)
        edited = [self._edit_part(name, part) for name, part in named]
        if func is Tensor.add_:
            self._copy_recorded(a)
        if all(new is part for new, (_, part) in zip(edited, named, strict=True)):
            self.stream = func(a, b)
        else:
            whole = edited[0] if len(edited) == 1 else torch.stack(edited).sum(dim=0)
            total = stream + whole.reshape(stream.shape)
            self.stream = a.copy_(total) if func is Tensor.add_ else total
        self._same = []
        return self.stream

    def _copy_recorded(self, changed: Tensor) -> None:
        """Copy what is recorded of a tensor that is about to be changed in place."""
        at = changed.untyped_storage().data_ptr()
        for states in (self.found, *([] if self.trace is None else [self.trace.states])):
            for name in [n for n, each in states.data.items() if each.state.untyped_storage().data_ptr() == at]:
                with suppress(ValueError):  # it was changed before, which is an error when it is read
                    states[name] = states[name].clone()
        known = () if self._linear is None else (*self._linear[1], self._linear[3])
        if any(isinstance(each, Tensor) and each.untyped_storage().data_ptr() == at for each in known):
            self._linear = None

    def _named(self, branch: Tensor) -> list[tuple[str, Tensor]]:
        """Return what is added to the stream, part by part, with their names."""
        parts = self._parts(branch)
        unnamed = sum(kind is None for kind, _ in parts)
        if len(parts) > 1 and unnamed != 1:  # of one net with adapters or experts, or of several that are not known
            parts = [(None if unnamed == len(parts) and not self.ran else "sublayers", branch)]
            self.ran.clear()
        named = []
        for kind, part in parts:
            kind = kind or (next(iter(self.ran), None) if len(parts) == 1 else None)
            name = kind or ("mlp" if self.attends or self.added else "mixer")
            self.ran.pop(name, None)
            self.added.append(name)
            named.append((name, part))
        return named

    def _edit_part(self, name: str, part: Tensor) -> Tensor:
        if name == "mlp" and self._linear is not None and self._linear[3].data_ptr() == part.data_ptr():
            func, args, kwargs, _ = self._linear
            first, neurons, *rest = args if LINEAR[func] else (None, *args)
            new = self.edited(f"{self.name}.neurons", neurons)
            if new is not neurons:
                changed = [first] * LINEAR[func] + [new.reshape(neurons.shape), *rest]
                part = func(*changed, **kwargs).reshape(part.shape)
        return self.edited(f"{self.name}.{name}", part)

    def _parts(self, tensor: Tensor) -> list[tuple[str | None, Tensor]]:
        kind = next((kind for kind, output in self.ran.items() if output is tensor), None)
        return [(kind, tensor)] if kind else self._sums.get(id(tensor), (tensor, [(None, tensor)]))[1]

    def _is_stream(self, tensor: Tensor) -> bool:
        return any(tensor is each for each in (self.stream, *self._same))

    def _fits(self, a: Any, b: Any) -> bool:
        alike = isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape
        return alike and a.numel() == self.stream.numel() and a.shape[-1:] == self._shape[-1:]

    def _positions(self) -> Int[Tensor, "#batch n"]:
        """Return the position of each token in its text, by the layer's mask; ValueError after steps in a cache."""
        n, device, masks = self._shape[1], self.stream.device, (self._mask, *self._given)
        if self._steps:
            raise ValueError(f"{self.name}: expected a whole text where queries are named, got a step after others")
        mask = next((m for m in masks if isinstance(m, Tensor) and m.dim() == 4 and m.shape[-1] == n), None)
        if mask is None:
            return text_positions(None, n, device)
        allowed, bias = (mask, None) if mask.dtype == torch.bool else (None, mask)
        return text_positions(allowed_keys(allowed, bias, self._shape[0], n), n, device)

    def _earlier_steps(self) -> int:
        """Return the number of tokens in a cache of keys and values that the layer is given."""
        number = int(self.name.rsplit(".", 1)[-1])
        for each in self._given:
            with suppress(AttributeError, ValueError, IndexError):  # no cache, or one of linear attention
                return int(each.get_seq_length(number))
        caches = next((each.caches for each in self._given if hasattr(each, "caches")), ())  # of our decoder
        return getattr(caches[number], "num_steps", 0) if number < len(caches) else 0


_followed: ContextVar[tuple[_FollowedLayer, ...]] = ContextVar("followed", default=())


def name_sites(model: nn.Module, stack: str | None = None) -> tuple[str, ...]:
    """Set the site of each attention layer of a model: "encoder.0.self", "decoder.2.cross"; follow its layers' states.

    Returns the sites in the order of the model's parts, each once; none for a model without attention in layers.

    Args:
        stack: the name of a model's only stack; None for a model with an encoder and a decoder.
    """
    sites = find_sites(model, stack)
    for layer, site in sites.items():
        name_site(layer, site)
    add_state_hooks(model, sites)
    return tuple(dict.fromkeys(sites.values()))


def add_state_hooks(model: nn.Module, sites: Mapping[nn.Module, str]) -> list[RemovableHandle]:
    """Follow the layers of a model with these attentions, in recordings and edits of states; each once."""
    handles, layers, spread = [], find_layers(model, sites), spread_layers(model, sites)
    layers = {layer: name for layer, name in layers.items() if spread.get(layer) != ()}
    if layers and not any(getattr(hook, "func", None) is after_model for hook in model._forward_hooks.values()):
        stack = list(layers.values())[-1].partition(".")[0]
        handles.append(model.register_forward_hook(partial(after_model, stack)))
    for holder in holders_of(model, layers):
        if begin_pass not in holder._forward_pre_hooks.values():
            handles.append(holder.register_forward_pre_hook(begin_pass))
            handles.append(holder.register_forward_hook(end_pass, always_call=True))
    for layer, name in layers.items():
        if all(getattr(hook, "func", None) is not before_layer for hook in layer._forward_pre_hooks.values()):
            before = partial(before_layer, name, any(part in sites for part in layer.modules()))
            handles.append(layer.register_forward_pre_hook(before, with_kwargs=True))
            if layer not in spread:
                handles.append(layer.register_forward_hook(after_layer, always_call=True))
                continue
            holder, last = spread[layer]
            handles.append(last.register_forward_hook(partial(_after_part, layer)))
            handles.append(holder.register_forward_hook(partial(_after_part, layer), always_call=True))
    for attention, site in sites.items():
        hooks = (getattr(hook, "func", None) for hook in attention._forward_hooks.values())
        if on_attention not in hooks and not any(part in sites for part in list(attention.modules())[1:]):
            note = partial(on_attention, site)
            handles += [attention.register_forward_pre_hook(note), attention.register_forward_hook(note)]
    return handles


def has_foreign_hooks(module: nn.Module) -> bool:
    """Return whether a module has hooks besides those of `add_state_hooks`, for recordings and edits."""
    own = {after_model, begin_pass, end_pass, before_layer, after_layer, on_attention}
    hooks = (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    return any(getattr(hook, "func", hook) not in own for hook in hooks)


def find_layers(model: nn.Module, sites: Mapping[nn.Module, str]) -> dict[nn.Module, str]:
    """Return the layers of a model, "decoder.2" say: those with these attentions, and the others in the same lists."""
    modules = dict(model.named_modules())
    paths = {module: path for path, module in modules.items()}
    found: dict[nn.Module, str] = {}
    for attention, site in sites.items():
        stack, *names = site.partition("@")[0].split(".")
        numbers = [name for name in names if name.isdecimal()]
        parts = paths.get(attention, "").split(".")
        places = [place for place, part in enumerate(parts) if number_in_path(part) is not None]
        for place in places[len(numbers) - 1 : len(numbers)]:
            above = modules[".".join(parts[:place])]
            siblings = above.named_children() if isinstance(above, nn.ModuleList | nn.Sequential) else ()
            for name, layer in ((parts[place], modules[".".join(parts[: place + 1])]), *siblings):
                found.setdefault(layer, ".".join((stack, *numbers[:-1], number_in_path(name) or name)))
    return found
