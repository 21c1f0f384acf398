"""More pages for a small handbook, so that its links lie on hosts as those of a real one do: one with very many."""

from __future__ import annotations

from pathlib import Path

BUSIEST = 40
_LINKS_BY_HOST = (BUSIEST, 16, 12, 8, 6, 5, 4, 3, *[2] * 6, *[1] * 20)
_FOLDERS = ("getting-started", "tools", "travel", "training")


def write_pages(handbook: Path) -> None:
    """Add Markdown files with links; some stand in two folders, whose teams then share them."""
    pages: dict[str, list[str]] = {folder: [] for folder in _FOLDERS}
    number = 0
    for host, count in enumerate(_LINKS_BY_HOST):
        for link in range(count):
            line = f"See [guide {number}](https://www.generated-{host:02d}.example.org/guides/{link}?page={number}).\n"
            pages[_FOLDERS[number % 3]].append(line)
            if number % 9 == 0:
                pages[_FOLDERS[3]].append(line)
            number += 1
    for folder, lines in pages.items():
        file = handbook / "pages" / folder / "generated.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("# Generated\n\n" + "\n".join(lines), encoding="utf-8")
