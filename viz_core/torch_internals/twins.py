"""Twins of modules: the same parameters under hooks of their own, so that threads can share the model itself."""

import copy
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn


def twin(module: nn.Module) -> Any:
    """Return a module with the same parameters and parts, and tables of parts and hooks of its own."""
    made = copy.copy(module)
    for name, table in vars(module).items():
        if name == "_modules":
            made.__dict__[name] = dict(table)
        elif isinstance(table, OrderedDict) and name.endswith(("hooks", "hooks_with_kwargs", "always_called")):
            made.__dict__[name] = OrderedDict(table)
    return made


def with_parts(model: nn.Module, parts: Mapping[str, nn.Module | Callable[[nn.Module], nn.Module]]) -> Any:
    """Return a twin of a model with other parts at these paths, "transformer.h.0" say.

    Args:
        parts: by path, the part itself, or a function of the part that is there.

    Raises:
        KeyError: if the model has no part at a path.
    """
    found = twin(model)
    own = {"": found}
    for path in sorted(parts, key=lambda each: each.count(".")):
        *above, name = path.split(".")
        owner, place = found, ""
        for step in above:
            place = f"{place}.{step}"
            if place not in own:
                own[place] = owner._modules[step] = twin(owner._modules[step])
            owner = own[place]
        if name not in owner._modules:
            raise KeyError(path)
        part = parts[path]
        made = part if isinstance(part, nn.Module) else part(owner._modules[name])
        owner._modules[name] = own[f"{place}.{name}"] = made
    return found


def with_output_hook(
    module: nn.Module, on_output: Callable[[Tensor], None], on_input: Callable[[Tensor], None] | None = None
) -> Any:
    """Return a twin of a layer with hooks on its output and input; the layer itself stays without."""
    made = twin(module)
    made.register_forward_hook(
        lambda _layer, _inputs, output: on_output(output[0] if isinstance(output, tuple) else output)
    )
    if on_input is not None:
        receive = on_input

        def forward_input(_layer: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            receive(inputs[0] if inputs else named["hidden_states"])

        made.register_forward_pre_hook(forward_input, with_kwargs=True)
    return made
