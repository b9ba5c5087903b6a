"""The watch for NaN: in every run (`light.py`, `place.py`) and by `--watch nan` (`thorough.py`)."""
