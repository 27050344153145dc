"""Text in, batches of ids out."""
