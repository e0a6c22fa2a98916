/* Writing a records section from sequences of Python objects. */
#include "_native.h"

/* One key or value: the bytes of a bytes object, or of another buffer while it is held. */
typedef struct {
    const uint8_t *data;
    int64_t bytes; /* -1 is null */
    Py_buffer held;
} field;

static int
field_open(field *out, PyObject *object)
{
    out->held.obj = NULL;
    if (object == Py_None) {
        out->data = NULL;
        out->bytes = -1;
    }
    else if (PyBytes_Check(object)) {
        out->data = (const uint8_t *)PyBytes_AS_STRING(object);
        out->bytes = PyBytes_GET_SIZE(object);
    }
    else {
        if (PyObject_GetBuffer(object, &out->held, PyBUF_SIMPLE) < 0) {
            return -1;
        }
        out->data = out->held.buf;
        out->bytes = out->held.len;
    }
    return 0;
}

static void
field_close(field *open)
{
    if (open->held.obj != NULL) {
        PyBuffer_Release(&open->held);
    }
}

/* From Python objects. The GIL is held throughout: the objects are not ours alone. */

typedef struct {
    codec_state *state;
    /* Tuples; all but the values may be NULL. */
    PyObject *values, *keys, *headers, *offsets, *timestamps;
    Py_ssize_t rows;
    int64_t base_offset, base_timestamp, timestamp;
    int time_out_of_range; /* the base, or the one timestamp of all rows, is no int64 */
    int64_t low; /* the smallest offset delta that the next record may have */
    block out, scratch;
    size_t used;
} sequences;

static int
fail_row(PyObject *type, int64_t row, const char *what)
{
    raise_row(type, row, what);
    return -1;
}

static int
fail_memory(void)
{
    PyErr_NoMemory();
    return -1;
}

static int
append_field(block *memory, size_t *used, const uint8_t *data, int64_t bytes)
{
    if (!block_reserve(memory, *used + 10 + (size_t)(bytes < 0 ? 0 : bytes))) {
        return fail_memory();
    }
    *used = (size_t)(write_field(memory->data + *used, data, bytes) - memory->data);
    return 0;
}

static int
append_header(sequences *from, PyObject *pair, Py_ssize_t row, size_t *used)
{
    Py_ssize_t bytes;
    if (PyTuple_GET_SIZE(pair) != 2 || !PyUnicode_Check(PyTuple_GET_ITEM(pair, 0))) {
        PyErr_Format(PyExc_TypeError, "record %zd: a header is a pair of str and bytes", row);
        return -1;
    }
    const char *key = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(pair, 0), &bytes);
    if (key == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            return -1;
        }
        PyErr_Clear();
        return fail_row(from->state->invalid_record, row, "header key is not valid text");
    }
    if (append_field(&from->scratch, used, (const uint8_t *)key, bytes) < 0) {
        return -1;
    }
    field value;
    if (field_open(&value, PyTuple_GET_ITEM(pair, 1)) < 0) {
        return -1;
    }
    int result = append_field(&from->scratch, used, value.data, value.bytes);
    field_close(&value);
    return result;
}

/* Writes count and headers of a row into the scratch block; the bytes used, or -1. */
static int64_t
gather_headers(sequences *from, Py_ssize_t row)
{
    PyObject *headers = PySequence_Tuple(PyTuple_GET_ITEM(from->headers, row));
    if (headers == NULL) {
        return -1;
    }
    size_t used = 0;
    int result = 0;
    if (!block_reserve(&from->scratch, 10)) {
        result = fail_memory();
    }
    else {
        uint8_t *start = from->scratch.data;
        used = (size_t)(write_varint(start, PyTuple_GET_SIZE(headers)) - start);
    }
    for (Py_ssize_t i = 0; result == 0 && i < PyTuple_GET_SIZE(headers); i++) {
        PyObject *pair = PySequence_Tuple(PyTuple_GET_ITEM(headers, i));
        result = pair == NULL ? -1 : append_header(from, pair, row, &used);
        Py_XDECREF(pair);
    }
    Py_DECREF(headers);
    return result < 0 ? -1 : (int64_t)used;
}

/* The int64 in a sequence, or -1 with `type` for one that does not fit. */
static int
int64_at(PyObject *sequence, Py_ssize_t row, int64_t *out, PyObject *type, const char *what)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(sequence, row), &overflow);
    if (overflow) {
        return fail_row(type, row, what);
    }
    if (value == -1 && PyErr_Occurred()) {
        return -1;
    }
    *out = value;
    return 0;
}

static int
row_deltas(sequences *from, Py_ssize_t row, int64_t *timestamp_delta, int64_t *offset_delta)
{
    static const char bad_offset[] = "offset not above the one before or out of range";
    static const char bad_time[] = "timestamp out of range";
    PyObject *invalid = from->state->invalid_record;
    int64_t timestamp = from->timestamp, offset;
    *offset_delta = row;
    if (from->offsets != NULL) {
        if (int64_at(from->offsets, row, &offset, invalid, bad_offset) < 0) {
            return -1;
        }
        if (__builtin_sub_overflow(offset, from->base_offset, offset_delta)) {
            return fail_row(invalid, row, bad_offset);
        }
    }
    if (*offset_delta < from->low || *offset_delta > INT32_MAX) {
        return fail_row(invalid, row, bad_offset);
    }
    from->low = *offset_delta + 1;
    if (from->timestamps != NULL &&
        int64_at(from->timestamps, row, &timestamp, invalid, bad_time) < 0) {
        return -1;
    }
    if (from->time_out_of_range ||
        __builtin_sub_overflow(timestamp, from->base_timestamp, timestamp_delta)) {
        return fail_row(invalid, row, bad_time);
    }
    return 0;
}

static int
append_row(sequences *from, Py_ssize_t row, const field *key, const field *value)
{
    int64_t timestamp_delta, offset_delta, header_bytes = 1;
    if (row_deltas(from, row, &timestamp_delta, &offset_delta) < 0) {
        return -1;
    }
    if (from->headers != NULL) {
        header_bytes = gather_headers(from, row);
        if (header_bytes < 0) {
            return -1;
        }
    }
    int64_t rest = field_size(key->bytes) + field_size(value->bytes) + header_bytes;
    if (rest > INT32_MAX - RECORD_OVERHEAD_MAX) {
        return fail_row(from->state->record_too_large, row, "longer than 2^31 - 1 bytes");
    }
    if (!block_reserve(&from->out, from->used + RECORD_OVERHEAD_MAX + (size_t)rest)) {
        return fail_memory();
    }
    uint8_t *out = from->out.data + from->used;
    out = write_prefix(out, timestamp_delta, offset_delta, rest);
    out = write_field(out, key->data, key->bytes);
    out = write_field(out, value->data, value->bytes);
    if (from->headers == NULL) {
        *out++ = 0;
    }
    else {
        memcpy(out, from->scratch.data, (size_t)header_bytes);
        out += header_bytes;
    }
    from->used = (size_t)(out - from->out.data);
    return 0;
}

static PyObject *
encode_rows(sequences *from)
{
    for (Py_ssize_t row = 0; row < from->rows; row++) {
        field key, value;
        PyObject *row_key = from->keys == NULL ? Py_None : PyTuple_GET_ITEM(from->keys, row);
        if (field_open(&key, row_key) < 0) {
            return NULL;
        }
        if (field_open(&value, PyTuple_GET_ITEM(from->values, row)) < 0) {
            field_close(&key);
            return NULL;
        }
        int result = append_row(from, row, &key, &value);
        field_close(&value);
        field_close(&key);
        if (result < 0) {
            return NULL;
        }
    }
    return PyBytes_FromStringAndSize((const char *)from->out.data, (Py_ssize_t)from->used);
}

/* A column as a tuple, which nobody can change while we read it. */
static int
take_column(PyObject **out, PyObject *column, const char *name, Py_ssize_t rows)
{
    *out = NULL;
    if (column == Py_None) {
        return 0;
    }
    *out = PySequence_Tuple(column);
    if (*out == NULL) {
        return -1;
    }
    if (PyTuple_GET_SIZE(*out) != rows) {
        PyErr_Format(PyExc_ValueError, "%s has %zd entries for %zd values", name,
                     PyTuple_GET_SIZE(*out), rows);
        return -1;
    }
    return 0;
}

static int
take_timestamps(sequences *from, PyObject *base, PyObject *timestamps)
{
    int overflow = 0;
    if (PyLong_Check(timestamps)) {
        from->timestamp = PyLong_AsLongLongAndOverflow(timestamps, &overflow);
    }
    else if (take_column(&from->timestamps, timestamps, "timestamps", from->rows) < 0) {
        return -1;
    }
    int base_overflow;
    from->base_timestamp = PyLong_AsLongLongAndOverflow(base, &base_overflow);
    if (PyErr_Occurred()) {
        return -1;
    }
    from->time_out_of_range = overflow || base_overflow;
    return 0;
}

PyObject *
native_encode_records(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"values",     "base_offset", "offsets", "base_timestamp",
                            "timestamps", "keys",        "headers", NULL};
    PyObject *values, *offsets = Py_None, *base_timestamp = NULL, *timestamps = NULL;
    PyObject *keys = Py_None, *headers = Py_None;
    long long base_offset = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$LOOOOO:encode_records", names, &values,
                                     &base_offset, &offsets, &base_timestamp, &timestamps, &keys,
                                     &headers)) {
        return NULL;
    }
    if (base_timestamp == NULL || timestamps == NULL || timestamps == Py_None) {
        PyErr_SetString(PyExc_TypeError, "encode_records needs base_timestamp and timestamps");
        return NULL;
    }
    sequences from = {.state = state_of(module), .base_offset = base_offset};
    PyObject *records = NULL;
    from.values = PySequence_Tuple(values);
    if (from.values != NULL) {
        from.rows = PyTuple_GET_SIZE(from.values);
        if (take_column(&from.offsets, offsets, "offsets", from.rows) == 0 &&
            take_timestamps(&from, base_timestamp, timestamps) == 0 &&
            take_column(&from.keys, keys, "keys", from.rows) == 0 &&
            take_column(&from.headers, headers, "headers", from.rows) == 0) {
            records = encode_rows(&from);
        }
    }
    Py_XDECREF(from.values);
    Py_XDECREF(from.offsets);
    Py_XDECREF(from.timestamps);
    Py_XDECREF(from.keys);
    Py_XDECREF(from.headers);
    PyMem_RawFree(from.out.data);
    PyMem_RawFree(from.scratch.data);
    return records;
}
