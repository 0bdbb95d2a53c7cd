"""Copies of a model with some parts replaced; everything else is shared."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn


def replaced(model: nn.Module, parts: Mapping[str, nn.Module]) -> Any:
    """The model with other parts at these paths, "transformer.h.0" say. The model itself stays as it is."""
    found = twin(model)
    own = {"": found}
    for path, part in parts.items():
        *above, name = path.split(".")
        owner, place = found, ""
        for step in above:
            place = f"{place}.{step}"
            if place not in own:
                own[place] = owner._modules[step] = twin(owner._modules[step])  # type: ignore[arg-type]
            owner = own[place]
        if name not in owner._modules:
            raise KeyError(path)
        owner._modules[name] = part
    return found


def twin(module: nn.Module) -> Any:
    """A module with the same parameters and parts, and tables of parts and hooks of its own."""
    made = copy.copy(module)
    for name, table in vars(module).items():
        if name == "_modules":
            made.__dict__[name] = dict(table)
        elif isinstance(table, OrderedDict) and name.endswith(("hooks", "hooks_with_kwargs", "always_called")):
            made.__dict__[name] = OrderedDict(table)
    return made


def with_output_hook(
    module: nn.Module, on_output: Callable[[Tensor], None], on_input: Callable[[Tensor], None] | None = None
) -> Any:
    """A twin of a layer with hooks on its output and input; the layer itself stays without."""
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
