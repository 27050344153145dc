"""What the recorded vectors say: one file a question, and the geometry they share."""
