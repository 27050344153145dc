"""The network, read from top to bottom: transformer, layers, attention, taps."""
