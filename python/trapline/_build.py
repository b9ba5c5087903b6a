"""``python -m trapline._build --out DIR``: compile what fits the torch of this Python only.

That is the guard's adapter, or with ``--cpu`` the device of ``trapline run --cpu``. ``--frames`` makes the
part of the adapter that fits one Python only, to be brought along beside those of ``scripts/adapters.sh``; it
takes no torch.
"""

from __future__ import annotations

import argparse
import os
import sys

from trapline._extension import compiler


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m trapline._build", description="Compile what fits the running torch only."
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the libraries")
    parser.add_argument("--cpu", action="store_true", help="the device of --cpu instead of the guard")
    parser.add_argument("--frames", action="store_true", help="the guard's part for this Python alone")
    arguments = parser.parse_args()
    try:
        product = compiler.FRAMES if arguments.frames else compiler.GUARD
        if arguments.cpu:
            from trapline._cpu import backend

            product = backend.PRODUCT
        if not os.path.isfile(os.path.join(arguments.out, compiler.adapter_name(product))):
            says = f"trapline: building the {product.says}: about {product.seconds} s of one core"
            print(says, file=sys.stderr, flush=True)
        print(compiler.build(arguments.out, product))
    except compiler.BuildError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
