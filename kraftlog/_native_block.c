/* Memory that grows while a column is filled, and Block, the object that owns it afterwards and
 * lends it to Python. */
#include "_native.h"

NOINLINE bool
block_grow(block *memory, size_t needed)
{
    size_t half_more = memory->capacity + memory->capacity / 2;
    size_t capacity = needed > half_more ? needed : half_more;
    uint8_t *data = PyMem_RawRealloc(memory->data, capacity);
    if (data == NULL) {
        return false;
    }
    *memory = (block){data, capacity};
    return true;
}

typedef struct {
    PyObject_HEAD
    uint8_t *data;
    Py_ssize_t bytes;
} block_object;

static int
block_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    block_object *owner = (block_object *)self;
    return PyBuffer_FillInfo(view, self, owner->data, owner->bytes, 1, flags);
}

static void
block_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyMem_RawFree(((block_object *)self)->data);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot block_slots[] = {
    {Py_tp_doc, "Memory of a finished column."},
    {Py_tp_dealloc, block_dealloc},
    {Py_bf_getbuffer, block_getbuffer},
    {0, NULL},
};

PyType_Spec native_block_spec = {
    .name = "kraftlog._codec_native.Block",
    .basicsize = sizeof(block_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = block_slots,
};

PyObject *
block_finish(codec_state *state, block *memory, int64_t bytes)
{
    block_object *owner = (block_object *)state->block_type->tp_alloc(state->block_type, 0);
    if (owner == NULL) {
        return NULL;
    }
    owner->data = memory->data;
    owner->bytes = (Py_ssize_t)bytes;
    *memory = (block){NULL, 0};
    if (owner->data == NULL) {
        /* A buffer needs an address, also an empty one. */
        owner->data = PyMem_RawCalloc(1, 1);
        owner->bytes = 0;
    }
    PyObject *view = owner->data == NULL ? PyErr_NoMemory()
                                         : PyMemoryView_FromObject((PyObject *)owner);
    Py_DECREF(owner);
    return view;
}
