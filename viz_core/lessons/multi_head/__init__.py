"""Multi-head attention taken apart: inputs, steps, costs."""
