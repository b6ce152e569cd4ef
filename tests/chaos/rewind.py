"""The database put back to where it was, so that every run begins alike and none is slower than the one before."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from django.db import connections
from psycopg import sql


@dataclass(frozen=True, slots=True)
class Rewound:
    """`url` is that of the database, which belongs to the run alone, as a superuser."""

    url: str

    def save(self) -> None:
        self._copy(self._name, self._saved)

    def load(self) -> None:
        self._copy(self._saved, self._name)

    @property
    def _name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def _saved(self) -> str:
        return f"{self._name}_saved"

    def _copy(self, source: str, target: str) -> None:
        connections.close_all()
        words = {"source": sql.Identifier(source), "target": sql.Identifier(target)}
        with psycopg.connect(self.url.replace(f"/{self._name}", "/postgres"), autocommit=True) as connection:
            # A worker that was killed may leave its backend at work for a moment.
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {target} WITH (FORCE)").format(**words))
            connection.execute(sql.SQL("CREATE DATABASE {target} TEMPLATE {source}").format(**words))
