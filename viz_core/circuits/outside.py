"""What is outside a model's layers: tables of tokens and positions, the last norm, the output layer."""

from itertools import product
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.circuits.logits import closest, hold_scale, layers_by_name, norms_among
from viz_core.circuits.probes import linear_map
from viz_core.trace import stack_of


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
