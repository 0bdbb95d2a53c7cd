"""What every position scheme of the register must do, a new one too."""

from itertools import chain

import pytest
import torch
from torch import Tensor, nn

from viz_core.attention import MultiHeadAttention
from viz_core.positional import BY_NAME, SCHEMES
from viz_core.positional.entry import PositionScheme, SchemeCost, SchemeEntry, SchemeSizes
from viz_core.runtime.registry import find_entries

LENGTH, WIDTH, HEADS = 6, 16, 2
SIZES = {
    "shared": SchemeSizes(LENGTH, WIDTH, HEADS, 2, 3),
    "per head": SchemeSizes(LENGTH, WIDTH, HEADS, 2, 3, per_head=True, max_distance=2, num_buckets=8),
}

every_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
every_size = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)


def modules(scheme: SchemeEntry, sizes: SchemeSizes) -> list[nn.Module]:
    """What the scheme learns: the layer at the input, the module inside attention."""
    made = [scheme.make(sizes), scheme.make_input and scheme.make_input(sizes.num_tokens, sizes.num_hiddens)]
    return [module for module in made if isinstance(module, nn.Module)]


class Layer(nn.Module):
    """Causal self-attention under a scheme, whole or step by step."""

    def __init__(self, scheme: SchemeEntry, sizes: SchemeSizes = SIZES["shared"]) -> None:
        super().__init__()
        self.input = scheme.make_input(sizes.num_tokens, sizes.num_hiddens) if scheme.make_input else None
        self.attention = MultiHeadAttention(sizes.num_hiddens, sizes.num_heads, positions=scheme.make(sizes))

    def embed(self, X: Tensor, offset: int = 0) -> Tensor:
        return X if self.input is None else self.input(X, offset)

    def forward(self, X: Tensor, valid_lens: Tensor | None = None, causal: bool = False) -> Tensor:
        X = self.embed(X)
        return self.attention(X, X, X, valid_lens, causal=causal)


def test_two_entries_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = SchemeEntry("none", -1, "", "nowhere", "nothing", True, lambda _: SchemeCost())
    monkeypatch.setattr("viz_core.positional.entry.TWICE", twice, raising=False)
    with pytest.raises(ValueError, match="name: expected each once in viz_core.positional, got none twice"):
        find_entries("viz_core.positional", SchemeEntry)


@every_scheme
def test_where_it_enters_is_what_it_makes(scheme: SchemeEntry) -> None:
    made = scheme.make(SIZES["shared"])
    assert (scheme.make_input is not None) == (scheme.enters == "input")
    assert (type(made).rotate is not PositionScheme.rotate) == (scheme.enters == "rotation")
    assert (type(made).bias is not PositionScheme.bias) == (scheme.enters == "scores")
    assert (scheme.enters == "nowhere") == (scheme.depends_on == "nothing")
    assert scheme.formula


@every_size
@every_scheme
def test_the_cost_counts_its_parameters(scheme: SchemeEntry, sizes: SchemeSizes) -> None:
    parameters = chain.from_iterable(module.parameters() for module in modules(scheme, sizes))
    assert scheme.cost(sizes).parameters == sum(parameter.numel() for parameter in parameters)
    assert scheme.cost(sizes).stored >= scheme.cost(sizes).parameters


def test_memory_by_hand() -> None:
    sizes = SIZES["shared"]
    assert BY_NAME["none"].cost(sizes) == SchemeCost(0, 0, 0)
    assert BY_NAME["sinusoidal"].cost(sizes).stored_bytes == 4 * 6 * 16
    assert BY_NAME["rotary"].cost(sizes) == SchemeCost(0, 6 * 8, 0)  # 6 positions, 4 pairs, a cosine and a sine
    assert BY_NAME["alibi"].cost(sizes) == SchemeCost(0, 2, 2 * 6 * 6)
    assert BY_NAME["relative"].cost(sizes).computed_bytes == 4 * 2 * 6 * 11
    assert BY_NAME["relative-2d"].cost(sizes).computed == 2 * 6 * 3 + 2 * 6 * 5 + 2 * 6 * 6


@every_size
@every_scheme
def test_a_batch_of_padded_rows_is_each_row_by_itself(scheme: SchemeEntry, sizes: SchemeSizes) -> None:
    layer, X = Layer(scheme, sizes), torch.randn(3, LENGTH, WIDTH)
    lengths = torch.tensor([LENGTH, 4, 1])
    out = layer(X, lengths)
    assert out.shape == X.shape
    assert out.isfinite().all()
    if scheme.depends_on == "grid-offset":  # a grid has no shorter row
        return
    for row, length in enumerate(lengths.tolist()):
        alone = layer(X[row : row + 1, :length])
        torch.testing.assert_close(out[row, :length], alone[0], atol=1e-5, rtol=0)


@every_scheme
def test_decoding_step_by_step_equals_the_whole_pass(scheme: SchemeEntry) -> None:
    if scheme.depends_on == "grid-offset":
        pytest.skip("a grid is read at once")
    layer, X = Layer(scheme), torch.randn(2, LENGTH, WIDTH)
    whole = layer(X, causal=True)
    keys: list[Tensor] = []
    values: list[Tensor] = []
    for step in range(LENGTH):
        x = layer.embed(X[:, step : step + 1], step)
        projected = layer.attention.project(x, x, step)
        keys.append(projected.keys)
        values.append(projected.values)
        cache = type(projected)(torch.cat(keys, dim=2), torch.cat(values, dim=2))
        torch.testing.assert_close(layer.attention.attend_to(x, cache), whole[:, step : step + 1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@every_scheme
def test_half_precision_is_the_same_rounded(scheme: SchemeEntry, dtype: torch.dtype) -> None:
    layer, X = Layer(scheme), torch.randn(1, LENGTH, WIDTH)
    expected = layer(X)
    half = layer.to(dtype)(X.to(dtype))
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), expected, atol=0.05, rtol=0)


@every_size
@every_scheme
def test_every_parameter_and_the_tokens_have_a_gradient(scheme: SchemeEntry, sizes: SchemeSizes) -> None:
    layer, X = Layer(scheme, sizes), torch.randn(2, LENGTH, WIDTH, requires_grad=True)
    layer(X).square().sum().backward()
    assert X.grad is not None
    assert X.grad.abs().max() > 0
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


@every_scheme
@pytest.mark.usefixtures("shapes_unchecked")
def test_it_takes_longer_sequences_if_it_says_so(scheme: SchemeEntry) -> None:
    X = torch.randn(1, LENGTH + 1, WIDTH)
    if not scheme.extrapolates:
        with pytest.raises(ValueError, match="expected"):
            Layer(scheme)(X)
    elif scheme.make_input is None:
        assert Layer(scheme)(X).shape == X.shape
    else:  # a formula, whose table can be as long as wanted
        short, long = (scheme.make_input(n, WIDTH) for n in (LENGTH, LENGTH + 1))
        assert not list(long.parameters())
        assert torch.equal(short(X[:, :LENGTH]), long(X)[:, :LENGTH])
