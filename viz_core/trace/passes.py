"""What is known of a pass: which call of a layer runs, and which rows hold several texts.

Layers that share their weights, as in ALBERT, are one module with a name for each call. A pass is one call of the
module that holds the list of layers. What is counted in it is known to the thread or task that runs it, and stored on
no module. A layer that is called in another pass of the same recording has the same names, and "@2" after them.
"""

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from viz_core.torch_internals import is_transformed
from viz_core.trace.weights import packed_texts, text_numbers

Value = TypeVar("Value")
_LAYER = re.compile(r"(?:^|\.)(?:block|encoder_layer_)?(\d+)\.")  # "layer.2.", "blks.block2.", "encoder_layer_2."
_NUMBERED = re.compile(r"(\w+)\.(\d+)((?:\.\d+)*)")  # "encoder.2" of "encoder.2.self"


def number_in_path(part: str) -> str | None:
    """Return the number of a layer in a list, by its part of a path: "2" of "2" and "block2"; None of other names."""
    found = _LAYER.match(part + ".")
    return None if found is None else found[1]


def name_site(layer: nn.Module, site: str) -> None:
    """Set the site of one layer: an attribute outside its state dict."""
    layer.attention_site = site  # type: ignore[assignment]


def site_of(layer: nn.Module) -> str | None:
    """Return the site of a layer, while it runs that of its current call; None if it has none."""
    site: str | None = getattr(layer, "attention_site", None)
    if site is None or torch.compiler.is_compiling() or not _passes.get():  # a compiled layer is in no pass
        return site
    return current_site(site)


def named_sites(model: nn.Module) -> dict[nn.Module, str]:
    """Return the attention layers of a model that have a site."""
    return {part: site for part in model.modules() if (site := site_of(part)) is not None}


class _Pass:
    """The names of the layers' calls so far, in one pass."""

    def __init__(self, holder: nn.Module) -> None:
        self.holder = holder
        self.current = dict[str, str]()  # by the name of a layer
        self._counts = Counter[int]()  # by the id of a layer
        self._repeated = set[str]()

    def call(self, layer: nn.Module, name: str) -> str:
        """Return the name of a call of a layer: its own, or with the next number where that was called before."""
        self._counts[id(layer)] += 1
        found = name
        if self._counts[id(layer)] > 1 or name in self._repeated:
            stack, _, rest = _split(name)
            used = [_split(other) for other in (*self.current, *self._repeated)]
            found = f"{stack}.{1 + max(number for other, number, kind in used if (other, kind) == (stack, rest))}{rest}"
            self._repeated.add(found)
        self.current[name] = found
        return found


_passes: ContextVar[tuple[_Pass, ...]] = ContextVar("passes", default=())
_counted: ContextVar[bool] = ContextVar("counted", default=False)

at_end_of_block: ContextVar[ExitStack | None] = ContextVar("at_end_of_block", default=None)
"""Called at the end of the block that records or edits here: to end what an interrupted pass has left open."""


@contextmanager
def set_in_block(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Set a context variable in this block, for this thread or task alone."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def counting_passes() -> Iterator[None]:
    """Count the calls of layers in this block, from none on: Ctrl-C ends a pass without a call of its last hook."""
    with (
        set_in_block(_counted, True),
        set_in_block(_passes, ()),
        set_in_block(packed_texts, None),
        ExitStack() as stack,
        set_in_block(at_end_of_block, stack),
    ):
        yield


def begin_pass(holder: nn.Module, _args: object) -> None:
    """Begin to count the calls of layers, as a forward pre-hook of what holds their list."""
    if not torch.compiler.is_compiling() and _counted.get():
        _passes.set((*_passes.get(), _Pass(holder)))


def end_pass(holder: nn.Module, _args: object, _output: object) -> None:
    """End what `begin_pass` began, as a forward hook that is always called."""
    if not torch.compiler.is_compiling() and (passes := _passes.get()) and passes[-1].holder is holder:
        _passes.set(passes[:-1])


def begin_texts(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Note which rows of a counted pass hold several texts, by their `position_ids`, as a forward pre-hook."""
    if torch.compiler.is_compiling() or not _counted.get() or packed_texts.get() is not None:
        return
    names = [*inspect.signature(model.forward).parameters][: len(args)] if args[2:] else []
    given = dict(zip(names, args, strict=False)) | kwargs
    positions, mask = given.get("position_ids"), given.get("attention_mask")
    if isinstance(positions, Tensor) and positions.dim() == 2 and not (positions.is_meta or is_transformed(positions)):
        is_mask = isinstance(mask, Tensor) and mask.dim() == 2
        numbers = text_numbers(positions, mask.bool() if is_mask else None)  # type: ignore[union-attr]
        packed_texts.set(None if numbers is None else (model, numbers))


def end_texts(model: nn.Module, _args: object, _output: object) -> None:
    """End what `begin_texts` began, as a forward hook that is always called."""
    if not torch.compiler.is_compiling() and (packed := packed_texts.get()) and packed[0] is model:
        packed_texts.set(None)


def call_layer(layer: nn.Module, name: str) -> str:
    """Count a call of a layer in its pass, and return the name of this call: "encoder.3"."""
    passes = _passes.get()
    return passes[-1].call(layer, name) if passes and _NUMBERED.fullmatch(name) else name


def layer_of(site: str) -> str:
    """Return the name of the layer of a site: "encoder.2" of "encoder.2.self"; "" without a number."""
    found = _NUMBERED.match(site)
    return "" if found is None else found[0]


def current_site(site: str) -> str:
    """Return the site of an attention layer with the number of its layer's current call."""
    name = layer_of(site)
    current = next((each.current[name] for each in reversed(_passes.get()) if name in each.current), name)
    return current + site.removeprefix(name)


def holders_of(model: nn.Module, layers: Iterable[nn.Module]) -> list[nn.Module]:
    """Return the modules that hold the outermost lists of these layers."""
    modules, wanted = dict(model.named_modules()), set(layers)
    found = dict[nn.Module, None]()
    for path in [path for path, module in modules.items() if module in wanted]:
        parts = path.split(".")
        place = next(i for i, part in enumerate(parts) if number_in_path(part) is not None)
        while place > 0 and isinstance(modules[".".join(parts[:place])], nn.ModuleList | nn.Sequential):
            place -= 1
        found[modules[".".join(parts[:place])]] = None
    return list(found)


def spread_layers(
    model: nn.Module, sites: Mapping[nn.Module, str]
) -> dict[nn.Module, tuple[()] | tuple[nn.Module, nn.Module]]:
    """Return layers whose parts are in several lists, as in XLM: `attentions[i]`, `ffns[i]`, `layer_norm2[i]`.

    By its attention, what holds the lists and the last part of each; () where the norm comes first, so that no part
    is given the residual stream.
    """
    found: dict[nn.Module, tuple[()] | tuple[nn.Module, nn.Module]] = {}
    for holder in model.modules():
        lists = [each for each in holder.children() if isinstance(each, nn.ModuleList)]
        for own in lists:
            beside = [each for each in lists if each is not own and len(each) == len(own)]
            if len(beside) > 1 and all(each in sites for each in own) and isinstance(beside[-1][0], nn.LayerNorm):
                pre_norm = getattr(holder, "pre_norm", False)
                found |= {each: () if pre_norm else (holder, beside[-1][i]) for i, each in enumerate(own)}
    return found


def every_site(model: nn.Module, sites: Mapping[nn.Module, str]) -> dict[nn.Module, tuple[str, ...]]:
    """Return the sites of all calls of each layer: several where its list repeats it, or its config says how often.

    How often other code calls a layer is not known before it runs.
    """
    numbers: dict[nn.Module, set[int]] = {layer: set() for layer in sites}
    for path, module in model.named_modules(remove_duplicate=False):
        first = next(filter(None, map(number_in_path, path.split("."))), None)
        if module in sites and first is not None:
            numbers[module].add(int(first))
    albert: Any = next((m for m in model.modules() if hasattr(getattr(m, "config", None), "num_hidden_groups")), None)
    for layer in () if albert is None else [part for part in albert.modules() if part in sites]:
        count = albert.config.num_hidden_layers  # in equal groups, each the same layer called again and again
        per_group, own = count / albert.config.num_hidden_groups, numbers[layer]
        numbers[layer] = {i for i in range(count) if int(i / per_group) in own}
    found = dict[nn.Module, tuple[str, ...]]()
    for layer, site in sites.items():
        found[layer] = (site,)
        if len(numbers[layer]) > 1:
            stack, _, rest = _split(site)
            found[layer] = tuple(f"{stack}.{i}{rest}" for i in sorted(numbers[layer]))
    return found


def _split(name: str) -> tuple[str, int, str]:
    """Return the stack of a site or a layer, its first number, and the rest."""
    stack, number, *rest = name.split(".")
    return stack, int(number), "".join(f".{part}" for part in rest)
