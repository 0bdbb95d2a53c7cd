"""What can be seen of a model while it learns, and past what it learned."""
