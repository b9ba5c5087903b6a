"""A finding below a cell: HTML where the front end has it, the text of the terminal where it has not."""

from __future__ import annotations

from typing import Any

from trapline._library import diagnose


def show(shell: Any, finding: dict[str, Any]) -> None:
    """Shows a finding in the output of the running cell."""
    publish(shell, diagnose.render(finding), diagnose.render_html(finding))


def publish(shell: Any, text: str, html: str) -> None:
    """One output in two forms. A terminal gets the text, in its colours."""
    if not hasattr(shell, "kernel"):
        print("\n" + text.rstrip())
        return
    shell.display_pub.publish({"text/plain": text, "text/html": html} if html else {"text/plain": text})
