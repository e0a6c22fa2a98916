/* Writing a records section from columns in Arrow's layout, without a Python object per record. */
#include "_native.h"

#define BUFFERS_MAX 15

static ALWAYS_INLINE int32_t
load_int32(const uint8_t *data, int64_t index)
{
    int32_t value;
    memcpy(&value, data + index * 4, sizeof value);
    return value;
}

static ALWAYS_INLINE int64_t
load_int64(const uint8_t *data, int64_t index)
{
    int64_t value;
    memcpy(&value, data + index * 8, sizeof value);
    return value;
}

static ALWAYS_INLINE bool
is_valid(const uint8_t *validity, int64_t index)
{
    return validity == NULL || (validity[index >> 3] >> (index & 7) & 1);
}

typedef struct {
    const char *what; /* the fault of a row whose offsets are wrong */
    const uint8_t *offsets, *data, *validity;
    int64_t data_bytes, first;
} binary_input;

typedef struct {
    codec_state *state;
    Py_buffer held[BUFFERS_MAX];
    int held_count;
    bool has_keys, has_headers;
    binary_input values, keys, header_keys, header_values;
    const uint8_t *times, *time_validity;
    int64_t time_first, ticks_per_ms, timestamp;
    const uint8_t *header_offsets;
    int64_t header_first, header_entries;
    int64_t start, stop;
    int64_t base, highest;
    uint8_t *out, *out_end;
    int64_t row; /* the one that `what` is about */
    const char *what;
} columns_input;

/* The bytes of a buffer that is held until the end; NULL with an exception if it is too short. */
static const uint8_t *
take_buffer(columns_input *in, PyObject *object, const char *name, int64_t needed, int64_t *bytes)
{
    Py_buffer *held = &in->held[in->held_count];
    if (PyObject_GetBuffer(object, held, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    in->held_count++;
    if (held->len < needed) {
        PyErr_Format(PyExc_ValueError, "%s has %zd bytes, %lld are needed", name, held->len,
                     (long long)needed);
        return NULL;
    }
    if (bytes != NULL) {
        *bytes = held->len;
    }
    static const uint8_t nothing[1]; /* An empty buffer may have no address. */
    return held->buf == NULL ? nothing : held->buf;
}

static int
take_validity(columns_input *in, PyObject *object, const char *name, int64_t rows,
              const uint8_t **out)
{
    *out = NULL;
    if (object == Py_None) {
        return 0;
    }
    *out = take_buffer(in, object, name, (rows + 7) / 8, NULL);
    return *out == NULL ? -1 : 0;
}

static int
check_first(const char *name, int64_t first)
{
    /* Far above any column, and far below what an index computed from it could overflow. */
    if (first < 0 || first > INT64_C(1) << 48) {
        PyErr_Format(PyExc_ValueError, "%s starts at %lld", name, (long long)first);
        return -1;
    }
    return 0;
}

static int
take_binary(columns_input *in, PyObject *column, const char *const names[4], int64_t rows,
            binary_input *out)
{
    PyObject *offsets, *data, *validity;
    Py_ssize_t first;
    if (!PyTuple_Check(column)) {
        PyErr_Format(PyExc_TypeError, "%s is not a BinaryColumn", names[0]);
        return -1;
    }
    if (!PyArg_ParseTuple(column, "OOOn:BinaryColumn", &offsets, &data, &validity, &first) ||
        check_first(names[0], first) < 0) {
        return -1;
    }
    out->what = names[3];
    out->first = first;
    out->offsets = take_buffer(in, offsets, names[1], (first + rows + 1) * 4, NULL);
    if (out->offsets == NULL) {
        return -1;
    }
    out->data = take_buffer(in, data, names[0], 0, &out->data_bytes);
    if (out->data == NULL) {
        return -1;
    }
    return take_validity(in, validity, names[2], first + rows, &out->validity);
}

static int
take_times(columns_input *in, PyObject *column)
{
    PyObject *data, *validity;
    Py_ssize_t first;
    if (in->ticks_per_ms < 1) {
        PyErr_Format(PyExc_ValueError, "ticks_per_ms is %lld", (long long)in->ticks_per_ms);
        return -1;
    }
    if (column == Py_None) {
        return 0;
    }
    if (!PyTuple_Check(column)) {
        PyErr_SetString(PyExc_TypeError, "timestamps is not a LongColumn");
        return -1;
    }
    if (!PyArg_ParseTuple(column, "OOn:LongColumn", &data, &validity, &first) ||
        check_first("timestamps", first) < 0) {
        return -1;
    }
    in->time_first = first;
    in->times = take_buffer(in, data, "timestamps", (first + in->stop) * 8, NULL);
    if (in->times == NULL) {
        return -1;
    }
    return take_validity(in, validity, "timestamps validity", first + in->stop,
                         &in->time_validity);
}

static const char *const value_names[] = {"value", "value offsets", "value validity",
                                          "value offsets out of bounds"};
static const char *const key_names[] = {"key", "key offsets", "key validity",
                                        "key offsets out of bounds"};
static const char *const header_key_names[] = {"header key", "header key offsets",
                                               "header key validity",
                                               "header key offsets out of bounds"};
static const char *const header_value_names[] = {"header value", "header value offsets",
                                                 "header value validity",
                                                 "header value offsets out of bounds"};

static int
take_headers(columns_input *in, PyObject *column)
{
    PyObject *offsets, *keys, *values;
    Py_ssize_t first;
    if (column == Py_None) {
        return 0;
    }
    if (!PyTuple_Check(column)) {
        PyErr_SetString(PyExc_TypeError, "headers is not a HeaderColumn");
        return -1;
    }
    if (!PyArg_ParseTuple(column, "OOOn:HeaderColumn", &offsets, &keys, &values, &first) ||
        check_first("headers", first) < 0) {
        return -1;
    }
    in->has_headers = true;
    in->header_first = first;
    in->header_offsets =
        take_buffer(in, offsets, "headers offsets", (first + in->stop + 1) * 4, NULL);
    if (in->header_offsets == NULL) {
        return -1;
    }
    int32_t entries = load_int32(in->header_offsets, first + in->stop);
    in->header_entries = entries < 0 ? 0 : entries;
    if (take_binary(in, keys, header_key_names, in->header_entries, &in->header_keys) < 0) {
        return -1;
    }
    return take_binary(in, values, header_value_names, in->header_entries, &in->header_values);
}

static ALWAYS_INLINE bool
row_fails(columns_input *in, int64_t row, const char *what)
{
    in->row = row;
    in->what = what;
    return false;
}

/* Value `index` of a column, which belongs to record `row`. Offsets are checked for nulls too:
 * then no byte of the column is written twice, which the size of the output counts on. */
static ALWAYS_INLINE bool
read_binary(columns_input *in, const binary_input *column, int64_t index, int64_t row,
            const uint8_t **data, int64_t *bytes)
{
    index += column->first;
    int64_t start = load_int32(column->offsets, index);
    int64_t end = load_int32(column->offsets, index + 1);
    if (UNLIKELY(start < 0 || start > end || end > column->data_bytes)) {
        return row_fails(in, row, column->what);
    }
    *data = column->data + start;
    *bytes = is_valid(column->validity, index) ? end - start : -1;
    return true;
}

static ALWAYS_INLINE int64_t
floor_divide(int64_t value, int64_t divisor)
{
    int64_t quotient = value / divisor;
    return quotient - (value % divisor < 0);
}

static ALWAYS_INLINE int64_t
read_time(const columns_input *in, int64_t row)
{
    int64_t index = in->time_first + row;
    if (in->times == NULL || !is_valid(in->time_validity, index)) {
        return in->timestamp;
    }
    int64_t ticks = load_int64(in->times, index);
    /* Divisions by constants, which compilers turn into multiplications, for the usual units. */
    switch (in->ticks_per_ms) {
    case 1:
        return ticks;
    case 1000:
        return floor_divide(ticks, 1000);
    default:
        return floor_divide(ticks, in->ticks_per_ms);
    }
}

/* The entries of a row: their range, and what they take when written. */
static bool
measure_headers(columns_input *in, int64_t row, int64_t *from, int64_t *to, int64_t *size)
{
    *from = load_int32(in->header_offsets, in->header_first + row);
    *to = load_int32(in->header_offsets, in->header_first + row + 1);
    if (*from < 0 || *from > *to || *to > in->header_entries) {
        return row_fails(in, row, "header offsets out of bounds");
    }
    *size = varint_bytes(*to - *from);
    for (int64_t entry = *from; entry < *to; entry++) {
        const uint8_t *data;
        int64_t bytes;
        if (!read_binary(in, &in->header_keys, entry, row, &data, &bytes)) {
            return false;
        }
        if (bytes < 0 || !is_utf8(data, bytes)) {
            return row_fails(in, row, "header key is not valid text");
        }
        *size += field_size(bytes);
        if (!read_binary(in, &in->header_values, entry, row, &data, &bytes)) {
            return false;
        }
        *size += field_size(bytes);
    }
    return true;
}

static const char changed[] = "columns changed while they were read";
static const char too_long[] = "longer than 2^31 - 1 bytes";

static bool
write_headers(columns_input *in, int64_t row, int64_t from, int64_t to)
{
    in->out = write_varint(in->out, to - from);
    for (int64_t i = from * 2; i < to * 2; i++) {
        const binary_input *column = i & 1 ? &in->header_values : &in->header_keys;
        const uint8_t *data;
        int64_t bytes;
        if (!read_binary(in, column, i >> 1, row, &data, &bytes)) {
            return false;
        }
        if (field_size(bytes) > in->out_end - in->out) {
            return row_fails(in, row, changed);
        }
        in->out = write_field(in->out, data, bytes);
    }
    return true;
}

static ALWAYS_INLINE bool
write_row(columns_input *in, int64_t row)
{
    const uint8_t *key = NULL, *value;
    int64_t key_bytes = -1, value_bytes, delta;
    int64_t header_bytes = 1, from = 0, to = 0;
    int64_t time = read_time(in, row);
    in->highest = time > in->highest ? time : in->highest;
    if (UNLIKELY(__builtin_sub_overflow(time, in->base, &delta))) {
        return row_fails(in, row, "timestamp out of range");
    }
    if (in->has_keys && UNLIKELY(!read_binary(in, &in->keys, row, row, &key, &key_bytes))) {
        return false;
    }
    if (UNLIKELY(!read_binary(in, &in->values, row, row, &value, &value_bytes))) {
        return false;
    }
    if (in->has_headers && !measure_headers(in, row, &from, &to, &header_bytes)) {
        return false;
    }
    int64_t rest = field_size(key_bytes) + field_size(value_bytes) + header_bytes;
    if (UNLIKELY(rest > INT32_MAX - RECORD_OVERHEAD_MAX)) {
        return row_fails(in, row, too_long);
    }
    if (UNLIKELY(rest + RECORD_OVERHEAD_MAX > in->out_end - in->out)) {
        return row_fails(in, row, changed);
    }
    uint8_t *out = write_prefix(in->out, delta, row - in->start, rest);
    out = write_field(out, key, key_bytes);
    out = write_field(out, value, value_bytes);
    if (!in->has_headers) {
        *out++ = 0;
        in->out = out;
        return true;
    }
    in->out = out;
    return write_headers(in, row, from, to);
}

static bool
write_rows(columns_input *in)
{
    in->base = in->highest = in->start < in->stop ? read_time(in, in->start) : in->timestamp;
    for (int64_t row = in->start; row < in->stop; row++) {
        if (UNLIKELY(!write_row(in, row))) {
            return false;
        }
    }
    return true;
}

/* The most that values from..to can take: all their bytes. */
static int64_t
binary_bound(const binary_input *column, int64_t from, int64_t to)
{
    int64_t start = load_int32(column->offsets, column->first + from);
    int64_t end = load_int32(column->offsets, column->first + to);
    bool in_bounds = 0 <= start && start <= end && end <= column->data_bytes;
    /* Out of bounds somewhere: until that row is found and refused, no byte is written twice. */
    return in_bounds ? end - start : column->data_bytes;
}

static int64_t
output_bound(const columns_input *in)
{
    /* One overhead more, since a row asks for all of it before it writes less. */
    int64_t bound = (in->stop - in->start + 1) * (RECORD_OVERHEAD_MAX + 10);
    bound += binary_bound(&in->values, in->start, in->stop);
    if (in->has_keys) {
        bound += binary_bound(&in->keys, in->start, in->stop);
    }
    if (in->has_headers) {
        int64_t first = load_int32(in->header_offsets, in->header_first + in->start);
        first = first < 0 || first > in->header_entries ? 0 : first;
        bound += (in->header_entries - first) * 10;
        bound += binary_bound(&in->header_keys, first, in->header_entries);
        bound += binary_bound(&in->header_values, first, in->header_entries);
    }
    return bound;
}

static PyObject *
encode_columns(columns_input *in, int64_t reserve)
{
    int64_t size = reserve + output_bound(in);
    PyObject *section = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (section == NULL) {
        return NULL;
    }
    uint8_t *start = (uint8_t *)PyByteArray_AS_STRING(section);
    bool good;
    memset(start, 0, (size_t)reserve);
    in->out = start + reserve;
    in->out_end = start + size;
    Py_BEGIN_ALLOW_THREADS
    good = write_rows(in);
    Py_END_ALLOW_THREADS
    if (!good) {
        codec_state *state = in->state;
        raise_row(in->what == too_long ? state->record_too_large : state->invalid_record, in->row,
                  in->what);
    }
    if (!good || PyByteArray_Resize(section, in->out - start) < 0) {
        Py_DECREF(section);
        return NULL;
    }
    return Py_BuildValue("NLL", section, (long long)in->base, (long long)in->highest);
}

PyObject *
native_encode_arrow(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"values",     "start",        "stop",    "timestamp", "keys",
                            "timestamps", "ticks_per_ms", "headers", "reserve",   NULL};
    PyObject *values, *keys = Py_None, *timestamps = Py_None, *headers = Py_None;
    long long start, stop, timestamp, ticks_per_ms = 1, reserve = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OLLL|OOLOL:encode_arrow", names, &values,
                                     &start, &stop, &timestamp, &keys, &timestamps, &ticks_per_ms,
                                     &headers, &reserve)) {
        return NULL;
    }
    if (start < 0 || start > stop || stop - start > INT32_MAX || stop > INT64_C(1) << 48 ||
        reserve < 0 || reserve > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "rows %lld to %lld, reserve %lld", start, stop, reserve);
        return NULL;
    }
    columns_input in = {.state = state_of(module),
                        .start = start,
                        .stop = stop,
                        .timestamp = timestamp,
                        .ticks_per_ms = ticks_per_ms,
                        .has_keys = keys != Py_None};
    PyObject *result = NULL;
    if (take_binary(&in, values, value_names, stop, &in.values) == 0 &&
        (!in.has_keys || take_binary(&in, keys, key_names, stop, &in.keys) == 0) &&
        take_times(&in, timestamps) == 0 && take_headers(&in, headers) == 0) {
        result = encode_columns(&in, reserve);
    }
    for (int i = 0; i < in.held_count; i++) {
        PyBuffer_Release(&in.held[i]);
    }
    return result;
}
