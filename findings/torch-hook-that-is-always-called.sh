#!/usr/bin/env bash
# A forward hook with always_call=True is not called where a Streamlit page ends within the model's pass, or after Ctrl-C.
#
# Versions: torch 2.13.0, streamlit 1.67.0, CPU. Run 2026-11-30.
# Guess: `always_call` works as `finally` does: the hook runs however a pass ends, as its documentation says.
# Seen: it runs after a ValueError. After KeyboardInterrupt, and after st.stop() called within the pass (by a hook that looks
# whether the reader has cancelled), it does not: these raise no Exception, and torch catches nothing else. What a
# pre-hook has begun, a recording or a count of passes, stays open for the next pass.
# Output (hooks that ran): ValueError [pre, always], KeyboardInterrupt [pre], stop [pre].
source "$(dirname "$0")/environment.bash"
in_environment torch==2.13.0 numpy==2.4.6 streamlit==1.67.0 <<'PY'
import builtins

from streamlit.testing.v1 import AppTest

found = builtins.found = {}  # where the page finds it: Streamlit gives the script a __main__ of its own
PAGE = """
import builtins
import streamlit as st
from torch import nn, ones

def fail(error):
    raise error

ways = {
    "ValueError": lambda: fail(ValueError()),
    "KeyboardInterrupt": lambda: fail(KeyboardInterrupt()),
    "stop": st.stop,
}
for name, end in ways.items():
    layer, calls = nn.Linear(2, 2), []
    layer.register_forward_pre_hook(lambda *_, calls=calls: calls.append("pre"))
    layer.register_forward_hook(lambda *_, end=end: end())
    layer.register_forward_hook(lambda *_, calls=calls: calls.append("always"), always_call=True)
    try:
        layer(ones(2))
    except BaseException:
        builtins.found[name] = calls
"""

AppTest.from_string(PAGE).run(timeout=60)
print(*(f"{name} {calls}" for name, calls in found.items()), sep=", ")
assert found == {"ValueError": ["pre", "always"], "KeyboardInterrupt": ["pre"], "stop": ["pre"]}
PY
