"""The watch for NaN: by `--watch light` (`light.py`, `place.py`) and by `--watch nan` (`thorough.py`)."""
