"""The layers of a model, by its attention sites: names of attentions, and hooks that follow the residual stream."""

from collections.abc import Mapping
from functools import partial

from torch import nn
from torch.utils.hooks import RemovableHandle

from viz_core.trace.sites import find_sites, name_site, number_in_path
from viz_core.trace.states import after_layer, after_model, before_layer, on_attention


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
    handles, layers = [], find_layers(model, sites)
    if layers and not any(getattr(hook, "func", None) is after_model for hook in model._forward_hooks.values()):
        stack = list(layers.values())[-1].partition(".")[0]
        handles.append(model.register_forward_hook(partial(after_model, stack)))
    for layer, name in layers.items():
        if after_layer not in layer._forward_hooks.values():
            before = partial(before_layer, name, any(part in sites for part in layer.modules()))
            handles.append(layer.register_forward_pre_hook(before, with_kwargs=True))
            handles.append(layer.register_forward_hook(after_layer, always_call=True))
    for attention, site in sites.items():
        hooks = (getattr(hook, "func", None) for hook in attention._forward_hooks.values())
        if on_attention not in hooks and not any(part in sites for part in list(attention.modules())[1:]):
            note = partial(on_attention, site)
            handles += [attention.register_forward_pre_hook(note), attention.register_forward_hook(note)]
    return handles


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
