"""What is seen inside the model while it learns, and kept."""
