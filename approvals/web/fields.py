"""Form fields for the lists and maps of a spec: one entry a line, or as YAML; and for a time in the reader's zone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import forms

from approvals.errors import InvalidInput
from provisioner.errors import PratiqueError
from provisioner.render import YamlLimits, load_all, write

# A spec in etcd is smaller than that, and a page is answered meanwhile.
SPEC_LIMITS = YamlLimits(max_nodes=20_000, max_characters=1_000_000)


def mono(**attrs: Any) -> dict[str, Any]:
    """Attributes of an input for names, which nothing should correct."""
    return {"class": "mono", "autocapitalize": "off", "spellcheck": "false", "autocomplete": "off", **attrs}


def read_local_time(form: Mapping[str, str], name: str) -> datetime | None:
    """A time that a form has in the zone that the browser says it is of, in a field of its own; without one it is UTC.

    In UTC, None where it is left empty; raises InvalidInput.
    """
    text, zone = form.get(name, "").strip(), form.get(f"{name}_zone", "").strip()
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=ZoneInfo(zone or "UTC"))).astimezone(UTC)
    except (ValueError, OSError, OverflowError, ZoneInfoNotFoundError) as exc:
        words = f"the time is {text[:40]!r}; expected one such as 2026-12-05T03:00"
        raise InvalidInput(words, field=name) from exc


class LinesField(forms.CharField):
    """A list of words, one a line."""

    widget = forms.Textarea

    def __init__(self, **more: Any) -> None:
        super().__init__(max_length=4000, required=False, widget=forms.Textarea(attrs=mono(rows=3)), **more)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str]:
        text = super().clean(value)
        return [line.strip() for line in text.splitlines() if line.strip()]


class LabelsField(forms.CharField):
    """A map of words, `key=value` a line."""

    def __init__(self, **more: Any) -> None:
        super().__init__(max_length=4000, required=False, widget=forms.Textarea(attrs=mono(rows=3)), **more)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return "\n".join(f"{key}={text}" for key, text in sorted(value.items()))

    def clean(self, value: Any) -> dict[str, str]:
        lines = [line.strip() for line in super().clean(value).splitlines() if line.strip()]
        for line in lines:
            if "=" not in line:
                raise forms.ValidationError(f"{line!r} has no =; expected key=value")
        return {key.strip(): text.strip() for key, _, text in (line.partition("=") for line in lines)}


class YamlField(forms.CharField):
    """A map as YAML, read as kubectl reads it; a list of mappings where `is_list` says so."""

    def __init__(self, *, example: str, is_list: bool = False, rows: int = 4, **more: Any) -> None:
        widget = forms.Textarea(attrs=mono(rows=rows, placeholder=example))
        super().__init__(max_length=100_000, required=False, widget=widget, **more)
        self.example, self.is_list = example, is_list

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Mapping | list):
            return value
        return write(value) if value else ""

    def clean(self, value: Any) -> Any:
        """The map, or the list of maps; an empty one where nothing was written."""
        try:
            documents = load_all(super().clean(value), name=str(self.label), limits=SPEC_LIMITS)
        except PratiqueError as refusal:
            raise forms.ValidationError(str(refusal)) from refusal
        found = documents[0] if documents else [] if self.is_list else {}
        if len(documents) > 1 or not self._is_as_expected(found):
            what = "a list of mappings" if self.is_list else "a mapping"
            raise forms.ValidationError(f"expected {what}, such as {self.example}")
        if _holds_nul(found):
            raise forms.ValidationError("the text contains a NUL character, which cannot be stored")
        return found

    def _is_as_expected(self, found: object) -> bool:
        if self.is_list:
            return isinstance(found, list) and all(isinstance(item, dict) for item in found)
        return isinstance(found, dict)


def _holds_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_holds_nul, parts))
