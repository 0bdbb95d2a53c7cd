"""Controls, charts, the attention view, uploads and sketches: one file a widget."""
