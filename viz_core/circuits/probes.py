"""A layer run on vectors of our choice, and what is outside the layers: tables of tokens, last norm, output layer."""

import copy
import inspect
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.circuits.logits import closest, double, hold_scale, layers_by_name, norms_among
from viz_core.models.transformer_decoder import DecoderState
from viz_core.runtime.device import float64_device
from viz_core.trace import Edit, Trace, intervene, record, stack_of, zero
from viz_core.trace.intervene import without_edits
from viz_core.trace.passes import every_site, layer_of, named_sites
from viz_core.trace.source import Projected

_ROUNDING = 1e-5
"""Largest error of a function that is held to be linear; norms of transformers compute in float32."""

_TOKENS = 4096
"""Tokens that a layer is given at once."""


def layer_at(model: nn.Module, site: str) -> tuple[nn.Module, str, str]:
    """Return the layer with a site, and name and site of its first call; ValueError without one."""
    sites = named_sites(model)
    first = {each: sites[part] for part, own in every_site(model, sites).items() for each in own}
    layers = layers_by_name(model)
    found = layer_of(first.get(site, ""))
    if found not in layers:
        raise ValueError(f"site: expected one of {', '.join(first) or 'none'}, got {site!r}")
    return layers[layer_of(site)], found, first[site]


class Probe:
    """A layer on texts whose last token is given and whose other tokens are zeros.

    It is a copy in float64 without dropout, on which no edit and no recording of others acts. Cross-attention reads its
    queries before anything is added in the layer, and its keys and values from given vectors too. ValueError if there
    is no such layer, it does not run by itself, or its attention is recorded as a whole map.
    """

    def __init__(self, model: nn.Module, site: str) -> None:
        layer, self.name, self.site = layer_at(model, site)
        self._model, self._layer = model, copy.deepcopy(layer).eval()
        self.is_cross = site.endswith("cross")
        parameters = [each for each in layer.parameters() if each.is_floating_point()]
        self.device, self.dtype = float64_device(parameters[0].device), torch.float64
        is_quantised = any("quantized" in type(part).__module__ for part in layer.modules())
        if is_quantised or not all(each.is_floating_point() for each in layer.parameters()):
            self.device, self.dtype = parameters[0].device, parameters[0].dtype
        self._layer = self._layer.to(self.device).to(self.dtype)
        self._takes = inspect.signature(layer.forward).parameters

    @torch.no_grad()
    def run(self, X: Tensor, position: int = 0, edits: Mapping[str, Edit] | None = None) -> Trace:
        """Return the recording, with values and states, of the layer for vectors (batch, d) at a position."""
        rotary, X = self._rotary(position), X.to(self.device, self.dtype)[:, None]
        if rotary is None and position:
            X = torch.cat([X.new_zeros(len(X), position, X.shape[-1]), X], dim=1)
        given: dict[str, Any] = {} if rotary is None else {"position_embeddings": rotary}
        needed = [p.name for p in self._takes.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        given |= dict.fromkeys(needed[1:])
        if "state" in given:
            given["state"] = DecoderState(X, None, (None,) * (int(self.name.rpartition(".")[2]) + 1))
        if self.is_cross and "encoder_hidden_states" in self._takes:
            given["encoder_hidden_states"] = X
        edits = {**(edits or {}), **({f"{self.name}.attention": zero()} if self.is_cross else {})}
        with without_edits(), record(values=True, states=True) as trace, intervene(edits):
            try:
                self._layer(X, **given)
            except (AttributeError, IndexError, RuntimeError, TypeError) as error:
                if self.site not in trace:  # else what follows has no float64
                    more = f"{type(self._layer).__name__}, which needs more than a state"
                    raise ValueError(f"site {self.site!r}: expected a layer that runs alone, got {more}") from error
        if not isinstance(trace[self.site].source, Projected):
            raise ValueError(f"site {self.site!r}: expected queries and keys, got a layer that gives whole maps")
        return trace

    def read(self, what: str, head: int, position: int = 0) -> Callable[[Tensor], Tensor]:
        """Return the function of vectors (batch, d) that gives queries, keys or values of a head at a position."""

        def function(X: Tensor) -> Tensor:
            call = self.run(X, position)[self.site]
            source: Tensor = call.values if what == "values" else getattr(call.source, what)
            return source[:, head // (call.num_heads // source.shape[1]), -1]

        return lambda X: torch.cat([function(rows) for rows in X.split(max(1, _TOKENS // (position + 1)))])

    def _rotary(self, position: int) -> Any:
        """Return what a layer of transformers is given to rotate its queries and keys; None without."""
        module = next((part for path, part in self._model.named_modules() if path.endswith("rotary_emb")), None)
        if module is None or "position_embeddings" not in self._takes:
            return None
        at = torch.tensor([[position]], device=self.device)
        try:
            return copy.deepcopy(module).to(self.device)(torch.zeros(1, 1, 1, device=self.device, dtype=self.dtype), at)
        except (AttributeError, IndexError, RuntimeError, TypeError) as error:
            kind = type(module).__name__
            raise ValueError(
                f"site {self.site!r}: expected one rotation of all layers, got {kind}, which needs more than positions"
            ) from error


def linear_map(function: Callable[[Tensor], Tensor], width: int) -> Float[Tensor, "outputs width"]:
    """Return W of a function W n(x) + b of rows x, where n divides by a standard deviation or length, or is absent.

    W is exact: it is found from as many orthogonal vectors as x is wide, and tried on others. Gains and means of the
    norm are part of it (Elhage 2021, "Handling layer normalization"). ValueError if the function is another.
    """
    size = 64.0  # so large that what a norm adds to a variance is nothing
    places = torch.arange(width, dtype=torch.float64)
    basis = torch.cos(torch.pi / width * (places + 0.5) * places[:, None]) * (2 / width) ** 0.5  # orthogonal (DCT)
    basis[0] /= 2**0.5  # the constant vector, which some norms take away
    draw = torch.Generator().manual_seed(0)
    others = torch.randn(4, width, dtype=torch.float64, generator=draw)
    others = others - others.mean(dim=-1, keepdim=True)
    others *= size / others.square().mean(dim=-1, keepdim=True).sqrt()
    rows = torch.cat([torch.zeros(1, width), size * width**0.5 * basis, others, 2 * others])
    found = function(rows).cpu().double()
    made = found - found[0]
    W = made[1 : width + 1].T @ basis / (size * width**0.5)
    once, twice = made[width + 1 :].chunk(2)
    scale = made.abs().max()
    is_normed = bool((twice - once).abs().max() <= _ROUNDING * scale)
    is_doubled = is_normed or (twice - 2 * once).abs().max() <= _ROUNDING * scale
    if not is_doubled or (others @ W.T - once).abs().max() > _ROUNDING * scale:
        raise ValueError("expected a linear function, or one after a norm, got one that normalises or rounds its own")
    return W * size if is_normed else W


def linear_parts(
    function: Callable[[Tensor], Tensor], parts: Float[Tensor, "parts d"], value: Float[Tensor, " outputs"]
) -> tuple[float, Float[Tensor, "parts outputs"] | None]:
    """Return what each part adds to the value of W n(sum of parts) + b, with the scale of the norm n held.

    b goes to the first part. None if that is not what the function gives, up to the rounding of the value; before it,
    by how much the function misses the value.
    """
    rounding = max(_ROUNDING, 500 * min(torch.finfo(value.dtype).eps, 1e-4))
    best, least, missed = None, _ROUNDING, torch.inf
    for centred in (False, True):
        shifted = parts - parts.mean(dim=-1, keepdim=True) if centred else parts
        sizes = shifted.square().mean(dim=-1, keepdim=True).sqrt()
        units = parts / sizes.where(sizes > 0, 1)
        rows = torch.cat([torch.zeros_like(parts[:1]), parts.sum(0, keepdim=True), units])
        bias, whole, *made = double(function(rows))
        added = (torch.stack(made) - bias) * sizes.to(bias)
        total, whole_value = added.sum(dim=0), double(value).to(bias)
        added = added * (total @ (whole - bias)) / (total @ total)
        size = whole.abs().max()
        error = float((added.sum(dim=0) + bias - whole).abs().max() / size)
        missed = float((whole - whole_value).abs().max() / size)
        if error <= least and missed <= rounding:
            added[0] += whole_value - added.sum(dim=0)  # the bias, and rounding
            best, least = added, error
    return missed, best


def modules_outside(model: nn.Module, stack: str) -> dict[str, Any]:
    """Return the modules outside the layers by path, those of this stack alone if the model has two."""
    layers = layers_by_name(model)
    inside = {part for layer in layers.values() for part in layer.modules()}
    found = {path: part for path, part in model.named_modules() if part not in inside}
    several = len({name.partition(".")[0] for name in layers}) > 1
    shared = {path: part for path, part in found.items() if "encoder" not in path and "decoder" not in path}
    own = {path: part for path, part in found.items() if path in shared or stack_of(path) == stack}
    return own if several else found


def token_table(model: nn.Module, width: int, stack: str) -> Float[Tensor, "vocab d"]:
    """Return the embedding of each token; ValueError if there is no table of this width."""
    own = getattr(model, "get_input_embeddings", lambda: None)()
    found = modules_outside(model, stack).items()
    tables = [part for path, part in found if isinstance(part, nn.Embedding) and "pos" not in path]
    tables = [part for part in ([own] if own in tables else tables) if part.embedding_dim == width]
    if not tables:
        raise ValueError(f"model: expected a table of tokens {width} wide, got none")
    return tables[0].weight.detach()


def direct_logits(model: nn.Module, stack: str, vocab: int, direction: Float[Tensor, " d"]) -> Float[Tensor, " vocab"]:
    """Return what a direction of the stream adds to each logit, by the last norm and the output layer.

    ValueError if more than a norm is between the last layer and the output layer.
    """
    width, outside = len(direction), modules_outside(model, stack)
    linears = [part for part in outside.values() if isinstance(part, nn.Linear) and part.in_features == width]
    norms = norms_among((part for path, part in outside.items() if "emb" not in path), direction)
    is_read = stack == "encoder" and any(name.startswith("decoder.") for name in layers_by_name(model))
    if is_read or len(norms) > 1 or [part.out_features for part in linears] != [vocab]:
        raise ValueError("model: expected a stack with at most a norm before one output layer, got other layers there")
    if norms:
        direction = linear_map(norms[0].cpu(), width).to(direction) @ direction
    return linears[0].weight.detach().to(direction) @ direction


def split_embedding(
    model: nn.Module, stack: str, x: Float[Tensor, " d"], places: tuple[int, int]
) -> dict[str, Tensor] | None:
    """Return what the tables of a model add to the embedding of a token: "token", "position", "segment".

    None unless there are other tables than that of tokens, and some rows of them make this embedding. `places` are
    those of the token, counted with and without the padding before it.
    """
    width, outside = len(x), modules_outside(model, stack)
    try:
        tokens = token_table(model, width, stack).to(x.device)
    except ValueError:
        return None
    tables = [part.weight for part in outside.values() if isinstance(part, nn.Embedding)]
    tables += [part.P[0] for part in outside.values() if hasattr(part, "P")]  # our sinusoids
    tables = [table.detach().to(x.device) for table in tables if table.shape[-1] == width]
    tables = [table.to(x) for table in tables if table.shape != tokens.shape]
    if not tables:
        return None
    # Some tables begin with padding.
    candidates = [*dict.fromkeys(place + offset for place in places for offset in range(3))]
    rows = [[i for i in candidates if i < len(table)] if len(table) > 4 else range(len(table)) for table in tables]
    norms = [nn.Identity(), *norms_among((part for path, part in outside.items() if "emb" in path), x)]

    def made(chosen: tuple[int, ...], scale: float, norm: nn.Module) -> tuple[Any, Tensor]:
        added = torch.stack([table[i] for table, i in zip(tables, chosen, strict=True)])
        few = slice(None if norms.index(norm) else 16)  # without a norm some components find the token
        found = norm(scale * tokens[:, few].to(x) + added.sum(dim=0)[few])
        own = scale * tokens[int((found - x[few]).abs().amax(dim=-1).argmin())].to(x)
        return (norm, torch.stack([0 * x, own, *added])), norm(own + added.sum(dim=0))

    best = closest((made(*each) for each in product(product(*rows), (1.0, width**0.5), norms)), x, tokens.dtype)
    names = ["token", *("position" if len(table) > 4 else "segment" for table in tables)]
    return None if best is None else dict(zip(names, hold_scale(*best)[1:], strict=True))
