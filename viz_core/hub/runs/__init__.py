"""One run of a model: what it reads, what it returns, and how its tokens, pictures and sounds are named."""
