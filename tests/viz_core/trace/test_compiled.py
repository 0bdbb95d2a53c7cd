"""torch.compile and torch.export: whole where nobody records, refused in a sentence where somebody does."""

import subprocess
import sys

COMPILED = """
import threading, torch
from torch import nn
from viz_core.attention import MultiHeadAttention
from viz_core.hub.custom_attention import add_hooks
from viz_core.models import TransformerEncoder
from viz_core.positional import Rotary
from viz_core.trace import intervene, name_site, off, record

class OwnSoftmax(nn.Module):
    def forward(self, X):
        return (X @ X.mT).softmax(dim=-1) @ X

def refused(run, name):
    try:
        run()
    except Exception as error:
        assert name in str(error) and "torch.compile cannot be recorded" in str(error), error
    else:
        raise AssertionError(name)

def check(model, inputs, name, torch_calls=False):
    expected = model(*inputs)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*inputs), expected)
    with record(torch_calls=torch_calls) as trace:
        refused(lambda: compiled(*inputs), name)
        assert trace.sites == ()
    return compiled, expected

def check_all(model, inputs, name):
    compiled, expected = check(model, inputs, name)
    with record() as trace:
        found = []
        thread = threading.Thread(target=lambda: found.append(compiled(*inputs)))  # which records nothing
        thread.start(), thread.join()
        torch.testing.assert_close(found[0], expected)
    try:
        with intervene({"encoder.0.self": off(0)}):
            refused(lambda: compiled(*inputs), name)
    except ValueError as error:
        assert "there was none" in str(error)
    with record() as trace:
        torch.testing.assert_close(model(*inputs), expected)
    assert trace.sites == ("encoder.0.self",), trace.sites

ids = torch.randint(0, 19, (2, 6)), torch.tensor([6, 3])
check_all(TransformerEncoder(19, 12, 20, 3, 1, 0.0).eval(), ids, "encoder")
own = OwnSoftmax()
name_site(own, "encoder.0.self")
add_hooks(own)
check(own, (torch.randn(1, 2, 3, 4),), "encoder.0.self")
plain = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 1)
check(plain, (torch.randn(2, 5, 8),), "a layer without a name", plain)

layer = MultiHeadAttention(8, 2, positions=Rotary(), num_key_heads=1, window=3).eval()

def inputs(batch, n):
    return (*[torch.randn(batch, n, 8)] * 3, torch.randint(1, n, (batch,)))

batch, n = torch.export.Dim("batch"), torch.export.Dim("n", max=8)
sizes = [{0: batch, 1: n}] * 3 + [{0: batch}]
exported = torch.export.export(layer, inputs(2, 6), dynamic_shapes=sizes).module()
for others in (inputs(2, 6), inputs(3, 8)):
    torch.testing.assert_close(exported(*others), layer(*others))
with record():
    refused(lambda: torch.export.export(layer, inputs(2, 6), dynamic_shapes=sizes), "a layer without a name")
"""


def test_a_compiled_layer_is_refused_in_the_thread_that_records_and_whole_elsewhere() -> None:
    """In an interpreter of its own, without the checks of shapes, which would be compiled along."""
    run = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
