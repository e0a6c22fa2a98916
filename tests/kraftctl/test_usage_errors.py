"""Whatever is wrong with a command line is said as any other error is."""

import json
import shlex

import pytest

from kraftctl.usage_errors import form_of
from tests.kraftctl.conftest import invoke
from tests.kraftctl.test_schema_command import check

LINES = {
    "nonsense": ("kraftctl", "there is no command kraftctl nonsense", "kraftctl --help"),
    "staus": ("kraftctl", "no command kraftctl staus", "did you mean kraftctl status?"),
    "topic crate t": ("kraftctl", "no command kraftctl topic crate", "kraftctl topic create?"),
    "describe t": (
        "kraftctl",
        "describe",
        "kraftctl topic describe or kraftctl partition describe",
    ),
    "quorum --frob": ("kraftctl", "kraftctl quorum has no option --frob", "behind the command"),
    "status --frob": ("status", "kraftctl status has no option --frob", "kraftctl status --help"),
    "topic ls --bootsrap x": ("topic ls", "has no option --bootsrap", "did you mean --bootstrap?"),
    "consume": ("consume", "missing argument 'TOPICS...'", "kraftctl consume [OPTIONS] TOPICS..."),
    "status more": ("status", "unexpected extra argument (more)", "kraftctl status --help"),
    "topic create t -p x": ("topic create", "invalid value for '-p'", "kraftctl topic create"),
    "topic trim t": ("topic trim", "missing option '--before'", "kraftctl topic trim"),
    "node run --role x": ("node run", "'x' is not one of 'controller', 'broker', 'both'", ""),
    "node info x1": ("node info", "'x1' is no node: it looks like 1, b1 or c1", "OPTIONS] NODE"),
    "node fence c": ("node fence", "'c' is no node: it looks like 1, b1 or c1", "OPTIONS] BROKER"),
    "up --data d --ephemeral": ("up", "--data with --ephemeral", "never removed"),
    "topic ls -b here": ("topic ls", "-b: 'here' is no address", "looks like 127.0.0.1:19101"),
    "topic ls --timeout soon": ("topic ls", "--timeout = 'soon' is no duration", '"5s"'),
    "topic ls --timeout 0s": ("topic ls", "--timeout 0s", "--timeout 5s"),
    "health --wait --stable soon": ("health", "--stable = 'soon' is no duration", '"5s"'),
    "up --any-port --base-port 9": ("up", "--base-port with --any-port", "one of them"),
    "quorum add there": ("quorum add", "HOST:PORT: 'there' is no address", "127.0.0.1:19101"),
    "quorum join h:99999 --dir d": ("quorum join", "'h:99999' is no address", "127.0.0.1:19101"),
    "quorum form --dir d --id x": ("quorum form", "node.id = 'x' (--id) must be", "leave it"),
    "node run --role broker -X a=1": ("node run", "'a' (-X a) is not a configuration key", ""),
    "status -b": ("status", "option '-b' requires an argument", "kraftctl status --help"),
}
"""What is wrong -> the command of the document, what is said, and the way out."""


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_makes_no_sense_is_one_sentence_and_a_hint(line: str) -> None:
    _, message, hint = LINES[line]
    ran = invoke(*shlex.split(line))
    assert (ran.code, ran.out) == (2, "")
    first, second = ran.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert second.startswith("hint:  ")
    assert hint in second


@pytest.mark.parametrize("line", LINES)
def test_with_o_json_it_is_the_document_of_the_command(line: str) -> None:
    name, message, hint = LINES[line]
    words = shlex.split(line)
    # An option without its value would take -o for one.
    ran = invoke(*words[:-1], "-o", "json", words[-1]) if words[-1] == "-b" else None
    ran = ran or invoke(*words, "-o", "json")
    check(ran, name)
    error = json.loads(ran.out)["error"]
    assert (ran.code, ran.err, error["code"]) == (2, "", "INVALID_CONFIG")
    assert message in error["message"]
    assert hint in error["hint"]


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("", "table"),
        ("status -o json", "json"),
        ("status -ojson", "json"),
        ("status --output=json --frob", "json"),
        ("status --output jsonl", "jsonl"),
        ("consume t -eo json", "json"),
        ("status -o json -o table", "table"),
        ("status -o jsn", "table"),
        ("produce t -- -o json", "table"),
        ("status -o", "table"),
    ],
)
def test_the_form_is_known_whatever_is_wrong(line: str, form: str) -> None:
    assert form_of(line.split()) == form
