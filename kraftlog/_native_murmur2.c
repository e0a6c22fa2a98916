/* Kafka's hash of keys, one by one and by the column. */
#include "_native.h"

static uint32_t
load_le32(const uint8_t *data, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint32_t)data[i] << (8 * i);
    }
    return value;
}

static uint32_t
murmur2(const uint8_t *data, Py_ssize_t bytes)
{
    const uint32_t multiplier = 0x5bd1e995;
    uint32_t hash = 0x9747b28c ^ (uint32_t)bytes;
    const uint8_t *whole_end = data + (bytes & ~(Py_ssize_t)3);
    for (; data < whole_end; data += 4) {
        uint32_t word = load_le32(data, 4) * multiplier;
        word = (word ^ word >> 24) * multiplier;
        hash = hash * multiplier ^ word;
    }
    if (bytes & 3) {
        hash = (hash ^ load_le32(data, (int)(bytes & 3))) * multiplier;
    }
    hash = (hash ^ hash >> 13) * multiplier;
    return hash ^ hash >> 15;
}

PyObject *
native_murmur2(PyObject *module, PyObject *key)
{
    Py_buffer view;
    (void)module;
    if (PyObject_GetBuffer(key, &view, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    static const uint8_t nothing[1]; /* An empty buffer may have no address. */
    uint32_t hash = murmur2(view.len == 0 ? nothing : view.buf, view.len);
    PyBuffer_Release(&view);
    return PyLong_FromLong((long)(hash >> 31 ? (int64_t)hash - (INT64_C(1) << 32) : hash));
}

typedef struct {
    Py_buffer offsets, data, validity; /* without validity: .obj is NULL */
    int64_t first, rows;
    int32_t partitions, otherwise;
} keys_input;

static bool
key_is_valid(const keys_input *in, int64_t index)
{
    const uint8_t *validity = in->validity.obj == NULL ? NULL : in->validity.buf;
    return validity == NULL || (validity[index >> 3] >> (index & 7) & 1);
}

/* The partition of each key into `out`; -1, or the first row whose offsets are wrong. */
static int64_t
partition_rows(const keys_input *in, uint8_t *out)
{
    static const uint8_t nothing[1];
    const uint8_t *offsets = in->offsets.buf;
    const uint8_t *data = in->data.buf == NULL ? nothing : in->data.buf;
    for (int64_t row = 0; row < in->rows; row++) {
        int64_t index = in->first + row;
        int32_t bounds[2], partition = in->otherwise;
        memcpy(bounds, offsets + index * 4, sizeof bounds);
        if (UNLIKELY(bounds[0] < 0 || bounds[0] > bounds[1] || bounds[1] > in->data.len)) {
            return row;
        }
        if (key_is_valid(in, index)) {
            uint32_t hash = murmur2(data + bounds[0], bounds[1] - bounds[0]);
            partition = (int32_t)((hash & INT32_MAX) % (uint32_t)in->partitions);
        }
        memcpy(out + row * 4, &partition, sizeof partition);
    }
    return -1;
}

static int
take_keys_buffer(PyObject *object, Py_buffer *held, const char *name, int64_t needed)
{
    if (PyObject_GetBuffer(object, held, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    if (held->len < needed) {
        PyErr_Format(PyExc_ValueError, "%s has %zd bytes, %lld are needed", name, held->len,
                     (long long)needed);
        return -1;
    }
    return 0;
}

static int
take_keys(keys_input *in, PyObject *column)
{
    PyObject *offsets, *data, *validity;
    Py_ssize_t first;
    if (!PyTuple_Check(column)) {
        PyErr_SetString(PyExc_TypeError, "key is not a BinaryColumn");
        return -1;
    }
    if (!PyArg_ParseTuple(column, "OOOn:BinaryColumn", &offsets, &data, &validity, &first)) {
        return -1;
    }
    /* Far above any column, and far below what an index computed from it could overflow. */
    if (first < 0 || first > INT64_C(1) << 48) {
        PyErr_Format(PyExc_ValueError, "key starts at %zd", first);
        return -1;
    }
    in->first = first;
    int64_t rows = first + in->rows;
    if (take_keys_buffer(offsets, &in->offsets, "key offsets", (rows + 1) * 4) < 0 ||
        take_keys_buffer(data, &in->data, "key", 0) < 0) {
        return -1;
    }
    return validity == Py_None
               ? 0
               : take_keys_buffer(validity, &in->validity, "key validity", (rows + 7) / 8);
}

static PyObject *
partition_column(codec_state *state, keys_input *in)
{
    PyObject *found = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(in->rows * 4));
    if (found == NULL) {
        return NULL;
    }
    uint8_t *out = (uint8_t *)PyByteArray_AS_STRING(found);
    int64_t bad;
    Py_BEGIN_ALLOW_THREADS
    bad = partition_rows(in, out);
    Py_END_ALLOW_THREADS
    if (bad >= 0) {
        Py_DECREF(found);
        raise_row(state->invalid_record, bad, "key offsets out of bounds");
        return NULL;
    }
    return found;
}

PyObject *
native_partition_keys(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"keys", "rows", "partitions", "otherwise", NULL};
    PyObject *keys;
    long long rows, partitions, otherwise;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O$LLL:partition_keys", names, &keys, &rows,
                                     &partitions, &otherwise)) {
        return NULL;
    }
    if (rows < 0 || rows > INT32_MAX || partitions < 1 || partitions > INT32_MAX ||
        otherwise < 0 || otherwise >= partitions) {
        PyErr_Format(PyExc_ValueError, "%lld rows, %lld partitions, otherwise %lld", rows,
                     partitions, otherwise);
        return NULL;
    }
    keys_input in = {.rows = rows,
                     .partitions = (int32_t)partitions,
                     .otherwise = (int32_t)otherwise};
    PyObject *found = NULL;
    if (take_keys(&in, keys) == 0) {
        found = partition_column(state_of(module), &in);
    }
    PyBuffer_Release(&in.offsets);
    PyBuffer_Release(&in.data);
    PyBuffer_Release(&in.validity);
    return found;
}
