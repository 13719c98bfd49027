"""Faults about identifiers: folded, cut, normalised, joined, read as patterns, or ruled on differently by each method."""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from dataclasses import replace

from runcert.faulty import deviates
from runcert_contract import InvalidIdentifier, Listing, Run
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import Entry, MemoryRunStore


class _Keyed(MemoryRunStore):
    """Keeps runs under a key that it makes of the run id; two ids with one key meet in one run.

    The map from keys to ids stands in for a storage that knows keys only.
    """

    def _key(self, run_id: str) -> str:
        raise NotImplementedError  # each faulty store says how

    def _first_with_key_of(self, run_id: str) -> str:
        key = self._key(run_id)
        if run_id in self._space.entries:
            return run_id
        with self._space.lock:
            found = next((other for other in self._space.entries if self._key(other) == key), None)
        if found is None:
            return run_id
        deviates()
        return found

    def create(self, run: Run) -> Run:
        return super().create(replace(run, run_id=self._first_with_key_of(run.run_id)))

    def find(self, run_id: str) -> Run | None:
        return super().find(self._first_with_key_of(run_id))

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if expected.run_id != updated.run_id:
            return super().compare_and_set(expected, updated)
        run_id = self._first_with_key_of(expected.run_id)
        return super().compare_and_set(replace(expected, run_id=run_id), replace(updated, run_id=run_id))


def _without_accents(text: str) -> str:
    return "".join(character for character in unicodedata.normalize("NFD", text) if not unicodedata.combining(character))


# -- RUN-ID-1


@faulty_memory("RUN-ID-1", source="the clause: a column of numbers")
class NumeralsAreNumbers(_Keyed):
    """run ids of digits are kept as numbers, so that leading zeros are gone."""

    def _key(self, run_id: str) -> str:
        return _as_number(run_id)


@faulty_memory("RUN-ID-1", source="D1 authzed/spicedb#3161")
class RunIdsAreComparedWithoutCase(_Keyed):
    """run ids that differ in case only are one run."""

    def _key(self, run_id: str) -> str:
        return run_id.casefold()


@faulty_memory("RUN-ID-1", source="D1 twin: accents are ignored")
class RunIdsAreComparedWithoutAccents(_Keyed):
    """run ids that differ in accents only are one run."""

    def _key(self, run_id: str) -> str:
        return _without_accents(run_id)


@faulty_memory("RUN-ID-1", source="D1 twin: width and compatibility forms are ignored")
class RunIdsAreComparedWithoutWidth(_Keyed):
    """run ids that differ in width or compatibility form only are one run."""

    def _key(self, run_id: str) -> str:
        return unicodedata.normalize("NFKC", run_id)


@faulty_memory("RUN-ID-1", source="the clause: a padded collation")
class RunIdsAreTrimmed(_Keyed):
    """run ids that differ in surrounding space only are one run."""

    def _key(self, run_id: str) -> str:
        return run_id.strip()


@faulty_memory("RUN-ID-1", source="D6 amule-org/amule#312")
class RunIdsAreNormalisedByCreateOnly(MemoryRunStore):
    """create stores a run under its id in composed form, and find looks for the id as it is given."""

    def create(self, run: Run) -> Run:
        composed = unicodedata.normalize("NFC", run.run_id)
        if composed != run.run_id:
            deviates()
            super().create(replace(run, run_id=composed))
            return run
        return super().create(run)


@faulty_memory("RUN-ID-1", source="D6 twin: the listing gives another form")
class ListedIdsAreDecomposed(MemoryRunStore):
    """find_resumable gives tenants in decomposed form, as some file systems do with names."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        items = [replace(run, tenant_id=unicodedata.normalize("NFD", run.tenant_id)) for run in listing.items]
        if items != list(listing.items):
            deviates()
        return replace(listing, items=items)


@faulty_memory("RUN-ID-1", source="the clause: a column of numbers, for tenants")
class TenantsOfDigitsAreNumbers(MemoryRunStore):
    """find_resumable compares tenants of digits as numbers, so that leading zeros do not count."""

    def _entries_of(self, tenant_id: str) -> list[tuple[str, Entry]]:
        found = [
            pair
            for pair in self._space.entries.items()
            if _as_number(pair[1].tenant_id) == _as_number(tenant_id) and not pair[1].terminal
        ]
        if len(found) > len(super()._entries_of(tenant_id)):
            deviates()
        return found


def _as_number(text: str) -> str:
    return str(int(text)) if text.isascii() and text.isdigit() else text


@faulty_memory("RUN-ID-1", source="D1 twin: in a field that is no key")
class IdempotencyKeysAreFolded(MemoryRunStore):
    """create stores the idempotency key in lower case."""

    def create(self, run: Run) -> Run:
        folded = run.idempotency_key.lower()
        if folded != run.idempotency_key:
            deviates()
        return super().create(replace(run, idempotency_key=folded))


# -- RUN-ID-2


@faulty_memory("RUN-ID-2", source="the clause: a column of 64 characters")
class RunIdsAreCutAtSixtyFour(_Keyed):
    """run ids are compared by their first 64 characters."""

    def _key(self, run_id: str) -> str:
        return run_id[:64]


@faulty_memory("RUN-ID-2", source="the clause: an index prefix of 255 characters")
class RunIdsAreCutAtTwoHundredFiftyFive(_Keyed):
    """run ids are compared by their first 255 characters."""

    def _key(self, run_id: str) -> str:
        return run_id[:255]


@faulty_memory("RUN-ID-2", source="the clause: a tenant column of 128 characters")
class TenantsAreCut(MemoryRunStore):
    """find_resumable compares tenants by their first 128 characters."""

    def _entries_of(self, tenant_id: str) -> list[tuple[str, Entry]]:
        found = [
            pair for pair in self._space.entries.items() if pair[1].tenant_id[:128] == tenant_id[:128] and not pair[1].terminal
        ]
        if len(found) > len(super()._entries_of(tenant_id)):
            deviates()
        return found


@faulty_memory("RUN-ID-2", source="the clause: a token column of 128 characters")
class AttemptTokensAreCut(MemoryRunStore):
    """create stores the first 128 characters of an attempt token."""

    def create(self, run: Run) -> Run:
        if run.attempt_token is not None and len(run.attempt_token) > 128:
            deviates()
            return super().create(replace(run, attempt_token=run.attempt_token[:128]))
        return super().create(run)


# -- RUN-ID-3


class _Matching(MemoryRunStore):
    """Looks for run ids and tenants by a pattern."""

    def _matches(self, pattern: str, text: str) -> bool:
        raise NotImplementedError  # each faulty store says how

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        matching = next((other for other in self._space.entries if self._matches(run_id, other)), None)
        if found is None and matching is not None:
            deviates()
            return self._read(matching)
        return found


@faulty_memory("RUN-ID-3", source="D4 langchain-ai/langgraph#8300")
class RunIdsAreSqlPatterns(_Matching):
    """find reads % and _ in an id as an SQL pattern."""

    def _matches(self, pattern: str, text: str) -> bool:
        return re.fullmatch(re.escape(pattern).replace("%", ".*").replace("_", "."), text, re.DOTALL) is not None


@faulty_memory("RUN-ID-3", source="D4 twin: shell patterns")
class RunIdsAreShellPatterns(_Matching):
    """find reads * ? and [ in an id as a shell pattern."""

    def _matches(self, pattern: str, text: str) -> bool:
        return fnmatch.fnmatchcase(text, pattern)


@faulty_memory("RUN-ID-3", source="D4 twin: regular expressions")
class RunIdsAreRegularExpressions(_Matching):
    """find reads an id as a regular expression."""

    def _matches(self, pattern: str, text: str) -> bool:
        try:
            return re.fullmatch(pattern, text) is not None
        except re.error:
            return False


@faulty_memory("RUN-ID-3", source="D4 twin: the listing")
class TenantsAreSqlPatterns(MemoryRunStore):
    """find_resumable reads % and _ in a tenant as an SQL pattern."""

    def _entries_of(self, tenant_id: str) -> list[tuple[str, Entry]]:
        pattern = re.compile(re.escape(tenant_id).replace("%", ".*").replace("_", "."), re.DOTALL)
        entries = self._space.entries.items()
        found = [(run_id, entry) for run_id, entry in entries if pattern.fullmatch(entry.tenant_id) and not entry.terminal]
        if len(found) > len(super()._entries_of(tenant_id)):
            deviates()
        return found


@faulty_memory("RUN-ID-3", source="the clause: a separator at the end is dropped")
class SeparatorsAtTheEndAreDropped(_Keyed):
    """run ids that differ in separators at their end are one run."""

    def _key(self, run_id: str) -> str:
        return run_id.rstrip("/:#|")


# -- RUN-ID-4


class _Joined(MemoryRunStore):
    """Keeps an index of tenant and run id, joined into one key."""

    def _index_key(self, tenant_id: str, run_id: str) -> str:
        raise NotImplementedError  # each faulty store says how

    def _entries_of(self, tenant_id: str) -> list[tuple[str, Entry]]:
        index: dict[str, tuple[str, Entry]] = {}
        for run_id, entry in self._space.entries.items():
            key = self._index_key(entry.tenant_id, run_id)
            if key in index and index[key][1].tenant_id != entry.tenant_id:
                deviates()
            index[key] = (run_id, entry)
        return [(run_id, entry) for run_id, entry in index.values() if entry.tenant_id == tenant_id and not entry.terminal]


@faulty_memory("RUN-ID-4", source="D3 sibidharan/zealphp#247")
class KeysAreJoinedWithColons(_Joined):
    """the index joins tenant and run id with a colon, so that two pairs share one key."""

    def _index_key(self, tenant_id: str, run_id: str) -> str:
        return f"{tenant_id}:{run_id}"


@faulty_memory("RUN-ID-4", source="D3 twin: a separator that portable identifiers hold, too")
class KeysAreJoinedWithHyphens(_Joined):
    """the index joins tenant and run id with a hyphen, so that two pairs share one key."""

    def _index_key(self, tenant_id: str, run_id: str) -> str:
        return f"{tenant_id}-{run_id}"


@faulty_memory("RUN-ID-4", source="D3 twin: no separator at all")
class KeysAreJoinedWithoutSeparator(_Joined):
    """the index puts tenant and run id one after the other, so that two pairs share one key."""

    def _index_key(self, tenant_id: str, run_id: str) -> str:
        return f"{tenant_id}{run_id}"


@faulty_memory("RUN-ID-4", source="D3 twin: an escape that is not escaped itself")
class EscapesAreNotEscaped(_Joined):
    """the index joins with a slash and escapes slashes with a backslash, but not the backslash."""

    def _index_key(self, tenant_id: str, run_id: str) -> str:
        return "/".join(part.replace("/", "\\/") for part in (tenant_id, run_id))


@faulty_memory("RUN-ID-4", source="D3 twin: empty parts are left out")
class EmptyPartsAreLeftOut(_Joined):
    """the index joins the parts that are not empty."""

    def _index_key(self, tenant_id: str, run_id: str) -> str:
        return "\x1e".join(part for part in (tenant_id, run_id) if part)


# -- RUN-ID-5


@faulty_memory("RUN-ID-5", source="D4 langchain-ai/langgraph#8300: a look-up by prefix")
class FindTakesPrefixes(MemoryRunStore):
    """find gives a run whose id only begins with the given one."""

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        longer = next((other for other in self._space.entries if run_id and other.startswith(run_id)), None)
        if found is None and longer is not None:
            deviates()
            return self._read(longer)
        return found


@faulty_memory("RUN-ID-5", source="D4 twin: tenants by prefix")
class TenantListingTakesPrefixes(MemoryRunStore):
    """find_resumable scans the keys that begin with the tenant."""

    def _entries_of(self, tenant_id: str) -> list[tuple[str, Entry]]:
        entries = self._space.entries.items()
        found = [(run_id, entry) for run_id, entry in entries if entry.tenant_id.startswith(tenant_id) and not entry.terminal]
        if len(found) > len(super()._entries_of(tenant_id)):
            deviates()
        return found


# -- RUN-ID-6


def _is_plain(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", text) is not None


class _Ruling(MemoryRunStore):
    """Refuses what is not plain, on some methods and for some fields."""

    def _refuse(self, text: str) -> None:
        if not _is_plain(text):
            deviates()
            raise InvalidIdentifier(f"{text!r} has characters that this store does not keep; give another identifier")


@faulty_memory("RUN-ID-6")
class OnlyCreateRefusesOddIds(_Ruling):
    """create refuses odd run ids, find answers None to them."""

    def create(self, run: Run) -> Run:
        self._refuse(run.run_id)
        return super().create(run)


@faulty_memory("RUN-ID-6", source="the clause: the other way round")
class OnlyFindRefusesOddIds(_Ruling):
    """find refuses odd run ids that create has stored."""

    def find(self, run_id: str) -> Run | None:
        self._refuse(run_id)
        return super().find(run_id)


@faulty_memory("RUN-ID-6", source="the clause: the update is not checked")
class UpdatesOfOddIdsAreOnlyRefused(_Ruling):
    """create and find refuse odd run ids, compare_and_set answers False to them."""

    def create(self, run: Run) -> Run:
        self._refuse(run.run_id)
        return super().create(run)

    def find(self, run_id: str) -> Run | None:
        self._refuse(run_id)
        return super().find(run_id)


@faulty_memory("RUN-ID-6", source="N5 Brad-Edwards/aptl#522 twin: the tenant is checked by create alone")
class ListingOfOddTenantsIsEmpty(_Ruling):
    """create and compare_and_set refuse odd tenants, find_resumable answers an empty listing to them."""

    def create(self, run: Run) -> Run:
        self._refuse(run.tenant_id)
        return super().create(run)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._refuse(expected.tenant_id)
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-ID-6", source="the clause: the owner is checked by create alone")
class OddOwnersComeInByUpdate(_Ruling):
    """create refuses odd owners, compare_and_set stores them."""

    def create(self, run: Run) -> Run:
        self._refuse(run.owner or "worker")
        return super().create(run)


@faulty_memory("RUN-ID-6", source="the clause: it depends on what is stored")
class OddIdsAreRefusedWhileAbsent(_Ruling):
    """find refuses an odd run id as long as there is no such run, and gives it afterwards."""

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        if found is None:
            self._refuse(run_id)
        return found


@faulty_memory("RUN-ID-1", source="D1 authzed/spicedb#3161: the index alone")
class ListingIsIndexedWithoutCase(MemoryRunStore):
    """find_resumable keeps one run for ids that differ only in case."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        kept = {run.run_id.lower(): run for run in listing.items}
        if len(kept) < len(listing.items):
            deviates()
        return Listing(list(kept.values()), listing.corrupt, listing.complete)
