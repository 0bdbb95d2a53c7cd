"""The Atlas without a server, which `make site` writes; `site` itself is a module of Python's standard library."""
