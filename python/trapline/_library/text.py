"""JSON to and from text by the standard library's classes.

Not by ``json.dumps`` and ``json.loads``: programs put others in their place, which take other arguments and
give bytes (orjson), and a finding must not be lost to that.
"""

from __future__ import annotations

import json

strict = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str).encode
read = json.JSONDecoder().decode
