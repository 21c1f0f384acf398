"""Mails as a phone and a desktop show them, in a real browser without a network: nothing sticks out or is lost."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import timedelta
from html import escape, unescape
from typing import Any

import pytest

from linkwatch_pipeline.domain.links import Delivery, Owner, Place
from linkwatch_pipeline.ports import Mail
from linkwatch_pipeline.use_cases.digests import compose_digest
from linkwatch_pipeline.use_cases.mails import compose
from linkwatch_pipeline_tests.builders import MONDAY
from linkwatch_pipeline_tests.mail_builders import a_notice, a_recovery

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
LONG = "https://docs.example.com/" + "never-a-space/" * 20 + "?query=" + "0123456789" * 30
NOTICES = {
    "broken": a_notice(),
    "recovered": a_recovery(since=MONDAY - timedelta(days=21)),
    "long": a_notice(
        link_id="a" * 80,
        url=LONG,
        owner="team " * 15 + "x",
        places=tuple(Place(file="handbook/" + "x" * 120 + f"-{n}.md", line=n) for n in range(1, 30)),
    ),
    "hostile": a_notice(url='https://a.example/"><script>document.title="owned"</script><img/src=x>'),
}
OWNER = Owner(team="docs-team", address="docs-team@example.com", delivery=Delivery.DIGEST)
DIGESTS = {
    "digest": [NOTICES["broken"], NOTICES["recovered"]],
    "long digest": [NOTICES["long"], NOTICES["hostile"], NOTICES["broken"]],
}
MAILS = [*NOTICES, *DIGESTS]
# Measures each frame and writes what it finds where --dump-dom shows it.
PROGRAM = """
addEventListener("load", () => {
  const found = {};
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, root = page.documentElement;
    found[frame.id] = {
      shown: frame.clientWidth,
      width: root.scrollWidth,
      text: page.body.innerText,
      loaded: frame.contentWindow.performance.getEntriesByType("resource").length,
      smallest: Math.min(...[...page.querySelectorAll("body *")].map(e => parseFloat(getComputedStyle(e).fontSize))),
    };
  }
  document.getElementById("found").textContent = JSON.stringify(found);
});
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the browser measured, by mail and width."""
    if not BROWSER:
        pytest.skip("no Chromium on this machine")
    folder = tmp_path_factory.mktemp("browser")
    frames = "".join(
        f'<iframe id="{name}-{width}" width="{width}" frameborder="0" srcdoc="{escape(html(name))}"></iframe>'
        for name in MAILS
        for width in (360, 1000)
    )
    page = folder / "mails.html"
    page.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><pre id="found"></pre>{frames}<script>{PROGRAM}</script>',
        encoding="utf-8",
    )
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None
    measured = json.loads(unescape(found[1]))
    assert isinstance(measured, dict)
    return measured


def mail(name: str) -> Mail:
    if name in NOTICES:
        return compose(NOTICES[name], OWNER.address, sender="linkwatch@example.com", now=MONDAY)
    return compose_digest(DIGESTS[name], OWNER, mail_id="digest:1", sender="linkwatch@example.com", now=MONDAY)


def html(name: str) -> str:
    """As shown when everything is unfolded."""
    return mail(name).html.replace("<details ", "<details open ")


@pytest.mark.parametrize("width", [360, 1000])
@pytest.mark.parametrize("name", MAILS)
def test_a_mail_fits_the_screen_and_loads_nothing(seen: dict[str, Any], name: str, width: int) -> None:
    frame = seen[f"{name}-{width}"]
    assert frame["shown"] == width
    assert frame["width"] <= width
    assert frame["loaded"] == 0
    assert frame["smallest"] >= 13  # pixels


@pytest.mark.parametrize("name", MAILS)
def test_the_browser_shows_all_that_the_text_says(seen: dict[str, Any], name: str) -> None:
    shown = " ".join(seen[f"{name}-360"]["text"].split())
    for line in mail(name).text.splitlines():
        words = " ".join(re.sub(r"^[A-Z][A-Za-z ]+: {2,}", "", line).split())
        assert words.removeprefix("--") in shown or words.partition(": ")[2] in shown, line
