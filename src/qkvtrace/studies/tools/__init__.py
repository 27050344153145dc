"""What studies are made with: words that are followed, heads, curves, sentences about numbers."""
