"""What the measures of several claims are made with."""
