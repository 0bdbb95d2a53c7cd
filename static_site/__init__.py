"""The Atlas without a server: `make site` writes static pages whose models run in the reader's browser.

The folder is called static_site because `site` is a module of Python's standard library.
"""
