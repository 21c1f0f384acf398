"""The excerpt of a real handbook, as if all its links had moved: every patch applies, and every link is found again."""

from __future__ import annotations

from pathlib import Path

from linkwatch_pipeline_tests.handbook_moves import all_moved, found_link, found_urls, patch_and_scan

EXCERPT = Path(__file__).parents[1] / "data" / "handbook" / "18f"


def test_every_link_of_the_excerpt_can_be_moved_where_its_line_holds_it(tmp_path: Path) -> None:
    found = found_urls(EXCERPT)
    links = {link.id: link for link in map(found_link, found)}
    made = patch_and_scan(EXCERPT, tmp_path / "copy", all_moved(found), links)
    places = sum(len(each.places) for each in found)
    assert len(made.patched) + len(made.unpatched) == places
    assert len(made.patched) >= 0.9 * places
    # By name of another line, or without a scheme: a person has to look.
    assert {(move.file or "").rpartition("/")[2] for move in made.unpatched} == {"google-groups.md", "resume.md"}
