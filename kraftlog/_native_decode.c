/* Reading a records section: checks, Python records, and a change of base timestamp. */
#include "_native.h"

void
raise_corrupt(codec_state *state, fault found)
{
    PyErr_Format(state->corrupt_record, "records section, byte %lld: %s",
                 (long long)found.position, found.what);
}

void
raise_row(PyObject *type, int64_t row, const char *what)
{
    PyErr_Format(type, "record %lld: %s", (long long)row, what);
}

int
check_offsets(int64_t base_offset, int64_t last_offset_delta)
{
    bool in_range = base_offset >= 0 && last_offset_delta >= 0 && last_offset_delta <= INT32_MAX;
    if (!in_range || base_offset > INT64_MAX - last_offset_delta) {
        PyErr_Format(PyExc_ValueError, "base offset %lld, last offset delta %lld",
                     (long long)base_offset, (long long)last_offset_delta);
        return -1;
    }
    return 0;
}

varint
read_long_varint(const uint8_t *data, const uint8_t *end, int bits)
{
    uint64_t raw = 0;
    for (int shift = 0;; shift += 7) {
        if (data == end) {
            return (varint){NULL, 0, "varint runs past the end"};
        }
        uint8_t byte = *data++;
        uint64_t group = byte & 0x7F;
        /* The last byte of ten holds one bit of 64, the last of five holds four of 32. */
        bool overflows = shift + 7 > bits && group >> (bits - shift) != 0;
        raw |= overflows ? 0 : group << shift;
        if (byte < 0x80) {
            if (overflows) {
                return (varint){NULL, 0, "varint is too long"};
            }
            if (byte == 0 && shift > 0) {
                return (varint){NULL, 0, "varint is not in its shortest form"};
            }
            return (varint){data, raw, NULL};
        }
        if (shift + 7 >= bits) {
            return (varint){NULL, 0, "varint is too long"};
        }
    }
}

/* The bytes that follow a lead byte of UTF-8, and the bounds of the first of them: overlong forms,
 * surrogates and what is above U+10FFFF are no UTF-8. -1 for a byte that cannot lead. */
static int
utf8_lead(uint8_t lead, uint8_t *low, uint8_t *high)
{
    *low = 0x80;
    *high = 0xBF;
    if (lead < 0x80) {
        return 0;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        return 1;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        *low = lead == 0xE0 ? 0xA0 : 0x80;
        *high = lead == 0xED ? 0x9F : 0xBF;
        return 2;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        *low = lead == 0xF0 ? 0x90 : 0x80;
        *high = lead == 0xF4 ? 0x8F : 0xBF;
        return 3;
    }
    return -1;
}

bool
is_utf8(const uint8_t *data, int64_t bytes)
{
    const uint8_t *end = data + bytes;
    while (data < end) {
        uint8_t low, high;
        int following = utf8_lead(*data++, &low, &high);
        if (following < 0 || following > end - data) {
            return false;
        }
        for (; following > 0; following--, data++) {
            if (*data < low || *data > high) {
                return false;
            }
            low = 0x80;
            high = 0xBF;
        }
    }
    return true;
}

bool
scan_header(scanner *scan, const uint8_t **next, const uint8_t *end, header_span *out)
{
    const uint8_t *start = *next;
    varint read = read_varint(start, end, 32);
    if (read.next == NULL) {
        return scan_fails(scan, start, read.what);
    }
    out->key = read.next;
    out->key_bytes = unzigzag(read.raw);
    if (out->key_bytes < 0 || out->key_bytes > end - read.next) {
        return scan_fails(scan, start, "header key length out of bounds");
    }
    if (!is_utf8(out->key, out->key_bytes)) {
        return scan_fails(scan, out->key, "header key is not UTF-8");
    }
    *next = out->key + out->key_bytes;
    return scan_bytes(scan, next, end, &out->value, &out->value_bytes,
                      "header value length out of bounds");
}

const uint8_t *
scan_headers(scanner *scan, const uint8_t *next, const uint8_t *end, int64_t count)
{
    header_span header;
    for (int64_t i = 0; i < count; i++) {
        if (!scan_header(scan, &next, end, &header)) {
            return NULL;
        }
    }
    return next;
}

static PyObject *
bytes_or_none(const uint8_t *data, int64_t bytes)
{
    if (bytes < 0) {
        Py_RETURN_NONE;
    }
    return PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)bytes);
}

static PyObject *
header_of(const header_span *header)
{
    PyObject *pair = PyTuple_New(2);
    if (pair == NULL) {
        return NULL;
    }
    PyObject *key = PyUnicode_DecodeUTF8((const char *)header->key,
                                         (Py_ssize_t)header->key_bytes, NULL);
    PyTuple_SET_ITEM(pair, 0, key);
    PyObject *value = bytes_or_none(header->value, header->value_bytes);
    PyTuple_SET_ITEM(pair, 1, value);
    if (key == NULL || value == NULL) {
        Py_DECREF(pair);
        return NULL;
    }
    return pair;
}

/* NULL with an exception, or with only a fault in `scan`. */
static PyObject *
headers_of(scanner *scan, const span *record)
{
    PyObject *headers = PyTuple_New((Py_ssize_t)record->header_count);
    if (headers == NULL) {
        return NULL;
    }
    const uint8_t *next = record->headers;
    for (int64_t i = 0; i < record->header_count; i++) {
        header_span header;
        PyObject *pair = NULL;
        if (scan_header(scan, &next, record->end, &header)) {
            pair = header_of(&header);
        }
        if (pair == NULL) {
            Py_DECREF(headers);
            return NULL;
        }
        PyTuple_SET_ITEM(headers, (Py_ssize_t)i, pair);
    }
    return headers;
}

typedef struct {
    PyTypeObject *type; /* of tuples that hold the prefix and five fields */
    PyObject *prefix;   /* a tuple */
    int64_t base_offset;
    int64_t from_offset;   /* records below it are checked and left out */
    PyObject *append_time; /* NULL without */
    bool is_flat;          /* nothing in the prefix can refer to anything else */
} record_maker;

static PyObject *
record_of(scanner *scan, const span *found, const record_maker *maker)
{
    Py_ssize_t before = PyTuple_GET_SIZE(maker->prefix);
    PyObject *record = maker->type->tp_alloc(maker->type, before + 5);
    if (record == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < before; i++) {
        PyTuple_SET_ITEM(record, i, Py_NewRef(PyTuple_GET_ITEM(maker->prefix, i)));
    }
    PyObject *offset = PyLong_FromLongLong(maker->base_offset + found->offset_delta);
    PyObject *timestamp = maker->append_time != NULL
                              ? Py_NewRef(maker->append_time)
                              : PyLong_FromLongLong(scan->base_timestamp + found->timestamp_delta);
    PyObject *key = bytes_or_none(found->key, found->key_bytes);
    PyObject *value = bytes_or_none(found->value, found->value_bytes);
    PyObject *headers = headers_of(scan, found);
    PyTuple_SET_ITEM(record, before, offset);
    PyTuple_SET_ITEM(record, before + 1, timestamp);
    PyTuple_SET_ITEM(record, before + 2, key);
    PyTuple_SET_ITEM(record, before + 3, value);
    PyTuple_SET_ITEM(record, before + 4, headers);
    if (offset == NULL || timestamp == NULL || key == NULL || value == NULL || headers == NULL) {
        Py_DECREF(record);
        return NULL;
    }
    /* No cycle can pass through it; to look for one is half the cost of millions of records. */
    if (maker->is_flat && found->header_count == 0) {
        PyObject_GC_UnTrack(record);
    }
    return record;
}

static PyObject *
records_of(scanner *scan, int64_t count, const record_maker *maker)
{
    PyObject *records = PyList_New((Py_ssize_t)count);
    if (records == NULL) {
        return NULL;
    }
    Py_ssize_t rows = 0;
    for (int64_t i = 0; i < count; i++) {
        span found;
        bool good = scan_record(scan, &found);
        if (good && maker->base_offset + found.offset_delta < maker->from_offset) {
            continue;
        }
        PyObject *record = good ? record_of(scan, &found, maker) : NULL;
        if (record == NULL) {
            Py_DECREF(records);
            return NULL;
        }
        PyList_SET_ITEM(records, rows++, record);
    }
    if (!scan_end(scan)) {
        Py_DECREF(records);
        return NULL;
    }
    if (rows < count && PyList_SetSlice(records, rows, (Py_ssize_t)count, NULL) < 0) {
        Py_DECREF(records);
        return NULL;
    }
    return records;
}

typedef struct {
    Py_buffer data;
    long long count, base_offset, base_timestamp, last_offset_delta;
} section;

/* The records of a section, which is released. */
static PyObject *
decode_section(codec_state *state, section *from, const record_maker *maker)
{
    PyObject *records = NULL;
    scanner scan = {0};
    if (check_offsets(from->base_offset, from->last_offset_delta) == 0 &&
        scan_start(&scan, &from->data, from->count, from->base_timestamp,
                   from->last_offset_delta, false)) {
        records = records_of(&scan, from->count, maker);
    }
    PyBuffer_Release(&from->data);
    if (records == NULL && scan.found.what != NULL && !PyErr_Occurred()) {
        raise_corrupt(state, scan.found);
    }
    return records;
}

PyObject *
native_decode_records(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data",           "count",             "base_offset",
                            "base_timestamp", "last_offset_delta", "append_time",
                            NULL};
    codec_state *state = state_of(module);
    section from;
    PyObject *append_time = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*LLLL|O:decode_records", names, &from.data,
                                     &from.count, &from.base_offset, &from.base_timestamp,
                                     &from.last_offset_delta, &append_time)) {
        return NULL;
    }
    PyObject *prefix = PyTuple_New(0);
    if (prefix == NULL) {
        PyBuffer_Release(&from.data);
        return NULL;
    }
    record_maker maker = {.type = state->record,
                          .prefix = prefix,
                          .base_offset = from.base_offset,
                          .append_time = append_time == Py_None ? NULL : append_time,
                          .is_flat = true};
    PyObject *records = decode_section(state, &from, &maker);
    Py_DECREF(prefix);
    return records;
}

/* Whether instances are nothing but a tuple, so that one can be made without asking the type. */
static bool
is_plain_tuple_type(PyTypeObject *type)
{
    return PyType_IsSubtype(type, &PyTuple_Type) && type->tp_dictoffset == 0 &&
           type->tp_basicsize == PyTuple_Type.tp_basicsize;
}

static bool
is_flat(PyObject *prefix)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(prefix); i++) {
        PyObject *item = PyTuple_GET_ITEM(prefix, i);
        if (!PyUnicode_CheckExact(item) && !PyLong_CheckExact(item)) {
            return false;
        }
    }
    return true;
}

PyObject *
native_decode_rows(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data",        "count",          "row_type",          "prefix",
                            "base_offset", "base_timestamp", "last_offset_delta", "append_time",
                            "from_offset", NULL};
    section from;
    PyTypeObject *type;
    PyObject *prefix, *append_time = Py_None;
    long long from_offset = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*LO!O!LLL|OL:decode_rows", names, &from.data,
                                     &from.count, &PyType_Type, &type, &PyTuple_Type, &prefix,
                                     &from.base_offset, &from.base_timestamp,
                                     &from.last_offset_delta, &append_time, &from_offset)) {
        return NULL;
    }
    if (!is_plain_tuple_type(type)) {
        PyBuffer_Release(&from.data);
        PyErr_Format(PyExc_TypeError, "%s is more than a tuple", type->tp_name);
        return NULL;
    }
    record_maker maker = {.type = type,
                          .prefix = prefix,
                          .base_offset = from.base_offset,
                          .from_offset = from_offset,
                          .append_time = append_time == Py_None ? NULL : append_time,
                          .is_flat = is_flat(prefix)};
    return decode_section(state_of(module), &from, &maker);
}

PyObject *
native_walk_records(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data", "count", "base_timestamp", NULL};
    Py_buffer data;
    long long count, base_timestamp;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*LL:walk_records", names, &data, &count,
                                     &base_timestamp)) {
        return NULL;
    }
    scanner scan;
    bool good = scan_start(&scan, &data, count, base_timestamp, INT32_MAX, true);
    int64_t oldest = INT64_MAX, newest = INT64_MIN;
    Py_BEGIN_ALLOW_THREADS
    span found;
    for (int64_t i = 0; good && i < count; i++) {
        good = scan_record(&scan, &found);
        if (good) {
            int64_t timestamp = base_timestamp + found.timestamp_delta; /* checked by the scan */
            oldest = timestamp < oldest ? timestamp : oldest;
            newest = timestamp > newest ? timestamp : newest;
        }
    }
    good = good && scan_end(&scan);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    if (!good) {
        raise_corrupt(state_of(module), scan.found);
        return NULL;
    }
    if (count == 0) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(LL)", (long long)oldest, (long long)newest);
}

/* Writes the record with `shift` added to its timestamp delta; `out` has room for 10 bytes more
 * than the record has: 9 for the delta and 1 for the length. */
static uint8_t *
write_shifted(uint8_t *out, const span *record, int64_t shift)
{
    int64_t delta = record->timestamp_delta + shift; /* scan_record has checked this sum */
    int64_t rest = record->end - record->after_timestamp;
    out = write_varint(out, 1 + varint_bytes(delta) + rest);
    *out++ = 0;
    out = write_varint(out, delta);
    memcpy(out, record->after_timestamp, (size_t)rest);
    return out + rest;
}

PyObject *
native_shift_timestamps(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data", "count", "shift", NULL};
    codec_state *state = state_of(module);
    Py_buffer data;
    long long count, shift;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*LL:shift_timestamps", names, &data, &count,
                                     &shift)) {
        return NULL;
    }
    PyObject *shifted = NULL;
    scanner scan;
    bool good = scan_start(&scan, &data, count, shift, INT32_MAX, false);
    if (!good) {
        raise_corrupt(state, scan.found);
    }
    else {
        /* 10 bytes of growth a record; count is at most a seventh of the bytes here. */
        shifted = PyBytes_FromStringAndSize(NULL, data.len + (Py_ssize_t)count * 10);
    }
    if (shifted != NULL) {
        uint8_t *start = (uint8_t *)PyBytes_AS_STRING(shifted), *out = start;
        Py_BEGIN_ALLOW_THREADS
        span record;
        for (int64_t i = 0; good && i < count; i++) {
            good = scan_record(&scan, &record);
            out = good ? write_shifted(out, &record, shift) : out;
        }
        good = good && scan_end(&scan);
        Py_END_ALLOW_THREADS
        if (good) {
            _PyBytes_Resize(&shifted, out - start);
        }
        else {
            raise_corrupt(state, scan.found);
            Py_CLEAR(shifted);
        }
    }
    PyBuffer_Release(&data);
    return shifted;
}
