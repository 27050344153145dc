"""How what was recorded is shown."""
