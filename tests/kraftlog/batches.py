"""What the tests of the codec share: both twins, and hypothesis strategies for batches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import ParamSpec, cast

import pytest
from crc32c import crc32c
from hypothesis import strategies as st

from kraftlog import _codec, _codec_pure
from kraftlog._batch_format import CRC, CRC_POSITION, CRC_START
from kraftlog._codec import Codec
from kraftlog._codec_types import INT32_MAX, INT64_MAX, INT64_MIN, Headers, Record
from kraftlog.errors import KraftError
from kraftlog.record_batch import BatchOptions
from kraftlog.types import Compression, TimestampType

PURE: Codec = _codec_pure


def _find_native() -> Codec | None:
    try:
        return cast(Codec, import_module("kraftlog._codec_native"))
    except ImportError:
        return None


NATIVE = _find_native()
needs_native = pytest.mark.skipif(NATIVE is None, reason="the native codec is not built")


def native() -> Codec:
    """The native twin, in a test that is marked with `needs_native`."""
    assert NATIVE is not None
    return NATIVE


both_twins = pytest.mark.parametrize(
    "twin", [pytest.param(PURE, id="pure"), pytest.param(NATIVE, id="native", marks=needs_native)]
)
every_compression = pytest.mark.parametrize(
    "compression", Compression, ids=lambda compression: compression.name.lower()
)


@contextmanager
def using(twin: Codec) -> Iterator[None]:
    """Let this twin serve."""
    before, _codec.codec = _codec.codec, twin
    try:
        yield
    finally:
        _codec.codec = before


Outcome = tuple[str, object, str]
P = ParamSpec("P")


def outcome(call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Outcome:
    """What a call gives, or how it fails, in a form that can be compared."""
    try:
        return "gives", call(*args, **kwargs), ""
    except KraftError as error:
        return type(error).__name__, str(error), error.hint
    except ValueError as error:
        return type(error).__name__, str(error), ""


def with_crc(batch: bytearray) -> bytes:
    """The same batch with the CRC that its bytes have now, so that only the parser can object."""
    CRC.pack_into(batch, CRC_POSITION, crc32c(bytes(batch[CRC_START:])))
    return bytes(batch)


NOW = 1_700_000_000_000

_lengths_that_matter = st.sampled_from([63, 64, 127, 128, 8_191, 8_192])
fields = st.one_of(
    st.none(), st.binary(max_size=20), _lengths_that_matter.map(lambda length: b"x" * length)
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
headers: st.SearchStrategy[Headers] = st.one_of(
    st.just(()),
    st.lists(st.tuples(texts, st.none() | st.binary(max_size=8)), max_size=4).map(tuple),
)
times = st.one_of(
    st.integers(NOW - 100, NOW + 100), st.integers(-1, 2**41), st.sampled_from([0, 2**53])
)
int64s = st.integers(INT64_MIN, INT64_MAX)
base_offsets = st.sampled_from([0, 1, 2**31, 2**40]) | st.integers(0, 2**62)


@st.composite
def record_lists(
    draw: st.DrawFn, *, dense: bool = False, min_size: int = 1, max_size: int = 12
) -> list[Record]:
    """Records in the order of their offsets, with gaps unless `dense`."""
    rows = draw(
        st.lists(
            st.tuples(times, fields, fields, headers, st.integers(1, 1 if dense else 3)),
            min_size=min_size,
            max_size=max_size,
        )
    )
    offset = draw(base_offsets)
    records = []
    for timestamp, key, value, record_headers, step in rows:
        records.append(Record(offset, timestamp, key, value, record_headers))
        offset += step
    return records


producers = st.one_of(
    st.just((-1, -1, -1)),
    st.tuples(st.integers(0, 2**62), st.integers(0, 2**15 - 1), st.integers(0, INT32_MAX)),
)


@st.composite
def batch_options(draw: st.DrawFn) -> BatchOptions:
    """Everything that can be said of a batch but its compression, which tests are run for."""
    producer_id, producer_epoch, base_sequence = draw(producers)
    return BatchOptions(
        leader_epoch=draw(st.integers(-1, INT32_MAX)),
        timestamp_type=draw(st.sampled_from(TimestampType)),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=draw(st.booleans()),
        is_control=draw(st.booleans()),
    )


EXAMPLE = [
    Record(7, NOW, None, b"a value", ()),
    Record(8, NOW + 70, b"key", b"v" * 70, (("trace", b"abc"), ("\u00e9t\u00e9", None))),
    Record(10, NOW - 5, b"", None, (("", b""),)),
]
"""Short, and with a null, an empty field, a header, a gap, a time that goes back, a long varint."""
