"""A run folder on disk, and how it is written so that nothing is ever half there."""
