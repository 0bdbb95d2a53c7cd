"""The attention view: its groups of maps, its state, its bytes, its page; in the app, in a file, in a notebook."""
