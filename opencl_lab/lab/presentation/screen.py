"""What is printed: nothing of a stranger's file moves the cursor, colours or hides other text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from opencl_lab.core.wording import visible


class Screen(Console):
    """A console whose texts are neither markup nor control characters; rich's own codes stay."""

    def __init__(self, **how: Any):
        super().__init__(markup=False, highlight=False, emoji=False, **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of an object with visible text."""
        for segment in super().render(renderable, options):
            shown = segment.text if segment.control else visible(segment.text, "\n")
            yield segment._replace(text=shown)
