"""Train a small translation Transformer and watch its attention being learned."""
