/* What the parts of the native codec share: the module's state, faults, varints, record spans.
 *
 * Rules of this code. Every read is checked against an end pointer, also a second read of the same
 * bytes: a caller may hand in a buffer that another thread changes while we run without the GIL.
 * Integers of the wire are read byte by byte or with memcpy, sums of wire values are done in 64
 * bits, and what can overflow those goes through the overflow builtins. */
#ifndef KRAFTLOG_NATIVE_H
#define KRAFTLOG_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#else
#error "the native codec needs gcc or clang"
#endif

#define RECORD_BYTES_MIN 7
/* The most that a record takes beside key, value and headers: 5 length, 1 attributes, 10 and 5
 * deltas, 5 and 5 lengths, 5 header count. */
#define RECORD_OVERHEAD_MAX 36

typedef struct {
    PyObject *corrupt_record;
    PyObject *invalid_record;
    PyObject *record_too_large;
    PyTypeObject *record;
    PyObject *binary_column;
    PyObject *header_column;
    PyObject *arrow_buffers;
    PyObject *retained;
    PyTypeObject *block_type;
    PyTypeObject *columns_type;
} codec_state;

static inline codec_state *
state_of(PyObject *module)
{
    return (codec_state *)PyModule_GetState(module);
}

/* What is wrong with the bytes, and where; `what` is NULL while nothing is. */
typedef struct {
    const char *what;
    int64_t position;
} fault;

/* Sets CorruptRecord. */
void raise_corrupt(codec_state *state, fault found);
/* Sets `type` with "record <row>: <what>". */
void raise_row(PyObject *type, int64_t row, const char *what);
/* 0 or -1 with ValueError: offsets of a batch must be offsets. */
int check_offsets(int64_t base_offset, int64_t last_offset_delta);
bool is_utf8(const uint8_t *data, int64_t bytes);

/* Varints: little-endian groups of seven bits, zigzag. Only the shortest form is taken. */

typedef struct {
    const uint8_t *next; /* NULL when the varint is bad */
    uint64_t raw;
    const char *what;
} varint;

varint read_long_varint(const uint8_t *data, const uint8_t *end, int bits);

static ALWAYS_INLINE int64_t
unzigzag(uint64_t raw)
{
    return (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
}

static ALWAYS_INLINE uint64_t
zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value < 0 ? -1 : 0);
}

static ALWAYS_INLINE varint
read_varint(const uint8_t *data, const uint8_t *end, int bits)
{
    if (LIKELY(data < end) && LIKELY(data[0] < 0x80)) {
        return (varint){data + 1, data[0], NULL};
    }
    /* Two bytes, the second neither going on nor 0: lengths of 64 to 8191. */
    if (end - data >= 2 && data[1] < 0x80 && data[1] != 0) {
        return (varint){data + 2, (uint64_t)(data[0] & 0x7F) | (uint64_t)data[1] << 7, NULL};
    }
    return read_long_varint(data, end, bits);
}

static ALWAYS_INLINE int
raw_varint_bytes(uint64_t raw)
{
    /* 7 bits a byte: (significant bits + 6) / 7, without a division. */
    return ((63 - __builtin_clzll(raw | 1)) * 9 + 73) >> 6;
}

static ALWAYS_INLINE int
varint_bytes(int64_t value)
{
    return raw_varint_bytes(zigzag(value));
}

/* Writes at most 10 bytes; the caller has made room. */
static ALWAYS_INLINE uint8_t *
write_varint(uint8_t *out, int64_t value)
{
    uint64_t raw = zigzag(value);
    while (raw >= 0x80) {
        *out++ = (uint8_t)(raw | 0x80);
        raw >>= 7;
    }
    *out++ = (uint8_t)raw;
    return out;
}

/* Records. */

typedef struct {
    const uint8_t *start, *end; /* the record with its length */
    const uint8_t *body;        /* after the length */
    const uint8_t *after_timestamp;
    int64_t timestamp_delta;
    int64_t offset_delta;
    const uint8_t *key, *value;
    int64_t key_bytes, value_bytes; /* -1 is null */
    const uint8_t *headers;         /* after the count */
    int64_t header_count;
} span;

typedef struct {
    const uint8_t *key, *value;
    int64_t key_bytes, value_bytes; /* a value of -1 bytes is null */
} header_span;

typedef struct {
    const uint8_t *data, *end, *next;
    int64_t base_timestamp;
    int64_t low, high; /* the offset deltas that the next record may have */
    bool dense;        /* it must have `low` */
    fault found;
} scanner;

static ALWAYS_INLINE bool
scan_fails(scanner *scan, const uint8_t *where, const char *what)
{
    scan->found = (fault){what, where - scan->data};
    return false;
}

/* False with a fault when `count` records cannot be in `bytes` bytes. */
static inline bool
scan_start(scanner *scan, const Py_buffer *data, int64_t count, int64_t base_timestamp,
           int64_t last_offset_delta, bool dense)
{
    const uint8_t *start = data->buf;
    *scan = (scanner){start, start + data->len, start, base_timestamp, 0, last_offset_delta,
                      dense, {NULL, 0}};
    if (count < 0 || count > data->len / RECORD_BYTES_MIN) {
        return scan_fails(scan, start, "record count does not fit the data");
    }
    return true;
}

/* False with a fault when bytes are left over. */
static inline bool
scan_end(scanner *scan)
{
    if (scan->next != scan->end) {
        return scan_fails(scan, scan->next, "bytes left over after the last record");
    }
    return true;
}

/* One header at *next; false with a fault. */
bool scan_header(scanner *scan, const uint8_t **next, const uint8_t *end, header_span *out);
/* All headers of a record whose first is at `next`; NULL with a fault, else where they end. */
const uint8_t *scan_headers(scanner *scan, const uint8_t *next, const uint8_t *end, int64_t count);

/* A field with a length before it at *next. */
static ALWAYS_INLINE bool
scan_bytes(scanner *scan, const uint8_t **next, const uint8_t *end, const uint8_t **field,
           int64_t *bytes, const char *what)
{
    const uint8_t *start = *next;
    varint read = read_varint(start, end, 32);
    if (UNLIKELY(read.next == NULL)) {
        return scan_fails(scan, start, read.what);
    }
    *field = read.next;
    *bytes = unzigzag(read.raw);
    if (*bytes == -1) {
        *next = read.next;
        return true;
    }
    if (UNLIKELY(*bytes < 0 || *bytes > end - read.next)) {
        return scan_fails(scan, start, what);
    }
    *next = read.next + *bytes;
    return true;
}

/* The next record, checked to its last byte; false with a fault. */
static ALWAYS_INLINE bool
scan_record(scanner *scan, span *out)
{
    const uint8_t *start = scan->next;
    varint read = read_varint(start, scan->end, 32);
    if (UNLIKELY(read.next == NULL)) {
        return scan_fails(scan, start, read.what);
    }
    int64_t length = unzigzag(read.raw);
    if (UNLIKELY(length < RECORD_BYTES_MIN - 1 || length > scan->end - read.next)) {
        return scan_fails(scan, start, "record length out of bounds");
    }
    const uint8_t *next = read.next, *end = next + length;
    out->start = start;
    out->body = next;
    out->end = end;
    if (UNLIKELY(*next != 0)) {
        return scan_fails(scan, next, "unknown record attributes");
    }
    next++;
    read = read_varint(next, end, 64);
    if (UNLIKELY(read.next == NULL)) {
        return scan_fails(scan, next, read.what);
    }
    out->timestamp_delta = unzigzag(read.raw);
    int64_t timestamp;
    if (UNLIKELY(__builtin_add_overflow(scan->base_timestamp, out->timestamp_delta, &timestamp))) {
        return scan_fails(scan, next, "timestamp out of range");
    }
    next = out->after_timestamp = read.next;
    read = read_varint(next, end, 32);
    if (UNLIKELY(read.next == NULL)) {
        return scan_fails(scan, next, read.what);
    }
    out->offset_delta = unzigzag(read.raw);
    int64_t high = scan->dense ? scan->low : scan->high;
    if (UNLIKELY(out->offset_delta < scan->low || out->offset_delta > high)) {
        return scan_fails(scan, next, "offset delta out of order");
    }
    scan->low = out->offset_delta + 1;
    next = read.next;
    if (UNLIKELY(!scan_bytes(scan, &next, end, &out->key, &out->key_bytes,
                             "key length out of bounds")) ||
        UNLIKELY(!scan_bytes(scan, &next, end, &out->value, &out->value_bytes,
                             "value length out of bounds"))) {
        return false;
    }
    read = read_varint(next, end, 32);
    if (UNLIKELY(read.next == NULL)) {
        return scan_fails(scan, next, read.what);
    }
    out->header_count = unzigzag(read.raw);
    out->headers = read.next;
    if (UNLIKELY(out->header_count < 0 || out->header_count > (end - read.next) / 2)) {
        return scan_fails(scan, next, "header count out of bounds");
    }
    next = read.next;
    if (UNLIKELY(out->header_count > 0)) {
        next = scan_headers(scan, next, end, out->header_count);
        if (next == NULL) {
            return false;
        }
    }
    if (UNLIKELY(next != end)) {
        return scan_fails(scan, next, "record is longer than its fields");
    }
    scan->next = end;
    return true;
}

/* Writing records; the caller has made room. */

static ALWAYS_INLINE int64_t
field_size(int64_t bytes)
{
    return bytes < 0 ? 1 : varint_bytes(bytes) + bytes;
}

static ALWAYS_INLINE uint8_t *
write_field(uint8_t *out, const uint8_t *data, int64_t bytes)
{
    out = write_varint(out, bytes);
    if (bytes > 0) {
        memcpy(out, data, (size_t)bytes);
        out += bytes;
    }
    return out;
}

/* Everything before the key. `rest` is what follows the offset delta. */
static ALWAYS_INLINE uint8_t *
write_prefix(uint8_t *out, int64_t timestamp_delta, int64_t offset_delta, int64_t rest)
{
    int64_t body = 1 + varint_bytes(timestamp_delta) + varint_bytes(offset_delta) + rest;
    out = write_varint(out, body);
    *out++ = 0;
    out = write_varint(out, timestamp_delta);
    return write_varint(out, offset_delta);
}

/* Memory that grows, outside Python's allocator so that it can do so without the GIL. */

typedef struct {
    uint8_t *data;
    size_t capacity;
} block;

/* Grows *memory to at least `needed` bytes; false without memory, which leaves it as it was. */
NOINLINE bool block_grow(block *memory, size_t needed);
/* A memoryview of the first `bytes` of *memory, which is given away. */
PyObject *block_finish(codec_state *state, block *memory, int64_t bytes);

static ALWAYS_INLINE bool
block_reserve(block *memory, size_t needed)
{
    return LIKELY(needed <= memory->capacity) || block_grow(memory, needed);
}

/* The functions of the module, by file. */

PyObject *native_decode_records(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *native_decode_rows(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *native_walk_records(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *native_shift_timestamps(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *native_encode_records(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *native_encode_arrow(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *native_murmur2(PyObject *module, PyObject *key);
PyObject *native_partition_keys(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *native_offset_map_put(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *native_offset_map_get(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *native_retain_records(PyObject *module, PyObject *args, PyObject *kwargs);
extern PyType_Spec native_block_spec;
extern PyType_Spec native_columns_spec;

#endif
