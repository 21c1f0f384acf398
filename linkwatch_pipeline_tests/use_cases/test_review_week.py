"""What is put first when a week is looked at; the rest is seen through the Dagster assets (defs/test_weekly.py)."""

from __future__ import annotations

from linkwatch_pipeline.use_cases.review_week import HostPace, slowest_hosts


def pace(host: str, mean_ms: float) -> HostPace:
    return HostPace(host=host, observations=1, mean_ms=mean_ms, slowest_ms=round(mean_ms))


def test_the_slowest_hosts_come_first_and_no_more_than_asked_for() -> None:
    paces = [pace("b.example", 20.0), pace("c.example", 900.0), pace("a.example", 20.0), pace("d.example", 5.0)]
    assert [p.host for p in slowest_hosts(paces, most=3)] == ["c.example", "a.example", "b.example"]
