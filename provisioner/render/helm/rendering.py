"""From a tree to the objects of a chart: found, given its values, rendered, read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from provisioner.errors import BadBundle, BadConfig, BundleTooLarge, InvalidManifest, TryLater
from provisioner.json_values import mapping, value_at
from provisioner.render import plain
from provisioner.render.helm.chart import CHART, VALUES, chart_files, chart_folder, rendered_objects, with_hooks
from provisioner.render.helm.engine import ChartJob, Output, render
from provisioner.render.helm.lookups import filled, wanted_lookups
from provisioner.render.helm.made_up import Settled, TwoRenderings, check_copies, list_made_up, settle, settle_otherwise
from provisioner.render.helm.remedies import values_to_set
from provisioner.render.helm.stand_ins import check_copied, check_random, list_comparisons, with_stand_ins
from provisioner.render.helm.tokens import Unaligned
from provisioner.render.helm.values import checked_release_name, config_of, flat, merged, set_paths
from provisioner.render.helm.values_from import given_values
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import Found, flattened
from provisioner.render.renderings import Rendered, Rendering
from provisioner.render.targets import LookedUp
from provisioner.render.yaml import load_documents
from provisioner.sentences import some, verb
from provisioner.values import KeptValues, MadeUp, ObjectRef, Tree


def find(tree: Tree, rendering: Rendering) -> Rendered:
    """The chart in the tree, its crds/ first, and what other sources have beside it.

    A template that gave nothing but hooks that are left out does not count as used, so that the report names it.
    Raises BadBundle, BadConfig, InvalidManifest and BundleTooLarge.
    """
    meter, target = YamlMeter(rendering.limits, takes_repeated=True), rendering.target
    folder, destination = chart_folder(tree, rendering.destinations, rendering.config)
    given = given_values(rendering.config, target.values_from if target else None, rendering.install_namespace, meter)
    wanted = config_of(rendering.config, tree, meter, given.values)
    files = chart_files(tree, folder)
    job = ChartJob(
        files={path: data for path, data in files.items() if f"{folder}/{path}".lstrip("/") not in wanted.files},
        values=wanted.values,
        release_name=wanted.release_name or checked_release_name(_chart_name(files[CHART], meter)),
        namespace=rendering.install_namespace,
        kube_version=target.kube_version if target else "",
        api_versions=target.api_versions if target else (),
        is_upgrade=bool(target and target.is_upgrade),
        lookups=_choose_lookups(rendering),
        is_alone=bool(given.objects),
        runs_tests=wanted.tests,
        helm_version=wanted.helm_version,
    )
    known = (*(job.lookups or ()), *given.objects)
    chart = _render_objects(job, rendering, folder, meter)
    helm_3_differs = _compare_helm_3(chart.side, chart.first) if target and target.is_takeover else None
    made_up = chart.made_up
    kept, lookups = filled(chart.settled, known, meter)
    if any(looked_up.marks for looked_up in known):
        check_random(made_up, job.files, known)
        values_kept = {place.key: made.value for made in made_up.values for place in made.places}

        def render_again(texts: Mapping[str, str]) -> list[Found]:
            told = tuple(replace(each, answer=with_stand_ins(each.answer, texts)) for each in job.lookups or ())
            again = replace(job, values=with_stand_ins(job.values, texts), lookups=told if job.lookups else job.lookups)
            limits = YamlMeter(rendering.limits, takes_repeated=True)
            return _render_objects(again, replace(rendering, kept_values=values_kept), folder, limits).settled

        check_copied(
            known, lambda stand_ins: filled(chart.settled, stand_ins, YamlMeter(rendering.limits))[0], render_again
        )
        lookups = tuple(
            replace(lookup, compared=list_comparisons(job.files, job.values, looked_up.marks))
            for lookup, looked_up in zip(lookups, known, strict=True)
        )
    inside = [_within(folder, path) for path in files]
    rest = Tree({path: data for path, data in tree.files.items() if path not in wanted.files})
    others = [
        other
        for other in rendering.destinations
        if other != destination and any(path.startswith(f"{other}/" if other else "") for path in rest.files)
    ]
    extra = plain.select(rest, destinations=others, config={plain.RECURSIVE: True}) if others else []
    if not (kept or extra):
        raise BadBundle(
            "the chart renders no objects with these values; name in spec.config.values what it shall make, as its"
            " values.yaml describes it"
        )
    objects = chain(kept, plain.find(rest, extra, meter))
    used = [*(path for path in inside if path not in chart.left_out), *wanted.files]
    used += [file for paths in extra for file in paths]
    return Rendered(
        objects,
        used,
        values=flat(merged(_mapping(files.get(VALUES, b""), VALUES, meter), given.shown(wanted.values))),
        version=str(_mapping(files[CHART], CHART, meter).get("version") or ""),
        lookups=lookups,
        spec_values=set_paths(given.shown(wanted.values)),
        repeated=meter.repeated,
        made_up=made_up,
        engine=chart.side.output.version,
        helm_3_differs=helm_3_differs,
    )


def _render_objects(job: ChartJob, rendering: Rendering, folder: str, meter: YamlMeter) -> _ChartObjects:
    output, refusal = _render_first(job, rendering)
    rendered = rendered_objects(output.templates, folder, meter, helm_version=job.helm_version)
    found = [*_crds(output.crds, folder, meter), *rendered]
    first = with_hooks(found, is_upgrade=job.is_upgrade, with_tests=job.runs_tests)
    side = _Side(job, output, rendering, folder)
    settled, made_up = _settle_moving(side, first, refusal)
    return _ChartObjects(side, first, settled, made_up, {one.file for one in found} - {one.file for one in settled})


def _render_first(job: ChartJob, rendering: Rendering) -> tuple[Output, BadBundle | None]:
    """What the chart renders that finds nothing of its own; where an upgrade refuses that, an installation and why.

    Many charts want their passwords to be given again on an upgrade, unless they find them.
    """
    try:
        return render(job), None
    except BadBundle as refusal:
        may_be_known = rendering.kept_values is None or rendering.kept_values
        if isinstance(refusal, BundleTooLarge) or not (job.is_upgrade and may_be_known and _may_look_up(job.files)):
            raise
        try:
            return render(replace(job, is_upgrade=False)), refusal
        except BadBundle:
            raise refusal from None


@dataclass(frozen=True, slots=True)
class _Side:
    """A chart that was rendered twice."""

    job: ChartJob
    output: Output
    rendering: Rendering
    folder: str

    def running(self, texts: Mapping[str, str], meter: YamlMeter) -> list[Found]:
        """What these texts have, but for the hooks that never run here."""
        found = rendered_objects(texts, self.folder, meter, helm_version=self.job.helm_version)
        return with_hooks(found, is_upgrade=self.job.is_upgrade, with_tests=self.job.runs_tests)

    def compare(self, first: Iterable[Found], meter: YamlMeter) -> tuple[list[str], TwoRenderings]:
        """The files whose objects were others the second time, and these objects; what is left out may move."""
        before, after = _by_file(first), _by_file(self.running(self.output.again, meter))
        paths = {_within(self.folder, path): path for path in self.output.again}
        moving = [file for file in paths if before.get(file) != after.get(file)]
        return moving, TwoRenderings(
            [*flattened((found for file in moving for found in before.get(file, ())), meter)],
            [*flattened((found for file in moving for found in after.get(file, ())), meter)],
            [(self.output.templates.get(paths[file], ""), self.output.again[paths[file]]) for file in moving],
            self.rendering.install_namespace,
        )


@dataclass(frozen=True, slots=True)
class _ChartObjects:
    """The objects of a chart, `first` as they were rendered, `settled` with the values that count.

    `left_out` are the files that gave only hooks that are left out.
    """

    side: _Side
    first: list[Found]
    settled: list[Found]
    made_up: MadeUp
    left_out: set[str]


def _compare_helm_3(side: _Side, kept: Iterable[Found]) -> tuple[ObjectRef, ...] | None:
    """The objects that Helm 3 renders otherwise, or alone does or does not; None where it cannot be asked. What a
    chart makes up differs anyway."""
    job, meter = replace(side.job, helm_version=3), YamlMeter(side.rendering.limits, takes_repeated=True)
    if side.job.helm_version == 3:
        return None
    try:
        output = render(job)
        other = [*_crds(output.crds, side.folder, meter), *replace(side, job=job).running(output.templates, meter)]
        moving = {_within(side.folder, path) for path in (*output.again, *side.output.again)}
        ours, theirs = (
            {ObjectRef.of(found.body): found.body for found in flattened(side_of, meter) if found.file not in moving}
            for side_of in (kept, other)
        )
    except (BadBundle, InvalidManifest, TryLater):
        return None
    return tuple(sorted(ref for ref in ours.keys() | theirs.keys() if ours.get(ref) != theirs.get(ref)))


def _settle_moving(side: _Side, kept: list[Found], refusal: BadBundle | None) -> tuple[list[Found], MadeUp]:
    """The objects of the templates with the values that count, where the second rendering has others.

    A chart that looks up what it made is rendered once more, with its own Secrets to be found. What it says then may
    hold their values, and is dropped: the objects stay those of the first time, or the `refusal` stands.
    Raises BadBundle.
    """
    rendering, meter = side.rendering, YamlMeter(side.rendering.limits, takes_repeated=True)
    crds, first = [found for found in kept if found.is_kept], [found for found in kept if not found.is_kept]
    moving, renderings = side.compare(first, meter)
    is_offline = rendering.kept_values is None
    if not moving:
        if refusal:
            raise refusal
        return kept, MadeUp()
    try:
        settled = settle(renderings, rendering.kept_values or {}, meter, is_offline=is_offline)
    except Unaligned:
        files = side.job.files
        templates = [file.removeprefix(f"{side.folder}/") for file in moving]
        given = merged(_mapping(files.get(VALUES, b""), VALUES, meter), side.job.values)
        set_these = values_to_set(files, templates, given)
        raise BadBundle(
            f"the chart: {some(moving)} {verb(len(moving), 'render')} differently each time (random text, new keys or"
            " the time). Values are kept where each rendering has them in the same places, and here the places differ,"
            " so that nobody could review what the next request brings."
            f" {f'Set in spec.config: {set_these}' if set_these else 'Give what is made up as values in spec.config'},"
            " or switch off the part of the chart that makes it up"
        ) from None
    objects, steps = _put_in_place(first, moving, settled.objects), [settled]
    if settled.secrets and _may_look_up(side.job.files):
        # Whoever wants its passwords on an upgrade is told none that the deployment does not have.
        told = list(settled.secrets)
        if refusal and not is_offline:
            told = settled.secrets_kept(rendering.kept_values or {})
        try:
            seen, last, texts = _look_again(side, settled, told, rendering.kept_values or {})
            if refusal is None and _identities(seen) != _identities(objects):
                raise Unaligned
            # What else than its values the chart shows of them shows only where it is told others.
            other = settle_otherwise(renderings, settled, meter)
            told_again = [_with_keys(one, secret) for one, secret in zip(other.secrets, told, strict=True)]
            seen_again, _, texts_again = _look_again(side, other, told_again, last.kept)
            sources = [(text, texts_again.get(path, "")) for path, text in texts.items()]
            check_copies(TwoRenderings(seen, seen_again, sources, renderings.namespace), settled, other, last)
            objects, steps, refusal = seen, [settled, last], None
        except BundleTooLarge as exc:
            raise BundleTooLarge(str(exc)) from None
        except (BadBundle, Unaligned):
            pass
    if refusal:
        raise refusal
    return [*crds, *objects], list_made_up(objects, rendering.install_namespace, steps)


def _with_keys(secret: LookedUp, other: LookedUp) -> LookedUp:
    """A Secret with those of its keys that the other one has."""
    assert secret.answer is not None
    assert other.answer is not None
    data = {key: value for key, value in secret.answer["data"].items() if key in other.answer["data"]}
    return replace(secret, answer={**secret.answer, "data": data})


def _look_again(
    side: _Side, first: Settled, told: Iterable[LookedUp], kept: KeptValues
) -> tuple[list[Found], Settled, Mapping[str, str]]:
    """The objects of the chart that finds these Secrets, settled, and its texts; they have to be among these objects.

    A Secret that a chart makes only where there is none would be deleted by the next upgrade.
    """
    job, rendering = side.job, side.rendering
    meter = YamlMeter(rendering.limits, takes_repeated=True)
    looking = replace(job, lookups=(*(job.lookups or ()), *told), is_open=job.lookups is None)
    again = replace(side, output=render(looking))
    found = again.running(again.output.templates, meter)
    moving, renderings = again.compare(found, meter)
    is_offline = rendering.kept_values is None
    last = settle(renderings, {**kept, **first.kept}, meter, is_offline=is_offline, earlier=first)
    objects = _put_in_place(found, moving, last.objects)
    metadata = (value_at(found.body, "metadata") for found in objects if value_at(found.body, "kind") == "Secret")
    names = {(value_at(its, "namespace") or rendering.install_namespace, value_at(its, "name")) for its in metadata}
    if not names >= {(secret.ref.namespace, secret.ref.name) for secret in first.secrets}:
        raise Unaligned
    return objects, last, again.output.templates


def _put_in_place(objects: Iterable[Found], moving: Collection[str], settled: Iterable[Found]) -> list[Found]:
    """The objects with those of the moving files settled, in their order."""
    made = _by_file(settled)
    return [
        found
        for file, others in _by_file(objects).items()
        for found in (made.get(file, ()) if file in moving else others)
    ]


def _identities(objects: Iterable[Found]) -> Counter[tuple[str, ...]]:
    """What there is, so that a chart that leaves out what it finds is told from one that reads it."""
    paths = (("apiVersion",), ("kind",), ("metadata", "namespace"), ("metadata", "name"))
    return Counter(tuple(str(value_at(found.body, *path)) for path in paths) for found in objects)


def _may_look_up(files: Mapping[str, bytes]) -> bool:
    """Whether `lookup` stands anywhere; what is packed is taken to have it."""
    return any(b"lookup" in data or path.endswith(".tgz") for path, data in files.items())


def _choose_lookups(rendering: Rendering) -> tuple[LookedUp, ...] | None:
    """What the chart may look up; None where lookups are off, and find nothing."""
    if wanted_lookups(rendering.config, rendering.install_namespace) is None:
        return None
    if rendering.target is None or rendering.target.lookups is None:
        raise BadConfig("config.lookup names objects of the cluster, and no cluster was asked; say which one it is")
    return rendering.target.lookups


def _mapping(text: bytes, file: str, meter: YamlMeter) -> Mapping[str, Any]:
    """What a file of the chart says; empty where it is none that is one mapping."""
    documents = list(load_documents(text, name=file, meter=meter))
    return mapping(documents[0].value if len(documents) == 1 else None)


def _chart_name(chart: bytes, meter: YamlMeter) -> str:
    name = _mapping(chart, CHART, meter).get("name")
    if not isinstance(name, str) or not name:
        raise BadBundle(f"{CHART}: expected one mapping with the name of the chart")
    return name


def _crds(texts: Mapping[str, str], folder: str, meter: YamlMeter) -> Iterator[Found]:
    """The objects of crds/, which Helm takes as they are, and deletes neither with an upgrade nor with the release."""
    for path, text in sorted(texts.items()):
        place = _within(folder, path)
        for document in load_documents(text.encode(), name=place, meter=meter):
            yield Found(document.value, place, is_kept=True)


def _by_file(found: Iterable[Found]) -> Mapping[str, list[Found]]:
    files: dict[str, list[Found]] = {}
    for one in found:
        files.setdefault(one.file, []).append(one)
    return files


def _within(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path
