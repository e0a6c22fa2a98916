/* Columns in Arrow's layout from records: no Python object per record, no copy at the end. */
#include "_native.h"

/* Nullable bytes. The offsets have one entry more than there are rows, the first is 0. */

typedef struct {
    block offsets, data, validity;
    int64_t rows, bytes, nulls;
} binary;

typedef struct {
    block offsets, timestamps, header_offsets;
    binary keys, values, header_keys, header_values;
    int64_t rows;
} columns;

static bool
binary_reserve(binary *column, int64_t rows)
{
    size_t total = (size_t)(column->rows + rows);
    return block_reserve(&column->offsets, (total + 1) * 4) &&
           block_reserve(&column->validity, total / 8 + 1);
}

/* Adds a value; its row was reserved. False without memory. */
static ALWAYS_INLINE bool
binary_append(binary *column, const uint8_t *data, int64_t bytes)
{
    int64_t row = column->rows;
    bool valid = bytes >= 0;
    if (bytes > 0) {
        if (UNLIKELY(!block_reserve(&column->data, (size_t)(column->bytes + bytes)))) {
            return false;
        }
        memcpy(column->data.data + column->bytes, data, (size_t)bytes);
        column->bytes += bytes;
    }
    column->nulls += !valid;
    /* Both values are written: a section that failed may have left bits behind. */
    uint8_t *byte = column->validity.data + (row >> 3);
    *byte = (uint8_t)((row & 7 ? *byte & ~(1u << (row & 7)) : 0) | (unsigned)valid << (row & 7));
    int32_t end = (int32_t)column->bytes;
    memcpy(column->offsets.data + (row + 1) * 4, &end, sizeof end);
    column->rows = row + 1;
    return true;
}

static void
binary_free(binary *column)
{
    PyMem_RawFree(column->offsets.data);
    PyMem_RawFree(column->data.data);
    PyMem_RawFree(column->validity.data);
}

/* Takes the counters of `before` and keeps the memory, which may have moved. */
static void
binary_roll_back(binary *column, const binary *before)
{
    column->rows = before->rows;
    column->bytes = before->bytes;
    column->nulls = before->nulls;
}

static PyObject *
binary_finish(codec_state *state, binary *column)
{
    int32_t zero = 0;
    if (!binary_reserve(column, 0)) {
        return PyErr_NoMemory();
    }
    memcpy(column->offsets.data, &zero, sizeof zero);
    PyObject *offsets = block_finish(state, &column->offsets, (column->rows + 1) * 4);
    PyObject *data = block_finish(state, &column->data, column->bytes);
    PyObject *validity = Py_NewRef(Py_None);
    if (column->nulls > 0) {
        /* Past the last row a section that failed may have left bits behind. */
        if (column->rows & 7) {
            column->validity.data[column->rows >> 3] &= (uint8_t)((1u << (column->rows & 7)) - 1);
        }
        Py_SETREF(validity, block_finish(state, &column->validity, (column->rows + 7) / 8));
    }
    if (offsets == NULL || data == NULL || validity == NULL) {
        Py_XDECREF(offsets);
        Py_XDECREF(data);
        Py_XDECREF(validity);
        return NULL;
    }
    return PyObject_CallFunction(state->binary_column, "NNN", offsets, data, validity);
}

/* ArrowColumns */

typedef struct {
    PyObject_HEAD
    columns all;
    int64_t limit_bytes;
    bool is_busy; /* another thread appends, without the GIL */
} columns_object;

typedef struct {
    int64_t count, base_offset, from_offset, to_offset, append_time, limit_bytes;
    bool has_append_time;
} append_job;

enum append_result { APPENDED, CORRUPT, NO_MEMORY, TOO_LARGE };

static int64_t
columns_bytes(const columns *all)
{
    return all->keys.bytes + all->values.bytes + all->header_keys.bytes + all->header_values.bytes;
}

static NOINLINE enum append_result
append_headers(columns *all, scanner *scan, const span *record)
{
    const uint8_t *next = record->headers;
    int64_t count = record->header_count;
    if (all->header_keys.rows + count >= INT32_MAX) {
        return TOO_LARGE;
    }
    if (!binary_reserve(&all->header_keys, count) || !binary_reserve(&all->header_values, count)) {
        return NO_MEMORY;
    }
    for (int64_t i = 0; i < count; i++) {
        header_span header;
        if (!scan_header(scan, &next, record->end, &header)) {
            return CORRUPT;
        }
        if (!binary_append(&all->header_keys, header.key, header.key_bytes) ||
            !binary_append(&all->header_values, header.value, header.value_bytes)) {
            return NO_MEMORY;
        }
    }
    return APPENDED;
}

static ALWAYS_INLINE enum append_result
append_record(columns *all, scanner *scan, const span *record, const append_job *job)
{
    int64_t row = all->rows, micros;
    int64_t offset = job->base_offset + record->offset_delta;
    int64_t timestamp = job->has_append_time ? job->append_time
                                             : scan->base_timestamp + record->timestamp_delta;
    if (UNLIKELY(__builtin_mul_overflow(timestamp, 1000, &micros))) {
        scan_fails(scan, record->start, "timestamp does not fit microseconds");
        return CORRUPT;
    }
    memcpy(all->offsets.data + row * 8, &offset, sizeof offset);
    memcpy(all->timestamps.data + row * 8, &micros, sizeof micros);
    /* The sum is checked before anything is written: an offset column has no room for more. */
    int64_t bytes = (record->key_bytes > 0 ? record->key_bytes : 0) +
                    (record->value_bytes > 0 ? record->value_bytes : 0);
    if (UNLIKELY(columns_bytes(all) + bytes > job->limit_bytes)) {
        return TOO_LARGE;
    }
    if (UNLIKELY(!binary_append(&all->keys, record->key, record->key_bytes)) ||
        UNLIKELY(!binary_append(&all->values, record->value, record->value_bytes))) {
        return NO_MEMORY;
    }
    if (UNLIKELY(record->header_count > 0)) {
        enum append_result result = append_headers(all, scan, record);
        if (result != APPENDED) {
            return result;
        }
        if (columns_bytes(all) > job->limit_bytes) {
            return TOO_LARGE;
        }
    }
    int32_t header_end = (int32_t)all->header_keys.rows;
    memcpy(all->header_offsets.data + (row + 1) * 4, &header_end, sizeof header_end);
    all->rows = row + 1;
    return APPENDED;
}

static enum append_result
append_section(columns *all, scanner *scan, const append_job *job)
{
    size_t rows = (size_t)(all->rows + job->count);
    if (!block_reserve(&all->offsets, rows * 8) || !block_reserve(&all->timestamps, rows * 8) ||
        !block_reserve(&all->header_offsets, (rows + 1) * 4) ||
        !binary_reserve(&all->keys, job->count) || !binary_reserve(&all->values, job->count) ||
        !block_reserve(&all->values.data,
                       (size_t)all->values.bytes + (size_t)(scan->end - scan->data))) {
        return NO_MEMORY;
    }
    for (int64_t i = 0; i < job->count; i++) {
        span record;
        if (UNLIKELY(!scan_record(scan, &record))) {
            return CORRUPT;
        }
        int64_t offset = job->base_offset + record.offset_delta;
        if (offset < job->from_offset || offset >= job->to_offset) {
            continue;
        }
        enum append_result result = append_record(all, scan, &record, job);
        if (UNLIKELY(result != APPENDED)) {
            return result;
        }
    }
    return scan_end(scan) ? APPENDED : CORRUPT;
}

static void
columns_roll_back(columns *all, const columns *before)
{
    all->rows = before->rows;
    binary_roll_back(&all->keys, &before->keys);
    binary_roll_back(&all->values, &before->values);
    binary_roll_back(&all->header_keys, &before->header_keys);
    binary_roll_back(&all->header_values, &before->header_values);
}

static void
raise_too_large(codec_state *state, int64_t limit_bytes)
{
    PyObject *args = Py_BuildValue(
        "(N)", PyUnicode_FromFormat("columns would hold more than %lld bytes",
                                    (long long)limit_bytes));
    PyObject *hint = Py_BuildValue("{ss}", "hint", "call finish() and start new ones");
    PyObject *error = NULL;
    if (args != NULL && hint != NULL) {
        error = PyObject_Call(state->record_too_large, args, hint);
    }
    if (error != NULL) {
        PyErr_SetObject(state->record_too_large, error);
    }
    Py_XDECREF(args);
    Py_XDECREF(hint);
    Py_XDECREF(error);
}

static void
raise_append(codec_state *state, enum append_result result, const scanner *scan,
             int64_t limit_bytes)
{
    switch (result) {
    case APPENDED:
        break;
    case CORRUPT:
        raise_corrupt(state, scan->found);
        break;
    case NO_MEMORY:
        PyErr_NoMemory();
        break;
    case TOO_LARGE:
        raise_too_large(state, limit_bytes);
        break;
    }
}

static int
check_idle(const columns_object *self)
{
    if (self->is_busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread is using these columns");
        return -1;
    }
    return 0;
}

static PyObject *
append_data(columns_object *self, codec_state *state, const append_job *job, scanner *scan)
{
    int64_t rows = self->all.rows;
    enum append_result result;
    self->is_busy = true;
    Py_BEGIN_ALLOW_THREADS
    columns before = self->all;
    result = append_section(&self->all, scan, job);
    if (result != APPENDED) {
        columns_roll_back(&self->all, &before);
    }
    Py_END_ALLOW_THREADS
    self->is_busy = false;
    if (result != APPENDED) {
        raise_append(state, result, scan, self->limit_bytes);
        return NULL;
    }
    return PyLong_FromLongLong(self->all.rows - rows);
}

static PyObject *
columns_append(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data",           "count",             "base_offset",
                            "base_timestamp", "last_offset_delta", "append_time",
                            "from_offset",    "to_offset",         NULL};
    columns_object *self = (columns_object *)object;
    codec_state *state = PyType_GetModuleState(Py_TYPE(object));
    Py_buffer data;
    long long count, base_offset, base_timestamp, last_offset_delta;
    long long from_offset = 0, to_offset = INT64_MAX;
    PyObject *append_time = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*LLLL|OLL:append", names, &data, &count,
                                     &base_offset, &base_timestamp, &last_offset_delta,
                                     &append_time, &from_offset, &to_offset)) {
        return NULL;
    }
    append_job job = {count, base_offset, from_offset, to_offset, 0, self->limit_bytes,
                      append_time != Py_None};
    if (job.has_append_time) {
        job.append_time = PyLong_AsLongLong(append_time);
    }
    PyObject *added = NULL;
    scanner scan;
    if (!PyErr_Occurred() && check_idle(self) == 0 &&
        check_offsets(base_offset, last_offset_delta) == 0) {
        if (scan_start(&scan, &data, count, base_timestamp, last_offset_delta, false)) {
            added = append_data(self, state, &job, &scan);
        }
        else {
            raise_corrupt(state, scan.found);
        }
    }
    PyBuffer_Release(&data);
    return added;
}

static PyObject *
finish_headers(codec_state *state, columns *all)
{
    int32_t zero = 0;
    if (!block_reserve(&all->header_offsets, sizeof zero)) {
        return PyErr_NoMemory();
    }
    memcpy(all->header_offsets.data, &zero, sizeof zero);
    PyObject *offsets = block_finish(state, &all->header_offsets, (all->rows + 1) * 4);
    PyObject *keys = binary_finish(state, &all->header_keys);
    PyObject *values = binary_finish(state, &all->header_values);
    if (offsets == NULL || keys == NULL || values == NULL) {
        Py_XDECREF(offsets);
        Py_XDECREF(keys);
        Py_XDECREF(values);
        return NULL;
    }
    return PyObject_CallFunction(state->header_column, "NNN", offsets, keys, values);
}

static void
columns_free(columns *all)
{
    PyMem_RawFree(all->offsets.data);
    PyMem_RawFree(all->timestamps.data);
    PyMem_RawFree(all->header_offsets.data);
    binary_free(&all->keys);
    binary_free(&all->values);
    binary_free(&all->header_keys);
    binary_free(&all->header_values);
    *all = (columns){0};
}

static PyObject *
columns_finish(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    columns_object *self = (columns_object *)object;
    codec_state *state = PyType_GetModuleState(Py_TYPE(object));
    if (check_idle(self) < 0) {
        return NULL;
    }
    columns all = self->all;
    self->all = (columns){0};
    PyObject *buffers = NULL;
    PyObject *offsets = block_finish(state, &all.offsets, all.rows * 8);
    PyObject *timestamps = block_finish(state, &all.timestamps, all.rows * 8);
    PyObject *keys = binary_finish(state, &all.keys);
    PyObject *values = binary_finish(state, &all.values);
    PyObject *headers = finish_headers(state, &all);
    if (offsets != NULL && timestamps != NULL && keys != NULL && values != NULL &&
        headers != NULL) {
        buffers = PyObject_CallFunction(
            state->arrow_buffers, "LOOOOOLLLL", (long long)all.rows, offsets, timestamps, keys,
            values, headers, (long long)all.keys.nulls, (long long)all.values.nulls,
            (long long)all.header_keys.rows, (long long)all.header_values.nulls);
    }
    Py_XDECREF(offsets);
    Py_XDECREF(timestamps);
    Py_XDECREF(keys);
    Py_XDECREF(values);
    Py_XDECREF(headers);
    columns_free(&all);
    return buffers;
}

static PyObject *
columns_rows(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(((columns_object *)self)->all.rows);
}

static PyObject *
columns_data_bytes(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(columns_bytes(&((columns_object *)self)->all));
}

static PyObject *
columns_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"limit_bytes", NULL};
    long long limit_bytes = INT32_MAX;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|L:ArrowColumns", names, &limit_bytes)) {
        return NULL;
    }
    if (limit_bytes < 0 || limit_bytes > INT32_MAX) {
        return PyErr_Format(PyExc_ValueError, "limit_bytes is %lld, not between 0 and 2^31 - 1",
                            limit_bytes);
    }
    columns_object *self = (columns_object *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->limit_bytes = limit_bytes;
    }
    return (PyObject *)self;
}

static void
columns_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    columns_free(&((columns_object *)self)->all);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef columns_methods[] = {
    {"append", (PyCFunction)(void (*)(void))columns_append, METH_VARARGS | METH_KEYWORDS,
     "Add the records of a section with from_offset <= offset < to_offset; returns how many."},
    {"finish", columns_finish, METH_NOARGS, "Hand out the columns and start again with none."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef columns_getset[] = {
    {"rows", columns_rows, NULL, "Records gathered so far.", NULL},
    {"data_bytes", columns_data_bytes, NULL,
     "Bytes of keys, values and headers gathered so far.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot columns_slots[] = {
    {Py_tp_doc, "Gathers the records of many batches into one set of columns."},
    {Py_tp_new, columns_new},
    {Py_tp_dealloc, columns_dealloc},
    {Py_tp_methods, columns_methods},
    {Py_tp_getset, columns_getset},
    {0, NULL},
};

PyType_Spec native_columns_spec = {
    .name = "kraftlog._codec_native.ArrowColumns",
    .basicsize = sizeof(columns_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = columns_slots,
};
