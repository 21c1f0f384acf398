"""The documentation is true: commands print what it shows, links lead somewhere, and nothing is left out.

Every page runs in a scratch folder of its own. A block that cannot run carries a comment with the reason.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest

from linkwatch_pipeline.adapters.alarms.documents import alarm_document
from linkwatch_pipeline.adapters.home import FixtureMark
from linkwatch_pipeline.adapters.store.rows import JOBS
from linkwatch_pipeline.adapters.warehouse import schema
from linkwatch_pipeline.adapters.warehouse.schema import COLUMNS
from linkwatch_pipeline.bootstrap import make_home
from linkwatch_pipeline.domain import health
from linkwatch_pipeline.domain.alarms import Alarm, AlarmKind
from linkwatch_pipeline.domain.findings import Suspicion
from linkwatch_pipeline.domain.links import LinkState
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.page_hints import PageHint
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.recording import RecordKind
from linkwatch_pipeline.domain.runs import JobStatus, RunState
from linkwatch_pipeline.domain.service_status import Service
from linkwatch_pipeline.entrypoints.cli import linkwatch
from linkwatch_pipeline.entrypoints.cli.documents import job_document, past_trouble_document
from linkwatch_pipeline.entrypoints.cli.letter_documents import redriven_document, stray_document
from linkwatch_pipeline.entrypoints.cli.status_documents import shown_status_document
from linkwatch_pipeline.ports import StrayLetter
from linkwatch_pipeline.settings import Settings, load_settings
from linkwatch_pipeline.use_cases.health_history import Mishap, PastTrouble
from linkwatch_pipeline.use_cases.redrive import Redriven
from linkwatch_pipeline.use_cases.show_status import ShownStatus
from linkwatch_pipeline_tests.builders import MONDAY, RUN_ID, a_job, a_link
from linkwatch_pipeline_tests.pages import DEMO_HOME, ROOT, Block, Demo, Shell, blocks, matches, pages, steps
from linkwatch_pipeline_tests.patience import as_released
from linkwatch_pipeline_tests.ports import reserved_port

DOCS = ROOT / "docs"
# Dated records of what was seen, with commands that take minutes: their links are checked, their blocks are not run.
RECORDS = {DOCS / "observed-run.md", DOCS / "performance.md", DOCS / "scan-compared.md"}
RUN = ("console", "bash", "python")
CHECKED = ("toml", "json", "mermaid")

MISSED = PastTrouble(run_id=RUN_ID, what=Mishap.MISSED, intended_at=MONDAY, noticed_at=None)
ALARM = Alarm(id="1", kind=AlarmKind.UNHEALTHY, source="health", at=MONDAY, since=MONDAY)

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def to_run() -> list[Path]:
    """The pages that show commands or examples."""
    live = [page for page in pages() if page not in RECORDS]
    return [page for page in live if any(block.language in RUN and not is_skipped(block) for block in blocks(page))]


def is_skipped(block: Block) -> bool:
    return block.mark is not None and block.mark[0] == "not run"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """One that no other program uses."""
    with reserved_port() as port:
        yield port


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, port: int) -> Demo:
    """The demo, played on that port."""
    folder = tmp_path_factory.mktemp("demo")
    home = make_home(folder / DEMO_HOME, env={}, fixture=FixtureMark(pairs=(("127.0.0.1", port),), story=True))
    code, printed = Shell(folder, port=port).run("linkwatch demo")
    assert code == 0, printed
    return Demo(home=home.folder, printed=printed)


def begins_with_demo(page: Path) -> bool:
    return any(block.mark == ("begins with", "the demo's home") for block in blocks(page))


@pytest.mark.parametrize("page", to_run(), ids=page_id)
def test_every_command_and_example_of_a_page_does_what_the_page_shows(
    page: Path, tmp_path: Path, port: int, request: pytest.FixtureRequest
) -> None:
    uses_demo = begins_with_demo(page) or any("$ linkwatch demo" in block.lines for block in blocks(page))
    played: Demo | None = request.getfixturevalue("demo") if uses_demo else None
    shell = Shell(tmp_path, port=port, played=played)
    if begins_with_demo(page):
        shell.run("linkwatch demo")
    try:
        for block in blocks(page):
            if not is_skipped(block):
                run_block(block, shell)
    finally:
        shell.end()


def run_block(block: Block, shell: Shell) -> None:
    if block.language == "python":
        shell.run_python(block.text, block.place)
    elif block.language in ("console", "bash"):
        for step in steps(block):
            with as_released() if "(timeout)" in "".join(step.output) else nullcontext():
                code, printed = shell.run(step.command)
            assert code == step.code, f"{block.place}: {step.command}\n{printed}"
            if step.output:
                assert matches(step.output, printed), f"{block.place}: {step.command}\n{printed}"


def test_no_block_escapes_the_tests() -> None:
    for page in pages():
        assert page.read_text(encoding="utf-8").count("\n```") % 2 == 0, page
        for block in blocks(page) if page not in RECORDS else ():
            assert block.language in RUN + CHECKED, f"{block.place}: say what kind of block this is"


def test_settings_json_and_diagrams_on_pages_are_well_formed(tmp_path: Path) -> None:
    for block in (block for page in pages() if page not in RECORDS for block in blocks(page)):
        if block.language == "toml":
            (tmp_path / "linkwatch.toml").write_text(block.text, encoding="utf-8")
            load_settings(tmp_path / "linkwatch.toml", env={})
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "mermaid":
            assert block.lines[0].split()[0] in ("flowchart", "sequenceDiagram", "stateDiagram-v2"), block.place


@pytest.mark.parametrize(
    ("expected", "printed", "fits"),
    [
        (["sent 1, to .../mail"], "sent 1, to somewhere/mail\n", True),
        (["sent 1, to .../mail"], "sent 2, to somewhere/mail\n", False),
        (["at 2026-09-28T09:00:00Z"], "at   2027-01-04T09:12:13.5Z\n", True),
        (["one", "...", "four"], "one\ntwo\nthree\nfour\n", True),
        (["one", "...", "four"], "one\nfour\n", True),
        (["one"], "one\ntwo\n", False),
        (["one", "two"], "one\n", False),
        (["a.c"], "abc\n", False),
    ],
)
def test_output_is_compared_except_for_what_differs_each_time(expected: list[str], printed: str, fits: bool) -> None:
    assert matches(expected, printed) is fits


@pytest.mark.parametrize("page", [*pages(), ROOT / "CHANGELOG.md"], ids=page_id)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(without_blocks(page)):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page_id(page)}: {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page_id(page)}: {target}"


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_files_that_a_page_names_exist(page: Path) -> None:
    for name in _CODE.findall(without_blocks(page)):
        if re.fullmatch(r"(linkwatch_pipeline|linkwatch_pipeline_tests|docs)/[\w./-]*", name):
            assert (ROOT / name).exists(), f"{page_id(page)} names {name}"


def test_every_page_is_listed_in_the_table_of_contents() -> None:
    listed = {
        (DOCS / target.partition("#")[0]).resolve() for target in _LINK.findall(without_blocks(DOCS / "README.md"))
    }
    decisions = set((DOCS / "decisions").glob("*.md")) - {DOCS / "decisions" / "README.md"}
    assert set(DOCS.rglob("*.md")) - decisions - RECORDS - {DOCS / "README.md"} <= listed


def test_commands_and_options_are_documented() -> None:
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    groups: dict[str, click.Command] = {"linkwatch": linkwatch}
    groups.update(commands_of(linkwatch, "linkwatch"))
    assert {heading for heading in headings(text, 2) if heading.startswith("linkwatch")} == set(groups)
    for heading, command in groups.items():
        options = {
            name
            for parameter in command.params
            if isinstance(parameter, click.Option)
            for name in (*parameter.opts, *parameter.secondary_opts)
        }
        documented = {code.split()[0] for cell in first_cells(section(text, heading)) for code in _CODE.findall(cell)}
        assert documented == options, heading


def commands_of(group: click.Group, name: str) -> dict[str, click.Command]:
    """Every command below a group, by the words one types."""
    found: dict[str, click.Command] = {}
    for word, command in group.commands.items():
        found[f"{name} {word}"] = command
        if isinstance(command, click.Group):
            found |= commands_of(command, f"{name} {word}")
    return found


def test_settings_are_documented_with_their_variables_and_defaults() -> None:
    rows = table_rows((DOCS / "reference" / "settings.md").read_text(encoding="utf-8"))
    documented = {tuple(_CODE.findall(cell)[0] for cell in row[:3]) for row in rows}
    defaults = Settings()
    assert documented == {
        (key.name, f"LINKWATCH_{key.name.upper()}", json.dumps(getattr(defaults, key.name))) for key in fields(Settings)
    }
    example = next(block for block in blocks(DOCS / "reference" / "settings.md") if block.language == "toml")
    assert set(tomllib.loads(example.text)) == {key.name for key in fields(Settings)}


JOBS_WITHOUT_OBSERVATION = {
    Reason.HOST_THROTTLED,
    Reason.STALLED,
    Reason.DEAD_LETTER,
    Reason.POISON,
    Reason.LINK_DAMAGED,
    Reason.CONFIG_CHANGED,
    Reason.SEQUENCE_TAKEN,
    Reason.RETIRED,
}


@pytest.mark.parametrize(
    ("heading", "values"),
    [
        ("Outcomes", set(Outcome)),
        ("Reasons of observations", set(Reason) - JOBS_WITHOUT_OBSERVATION),
        ("Page hints", set(PageHint)),
        ("Reasons of jobs without an observation", JOBS_WITHOUT_OBSERVATION),
        ("Link states", set(LinkState)),
        ("Results of recording", set(RecordKind)),
        ("Job statuses", set(JobStatus)),
        ("Run states", set(RunState)),
        ("Notice statuses", set(NoticeStatus)),
    ],
)
def test_every_value_of_a_closed_list_is_documented(heading: str, values: set[str]) -> None:
    text = (DOCS / "reference" / "reasons.md").read_text(encoding="utf-8")
    assert names_in_first_column(section(text, heading)) == {str(value) for value in values}


def test_every_health_finding_is_documented_with_its_severity() -> None:
    found = {}
    modules = sorted(Path(health.__file__).parent.glob("health*.py"))
    for call in (node for module in modules for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Finding":
            words = {word.arg: word.value for word in call.keywords}
            code, severity = words["code"], words["severity"]
            assert isinstance(code, ast.Constant)
            assert isinstance(severity, ast.Attribute)
            found[str(code.value)] = severity.attr.lower()
    rows = table_rows(section((DOCS / "health.md").read_text(encoding="utf-8"), "Findings"))
    assert {row[0].strip("`"): row[1] for row in rows} == found


def test_assets_and_their_checks_schedules_and_sensors_are_documented() -> None:
    from linkwatch_pipeline.definitions import defs

    page = DOCS / "explanation" / "one-week.md"
    text = page.read_text(encoding="utf-8")
    graph = defs.resolve_asset_graph()
    checks = {(check.name, check.asset_key.to_user_string()) for check in graph.asset_check_keys}
    documented = {
        (_CODE.findall(row[0])[0], _CODE.findall(row[1])[0]) for row in table_rows(section(text, "Asset checks"))
    }
    assert documented == checks
    words = set(re.findall(r"\w+", text)) | set(
        re.findall(r"\w+", (DOCS / "howto" / "run-a-week.md").read_text("utf-8"))
    )
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} <= words
    assert {sensor.name for sensor in defs.sensors or ()} <= words
    assert "weekly_check" in words


def test_tables_and_columns_of_the_database_are_documented() -> None:
    schema = "".join(
        file.read_text(encoding="utf-8")
        for file in sorted((ROOT / "linkwatch_pipeline" / "adapters" / "store" / "migrations").glob("*.sql"))
    )
    tables = {
        name: re.findall(r"^    ([a-z_0-9]+) [A-Z]", body, re.MULTILINE)
        for name, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", schema, re.DOTALL)
    }
    for name, column in re.findall(r"^ALTER TABLE (\w+) ADD COLUMN (\w+)", schema, re.MULTILINE):
        tables[name].append(column)
    text = (DOCS / "reference" / "storage.md").read_text(encoding="utf-8")
    documented = {row[0].strip("`"): _CODE.findall(row[2]) for row in table_rows(section(text, "The database"))}
    assert documented == tables
    assert set(tables["jobs"]) == set(JOBS.columns)  # the schema was read rightly
    assert list(COLUMNS) == tables["observations"]


def test_columns_of_the_warehouse_are_documented() -> None:
    text = (DOCS / "reference" / "warehouse.md").read_text(encoding="utf-8")
    observations = section(text, "Columns of observations")
    assert {row[0].strip("`"): row[1] for row in table_rows(observations) if len(row) == 3} == COLUMNS
    in_file = {row[0].strip("`") for row in table_rows(observations) if len(row) == 2}
    assert in_file >= set(schema.STORED) - set(COLUMNS)
    others = {
        row[0].strip("`"): _CODE.findall(row[1]) for row in table_rows(section(text, "Columns of the other files"))
    }
    assert others == {
        "transitions": [*schema.TRANSITIONS, "week"],
        "notices": [*schema.NOTICES, "week"],
        "summaries": list(schema.SUMMARY),
        "links": list(schema.LINKS),
        "pages": list(schema.PAGES),
    }
    assert f"(now `{schema.SCHEMA_VERSION}`)" in text


def test_every_suspicion_is_explained() -> None:
    text = (DOCS / "explanation" / "counting-rules.md").read_text(encoding="utf-8")
    assert set(Suspicion) <= names_in_first_column(text)


A_MOMENT = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)
A_SERVICE = ShownStatus(
    service=Service(id="s", user_id="u", name="api", url="https://api.example.com"), seen=None, source=None
)


def test_fields_of_json_documents_are_documented(tmp_path: Path, demo: Demo, port: int) -> None:
    shell = Shell(tmp_path, port=port, played=demo)
    shell.run("linkwatch demo")

    def read(command: str) -> Any:
        code, out, err = shell.run_here(f"{command} --json")
        assert code == 0, err
        return json.loads(out)

    home = f"linkwatch --home {DEMO_HOME}"
    history, run = read(f"{home} inspect"), read(f"{home} inspect --run 2026-09-14T09:00:00Z")
    week = read(f"{home} run --week 2026-09-14")
    recorded = read("linkwatch record loose https://docs.example.com/loose --sequence 0 --status 404")
    verdict = read("linkwatch health")
    assert shell.run("linkwatch update loose --owner docs-team --notify docs-team@example.com")[0] == 0
    assert shell.run('linkwatch mute loose --until $(date -d "+9 days" +%F) --reason known')[0] == 0
    delivered, report = read("linkwatch deliver"), read(f"{home} report")
    (tmp_path / "events").mkdir()
    events = read("linkwatch mail-events events")
    observation = set(history["observations"][0])
    expected = {
        "links": set(history["links"][0]),
        "inspect": set(history) | observation | set(history["transitions"][0]),
        "outbox": set(history["outbox"][0]),
        "inspect --run": set(run) | set(run["run"]) | set(run["hosts"][0]),
        "run and resume": set(week),
        "check and record": set(recorded) - observation,
        "deliver": set(delivered),
        "dead-letters": set(stray_document(StrayLetter(letter_id="m", problem="p", beginning="b")))
        | set(job_document(a_job(a_link()), None))
        | set(redriven_document(Redriven(jobs=[], refused={})))
        | {"discarded"},
        "mail-events": set(events),
        "mutes": set(read("linkwatch mutes")[0]),
        "report": set(report) | set(report["this_week"]),
        "health": set(verdict) | set(verdict["findings"][0]),
        "health --history": set(past_trouble_document(MISSED)),
        "alarm": set(alarm_document(ALARM)),
        "generate-history": set(read("linkwatch --home made generate-history --links 5 --weeks 1")),
        "simulate": set(read("linkwatch simulate --links 60 --hosts 10 --busiest 12")),
        "demo": set(read("linkwatch demo")),
        "status show": set(shown_status_document(A_SERVICE, now=A_MOMENT)),
    }
    text = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
    assert {heading: names_in_first_column(section(text, heading)) for heading in headings(text, 2)} == expected
    assert set(week["runs"][0]) == set(run["run"])
    assert set(run["transcript"][0]) <= set(_CODE.findall(section(text, "inspect --run")))


def test_words_of_the_architecture_have_one_entry_each_in_the_glossary() -> None:
    entries = headings((DOCS / "glossary.md").read_text(encoding="utf-8"), 2)
    assert entries == sorted(set(entries), key=str.lower)
    assert {
        "check job", "weekly run", "observation", "outcome", "reason", "transition", "notice", "mail", "host lease",
        "claim", "fetch policy", "delivery policy", "host record", "chain", "head", "tick", "retry run", "home",
        "fixture home", "story",
    } <= set(entries)  # fmt: skip


@pytest.mark.parametrize("page", [*pages(), ROOT / "CHANGELOG.md"], ids=page_id)
def test_no_page_names_a_folder_of_somebody_s_machine(page: Path) -> None:
    assert not re.search(r"(?<![\w.])/(tmp|home|root|work|Users)/", page.read_text(encoding="utf-8"))


def without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def headings(text: str, level: int) -> list[str]:
    return re.findall(rf"^{'#' * level} (.+)$", text, re.MULTILINE)


def section(text: str, heading: str) -> str:
    """What stands under a heading of the second level."""
    _, found, after = f"\n{text}".partition(f"\n## {heading}\n")
    assert found, heading
    return after.partition("\n## ")[0]


def table_rows(text: str) -> list[list[str]]:
    """The rows of all tables, without their headers."""
    lines = text.splitlines()
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
        if line.startswith("|") and not line.startswith("|-") and not following.startswith("|-")
    ]


def first_cells(text: str) -> Iterator[str]:
    return (row[0] for row in table_rows(text))


def names_in_first_column(text: str) -> set[str]:
    return {code for cell in first_cells(text) for code in _CODE.findall(cell)}


def anchors(page: Path) -> set[str]:
    """The anchors that a forge makes of headings."""
    found = re.findall(r"^#+ (.+)$", without_blocks(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}
