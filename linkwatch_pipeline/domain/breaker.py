"""Is a whole run to be doubted? When too many hosts fail at once, it is more likely that the checker is ill.

Counted by host, so that one dead host, however many links it has, never makes a run suspect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.runs import HostChain

_OUTCOMES = tuple(outcome.value for outcome in Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRules:
    """When a run is suspect. A number and a share (0 to 1) go together: both have to be exceeded.

    `hosts`, `hosts_share`: hosts with a new break, or newly without any certain answer, of those checked.
    `links`, `links_share`: uncertain links of those checked, the one host with the most of them left out.
    `canaries`: ids of links that never fail while the checker is well; two thirds of them failing are enough.
    """

    is_on: bool = True
    hosts: int = 5
    hosts_share: float = 0.10
    links: int = 20
    links_share: float = 0.25
    canaries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSigns:
    """How a run went so far, as far as the breaker looks.

    `troubled_hosts` broke anew or newly gave no certain answer. `uncertain_links` leaves the worst host out.
    `canaries` holds the outcome of each canary that was looked at.
    """

    checked_hosts: int
    troubled_hosts: int
    checked_links: int
    uncertain_links: int
    canaries: Mapping[str, Outcome]


def read_signs(
    chains: Iterable[HostChain],
    *,
    broken_hosts: Iterable[str],
    silent_before: Iterable[str],
    canaries: Mapping[str, Outcome],
) -> RunSigns:
    """The signs of a run.

    Args:
        chains: the run's hosts with their counts.
        broken_hosts: hosts of links whose break this run saw first.
        silent_before: hosts that gave no certain answer in the trusted run before either: nothing new.
    """
    chains = list(chains)
    checked = {chain.host: _observed(chain) for chain in chains if sum(_observed(chain).values())}
    uncertain = {host: counts.get(Outcome.UNCERTAIN.value, 0) for host, counts in checked.items()}
    return RunSigns(
        checked_hosts=len(checked),
        troubled_hosts=len(silent_hosts(chains) - set(silent_before) | set(broken_hosts)),
        checked_links=sum(sum(counts.values()) for counts in checked.values()),
        uncertain_links=sum(uncertain.values()) - max(uncertain.values(), default=0),
        canaries=canaries,
    )


def silent_hosts(chains: Iterable[HostChain]) -> set[str]:
    """The hosts that were checked and gave no certain answer."""
    return {
        chain.host for chain in chains if 0 < sum(_observed(chain).values()) == chain.counts.get(Outcome.UNCERTAIN, 0)
    }


def suspicion(signs: RunSigns, rules: BreakerRules) -> str | None:
    """Why a run with these signs is suspect, in a sentence; None if it is not."""
    if not rules.is_on:
        return None
    reasons = [*_too_many_hosts(signs, rules), *_too_uncertain(signs, rules), *_failing_canaries(signs.canaries)]
    return "; ".join(reasons) or None


def _too_many_hosts(signs: RunSigns, rules: BreakerRules) -> Sequence[str]:
    limit = max(rules.hosts, rules.hosts_share * signs.checked_hosts)
    if signs.troubled_hosts <= limit:
        return ()
    return (
        f"{signs.troubled_hosts} of {signs.checked_hosts} hosts broke anew or gave no certain answer, more than "
        f"{limit:g}",
    )


def _too_uncertain(signs: RunSigns, rules: BreakerRules) -> Sequence[str]:
    limit = max(rules.links, rules.links_share * signs.checked_links)
    if signs.uncertain_links <= limit:
        return ()
    return (
        f"{signs.uncertain_links} of {signs.checked_links} links are uncertain beside the worst host's, more than "
        f"{limit:g}",
    )


def _failing_canaries(canaries: Mapping[str, Outcome]) -> Sequence[str]:
    # A host that asks for a pause has answered, and thus proves that the checker reaches it.
    failing = sorted(name for name, outcome in canaries.items() if outcome not in _WELL)
    if not failing or 3 * len(failing) < 2 * len(canaries):
        return ()
    return (f"{len(failing)} of {len(canaries)} canaries fail: {', '.join(failing)}",)


_WELL = (Outcome.REACHABLE, Outcome.THROTTLED)


def _observed(chain: HostChain) -> Mapping[str, int]:
    """How many of the host's links were observed with which outcome; jobs without an observation say nothing."""
    return {end: count for end, count in chain.counts.items() if end in _OUTCOMES}
