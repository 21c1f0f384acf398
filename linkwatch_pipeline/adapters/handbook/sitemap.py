"""Links in sitemaps. Source: sitemaps.org: each page or further sitemap stands in a `<loc>`; `href` names translations.

Document types are refused: entities that expand to billions of characters need one.
"""

from __future__ import annotations

from xml.parsers import expat

from linkwatch_pipeline.domain.handbook import FoundLink


class _Collector:
    def __init__(self) -> None:
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.found: list[FoundLink] = []
        self._pieces: list[str] | None = None
        self._line = 1

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if _local(name) == "loc":
            self._pieces = []
        elif _local(name) == "link" and "href" in attributes:
            self.found.append(FoundLink(text=attributes["href"], line=self.parser.CurrentLineNumber))

    def _characters(self, text: str) -> None:
        if self._pieces is not None:
            if text.strip() and not self._pieces:
                self._line = self.parser.CurrentLineNumber
            if text.strip():
                self._pieces.append(text)

    def _end(self, name: str) -> None:
        if _local(name) == "loc" and self._pieces is not None:
            if self._pieces:
                self.found.append(FoundLink(text="".join(self._pieces).strip(), line=self._line))
            self._pieces = None

    def _doctype(self, *_: object) -> None:
        raise ValueError("it has a document type, which sitemaps do not need and linkwatch does not read")


def sitemap_links(text: str) -> list[FoundLink]:
    """Every address of a sitemap, in order. Raises ValueError for one that cannot be read."""
    collector = _Collector()
    try:
        collector.parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise ValueError(f"not well-formed XML: {error}") from error
    return collector.found


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()
