"""Where cells run: on this machine or on a Ray cluster."""
