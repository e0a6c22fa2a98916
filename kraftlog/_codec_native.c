/* The module kraftlog._codec_native: the native twin of kraftlog._codec_pure. What each function
 * does is said there, in docs and in code; both give the same bytes and raise the same errors. */
#include "_native.h"

#define KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"decode_records", KEYWORDS(native_decode_records), "Every record of a section."},
    {"decode_rows", KEYWORDS(native_decode_rows), "Every record, as rows of another type."},
    {"encode_arrow", KEYWORDS(native_encode_arrow), "Rows of Arrow columns as a section."},
    {"encode_records", KEYWORDS(native_encode_records), "A records section from columns."},
    {"murmur2", native_murmur2, METH_O, "Kafka's hash of a key, as Java's signed 32-bit int."},
    {"offset_map_get", KEYWORDS(native_offset_map_get), "The last offset noted for a key, or -1."},
    {"offset_map_put", KEYWORDS(native_offset_map_put), "Note the last offset of each key."},
    {"partition_keys", KEYWORDS(native_partition_keys), "The partition of each key of a column."},
    {"retain_records", KEYWORDS(native_retain_records), "What compaction keeps of a section."},
    {"shift_timestamps", KEYWORDS(native_shift_timestamps),
     "The same records for another base timestamp."},
    {"walk_records", KEYWORDS(native_walk_records),
     "Check a section as a producer must send it; gives the oldest and the newest timestamp."},
    {NULL, NULL, 0, NULL},
};

static int
import_name(PyObject **out, PyObject *module, const char *name)
{
    *out = PyObject_GetAttrString(module, name);
    return *out == NULL ? -1 : 0;
}

static int
import_errors(codec_state *state)
{
    PyObject *errors = PyImport_ImportModule("kraftlog.errors");
    if (errors == NULL) {
        return -1;
    }
    int result = import_name(&state->corrupt_record, errors, "CorruptRecord") < 0 ||
                 import_name(&state->invalid_record, errors, "InvalidRecord") < 0 ||
                 import_name(&state->record_too_large, errors, "RecordTooLarge") < 0;
    Py_DECREF(errors);
    return result ? -1 : 0;
}

static int
import_types(codec_state *state)
{
    PyObject *types = PyImport_ImportModule("kraftlog._codec_types");
    if (types == NULL) {
        return -1;
    }
    PyObject *record = NULL;
    int result = import_name(&record, types, "Record") < 0 ||
                 import_name(&state->binary_column, types, "BinaryColumn") < 0 ||
                 import_name(&state->header_column, types, "HeaderColumn") < 0 ||
                 import_name(&state->arrow_buffers, types, "ArrowBuffers") < 0 ||
                 import_name(&state->retained, types, "Retained") < 0;
    Py_DECREF(types);
    /* Records are made as tuples of this type, so it must be one, without fields of its own. */
    PyTypeObject *type = (PyTypeObject *)record;
    if (record != NULL &&
        (!PyType_Check(record) || !PyType_FastSubclass(type, Py_TPFLAGS_TUPLE_SUBCLASS) ||
         type->tp_basicsize != PyTuple_Type.tp_basicsize)) {
        PyErr_SetString(PyExc_TypeError, "Record is not a plain NamedTuple");
        Py_DECREF(record);
        return -1;
    }
    state->record = type;
    return result ? -1 : 0;
}

static int
module_exec(PyObject *module)
{
    codec_state *state = state_of(module);
    if (import_errors(state) < 0 || import_types(state) < 0) {
        return -1;
    }
    state->block_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &native_block_spec, NULL);
    if (state->block_type == NULL) {
        return -1;
    }
    state->columns_type =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, &native_columns_spec, NULL);
    if (state->columns_type == NULL || PyModule_AddType(module, state->columns_type) < 0) {
        return -1;
    }
    return PyModule_AddStringConstant(module, "NAME", "native");
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    codec_state *state = state_of(module);
    Py_VISIT(state->corrupt_record);
    Py_VISIT(state->invalid_record);
    Py_VISIT(state->record_too_large);
    Py_VISIT(state->record);
    Py_VISIT(state->binary_column);
    Py_VISIT(state->header_column);
    Py_VISIT(state->arrow_buffers);
    Py_VISIT(state->retained);
    Py_VISIT(state->block_type);
    Py_VISIT(state->columns_type);
    return 0;
}

static int
module_clear(PyObject *module)
{
    codec_state *state = state_of(module);
    Py_CLEAR(state->corrupt_record);
    Py_CLEAR(state->invalid_record);
    Py_CLEAR(state->record_too_large);
    Py_CLEAR(state->record);
    Py_CLEAR(state->binary_column);
    Py_CLEAR(state->header_column);
    Py_CLEAR(state->arrow_buffers);
    Py_CLEAR(state->retained);
    Py_CLEAR(state->block_type);
    Py_CLEAR(state->columns_type);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kraftlog._codec_native",
    .m_doc = "The native twin of kraftlog._codec_pure.",
    .m_size = sizeof(codec_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
};

PyMODINIT_FUNC
PyInit__codec_native(void)
{
    return PyModuleDef_Init(&definition);
}
