"""`record inspect outbox deliver`: the durable core without HTTP, and what it shows (SPEC 5, 14)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from email import policy
from email.parser import BytesParser

import pytest

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.observations import body_hash
from linkwatch_pipeline.use_cases.dispatch import dispatch_run
from linkwatch_pipeline_tests.builders import MONDAY, a_link, a_run, dispatched
from linkwatch_pipeline_tests.entrypoints.terminal import SITE, Said, Terminal

OBSERVATION_FIELDS = [
    *("job_id", "run_id", "link_id", "sequence", "config_version", "rules_version", "retry_of", "started_at"),
    *("observed_at", "status", "outcome", "reason", "content_hash", "content_complete", "marker_found", "bytes_read"),
    *("latency_ms", "content_type", "final_url", "redirects", "tls_not_after", "page_hints"),
]
TRANSITION_FIELDS = ["id", "link_id", "from_state", "to_state", "version", "sequence", "job_id", "at"]
NOTICE_FIELDS = [
    *("transition_id", "status", "attempts", "provider_id", "last_error", "next_attempt_at", "run_id", "release_at"),
    "mail_id",
]


def record(terminal: Terminal, sequence: int, status: object, *more: str, link_id: str = "guide") -> Said:
    words = ("record", link_id, SITE, "--sequence", str(sequence), "--status", str(status), *more)
    return terminal.fine(*words)


def record_all(terminal: Terminal, statuses: Sequence[object]) -> None:
    for sequence, status in enumerate(statuses):
        record(terminal, sequence, status)


@pytest.fixture
def registered(fixture_home: Terminal) -> Terminal:
    fixture_home.fine("register", "guide", SITE, "--owner", "docs", "--notify", "docs@example.com")
    return fixture_home


def test_the_classic_proof_holds_and_doing_it_again_changes_nothing(registered: Terminal) -> None:
    record_all(registered, (200, 404, 404, 200))
    records = registered.records()
    assert [o["outcome"] for o in records["observations"]] == ["reachable", "broken", "broken", "reachable"]
    assert [(t["id"], t["to_state"]) for t in records["transitions"]] == [
        ("guide:2", "broken"),
        ("guide:3", "reachable"),
    ]
    assert [(n["transition_id"], n["status"]) for n in records["outbox"]] == [
        ("guide:2", "pending"),
        ("guide:3", "pending"),
    ]
    assert (records["links"][0]["state"], records["links"][0]["version"]) == ("reachable", 3)
    for sequence, status in enumerate((200, 404, 404, 200)):
        assert record(registered, sequence, status).out.startswith("duplicate: ")
    assert registered.records() == records


def test_the_records_have_exactly_the_fields_of_the_contract(registered: Terminal) -> None:
    record_all(registered, (200, 404))
    records = registered.records()
    assert list(records) == ["links", "observations", "transitions", "outbox"]
    assert list(records["observations"][0]) == OBSERVATION_FIELDS
    assert list(records["transitions"][0]) == TRANSITION_FIELDS
    assert list(records["outbox"][0]) == NOTICE_FIELDS
    assert registered.fine("outbox", "--json").document == records["outbox"]
    assert records["observations"][0]["job_id"] == "0:guide"
    assert records["observations"][0]["observed_at"].endswith("Z")


def test_three_ambiguous_answers_have_three_outcomes_and_leave_a_broken_link_broken(registered: Terminal) -> None:
    record_all(registered, (404, "none", 429))
    record(registered, 3, 200, "--not-found")
    records = registered.records()
    seen = [(o["outcome"], o["reason"]) for o in records["observations"][1:]]
    assert seen == [("uncertain", "timeout"), ("throttled", "rate_limited"), ("content_changed", "marker_missing")]
    assert records["links"][0]["state"] == "broken"
    assert len(records["transitions"]) == 1


def test_an_unknown_link_is_created_without_an_owner(fixture_home: Terminal) -> None:
    record(fixture_home, 0, 404, link_id="drill")
    (link,) = fixture_home.fine("links", "--json").document
    assert (link["id"], link["owner"], link["state"]) == ("drill", None, "broken")


def test_json_is_one_document_that_says_what_was_recorded(registered: Terminal) -> None:
    first = record(registered, 0, 404, "--json").document
    assert list(first)[: len(OBSERVATION_FIELDS)] == OBSERVATION_FIELDS
    assert (first["outcome"], first["result"], first["duplicate"]) == ("broken", "applied", False)
    assert first["transition"]["id"] == "guide:1"
    again = record(registered, 0, 404, "--json").document
    assert (again["result"], again["duplicate"], again["transition"]) == ("duplicate", True, None)


def test_an_older_sequence_stays_in_history_and_turns_nothing_back(registered: Terminal) -> None:
    record(registered, 5, 404)
    assert record(registered, 3, 200).out.startswith("history: 3:guide")
    records = registered.records()
    assert [o["sequence"] for o in records["observations"]] == [3, 5]
    assert (records["links"][0]["state"], records["links"][0]["last_sequence"]) == ("broken", 5)


def test_a_body_is_hashed_and_belongs_to_the_content(registered: Terminal) -> None:
    record(registered, 0, 200, "--body", "guide-v1")
    (seen,) = registered.records()["observations"]
    assert seen["content_hash"] == body_hash(b"guide-v1")
    assert seen["bytes_read"] == 8
    again = registered.refused("record", "guide", SITE, "--sequence", "0", "--status", "200", "--body", "guide-v2")
    assert "other content" in again


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--sequence", "-1", "--status", "200"), "-1 is not a sequence"),
        (("--sequence", "true", "--status", "200"), "'true' is not a whole number"),
        (("--sequence", "1.0", "--status", "200"), "'1.0' is not a whole number"),
        (("--sequence", "one", "--status", "200"), "'one' is not a whole number"),
        (("--sequence", "9" * 400, "--status", "200"), "is not a whole number"),
        (("--sequence", "9" * 19, "--status", "200"), "is beyond what a store keeps"),
        (("--sequence", "9" * 10, "--status", "200"), "leaves too few for later checks"),
        (("--sequence", "1", "--status", "2000"), "not an HTTP status"),
        (("--sequence", "1", "--status", "up"), "not an HTTP status"),
        (("--sequence", "1", "--status", "none", "--body", "x"), "no page without an answer"),
        (("--status", "200"), "--sequence"),
    ],
)
def test_a_record_that_makes_no_sense_is_refused_and_nothing_written(
    registered: Terminal, words: tuple[str, ...], problem: str
) -> None:
    record(registered, 0, 200)
    before = registered.records()
    assert problem in registered.refused("record", "guide", SITE, *words)
    assert problem in registered.refused("record", "another", SITE, *words)
    assert registered.records() == before


def test_a_reused_identity_is_refused_and_nothing_written(registered: Terminal) -> None:
    record(registered, 0, 200)
    before = registered.records()
    other = ("record", "guide", "http://127.0.0.1:8765/other", "--sequence", "1", "--status", "200")
    assert "another URL" in registered.refused(*other)
    assert "other content" in registered.refused("record", "guide", SITE, "--sequence", "0", "--status", "404")
    assert registered.records() == before


def test_a_retired_link_takes_no_more_records(registered: Terminal) -> None:
    registered.fine("retire", "guide")
    assert "retired" in registered.refused("record", "guide", SITE, "--sequence", "0", "--status", "200")


def test_a_sequence_that_is_promised_to_a_pending_job_is_refused(registered: Terminal) -> None:
    store = SqliteStore.open(registered.home / "linkwatch.sqlite3")
    try:
        store.save_link(a_link("planned", SITE, owner="docs"), replaces=None)
        (job,) = dispatched(store, [a_link("planned", SITE, owner="docs")])
    finally:
        store.close()
    words = ("record", "planned", SITE, "--sequence", str(job.sequence), "--status", "404")
    assert f"promised to job {job.job_id!r}" in registered.refused(*words)
    assert registered.records()["observations"] == []


def test_one_link_is_inspected_and_an_unknown_one_refused(registered: Terminal) -> None:
    record(registered, 0, 404)
    record(registered, 0, 404, link_id="drill")
    alone = registered.fine("inspect", "drill", "--json").document
    assert [alone[kind][0][key] for kind, key in (("links", "id"), ("observations", "link_id"))] == ["drill", "drill"]
    assert [len(alone[kind]) for kind in alone] == [1, 1, 1, 1]
    assert "no link 'absent'" in registered.refused("inspect", "absent")
    text = registered.fine("inspect").out
    assert all(word in text for word in ("0:guide", "drill:1", "pending", "gone"))


def test_a_run_is_inspected_with_its_hosts(registered: Terminal) -> None:
    store = SqliteStore.open(registered.home / "linkwatch.sqlite3")
    try:
        store.save_link(a_link("planned", SITE, owner="docs"), replaces=None)
        dispatched(store, [a_link("planned", SITE, owner="docs")])
    finally:
        store.close()
    view = registered.fine("inspect", "--run", "2026-09-28T09:00:00Z", "--json").document
    assert (view["run"]["state"], view["run"]["expected"], view["run"]["completed"]) == ("open", 1, 0)
    (host,) = view["hosts"]
    assert (host["host"], host["jobs"], host["remaining"], host["active_requests"]) == ("127.0.0.1", 1, 1, 0)
    assert host["oldest_due_age_seconds"] > 0
    assert view["transcript"] == []
    assert "127.0.0.1" in registered.fine("inspect", "--run", "2026-09-28T09:00:00Z").out
    assert "is not a run id" in registered.refused("inspect", "--run", "monday")
    assert "the latest is 2026-09-28T09:00:00Z" in registered.refused("inspect", "--run", "2026-09-21T09:00:00Z")
    assert "not both" in registered.refused("inspect", "guide", "--run", "2026-09-28T09:00:00Z")


def test_notices_are_delivered_once_as_mail_files(registered: Terminal) -> None:
    record_all(registered, (200, 404))
    assert "guide:2  pending" in registered.fine("outbox").out
    report = registered.fine("deliver", "--json").document
    assert (report["sent"], report["unsent"]) == (1, 0)
    assert registered.fine("deliver", "--json").document["sent"] == 0
    (file,) = (registered.home / "mail").glob("*.eml")
    mail = BytesParser(policy=policy.default).parsebytes(file.read_bytes())
    assert mail["To"] == "docs@example.com"
    (notice,) = registered.fine("outbox", "--json").document
    assert (notice["status"], notice["attempts"], notice["provider_id"]) == ("sent", 1, file.name)


def test_a_notice_that_nobody_can_be_told_makes_deliver_end_with_one(fixture_home: Terminal) -> None:
    record(fixture_home, 0, 404, link_id="drill")
    said = fixture_home.run("deliver")
    assert said.code == 1
    assert "without owner: 1" in said.out
    fixture_home.fine("update", "drill", "--owner", "docs", "--notify", "docs@example.com")
    assert fixture_home.fine("deliver", "--json").document["sent"] == 1


def test_what_others_wrote_moves_no_cursor(registered: Terminal) -> None:
    sentence = registered.refused("inspect", "--run", "\x1b[2J")
    assert "\x1b" not in sentence


def test_a_run_shows_each_slot_of_a_host_and_who_agreed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.fine("links")
    store = SqliteStore.open(terminal.home / "linkwatch.sqlite3")
    links = [a_link("guide"), a_link("other")]
    store.save_registry(links=[(link, None) for link in links])
    run = dispatch_run(store, store.create_run(a_run()), now=MONDAY, allowances={"docs.example.com": 2})
    store.close()
    agreed = {"visits": 2, "agreed_with": "Ada, docs team"}
    monkeypatch.setenv("LINKWATCH_ALLOWANCES", json.dumps({"docs.example.com": agreed, "a.example": agreed}))
    hosts = terminal.fine("inspect", "--run", run.run_id, "--json").document["hosts"]
    assert [(h["host"], h["jobs"], h["agreed_with"]) for h in hosts] == [
        ("docs.example.com", 1, "Ada, docs team"),
        ("docs.example.com#2", 1, "Ada, docs team"),
    ]
    lines = terminal.fine("inspect", "--run", run.run_id).out.splitlines()
    assert [line for line in lines if "agreed" in line] == [
        "docs.example.com: 2 visits at once, agreed with Ada, docs team"
    ]
