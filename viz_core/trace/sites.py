"""Names of attention layers, set once, when a model is built or loaded; `coverage` says which have a map.

A layer does not know its model. The code that builds a model calls `states.name_sites`, for models of this library and
of Hugging Face alike; a layer without a name is "attention.N" in a trace.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from torch import nn

from viz_core.trace.arguments import described
from viz_core.trace.passes import number_in_path

# MLA: DeepSeek's multi-head latent attention. Talking heads mix the result of their softmax; PatchTSMixer's "gated
# attention" is a gate.
_ATTENTION = re.compile(
    r"(?<!MixerGated)attention(?!Output|Residual|Structure|Bias|\w*Projection)|"
    r"(?<!TalkingHead)attn(?!Adapter|Block)|(M[HS]+A|SH[MS]A|XCA|MLA)$",
    re.IGNORECASE,
)
LINEAR = re.compile(
    "GatedDeltaNet|(KimiLinear|BailingHybrid)DeltaAttention|Glm5NextTextLinear|LightningAttention|Mamba2Mixer|BambaMixer|FalconH1Mixer|GraniteMoeHybridMambaLayer|Zamba2MambaMixer|"
    "xLSTMLayer$"
)
_PROJECTIONS = ("W_o", "o_proj", "out_proj", "c_proj", "o", "proj", "dense", "projection_layer", "to_out.0", "to_out")
_CROSS = re.compile(r"cross|encoder_attn|encdec|attention2|multihead_attn|x_attn|token_to_image|Pool", re.IGNORECASE)


def find_sites(model: nn.Module, stack: str | None = None, outside: bool = False) -> dict[nn.Module, str]:
    """Return the site of each attention layer of a model, in the order of its modules, without setting it.

    Layer and kind follow from the module's path ("decoder.block.2.layer.1.EncDecAttention"); attention layers within
    one another share a name, whichever makes the call. Different layers have different names ("encoder.2.5.self" for
    block 5 of stage 2). torch's own decoders, and classes called Decoder, are recognised.

    Args:
        stack: as in `states.name_sites`.
        outside: also those outside the lists of layers, if there are such lists: "vision.head.cross" of a pooling head.

    Raises:
        ValueError: if model is not an nn.Module.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(f"model: expected an nn.Module, got {described(model)}")
    places: "dict[str, _Place]" = {}
    decoders: list[str] = []
    modules = dict(model.named_modules())
    for path, module in modules.items():
        is_decoder = type(module).__name__ == "Decoder"  # of x-transformers
        if is_decoder or isinstance(module, nn.TransformerDecoder | nn.TransformerDecoderLayer):
            decoders.append(path and path + ".")
        if is_attention(module) and any(map(number_in_path, path.split("."))):
            known = stack or ("decoder" if any(path.startswith(prefix) for prefix in decoders) else None)
            places[path] = _Place.of(path, stack_of(path, known))
    inner = {path: [other for other in places if other.startswith(path + ".")] for path in places}
    named = _distinct_sites({path: place for path, place in places.items() if not inner[path]})
    sites: dict[nn.Module, str] = {}
    for path in places:
        names = {named[leaf] for leaf in inner[path] or [path] if leaf in named}
        if len(names) == 1:  # else a block that holds several attention layers
            sites[modules[path]] = names.pop()
    return sites | (_outside_sites(modules, sites, stack) if outside and sites else {})


def _outside_sites(
    modules: Mapping[str, nn.Module], sites: Mapping[nn.Module, str], stack: str | None
) -> dict[nn.Module, str]:
    """Return sites of attention outside the lists of layers, by the last name of its path, or all of it if others share
    that: "vision.head.cross"; what lies in it shares its site."""
    found: dict[str, nn.Module] = {}
    for path, module in modules.items():
        inside = any(path.startswith(f"{other}.") for other in found) or any(part in sites for part in module.modules())
        if path and not inside and is_attention(module) and not any(map(number_in_path, path.split("."))):
            found[path] = module
    last = Counter(path.rpartition(".")[2] for path in found)
    named: dict[nn.Module, str] = {}
    for path, module in found.items():
        name = path.rpartition(".")[2]
        kind = "cross" if _CROSS.search(f"{path} {type(module).__name__}") else "self"
        site = ".".join((stack_of(path, stack), name if last[name] == 1 else path, kind))
        named |= {part: site for part in module.modules() if part is module or is_attention(part)}
    return named


def projections(parts: Mapping[str, nn.Module], layer: str) -> Iterator[nn.Module]:
    """Yield what may be the output projection of the layer at a path: within it, or, as in BERT, beside it."""
    paths, above = [f"{layer}.{name}" for name in _PROJECTIONS], layer.rpartition(".")[0]
    if above in parts and is_attention(parts[above]):  # else what lies beside belongs to a feed-forward net
        paths.append(f"{above}.output.dense")
    return (parts[path] for path in paths if path in parts)


def is_attention(module: nn.Module) -> bool:
    """Return whether a module is an attention layer, judged by the name of its class."""
    return _ATTENTION.search(type(module).__name__) is not None or is_linear_attention(module)


def is_linear_attention(module: nn.Module) -> bool:
    """Return whether a module is linear attention with heads, judged by the name of its class."""
    return LINEAR.search(type(module).__name__) is not None


class _Place(NamedTuple):
    """Where an attention layer is: its stack, its numbers in lists, the other parts of its path, and its kind."""

    stack: str
    numbers: tuple[str, ...]
    names: tuple[str, ...]
    kind: str

    @classmethod
    def of(cls, path: str, stack: str) -> "_Place":
        parts = path.split(".")
        numbers = {part: found for part in parts if (found := number_in_path(part))}
        return cls(
            stack,
            tuple(numbers[part] for part in parts if part in numbers),
            tuple(part for part in parts if part not in numbers),
            "cross" if _CROSS.search(path) else "self",
        )

    def site(self, depth: int, without: AbstractSet[str] | None = None) -> str:
        """Return the site with so many numbers, and with the names that it does not share if some are given."""
        names = () if without is None else (name for name in self.names if name not in without)
        return ".".join((self.stack, *self.numbers[:depth], *names, self.kind))


def _distinct_sites(places: Mapping[str, _Place]) -> dict[str, str]:
    """Return a site for each path, each its own: "encoder.2.self", or "encoder.2.5.self" for block 5 of stage 2.

    Layers whose paths differ in numbers alone are alike. If two of them share their first number, all have all of
    theirs; where different ones would still share a site, all of both have the parts of their paths that differ.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for path, place in places.items():
        alike.setdefault((place.stack, place.kind, *place.names), []).append(path)
    depths: dict[str, int | None] = {}
    for paths in alike.values():
        first = {places[path].numbers[0] for path in paths}
        depths |= dict.fromkeys(paths, 1 if len(first) == len(paths) else None)
    sites = {path: place.site(depths[path] or len(place.numbers)) for path, place in places.items()}
    for group in _groups_that_share(list(alike.values()), sites):
        shared = frozenset.intersection(*(frozenset(places[path].names) for path in group))
        for path in group:
            sites[path] = places[path].site(depths[path] or len(places[path].numbers), shared)
    return sites


def _groups_that_share(groups: list[list[str]], sites: Mapping[str, str]) -> list[list[str]]:
    """Return the groups of paths that share sites with others, merged."""
    merged: list[list[list[str]]] = []
    for group in groups:
        names = {sites[path] for path in group}
        touched = [each for each in merged if any(sites[path] in names for other in each for path in other)]
        merged = [each for each in merged if each not in touched]
        merged.append([group, *(other for each in touched for other in each)])
    return [[path for group in each for path in group] for each in merged if len(each) > 1]


def stack_of(path: str, stack: str | None = None) -> str:
    """Return the stack of a module by its path: "encoder", "decoder" or "vision".

    Args:
        stack: the name of a model's only stack beside a vision tower; None for an encoder and a decoder.
    """
    parts = path.split(".")
    if "vision" in path or "visual" in parts:  # the image encoder of a vision-language model
        return "vision"
    # A language model within another is a decoder, unless it has an encoder of its own.
    is_decoder = "decoder" in parts or ("language_model" in parts and "encoder" not in parts)
    return stack or ("decoder" if is_decoder else "encoder")
