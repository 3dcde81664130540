/* Sorted histograms: rows counted in cells, and cells merged, at the lowest level that fits a budget.
 *
 * Cells of level 0 are distinct scores. At level 1 and above the id of a cell is W(s) >> level, where
 * W(s) is as monotone as the bits of s, and as fine near 1 as near 0:
 *
 *     W(s) = u(s)                                              s <= 0.5
 *     W(s) = 2 * bits(0.5) - max(bits(1 - s), bits(2^-54))     0.5 < s <= 1
 *     W(s) = u(s) + 52 * 2^52                                  s > 1
 *
 * with u(s) the bits of s as a signed integer. W needs more than 64 bits, so ids are made of its half.
 *
 * Rows up to four times the cells are sorted, unless many have the same score: by radix, the leading
 * bits first, and what these leave together after that. Other rows are looked up in a hash table, whose
 * pages are sorted in the end; it starts at the level that some of the rows need, and goes up a level
 * where its cells are too many.
 */

#define LEVELS 64
#define ORDER_BLOCK 256
#define SHORT_RUN 24      /* sorted by insertion */
#define DIGIT_BITS 11     /* of a pass, at most */
#define PAGE_BITS 3       /* of the entries of a page, past level 0 */
#define SAMPLE_ROWS 2048  /* that tell whether scores repeat */
#define MIXED UINT64_C(0x7FF8000000000000) /* the nan of a cell of several scores */
#define EMPTY UINT64_MAX

static inline int bit_length(uint64_t x) {
#if defined(__GNUC__)
  return x ? 64 - __builtin_clzll(x) : 0;
#else
  int length = 0;
  for (int step = 32; step; step /= 2)
    if (x >> step) length += step, x >>= step;
  return length + (x != 0);
#endif
}

/* The bits of a float64 as an integer in its order, 0 for both zeros; and back. */
static inline int64_t ordinal(double x) {
  int64_t bits = (int64_t)bits_of(x + 0.0), sign = -(int64_t)((uint64_t)bits >> 63);
  return (bits ^ (sign & INT64_MAX)) - sign;
}

static inline double from_ordinal(int64_t order) {
  uint64_t sign = (uint64_t)(order >> 63);
  return from_bits((((uint64_t)order ^ sign) - sign) | (sign & (UINT64_C(1) << 63)));
}

/* x >> shift, as processors with vectors of 64 bits, but no such shift of signed ones, can do it. */
static inline int64_t shifted(int64_t x, int shift) {
  const uint64_t bias = UINT64_C(1) << 63;
  return (int64_t)((((uint64_t)x + bias) >> shift) - (bias >> shift));
}

static inline int64_t cell_id(double s, int level) {
  /* Bits of doubles that are not negative are compared as integers, which compilers vectorize. */
  const int64_t half = INT64_C(1022) << 52, one = INT64_C(1023) << 52, closest = INT64_C(969) << 52;
  int64_t low = ordinal(s), near = (int64_t)bits_of(1.0 - s), high = low;
  low = low < half ? low : half;
  near = near < half ? near : half;
  near = near > closest ? near : closest;
  high = high > one ? high : one;
  return shifted(shifted(low + (half - near), 1) + (int64_t)((uint64_t)(high - one) >> 1), level - 1);
}

/* Write the ids of scores at a level; at level 0 their ordinals. */
static void cells_ids(int64_t *ids, const double *scores, int64_t n, int64_t level) {
  if (level)
    for (int64_t i = 0; i < n; i++) ids[i] = cell_id(scores[i], (int)level);
  else
    for (int64_t i = 0; i < n; i++) ids[i] = ordinal(scores[i]);
}

/* ---- sorting ---- */

typedef struct {
  uint64_t key;
  int64_t row;
} Pair;

typedef int64_t Starts[3][1 << DIGIT_BITS];

/* Define NAME(a, other, n, starts): sort items by KEY, stably; returns which of the arrays holds them.
 *
 * The leading bits that differ are sorted by radix, a few more than it takes to tell n apart. Runs that
 * they leave together are sorted by insertion or, if long, by the bits below. */
#define DEFINE_SORT(NAME, ITEM, KEY)                                                                 \
  static void NAME##_short(ITEM *a, int64_t n) {                                                     \
    for (int64_t i = 1; i < n; i++) {                                                                \
      ITEM item = a[i];                                                                              \
      int64_t j = i;                                                                                 \
      for (; j > 0 && KEY(a[j - 1]) > KEY(item); j--) a[j] = a[j - 1];                               \
      a[j] = item;                                                                                   \
    }                                                                                                \
  }                                                                                                  \
  static ITEM *NAME##_in(ITEM *a, ITEM *other, int64_t n, Starts starts) {                           \
    if (n <= SHORT_RUN) return NAME##_short(a, n), a;                                                \
    uint64_t differs = 0, first = KEY(a[0]);                                                         \
    for (int64_t i = 0; i < n; i++) differs |= KEY(a[i]) ^ first;                                    \
    int top = bit_length(differs), bits = bit_length((uint64_t)n) + 6;                               \
    if (!top) return a;                                                                              \
    if (bits > top) bits = top;                                                                      \
    if (bits > 3 * DIGIT_BITS) bits = 3 * DIGIT_BITS;                                                \
    int passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS, digit = (bits + passes - 1) / passes;         \
    int low = top - passes * digit > 0 ? top - passes * digit : 0;                                   \
    uint64_t mask = (UINT64_C(1) << digit) - 1;                                                      \
    for (int p = 0; p < passes; p++) memset(starts[p], 0, sizeof(int64_t) << digit);                 \
    for (int64_t i = 0; i < n; i++)                                                                  \
      for (int p = 0; p < passes; p++) starts[p][KEY(a[i]) >> (low + p * digit) & mask]++;           \
    for (int p = 0; p < passes; p++) {                                                               \
      int64_t *start = starts[p], sum = 0;                                                           \
      int shift = low + p * digit;                                                                   \
      if (start[first >> shift & mask] == n) continue;                                               \
      for (uint64_t d = 0; d <= mask; d++) {                                                         \
        int64_t count = start[d];                                                                    \
        start[d] = sum;                                                                              \
        sum += count;                                                                                \
      }                                                                                              \
      for (int64_t i = 0; i < n; i++) other[start[KEY(a[i]) >> shift & mask]++] = a[i];              \
      ITEM *swap = a;                                                                                \
      a = other;                                                                                     \
      other = swap;                                                                                  \
    }                                                                                                \
    if (!low) return a;                                                                              \
    for (int64_t i = 0, end; i < n; i = end) {                                                       \
      for (end = i + 1; end < n && KEY(a[end]) >> low == KEY(a[i]) >> low;) end++;                   \
      if (end - i < 2) continue;                                                                     \
      ITEM *sorted = NAME##_in(a + i, other + i, end - i, starts);                                   \
      if (sorted != a + i) memcpy(a + i, sorted, sizeof(ITEM) * (size_t)(end - i));                  \
    }                                                                                                \
    return a;                                                                                        \
  }                                                                                                  \
  static ITEM *NAME(ITEM *a, ITEM *other, int64_t n) {                                               \
    Starts starts;                                                                                   \
    return NAME##_in(a, other, n, starts);                                                           \
  }

#define KEY_ITSELF(item) (item)
#define KEY_OF_PAIR(item) ((item).key)
#define LEADING(item) ((item) >> 32)
DEFINE_SORT(sort_keys, uint64_t, KEY_ITSELF)
DEFINE_SORT(sort_leading, uint64_t, LEADING)
DEFINE_SORT(sort_pairs, Pair, KEY_OF_PAIR)
#define SIGNED(key) ((uint64_t)(key) ^ UINT64_C(1) << 63)

static void *new_array(int64_t n, size_t size) {
  return (uint64_t)n > PTRDIFF_MAX / size ? NULL : malloc(n ? (size_t)n * size : 1);
}

/* Sort rows of one run by their keys; equal ones keep their order. */
static int64_t sort_run(uint64_t *rows, const int64_t *keys, int64_t n) {
  Pair few[2 * SHORT_RUN], *pairs = n > SHORT_RUN ? new_array(2 * n, sizeof *pairs) : few, *sorted;
  if (!pairs) return NO_MEMORY;
  for (int64_t i = 0; i < n; i++) pairs[i] = (Pair){SIGNED(keys[rows[i]]), (int64_t)rows[i]};
  sorted = sort_pairs(pairs, pairs + n, n);
  for (int64_t i = 0; i < n; i++) rows[i] = (uint64_t)sorted[i].row;
  if (pairs != few) free(pairs);
  return OK;
}

/* Write the positions that sort int64 keys, equal ones in the order they have.
 *
 * Of each key the 32 bits from the highest that differs on are sorted together with its row, in 64 bits.
 * Rows that these leave together are sorted by their keys. */
static int64_t sort_order(int64_t *order, const int64_t *keys, int64_t n) {
  uint64_t *items = (uint64_t *)order, *other = new_array(n, sizeof *other), *sorted, differs = 0;
  int64_t done = OK;
  if (!other) return NO_MEMORY;
  for (int64_t i = 0; i < n; i++) differs |= (uint64_t)(keys[i] ^ keys[0]);
  int top = bit_length(differs), shift = top > 32 ? top - 32 : 0;
  for (int64_t i = 0; i < n; i++) items[i] = SIGNED(keys[i]) >> shift << 32 | (uint64_t)i;
  sorted = sort_leading(items, other, n);
  for (int64_t i = 0, end; i < n && done == OK; i = end) {
    uint64_t leading = sorted[i] >> 32, ascending = 1;
    sorted[i] &= UINT32_MAX;
    for (end = i + 1; end < n && sorted[end] >> 32 == leading; end++) {
      sorted[end] &= UINT32_MAX;
      ascending &= keys[sorted[end - 1]] <= keys[sorted[end]];
    }
    if (!ascending) done = sort_run(sorted + i, keys, end - i);
  }
  if (sorted != items) memcpy(items, sorted, sizeof *items * (size_t)n);
  free(other);
  return done;
}

/* ---- levels ---- */

/* The lowest level from `base` >= 1 on at which there are at most `most` cells, by how many ascending ids
 * differ from the one before in so many low bits. */
static int64_t level_of(const int64_t lengths[LEVELS + 1], int64_t base, int64_t most) {
  /* Neighbours share a cell from the level on that their difference is shifted out at. */
  int64_t cells = 1 + lengths[LEVELS], k = LEVELS - 1;
  while (k > 0 && cells + lengths[k] <= most) cells += lengths[k--];
  return base + k;
}

static int64_t fitting_level(int64_t *ids, int64_t n, int64_t base, int64_t most) {
  int64_t lengths[LEVELS + 1] = {0};
  for (int64_t i = 1; i < n; i++) lengths[bit_length((uint64_t)(ids[i] ^ ids[i - 1]))]++;
  return level_of(lengths, base, most);
}

static inline int64_t count_at(const void *counts, int wide, int64_t k) {
  return wide ? ((const int64_t *)counts)[k] : ((const int32_t *)counts)[k];
}

static inline void set_count(void *counts, int wide, int64_t k, int64_t count) {
  if (wide)
    ((int64_t *)counts)[k] = count;
  else
    ((int32_t *)counts)[k] = (int32_t)count;
}

/* The score of a cell that gets another one, or that is new, without a branch. */
static inline uint64_t one_score(uint64_t known, uint64_t score, int64_t fresh) {
  uint64_t same = (uint64_t)(fresh | (known == score));
  return MIXED ^ ((score ^ MIXED) & (0 - same));
}

/* Write the counts of a cell, 32 bits each, which may lie where they were sorted: hence memcpy. */
static inline void write_counts(CellsOut *out, int64_t cell, uint64_t counts) {
  int32_t both[2] = {(int32_t)(counts & INT32_MAX), (int32_t)(counts >> 32)};
  if (out->classes == 2) memcpy((char *)out->counts + sizeof both * (size_t)cell, both, sizeof both);
  if (out->classes == 1) memcpy((int32_t *)out->counts + cell, both, sizeof both[0]);
}

/* ---- the hash table ---- */

typedef struct {
  uint64_t score;  /* its bits, EMPTY or MIXED */
  uint64_t counts; /* of two classes, 32 bits each: rows of a call are below 2^31 */
} CellEntry;

typedef struct {
  int64_t page, place; /* the place of its first entry, -1 where there is no page */
} Slot;

/* Entries by id. Neighbouring ids share a page, of one entry at level 0: pages are hashed. */
typedef struct {
  CellEntry *entries;
  int64_t *pages; /* of which number each page is */
  Slot *slots;    /* at least twice as many as pages */
  int64_t size, used, room, level; /* cells, pages, pages that there is room for */
  int bits, page_bits;
} CellTable;

static inline uint64_t cell_slot(int64_t page, int bits) {
  return (uint64_t)page * UINT64_C(0x9E3779B97F4A7C15) >> (64 - bits);
}

static void table_free(CellTable *table) {
  free(table->entries);
  free(table->pages);
  free(table->slots);
}

/* Give a table room for twice as many pages, but for no more than one above `most`. */
static int64_t table_grow(CellTable *table, int64_t most) {
  int64_t room = table->room ? 2 * table->room : 128;
  if (room > most) room = most + 1;
  int bits = bit_length((uint64_t)room);
  Slot *slots = new_array((int64_t)1 << bits, sizeof *slots);
  if (!slots) return NO_MEMORY;
  free(table->slots);
  table->slots = slots;
  table->bits = bits;
  for (int64_t k = 0; k < (int64_t)1 << bits; k++) slots[k].place = -1;
  for (int64_t k = 0; k < table->used; k++) {
    uint64_t slot = cell_slot(table->pages[k], bits);
    while (slots[slot].place >= 0) slot = (slot + 1) & ((UINT64_C(1) << bits) - 1);
    slots[slot] = (Slot){table->pages[k], k << table->page_bits};
  }
  if (room > PTRDIFF_MAX / (int64_t)sizeof(CellEntry) >> table->page_bits) return NO_MEMORY;
  CellEntry *entries = realloc(table->entries, sizeof *entries * (size_t)(room << table->page_bits));
  if (!entries) return NO_MEMORY;
  table->entries = entries;
  int64_t *pages = realloc(table->pages, sizeof *pages * (size_t)room);
  if (!pages) return NO_MEMORY;
  table->pages = pages;
  table->room = room;
  return OK;
}

/* The place of an id in a table, where its page is added if it is new; -1 if there is no room. */
static int64_t place_of(CellTable *table, int64_t id) {
  uint64_t mask = (UINT64_C(1) << table->bits) - 1;
  int64_t page = id >> table->page_bits, inside = id & (((int64_t)1 << table->page_bits) - 1), place;
  uint64_t slot = cell_slot(page, table->bits);
  for (; (place = table->slots[slot].place) >= 0; slot = (slot + 1) & mask)
    if (table->slots[slot].page == page) return place + inside;
  if (table->used == table->room) return -1;
  place = table->used << table->page_bits;
  table->pages[table->used++] = page;
  table->slots[slot] = (Slot){page, place};
  for (int64_t k = 0; k < (int64_t)1 << table->page_bits; k++) table->entries[place + k] = (CellEntry){EMPTY, 0};
  return place + inside;
}

/* The cells of a table in order, each with its id and its place, in an array to be freed. */
static Pair *table_pairs(const CellTable *table) {
  int64_t each = (int64_t)1 << table->page_bits, k = 0;
  Pair *pairs = new_array(table->size + 2 * table->used, sizeof *pairs), *pages = pairs + table->size;
  if (!pairs) return NULL;
  for (int64_t p = 0; p < table->used; p++) pages[p] = (Pair){SIGNED(table->pages[p]), p * each};
  pages = sort_pairs(pages, pages + table->used, table->used);
  for (int64_t p = 0; p < table->used; p++)
    for (int64_t e = 0; e < each; e++)
      if (table->entries[pages[p].row + e].score != EMPTY)
        pairs[k++] = (Pair){(uint64_t)((int64_t)SIGNED(pages[p].key) * each + e), pages[p].row + e};
  return pairs;
}

/* Raise a table to the lowest level that has at most `most` cells; `index` of n rows goes along. */
static int64_t table_raise(CellTable *table, int64_t most, int64_t *index, int64_t n) {
  int64_t before = table->level, count = table->size, done = OK;
  CellTable next = {.page_bits = PAGE_BITS};
  Pair *sorted = table_pairs(table);
  int64_t *ids = new_array(count + (table->used << table->page_bits), sizeof *ids), *moved = ids + count;
  if (!sorted || !ids) done = NO_MEMORY;
  if (done == OK) {
    for (int64_t k = 0; k < count; k++) {
      int64_t id = (int64_t)sorted[k].key;
      ids[k] = before ? id : cell_id(from_ordinal(id), 1);
    }
    next.level = fitting_level(ids, count, before ? before : 1, most);
  }
  for (int64_t k = 0; k < count && done == OK; k++) {
    const CellEntry *old = &table->entries[sorted[k].row];
    int64_t id = ids[k] >> (next.level - (before ? before : 1)), place = -1;
    while (done == OK && (!next.room || (place = place_of(&next, id)) < 0)) done = table_grow(&next, most);
    if (done != OK) break;
    CellEntry *entry = &next.entries[moved[sorted[k].row] = place];
    next.size += entry->score == EMPTY;
    entry->score = entry->score == EMPTY ? old->score : entry->score == old->score ? old->score : MIXED;
    entry->counts += old->counts;
  }
  if (done == OK)
    for (int64_t i = 0; i < n && index; i++) index[i] = moved[index[i]];
  free(sorted);
  free(ids);
  if (done != OK) return table_free(&next), done;
  table_free(table);
  *table = next;
  return OK;
}

/* Add rows that have these ids; returns how many, as far as there is room for cells and pages. */
static int64_t table_block(CellTable *table, const int64_t *ids, const double *scores, const uint8_t *codes,
                           int64_t n, int64_t most, int64_t *index) {
  static const uint64_t one[2] = {1, UINT64_C(1) << 32};
  int64_t places[ORDER_BLOCK], i = 0;
  const int page_bits = table->page_bits;
  /* First all places, so that the processor gets the entries while it looks for others. */
  for (; i < n && table->room; i++) {
    int64_t page = ids[i] >> page_bits;
    Slot slot = table->slots[cell_slot(page, table->bits)];
    places[i] = slot.place + (ids[i] & (((int64_t)1 << page_bits) - 1));
    if (slot.place < 0 || slot.page != page) places[i] = place_of(table, ids[i]);
    if (places[i] < 0) break;
    PREFETCH(&table->entries[places[i]]);
  }
  n = i;
  for (i = 0; i < n; i++) {
    CellEntry *entry = &table->entries[places[i]];
    uint64_t score = bits_of(scores[i] + 0.0);
    if (entry->score != score && entry->score != MIXED) {
      if (entry->score == EMPTY) {
        if (table->size > most) return i;
        table->size++;
        entry->score = score;
      } else {
        entry->score = MIXED;
      }
    }
    entry->counts += one[codes ? codes[i] & 1 : 0];
    if (index) index[i] = places[i];
  }
  return n;
}

/* Add rows to a table; codes and index may be NULL. */
static int64_t table_add(CellTable *table, const double *scores, const uint8_t *codes, int64_t n, int64_t most,
                         int64_t *index) {
  for (int64_t start = 0, done; start < n; start += done) {
    double block[ORDER_BLOCK];
    int64_t ids[ORDER_BLOCK], rows = n - start < ORDER_BLOCK ? n - start : ORDER_BLOCK;
    memcpy(block, scores + start, sizeof(double) * (size_t)rows);
    cells_ids(ids, block, rows, table->level);
    done = table_block(table, ids, block, codes ? codes + start : NULL, rows, most,
                       index ? index + start : NULL);
    if (table->size > most) {
      if (table_raise(table, most, index, start + done) != OK) return NO_MEMORY;
    } else if (done < rows && table_grow(table, most) != OK) {
      return NO_MEMORY;
    }
  }
  return OK;
}

/* Write the cells of a table in order; `index` of n rows becomes that of the cells. */
static int64_t table_write(CellsOut *out, const CellTable *table, int64_t *index, int64_t n) {
  int64_t count = table->size, *rank = NULL;
  Pair *sorted = table_pairs(table);
  if (index) rank = new_array(table->used << table->page_bits, sizeof *rank);
  if (!sorted || (index && !rank)) return free(sorted), free(rank), NO_MEMORY;
  for (int64_t k = 0; k < count; k++) {
    const CellEntry *entry = &table->entries[sorted[k].row];
    if (rank) rank[sorted[k].row] = k;
    if (out->ids) out->ids[k] = (int64_t)sorted[k].key;
    out->scores[k] = from_bits(entry->score);
    write_counts(out, k, entry->counts);
  }
  for (int64_t i = 0; i < n && index; i++) index[i] = rank[index[i]];
  out->level = table->level;
  out->size = count;
  free(sorted);
  free(rank);
  return OK;
}

/* ---- rows ---- */

/* Write the cells of rows by sorting them: each key has the magnitude of a score and a code. */
static int64_t count_sorted(CellsOut *out, const double *scores, const uint8_t *codes, int64_t n,
                            int64_t most) {
  const uint64_t last = ~UINT64_C(0) >> 1;
  /* Where there is room for all rows, the results are sorted where they are written. */
  int inside = out->room >= n && out->classes == 2 && (uintptr_t)out->counts % sizeof(uint64_t) == 0;
  uint64_t *keys = inside ? (uint64_t *)(void *)out->scores : new_array(2 * n, sizeof *keys), *sides[2];
  uint64_t *other = inside ? out->counts : keys + n;
  int64_t sizes[2] = {0}, distinct = 0, level = out->level, size = 0, end = n - 1, *ids = NULL;
  if (!keys) return NO_MEMORY;
  /* Negative scores from the front, the others from the back: 63 bits are left, and one for the code. */
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = bits_of(scores[i] + 0.0), negative = bits >> 63;
    uint64_t key = (negative ? last - (bits & last) : bits) << 1 | (codes ? codes[i] & 1 : 0);
    keys[sizes[0]] = keys[end] = key;
    sizes[0] += (int64_t)negative;
    end -= (int64_t)(negative ^ 1);
  }
  sizes[1] = n - sizes[0];
  sides[0] = sort_keys(keys, other, sizes[0]);
  sides[1] = sort_keys(keys + sizes[0], other + sizes[0], sizes[1]);
  for (int side = 0; side < 2 && n > most && !level; side++)
    for (int64_t i = 0; i < sizes[side]; i++)
      distinct += !i || sides[side][i] >> 1 != sides[side][i - 1] >> 1;
  if (level || distinct > most) {
    int64_t base = level ? level : 1, k = 0;
    ids = new_array(n, sizeof *ids);
    if (!ids) return inside ? (void)0 : free(keys), NO_MEMORY;
    for (int side = 0; side < 2; side++)
      for (int64_t i = 0; i < sizes[side]; i++) {
        uint64_t magnitude = sides[side][i] >> 1;
        ids[k++] = cell_id(from_bits(side ? magnitude : ~magnitude), (int)base);
      }
    level = fitting_level(ids, n, base, most);
    for (k = 0; k < n; k++) ids[k] = shifted(ids[k], (int)(level - base));
  }
  uint64_t before = EMPTY, score = EMPTY, counts = 0; /* of the cell that is being filled */
  for (int64_t k = 0; k < n; k++) {
    /* Few branches: whether a cell is new cannot be predicted. */
    int side = k >= sizes[0];
    uint64_t key = sides[side][side ? k - sizes[0] : k], bits = side ? key >> 1 : ~(key >> 1);
    uint64_t id = level ? (uint64_t)ids[k] : bits, fresh = !k || id != before;
    size += (int64_t)fresh;
    if (size > out->room) break;
    score = one_score(score, bits, (int64_t)fresh);
    counts = (fresh ? 0 : counts) + (UINT64_C(1) << 32 * (key & 1));
    before = id;
    if (out->ids && level) out->ids[size - 1] = ids[k];
    memcpy(&out->scores[size - 1], &score, sizeof score);
    write_counts(out, size - 1, counts);
  }
  free(ids);
  if (!inside) free(keys);
  out->level = level;
  out->size = size;
  return size > out->room ? OUT_OF_RANGE : OK;
}

/* The same with the cell of each row instead of counts, for which positions are sorted along. */
static int64_t place_sorted(CellsOut *out, const double *scores, int64_t n, int64_t most, int64_t *index) {
  Pair *pairs = new_array(2 * n, sizeof *pairs), *sorted;
  int64_t *keys = new_array(n, sizeof *keys), distinct = 0, level = out->level, size = 0, done = OK;
  if (!pairs || !keys) return free(pairs), free(keys), NO_MEMORY;
  for (int64_t i = 0; i < n; i++) pairs[i] = (Pair){SIGNED(ordinal(scores[i])), i};
  sorted = sort_pairs(pairs, pairs + n, n);
  for (int64_t i = 0; i < n; i++) {
    keys[i] = (int64_t)SIGNED(sorted[i].key);
    distinct += !i || keys[i] != keys[i - 1];
  }
  if (level || distinct > most) {
    int64_t base = level ? level : 1;
    for (int64_t i = 0; i < n; i++) keys[i] = cell_id(from_ordinal(keys[i]), (int)base);
    level = fitting_level(keys, n, base, most);
    for (int64_t i = 0; i < n; i++) keys[i] = shifted(keys[i], (int)(level - base));
  }
  for (int64_t i = 0; i < n; i++) {
    double score = from_ordinal((int64_t)SIGNED(sorted[i].key));
    if (!i || keys[i] != keys[i - 1]) {
      if (size == out->room) {
        done = OUT_OF_RANGE;
        break;
      }
      if (level) out->ids[size] = keys[i];
      out->scores[size++] = score;
    } else if (out->scores[size - 1] != score) {
      out->scores[size - 1] = from_bits(MIXED);
    }
    index[sorted[i].row] = size - 1;
  }
  free(pairs);
  free(keys);
  out->level = level;
  out->size = size;
  return done;
}

/* The level that some of the rows need, which all of them need at least. */
static int64_t sampled_level(const double *scores, int64_t n, int64_t most) {
  int64_t count = 2 * most, step = n / count, level = 0, distinct = 0;
  uint64_t *keys = new_array(2 * count, sizeof *keys), *sorted;
  if (!keys) return NO_MEMORY;
  for (int64_t k = 0; k < count; k++) keys[k] = SIGNED(ordinal(scores[k * step]));
  sorted = sort_keys(keys, keys + count, count);
  for (int64_t k = 0; k < count; k++) distinct += !k || sorted[k] != sorted[k - 1];
  if (distinct > most) {
    for (int64_t k = 0; k < count; k++)
      sorted[k] = (uint64_t)cell_id(from_ordinal((int64_t)SIGNED(sorted[k])), 1);
    level = fitting_level((int64_t *)sorted, count, 1, most);
  }
  free(keys);
  return level;
}

/* Whether rows have each score some eight times or more, by how many of a sample are alike. */
static int repeat_often(const double *scores, int64_t n) {
  uint64_t keys[2 * SAMPLE_ROWS], *sorted;
  int64_t step = n / SAMPLE_ROWS, alike = 0;
  if (step < 16) return 0;
  for (int64_t k = 0; k < SAMPLE_ROWS; k++) keys[k] = SIGNED(ordinal(scores[k * step]));
  sorted = sort_keys(keys, keys + SAMPLE_ROWS, SAMPLE_ROWS);
  for (int64_t k = 1; k < SAMPLE_ROWS; k++) alike += sorted[k] == sorted[k - 1];
  /* Of k rows with d scores some k * k / 2 d are alike. */
  return alike >= 4 * SAMPLE_ROWS / step;
}

/* Write the cells of rows at the lowest level, from out->level on, at which they are at most `most`.
 *
 * `codes` (n) are the classes, below 2, NULL for one class. Instead of counts, or besides, `index` gets
 * the cell of each row. */
static int64_t cells_count(CellsOut *out, const double *scores, const uint8_t *codes, int64_t n,
                           int64_t most, int64_t *index) {
  int64_t done, level = out->level;
  const int few = n / 4 <= most;
  if (few && !repeat_often(scores, n))
    return index ? place_sorted(out, scores, n, most, index) : count_sorted(out, scores, codes, n, most);
  if (!level && !few) level = sampled_level(scores, n, most);
  if (level < 0) return level;
  CellTable table = {.level = level, .page_bits = level ? PAGE_BITS : 0};
  done = table_add(&table, scores, codes, n, most, index);
  if (done == OK)
    done = table.size > out->room ? OUT_OF_RANGE : table_write(out, &table, index, n);
  table_free(&table);
  return done;
}

/* ---- cells ---- */

static inline int64_t key_at(const CellsIn *part, int64_t i, int64_t level) {
  if (i >= part->size) return INT64_MAX;
  return level ? part->ids[i] : ordinal(part->scores[i]);
}

/* Where two parts stand that are merged: the next row of each, and its key. */
typedef struct {
  int64_t rows[2], keys[2];
} Front;

static inline Front front_of(const CellsIn parts[2], int64_t level) {
  return (Front){{0, 0}, {key_at(&parts[0], 0, level), key_at(&parts[1], 0, level)}};
}

/* Move past the lower key; returns which part it is of. Nothing branches on which one it is. */
static inline int front_next(Front *front, const CellsIn parts[2], int64_t level) {
  int side = front->keys[1] < front->keys[0] || front->rows[0] == parts[0].size;
  front->rows[0] += !side;
  front->rows[1] += side;
  front->keys[0] = key_at(&parts[0], front->rows[0], level);
  front->keys[1] = key_at(&parts[1], front->rows[1], level);
  return side;
}

/* The lowest level, from this one on, at which the cells of two parts are at most `most`. */
static int64_t merged_level(const CellsIn parts[2], int64_t level, int64_t most) {
  int64_t lengths[LEVELS + 1] = {0}, n = parts[0].size + parts[1].size, distinct = 0, before = 0, last = 0;
  if (n <= most) return level;
  Front front = front_of(parts, level);
  for (int64_t k = 0; k < n; k++) {
    int64_t key = front.keys[0] < front.keys[1] ? front.keys[0] : front.keys[1];
    int64_t id = level ? key : cell_id(from_ordinal(key), 1);
    front_next(&front, parts, level);
    distinct += !k || key != before;
    if (k) lengths[bit_length((uint64_t)(id ^ last))]++;
    before = key;
    last = id;
  }
  return distinct <= most ? level : level_of(lengths, level ? level : 1, most);
}

/* Write the union of the cells of two parts at the lowest level, from out->level on, that fits `most`.
 *
 * Both parts are at out->level. Their ids, or scores at level 0, ascend, and may repeat. */
static int64_t cells_merge(CellsOut *out, const CellsIn parts[2], int64_t most) {
  const int64_t n = parts[0].size + parts[1].size, classes = out->classes, before = out->level;
  const int64_t level = merged_level(parts, before, most);
  int64_t size = 0, last = 0, counts[2] = {0, 0};
  uint64_t known = EMPTY;
  Front front = front_of(parts, before);
  for (int64_t k = 0; k < n; k++) {
    int64_t rows[2] = {front.rows[0], front.rows[1]}, keys[2] = {front.keys[0], front.keys[1]};
    int side = front_next(&front, parts, before);
    const CellsIn *part = &parts[side];
    int64_t row = rows[side], id = keys[side];
    if (level > before) id = before ? shifted(id, (int)(level - before)) : cell_id(from_ordinal(id), (int)level);
    int64_t fresh = !k || id != last, old = fresh - 1;
    uint64_t score = bits_of(part->scores[row] + 0.0);
    size += fresh;
    if (size > out->room) break;
    known = one_score(known, score, fresh);
    out->scores[size - 1] = from_bits(known);
    if (out->ids) out->ids[size - 1] = id;
    for (int64_t c = 0; c < classes; c++) {
      counts[c] = (counts[c] & old) + count_at(part->counts, part->wide, row * classes + c);
      set_count(out->counts, out->wide, (size - 1) * classes + c, counts[c]);
    }
    if (part->index) part->index[row] = size - 1;
    last = id;
  }
  out->level = level;
  out->size = size;
  return size > out->room ? OUT_OF_RANGE : OK;
}

#undef LEVELS
#undef ORDER_BLOCK
#undef SHORT_RUN
#undef DIGIT_BITS
#undef PAGE_BITS
#undef SAMPLE_ROWS
#undef MIXED
#undef EMPTY
#undef DEFINE_SORT
#undef KEY_ITSELF
#undef KEY_OF_PAIR
#undef LEADING
#undef SIGNED
