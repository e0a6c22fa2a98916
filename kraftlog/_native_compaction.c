/* The offset map of compaction and what it keeps.
 *
 * The map is a caller's buffer of 24-byte slots with open addressing: SipHash-2-4-128 of the key
 * under the caller's random seed (so that nobody can choose keys that collide), then offset + 1.
 * It belongs to one pass of one process; its bytes mean nothing to anybody else. */
#include "_native.h"

#define SEED_BYTES 16
#define HASH_BYTES 16
#define SLOT_BYTES 24

typedef struct {
    uint64_t low, high;
} key_hash;

static ALWAYS_INLINE uint64_t
rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static ALWAYS_INLINE uint64_t
load_le64(const uint8_t *data, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t)data[i] << (8 * i);
    }
    return value;
}

typedef struct {
    uint64_t a, b, c, d;
} sip;

static ALWAYS_INLINE void
sip_rounds(sip *s, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        s->a += s->b;
        s->b = rotate(s->b, 13) ^ s->a;
        s->a = rotate(s->a, 32);
        s->c += s->d;
        s->d = rotate(s->d, 16) ^ s->c;
        s->a += s->d;
        s->d = rotate(s->d, 21) ^ s->a;
        s->c += s->b;
        s->b = rotate(s->b, 17) ^ s->c;
        s->c = rotate(s->c, 32);
    }
}

static ALWAYS_INLINE void
sip_word(sip *s, uint64_t word)
{
    s->d ^= word;
    sip_rounds(s, 2);
    s->a ^= word;
}

static key_hash
hash_key(const uint8_t *seed, const uint8_t *key, int64_t bytes)
{
    uint64_t k0 = load_le64(seed, 8), k1 = load_le64(seed + 8, 8);
    sip s = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee, k0 ^ 0x6c7967656e657261,
             k1 ^ 0x7465646279746573};
    const uint8_t *whole_end = key + (bytes & ~INT64_C(7));
    for (const uint8_t *word = key; word < whole_end; word += 8) {
        sip_word(&s, load_le64(word, 8));
    }
    sip_word(&s, load_le64(whole_end, (int)(bytes & 7)) | (uint64_t)bytes << 56);
    s.c ^= 0xee;
    sip_rounds(&s, 4);
    key_hash hash = {s.a ^ s.b ^ s.c ^ s.d, 0};
    s.b ^= 0xdd;
    sip_rounds(&s, 4);
    hash.high = s.a ^ s.b ^ s.c ^ s.d;
    return hash;
}

typedef struct {
    Py_buffer table, seed;
    uint64_t slots;
} offset_map;

static int
map_check(offset_map *map)
{
    if (map->seed.len != SEED_BYTES) {
        PyErr_Format(PyExc_ValueError, "the seed has %zd bytes, not %d", map->seed.len, SEED_BYTES);
        return -1;
    }
    if (map->table.len == 0 || map->table.len % SLOT_BYTES != 0) {
        PyErr_Format(PyExc_ValueError, "the table has %zd bytes, not a multiple of %d",
                     map->table.len, SLOT_BYTES);
        return -1;
    }
    map->slots = (uint64_t)map->table.len / SLOT_BYTES;
    return 0;
}

static void
map_release(offset_map *map)
{
    PyBuffer_Release(&map->table);
    PyBuffer_Release(&map->seed);
}

/* The slot of a key and the offset in it, -1 in a free one; NULL when all slots are others'. */
static uint8_t *
map_find(const offset_map *map, key_hash hash, int64_t *offset)
{
    uint64_t slot = hash.low % map->slots;
    *offset = -1;
    for (uint64_t probed = 0; probed < map->slots; probed++) {
        uint8_t *found = (uint8_t *)map->table.buf + slot * SLOT_BYTES;
        key_hash known;
        uint64_t stored;
        memcpy(&known, found, HASH_BYTES);
        memcpy(&stored, found + HASH_BYTES, sizeof stored);
        if (stored == 0 || (known.low == hash.low && known.high == hash.high)) {
            *offset = (int64_t)(stored - 1);
            return found;
        }
        slot = slot + 1 < map->slots ? slot + 1 : 0;
    }
    return NULL;
}

/* Notes an offset; false when there is no room or it would be one new key too many. */
static bool
map_put(const offset_map *map, key_hash hash, int64_t offset, int64_t limit, int64_t *added)
{
    int64_t known;
    uint8_t *slot = map_find(map, hash, &known);
    if (slot == NULL || (known < 0 && *added >= limit)) {
        return false;
    }
    *added += known < 0;
    uint64_t stored = (uint64_t)(known > offset ? known : offset) + 1;
    memcpy(slot, &hash, HASH_BYTES);
    memcpy(slot + HASH_BYTES, &stored, sizeof stored);
    return true;
}

/* The largest delta that gives an offset. */
static int64_t
last_delta(int64_t base_offset)
{
    int64_t most = INT64_MAX - 1 - base_offset;
    return most < INT32_MAX ? most : INT32_MAX;
}

static bool
put_records(const offset_map *map, scanner *scan, int64_t count, int64_t base_offset,
            int64_t from_offset, int64_t limit, int64_t *added, int64_t *stopped)
{
    for (int64_t i = 0; i < count; i++) {
        span record;
        if (!scan_record(scan, &record)) {
            return false;
        }
        int64_t offset = base_offset + record.offset_delta;
        if (*stopped >= 0 || offset < from_offset || record.key_bytes < 0) {
            continue;
        }
        key_hash hash = hash_key(map->seed.buf, record.key, record.key_bytes);
        if (!map_put(map, hash, offset, limit, added)) {
            *stopped = offset;
        }
    }
    return scan_end(scan);
}

PyObject *
native_offset_map_put(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"table",       "seed",        "data",  "count",
                            "base_offset", "from_offset", "limit", NULL};
    offset_map map;
    Py_buffer data;
    long long count, base_offset, from_offset, limit;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "w*y*y*LLLL:offset_map_put", names, &map.table,
                                     &map.seed, &data, &count, &base_offset, &from_offset,
                                     &limit)) {
        return NULL;
    }
    PyObject *result = NULL;
    scanner scan;
    int64_t added = 0, stopped = -1;
    if (map_check(&map) == 0 && check_offsets(base_offset, 0) == 0) {
        bool good = scan_start(&scan, &data, count, 0, last_delta(base_offset), false);
        Py_BEGIN_ALLOW_THREADS
        good = good && put_records(&map, &scan, count, base_offset, from_offset, limit, &added,
                                   &stopped);
        Py_END_ALLOW_THREADS
        if (good) {
            result = Py_BuildValue("LL", (long long)added, (long long)stopped);
        }
        else {
            raise_corrupt(state_of(module), scan.found);
        }
    }
    map_release(&map);
    PyBuffer_Release(&data);
    return result;
}

PyObject *
native_offset_map_get(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"table", "seed", "key", NULL};
    offset_map map;
    Py_buffer key;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "w*y*y*:offset_map_get", names, &map.table,
                                     &map.seed, &key)) {
        return NULL;
    }
    PyObject *result = NULL;
    if (map_check(&map) == 0) {
        int64_t offset;
        map_find(&map, hash_key(map.seed.buf, key.buf, key.len), &offset);
        result = PyLong_FromLongLong(offset);
    }
    map_release(&map);
    PyBuffer_Release(&key);
    return result;
}

typedef struct {
    uint8_t *out;
    int64_t rows, max_timestamp_delta, last_offset_delta, tombstones;
} retained;

static bool
is_kept(const offset_map *map, const span *record, int64_t base_offset, bool drop_tombstones)
{
    if (record->key_bytes < 0 || (record->value_bytes < 0 && drop_tombstones)) {
        return false;
    }
    int64_t latest;
    map_find(map, hash_key(map->seed.buf, record->key, record->key_bytes), &latest);
    return latest <= base_offset + record->offset_delta;
}

static void
retain(retained *kept, const span *record)
{
    size_t bytes = (size_t)(record->end - record->start);
    memcpy(kept->out, record->start, bytes);
    kept->out += bytes;
    if (kept->rows == 0 || record->timestamp_delta > kept->max_timestamp_delta) {
        kept->max_timestamp_delta = record->timestamp_delta;
    }
    kept->rows++;
    kept->last_offset_delta = record->offset_delta;
    kept->tombstones += record->value_bytes < 0;
}

static PyObject *
retain_section(codec_state *state, const offset_map *map, scanner *scan, int64_t count,
               int64_t base_offset, bool drop_tombstones)
{
    PyObject *section = PyBytes_FromStringAndSize(NULL, scan->end - scan->data);
    if (section == NULL) {
        return NULL;
    }
    uint8_t *start = (uint8_t *)PyBytes_AS_STRING(section);
    retained kept = {start, 0, 0, -1, 0};
    bool good = true;
    Py_BEGIN_ALLOW_THREADS
    for (int64_t i = 0; good && i < count; i++) {
        span record;
        good = scan_record(scan, &record);
        if (good && is_kept(map, &record, base_offset, drop_tombstones)) {
            retain(&kept, &record);
        }
    }
    good = good && scan_end(scan);
    Py_END_ALLOW_THREADS
    if (!good) {
        raise_corrupt(state, scan->found);
        Py_DECREF(section);
        return NULL;
    }
    if (_PyBytes_Resize(&section, kept.out - start) < 0) {
        return NULL;
    }
    return PyObject_CallFunction(state->retained, "NLLLL", section, (long long)kept.rows,
                                 (long long)kept.max_timestamp_delta,
                                 (long long)kept.last_offset_delta, (long long)kept.tombstones);
}

PyObject *
native_retain_records(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"table",       "seed",            "data", "count",
                            "base_offset", "drop_tombstones", NULL};
    codec_state *state = state_of(module);
    offset_map map;
    Py_buffer data;
    long long count, base_offset;
    int drop_tombstones;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "w*y*y*LLp:retain_records", names, &map.table,
                                     &map.seed, &data, &count, &base_offset, &drop_tombstones)) {
        return NULL;
    }
    PyObject *result = NULL;
    scanner scan;
    if (map_check(&map) == 0 && check_offsets(base_offset, 0) == 0) {
        if (scan_start(&scan, &data, count, 0, last_delta(base_offset), false)) {
            result = retain_section(state, &map, &scan, count, base_offset, drop_tombstones != 0);
        }
        else {
            raise_corrupt(state, scan.found);
        }
    }
    map_release(&map);
    PyBuffer_Release(&data);
    return result;
}
