/* Tables of keys of one width in bytes, each with a number: open addressing with linear probing.
 *
 * A slot is 0, or it has 1 + the number of a key in its low bits and part of the key's hash in the others, so
 * that usually only one key is compared. There are 2^bits slots, and numbers use that many bits. The content
 * of slots is checked before it is used as an index, because Python code can write to the array.
 */

#define HASH_BLOCK 64 /* keys whose slots are prefetched together */

static inline uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 32;
}

static inline uint64_t hash_of(const Table *table, const uint8_t *key) {
  uint64_t hash = table->seed, word;
  int64_t at = 0;
  for (; at + 8 <= table->width; at += 8) {
    memcpy(&word, key + at, 8);
    hash = mixed(hash, word);
  }
  if (at < table->width) {
    word = 0;
    memcpy(&word, key + at, (size_t)(table->width - at));
    hash = mixed(hash, word);
  }
  return mixed(hash, hash >> 29);
}

static inline int same_key(const uint8_t *a, const uint8_t *b, int64_t width) {
  uint64_t first, second;
  if (width == 8) {
    memcpy(&first, a, 8);
    memcpy(&second, b, 8);
    return first == second;
  }
  return !memcmp(a, b, (size_t)width);
}

static inline uint32_t mark_of(const Table *table, uint64_t hash) {
  return (uint32_t)(hash >> (32 + table->bits)) << table->bits;
}

/* The slot of a key, or the empty slot where it belongs; -1 if other keys take all slots. */
static int64_t find_slot(const Table *table, const uint8_t *key, uint64_t hash) {
  uint32_t last = (uint32_t)(((uint64_t)1 << table->bits) - 1), mark = mark_of(table, hash);
  uint32_t place = (uint32_t)hash & last;
  for (uint32_t step = 0; step <= last; step++, place = (place + 1) & last) {
    uint32_t slot = table->slots[place], number = (slot & last) - 1;
    if (!slot) return place;
    if ((slot & ~last) == mark && number < table->used &&
        same_key(table->keys + number * table->width, key, table->width))
      return place;
  }
  return -1;
}

/* Number keys: codes[i] is the number of key i, or -1 if it is unknown and `stored` is NULL.
 *
 * With `stored`, the array of the table's keys with room for `capacity`, new keys are appended, and firsts,
 * unless NULL, receives the row of each. Returns the number of rows processed: it stops if keys or slots
 * are full. */
static int64_t factorize(int64_t *codes, const uint8_t *keys, int64_t n, Table *table, uint8_t *stored,
                         int64_t capacity, int64_t *firsts) {
  int64_t most = ((int64_t)1 << table->bits) / 4 * 3;
  uint64_t hashes[HASH_BLOCK], last = ((uint64_t)1 << table->bits) - 1;
  if (capacity < most) most = capacity;
  for (int64_t start = 0; start < n; start += HASH_BLOCK) {
    int64_t rows = n - start < HASH_BLOCK ? n - start : HASH_BLOCK;
    for (int64_t i = 0; i < rows; i++) {
      hashes[i] = hash_of(table, keys + (start + i) * table->width);
      PREFETCH(table->slots + (hashes[i] & last));
    }
    for (int64_t i = 0; i < rows; i++) {
      const uint8_t *key = keys + (start + i) * table->width;
      int64_t place = find_slot(table, key, hashes[i]);
      uint32_t slot = place < 0 ? 0 : table->slots[place];
      if (slot) {
        codes[start + i] = (int64_t)(slot & last) - 1;
      } else if (!stored) {
        codes[start + i] = -1;
      } else if (place < 0 || table->used >= most) {
        return start + i;
      } else {
        memmove(stored + table->used * table->width, key, (size_t)table->width);
        if (firsts) firsts[table->used] = start + i;
        codes[start + i] = table->used++;
        table->slots[place] = mark_of(table, hashes[i]) | (uint32_t)table->used;
      }
    }
  }
  return n;
}

/* Insert the keys with numbers from `start` to `stop`, none of which may be present. Returns `stop`, or
 * the first number without a free slot. */
static int64_t table_put(Table *table, int64_t start, int64_t stop) {
  uint32_t last = (uint32_t)(((uint64_t)1 << table->bits) - 1);
  for (int64_t number = start; number < stop; number++) {
    uint64_t hash = hash_of(table, table->keys + number * table->width);
    uint32_t place = (uint32_t)hash & last, step = 0;
    while (table->slots[place] && step++ < last) place = (place + 1) & last;
    if (table->slots[place]) return number;
    table->slots[place] = mark_of(table, hash) | (uint32_t)(number + 1);
  }
  return stop;
}

/* The slot that holds this number, or -1. */
static int64_t slot_of(const Table *table, int64_t number) {
  uint32_t last = (uint32_t)(((uint64_t)1 << table->bits) - 1);
  uint64_t hash = hash_of(table, table->keys + number * table->width);
  uint32_t place = (uint32_t)hash & last, wanted = mark_of(table, hash) | (uint32_t)(number + 1);
  for (uint32_t step = 0; step <= last && table->slots[place]; step++, place = (place + 1) & last)
    if (table->slots[place] == wanted) return place;
  return -1;
}

/* Give keys new numbers, or remove them if `others` is NULL; the stored keys must not have moved yet.
 *
 * Returns how many were processed: it stops at a number that is absent or does not fit. */
static int64_t table_move(Table *table, const int64_t *numbers, const int64_t *others, int64_t n) {
  uint32_t last = (uint32_t)(((uint64_t)1 << table->bits) - 1);
  for (int64_t i = 0; i < n; i++) {
    int64_t number = numbers[i], other = others ? others[i] : 0, at;
    if (number < 0 || number >= table->used || other < 0 || other >= (int64_t)last ||
        (at = slot_of(table, number)) < 0)
      return i;
    uint32_t hole = (uint32_t)at;
    if (others) {
      table->slots[hole] = (table->slots[hole] & ~last) | (uint32_t)(other + 1);
      continue;
    }
    /* Keys after the hole, up to an empty slot, move into it if their probe sequence starts before it. */
    uint32_t place = hole;
    for (uint32_t step = 0; step < last; step++) {
      place = (place + 1) & last;
      uint32_t slot = table->slots[place];
      int64_t its = (int64_t)(slot & last) - 1;
      if (!slot || its < 0 || its >= table->used) break;
      uint32_t home = (uint32_t)hash_of(table, table->keys + its * table->width) & last;
      if (((place - home) & last) < ((place - hole) & last)) continue;
      table->slots[hole] = slot;
      hole = place;
    }
    table->slots[hole] = 0;
  }
  return n;
}
#undef HASH_BLOCK

/* The finalizer of SplitMix64; zero stays zero. */
static inline uint64_t finalized(uint64_t bits) {
  bits = (bits ^ bits >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  bits = (bits ^ bits >> 27) * UINT64_C(0x94D049BB133111EB);
  return bits ^ bits >> 31;
}

/* Write a hash of each text of `width` letters, which zeros at its end do not change. */
static int64_t hash_texts(uint64_t *hashes, const uint32_t *letters, int64_t n, int64_t width,
                          const uint64_t *factors, uint64_t start) {
  uint64_t ascii[128];
  if (n > 1)
    for (uint64_t k = 0; k < 128; k++) ascii[k] = finalized(k);
  for (int64_t i = 0; i < n; i++, letters += width) {
    uint64_t hash = start;
    for (int64_t k = 0; k < width; k++)
      hash += (n > 1 && letters[k] < 128 ? ascii[letters[k]] : finalized(letters[k])) * factors[k];
    hashes[i] = finalized(hash);
  }
  return n;
}
