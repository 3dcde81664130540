/* Sorted histograms: counting rows in cells, and merging cells, at the lowest level within a budget.
 *
 * Cells of level 0 are distinct scores. At level 1 and above the id of a cell is W(s) >> level, where
 * W(s) is as monotone as the bits of s, and as fine near 1 as near 0:
 *
 *     W(s) = u(s)                                              s <= 0.5
 *     W(s) = 2 * bits(0.5) - max(bits(1 - s), bits(2^-54))     0.5 < s <= 1
 *     W(s) = u(s) + 52 * 2^52                                  s > 1
 *
 * with u(s) the bits of s as a signed integer. W needs more than 64 bits, so ids are computed from half of it.
 *
 * Up to four times as many rows as cells are sorted, unless many scores repeat. They are moved to buckets of
 * neighbouring scores, which are radix-sorted in the cache. Otherwise rows are counted in a table of all cells
 * between the smallest and the largest score, at the level that a sample of rows needs; it rises with the rows.
 *
 * Two states are merged cell by cell; many states are added to a table of this kind, one after the other.
 */

#define LEVELS 64
#define ORDER_BLOCK 256
#define SHORT_RUN 24      /* rows up to which insertion sort is used */
#define SORT_BITS 13      /* maximum bits of a radix pass */
#define BUCKET_ROWS 1024  /* rows that are sorted in the cache */
#define MOST_BUCKETS 8192
#define DENSE_CELLS ((int64_t)1 << 25) /* maximum size of a table; unused pages take no memory */
#define CACHED_CELLS (1 << 17) /* cells of a larger table are prefetched; with weights, it is no faster than sorting */
#define PAGE_BITS 9       /* log2 of the cells of a page */
#define MOST_PAGES 8192   /* maximum used pages, of 8 KB each */
#define MOST_SORTED ((int64_t)1 << 22) /* maximum rows that are sorted, unless the budget of cells is larger */
#define MOST_SAMPLED (1 << 18) /* budget up to which the level is found from a sample */
#define SAMPLE_ROWS 2048  /* rows sampled to find whether scores repeat */
#define ROWS_AHEAD 1024   /* how far ahead rows are prefetched */
#define HUGE_BYTES ((size_t)1 << 22) /* arrays from which on pages are large where the system has them */
#define MIXED UINT64_C(0x7FF8000000000000) /* the nan of a cell of several scores */
#define INFINITE_BITS (INT64_C(0x7FF) << 52)

/* The bits of a float64 as an integer of the same order (0 for both zeros), and the inverse. */
static inline int64_t ordinal(double x) {
  int64_t bits = (int64_t)bits_of(x + 0.0), sign = -(int64_t)((uint64_t)bits >> 63);
  return (bits ^ (sign & INT64_MAX)) - sign;
}

static inline double from_ordinal(int64_t order) {
  uint64_t sign = (uint64_t)(order >> 63);
  return from_bits((((uint64_t)order ^ sign) - sign) | (sign & (UINT64_C(1) << 63)));
}

/* x >> shift without the 64-bit arithmetic shift, which some vector instruction sets lack. */
static inline int64_t shifted(int64_t x, int shift) {
  const uint64_t bias = UINT64_C(1) << 63;
  return (int64_t)((((uint64_t)x + bias) >> shift) - (bias >> shift));
}

static inline int64_t cell_id(double s, int level) {
  /* Bits of non-negative doubles are compared as integers, which compilers vectorize. */
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
  const int64_t half = INT64_C(1022) << 52, one = INT64_C(1023) << 52, closest = INT64_C(969) << 52;
  for (int64_t start = 0, rows; start < n; start += rows) {
    int64_t beyond = 0, *id = ids + start;
    const double *score = scores + start;
    rows = n - start < ORDER_BLOCK ? n - start : ORDER_BLOCK;
    /* The same as cell_id in half the time, if all scores are in [0, 1]. */
    for (int64_t i = 0; level && i < rows; i++) {
      int64_t low = (int64_t)bits_of(score[i] + 0.0), near = (int64_t)bits_of(1.0 - score[i]);
      beyond |= low | (int64_t)((uint64_t)one - (uint64_t)low);
      low = low < half ? low : half;
      near = near < half ? near : half;
      near = near > closest ? near : closest;
      id[i] = (int64_t)(((uint64_t)low + (uint64_t)(half - near)) >> 1 >> (level - 1));
    }
    for (int64_t i = 0; level && beyond < 0 && i < rows; i++) id[i] = cell_id(score[i], (int)level);
    for (int64_t i = 0; !level && i < rows; i++) id[i] = ordinal(score[i]);
  }
}

/* ---- sorting ---- */

typedef struct {
  uint64_t key;
  int64_t row;
} Pair;

typedef uint32_t Starts[3][1 << SORT_BITS];

/* Define NAME(a, other, n, starts): a stable sort of items by KEY; returns the array with the result.
 *
 * The leading bits that differ are radix-sorted, about as many as are needed to distinguish n values, which
 * leaves items at or near their final position. Insertion sort completes the order or, if that takes too many
 * moves, each run of equal leading bits is sorted by the lower bits. */
#define DEFINE_SORT(NAME, ITEM, KEY)                                                                 \
  static int64_t NAME##_near(ITEM *a, int64_t n, int64_t most) {                                     \
    for (int64_t i = 1; i < n; i++) {                                                                \
      if (KEY(a[i - 1]) <= KEY(a[i])) continue;                                                      \
      ITEM item = a[i];                                                                              \
      int64_t j = i;                                                                                 \
      for (; j > 0 && KEY(a[j - 1]) > KEY(item); j--) a[j] = a[j - 1];                               \
      a[j] = item;                                                                                   \
      if ((most -= i - j) < 0) return 0;                                                             \
    }                                                                                                \
    return 1;                                                                                        \
  }                                                                                                  \
  static ITEM *NAME##_in(ITEM *a, ITEM *other, int64_t n, Starts starts) {                           \
    if (n <= SHORT_RUN) return NAME##_near(a, n, n * n), a;                                          \
    uint64_t differs = 0, first = KEY(a[0]);                                                         \
    for (int64_t i = 0; i < n; i++) differs |= KEY(a[i]) ^ first;                                    \
    int top = bit_length(differs), bits = bit_length((uint64_t)n) + 1;                                   \
    if (!top) return a;                                                                              \
    if (bits > top) bits = top;                                                                      \
    if (bits > 3 * SORT_BITS) bits = 3 * SORT_BITS;                                                \
    int passes = (bits + SORT_BITS - 1) / SORT_BITS, digit = (bits + passes - 1) / passes;         \
    int low = top - passes * digit > 0 ? top - passes * digit : 0;                                   \
    uint64_t mask = (UINT64_C(1) << digit) - 1;                                                      \
    for (int p = 0; p < passes; p++) {                                                               \
      uint32_t *start = starts[p], sum = 0;                                                          \
      int shift = low + p * digit;                                                                   \
      memset(start, 0, sizeof *start << digit);                                                      \
      for (int64_t i = 0; i < n; i++) start[KEY(a[i]) >> shift & mask]++;                            \
      if (start[first >> shift & mask] == n) continue;                                               \
      for (uint64_t d = 0; d <= mask; d++) {                                                         \
        uint32_t count = start[d];                                                                   \
        start[d] = sum;                                                                              \
        sum += count;                                                                                \
      }                                                                                              \
      for (int64_t i = 0; i < n; i++) other[start[KEY(a[i]) >> shift & mask]++] = a[i];              \
      ITEM *swap = a;                                                                                \
      a = other;                                                                                     \
      other = swap;                                                                                  \
    }                                                                                                \
    if (!low || NAME##_near(a, n, 4 * n)) return a;                                                  \
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
DEFINE_SORT(sort_keys, uint64_t, KEY_ITSELF)
DEFINE_SORT(sort_pairs, Pair, KEY_OF_PAIR)
#define SIGNED(key) ((uint64_t)(key) ^ UINT64_C(1) << 63)

static void *new_array(int64_t n, size_t size) {
  char *array = (uint64_t)n > PTRDIFF_MAX / size ? NULL : malloc(n ? (size_t)n * size : 1);
#ifdef MADV_HUGEPAGE /* as NumPy does: thousands of page faults less */
  if (array && (size_t)n * size >= HUGE_BYTES) {
    char *page = array + (-(uintptr_t)array & 4095);
    (void)madvise(page, ((size_t)n * size - 4096) & ~(size_t)4095, MADV_HUGEPAGE);
  }
#endif
  return array;
}

/* ---- levels ---- */

/* The lowest level from `base` >= 1 on with at most `most` cells. lengths[k] counts the ascending ids whose
 * difference from the previous id has k bits. */
static int64_t level_of(const int64_t lengths[LEVELS + 1], int64_t base, int64_t most) {
  /* Neighbours share a cell from the level on at which their difference is shifted out. */
  int64_t cells = 1 + lengths[LEVELS], k = LEVELS - 1;
  while (k > 0 && cells + lengths[k] <= most) cells += lengths[k--];
  return base + k;
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

/* The score of a cell after adding a score, or of a new cell, without a branch. */
static inline uint64_t one_score(uint64_t known, uint64_t score, int64_t fresh) {
  uint64_t same = (uint64_t)(fresh | (known == score));
  return MIXED ^ ((score ^ MIXED) & (0 - same));
}

/* Write the counts of a cell, 32 bits each. They may overlap the sorted keys: hence memcpy. */
static inline void write_counts(const CellsOut *out, int64_t cell, uint64_t counts) {
  int32_t both[2] = {(int32_t)(counts & INT32_MAX), (int32_t)(counts >> 32)};
  if (!out->mass.counts) return;
  if (out->mass.classes == 2) memcpy((char *)out->mass.counts + sizeof both * (size_t)cell, both, sizeof both);
  if (out->mass.classes == 1) memcpy((int32_t *)out->mass.counts + cell, both, sizeof both[0]);
}

/* ---- sums of weights ---- */

#define SPARE 4 /* extra digits above a sum's width that adding a weight may touch */

/* Sums of the two classes of a cell; digits are carried when they are written. */
typedef int64_t Window[2][TOTAL_DIGITS + SPARE];

/* Add weight^power to digits; returns whether it is negative, not finite, or does not fit. */
static inline int add_weight(int64_t *digits, double weight, int64_t low_bit, int64_t width, int power) {
  uint64_t bits = bits_of(weight), number = bits & ((UINT64_C(1) << 52) - 1);
  int64_t exponent = (int64_t)(bits >> 52), normal = exponent != 0;
  number |= (uint64_t)normal << 52;
  uint64_t at = (uint64_t)((exponent - normal - 1074) * power - low_bit);
  if (!number) return 0;
  if (exponent >= 0x7FF || at >= 32 * (uint64_t)width) return 1;
  if (normal && at + 53 * (uint64_t)power > 32 * (uint64_t)width + 32) return 1;
  uint64_t low = number & MASK32, middle = number >> 32, high = 0;
  unsigned shift = (unsigned)at & 31;
  digits += at >> 5;
  if (power == 2) {
    high = middle * middle;
    middle = 2 * low * middle + (low * low >> 32); /* below 2^55 */
    low = low * low & MASK32;
    high += middle >> 32;
    middle &= MASK32;
    digits[3] += (int64_t)(((high & MASK32) << shift >> 32) + ((high >> 32 << shift) & MASK32));
    digits[4] += (int64_t)(high >> 32 << shift >> 32);
  }
  digits[0] += (int64_t)(low << shift & MASK32);
  digits[1] += (int64_t)((low << shift >> 32) + (middle << shift & MASK32));
  digits[2] += (int64_t)((middle << shift >> 32) + ((high & MASK32) << shift & MASK32));
  return 0;
}

/* Bits seen in all written digits, which show whether the sums are canonical and fit. */
typedef struct {
  uint64_t lowest, highest, beyond;
} Digits;

/* Carry digits, except the highest, into the sum of a cell, and clear them. */
static inline void write_sum(int64_t *sum, int64_t *digits, int64_t width, Digits *seen) {
  int64_t carry = 0, below = 0;
  for (int64_t k = 0; k < width - 1; k++) {
    carry += digits[k];
    sum[k] = below = carry & (int64_t)MASK32;
    carry >>= 32;
    digits[k] = 0;
  }
  carry += (int64_t)((uint64_t)digits[width - 1] + ((uint64_t)digits[width] << 32));
  sum[width - 1] = carry;
  seen->lowest |= (uint64_t)sum[0];
  seen->highest |= (uint64_t)(width > 1 ? carry + (below >> 31) : carry);
  seen->beyond |= (uint64_t)(carry ^ (carry >> 63)) >> 31;
  digits[width - 1] = digits[width] = 0;
}

/* Whether the digits of the sums of `cells` cells overflow or have unused columns. */
static int are_odd(const Digits *seen, int threads, int64_t cells) {
  Digits all = {0, 0, 0};
  for (int t = 0; t < threads; t++) {
    all.lowest |= seen[t].lowest;
    all.highest |= seen[t].highest;
    all.beyond |= seen[t].beyond;
  }
  return cells && (!all.lowest || !all.highest || all.beyond);
}

static inline void write_sums(const CellsOut *out, int64_t cell, Window digits, Digits *seen) {
  for (int64_t c = 0; c < out->mass.classes; c++)
    write_sum(out->mass.sums + (cell * out->mass.classes + c) * out->mass.width, digits[c], out->mass.width, seen);
}

/* ---- rows ---- */

typedef struct {
  const double *scores;
  const Column *codes; /* class of each row, NULL for one class */
  const int64_t *times; /* how often each row counts, less than 2^31 together; NULL for once each */
  int64_t n;
} Rows;

/* The counts of a cell that a row of a class adds, 32 bits a class. */
static inline uint64_t row_count(int64_t times, uint8_t code) {
  return (uint64_t)times << 32 * code;
}

/* Read at most a block of rows; returns whether no score is nan and each code is 0 or 1. Otherwise the outputs are
 * invalid. */
static inline int read_rows(const Rows *rows, int64_t start, int64_t n, double *scores, uint8_t *codes) {
  static const int sizes[] = {1, 1, 2, 2, 4, 4, 8, 8};
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; i += 8) PREFETCH_READ(rows->scores + start + i + ROWS_AHEAD);
  for (int64_t i = 0; i < n; i++) {
    scores[i] = rows->scores[start + i] + 0.0;
    wrong |= INFINITE_BITS - (int64_t)(bits_of(scores[i]) & INT64_MAX);
  }
  if (!rows->codes) return memset(codes, 0, ORDER_BLOCK), wrong >= 0;
  const int64_t size = sizes[rows->codes->kind];
  const char *column = (const char *)rows->codes->data + start * size;
  for (int64_t i = 0; i < n * size; i += 64) PREFETCH_READ(column + i + ROWS_AHEAD * size);
  return wrong >= 0 && bits(codes, column, rows->codes->kind, n) >= 0;
}

/* ---- samples ---- */

/* Sort the keys of evenly spaced rows; `keys` has room for twice as many. Returns the sorted keys. */
static uint64_t *sample(uint64_t *keys, int64_t count, const double *scores, int64_t n) {
  for (int64_t k = 0; k < count; k++) keys[k] = SIGNED(ordinal(scores[k * (n / count)]));
  return sort_keys(keys, keys + count, count);
}

/* The level that a sample of rows needs, a lower bound of the level for all rows. */
static int64_t sampled_level(const double *scores, int64_t n, int64_t most) {
  const int64_t count = most + most / 4;
  int64_t lengths[LEVELS + 1] = {0}, distinct = 1, last = 0;
  uint64_t *keys = new_array(2 * count, sizeof *keys), *sorted;
  if (!keys) return NO_MEMORY;
  sorted = sample(keys, count, scores, n);
  for (int64_t k = 0; k < count; k++) {
    int64_t id = cell_id(from_ordinal((int64_t)SIGNED(sorted[k])), 1);
    if (k) {
      distinct += sorted[k] != sorted[k - 1];
      lengths[bit_length((uint64_t)(id ^ last))]++;
    }
    last = id;
  }
  free(keys);
  return distinct > most ? level_of(lengths, 1, most) : 0;
}

/* Whether scores repeat about eight times or more, estimated from the duplicates in a sample. */
static int repeat_often(const double *scores, int64_t n) {
  uint64_t keys[2 * SAMPLE_ROWS], *sorted;
  int64_t step = n / SAMPLE_ROWS, alike = 0;
  if (step < 16) return 0;
  sorted = sample(keys, SAMPLE_ROWS, scores, n);
  for (int64_t k = 1; k < SAMPLE_ROWS; k++) alike += sorted[k] == sorted[k - 1];
  /* Of k sampled rows with d distinct scores, about k * k / 2 d are duplicates. */
  return alike >= 4 * SAMPLE_ROWS / step;
}

/* The smallest and the largest score of a sample, as ordinals. */
static void sampled_range(const double *scores, int64_t n, int64_t *lowest, int64_t *highest) {
  const int64_t step = n < SAMPLE_ROWS ? 1 : n / SAMPLE_ROWS;
  *lowest = INT64_MAX, *highest = INT64_MIN;
  for (int64_t i = 0; i < n; i += step) {
    int64_t order = ordinal(scores[i]);
    *lowest = order < *lowest ? order : *lowest;
    *highest = order > *highest ? order : *highest;
  }
}

/* ---- threads ---- */

/* Run a phase of work once in each thread; the second argument of a phase is the thread's index. */
typedef struct {
  void (*phase)(void *work, int thread);
  void *work;
  int thread;
} Task;

#ifdef HAVE_THREADS
static void *run_task(void *task) {
  Task *mine = task;
  mine->phase(mine->work, mine->thread);
  return NULL;
}
#endif

static void run_phase(void (*phase)(void *, int), void *work, int threads) {
#ifdef HAVE_THREADS
  pthread_t others[MOST_THREADS];
  Task tasks[MOST_THREADS];
  int started = 1;
  for (; started < threads; started++) {
    tasks[started] = (Task){phase, work, started};
    if (pthread_create(&others[started], NULL, run_task, &tasks[started])) break;
  }
  phase(work, 0);
  for (int t = started; t < threads; t++) phase(work, t);
  for (int t = 1; t < started; t++) pthread_join(others[t], NULL);
#else
  for (int t = 0; t < threads; t++) phase(work, t);
#endif
}

/* ---- rows, by sorting ---- */

/* Buckets of scores, negative ones first: ranges of equal width on each side of 0. */
typedef struct {
  int64_t low[2], last[2], base[2];
  int shift[2];
} Split;

typedef struct {
  CellsOut *out;
  Rows rows;
  double *weight;
  int64_t *index;
  int64_t n, level, base; /* the resulting level, and the lowest level at which ids are computed */
  int threads, tell;      /* tell: whether cells are counted before they are written */
  int inside;             /* whether keys are sorted in the output array of scores, where cells replace them */
  Split split;
  uint16_t *buckets;                        /* bucket and code of each row */
  uint32_t *next[MOST_THREADS];             /* next row of each bucket */
  int64_t *starts, number;                  /* of the buckets */
  uint64_t *keys;                           /* unsigned ordinals combined with the code */
  Pair *pairs;                              /* or keys together with times, or the bits of a weight */
  int64_t from[MOST_THREADS + 1], to[MOST_THREADS + 1]; /* rows of each thread */
  int64_t firsts[MOST_THREADS + 1];         /* buckets of each thread */
  int64_t lengths[MOST_THREADS][LEVELS + 1], distinct[MOST_THREADS], cells[MOST_THREADS];
  int failed[MOST_THREADS];
  Digits seen[MOST_THREADS];
} Sorting;

/* Split scores into about `number` buckets of similar size, estimated from a sample. */
static void split_scores(Split *split, const double *scores, int64_t n, int64_t number) {
  uint64_t keys[2 * SAMPLE_ROWS], *sorted;
  const int64_t count = !number ? 0 : n < SAMPLE_ROWS ? n : SAMPLE_ROWS;
  int64_t negative = 0;
  sorted = sample(keys, count, scores, n);
  while (negative < count && !(sorted[negative] >> 63)) negative++;
  for (int side = 0; side < 2; side++) {
    int64_t some = side ? count - negative : negative, first = side ? negative : 0;
    uint64_t low = some ? sorted[first] : SIGNED(0), range = some ? sorted[first + some - 1] - low : 0;
    int shift = bit_length(range) - bit_length((uint64_t)(some ? number * some / count : 0)) + 1;
    if (shift < 0) shift = 0;
    if (shift > 63) shift = 63;
    range += low & ((UINT64_C(1) << shift) - 1); /* aligned, so that scores of a bucket share more bits */
    low = low >> shift << shift;
    split->low[side] = (int64_t)SIGNED(low);
    split->shift[side] = shift;
    split->last[side] = (int64_t)(range >> shift);
    split->base[side] = side ? split->last[0] + 1 : 0;
  }
}

/* Store the bucket and the code of each row, and count the rows of each bucket. */
static void sorting_split(void *work, int thread) {
  Sorting *s = work;
  const Split split = s->split;
  uint32_t *next = s->next[thread];
  double scores[ORDER_BLOCK];
  uint8_t codes[ORDER_BLOCK];
  for (int64_t start = s->from[thread], stop = s->from[thread + 1], rows; start < stop; start += rows) {
    uint16_t *buckets = s->buckets + start;
    rows = stop - start < ORDER_BLOCK ? stop - start : ORDER_BLOCK;
    if (!read_rows(&s->rows, start, rows, scores, codes)) {
      s->failed[thread] = 1;
      return;
    }
    for (int64_t i = 0; i < rows; i++) {
      int64_t order = ordinal(scores[i]);
      int64_t low = order < 0 ? split.low[0] : split.low[1], last = order < 0 ? split.last[0] : split.last[1];
      int64_t base = order < 0 ? split.base[0] : split.base[1];
      uint64_t shift = (uint64_t)(order < 0 ? split.shift[0] : split.shift[1]);
      int64_t bucket = (int64_t)((uint64_t)(order < low ? 0 : order - low) >> shift);
      buckets[i] = (uint16_t)((base + (bucket < last ? bucket : last)) << 1 | codes[i]);
    }
    for (int64_t i = 0; i < rows; i++) next[buckets[i] >> 1]++;
  }
}

/* Move the rows to their buckets. */
static void sorting_move(void *work, int thread) {
  Sorting *s = work;
  uint32_t *next = s->next[thread];
  const double *scores = s->rows.scores, *weight = s->weight;
  const uint16_t *buckets = s->buckets;
  uint64_t *keys = s->keys;
  Pair *pairs = s->pairs;
  for (int64_t i = s->from[thread], stop = s->from[thread + 1]; i < stop; i++) {
    uint64_t key = (uint64_t)ordinal(scores[i]) << 1 | (buckets[i] & 1);
    int64_t place = next[buckets[i] >> 1]++;
    if (pairs)
      pairs[place] = (Pair){key, s->rows.times ? s->rows.times[i] : (int64_t)bits_of(weight[i])};
    else
      keys[place] = key;
  }
}

/* Convert keys of sorted rows to scores and codes; returns how many, at most one block. */
static int64_t sorting_read(const Sorting *s, int64_t start, int64_t stop, double *scores, uint8_t *codes) {
  const int64_t rows = stop - start < ORDER_BLOCK ? stop - start : ORDER_BLOCK;
  const int64_t negative = s->starts[s->split.base[1]];
  for (int64_t i = 0; i < rows; i++) {
    uint64_t key = s->pairs ? s->pairs[start + i].key : s->keys[start + i];
    codes[i] = key & 1;
    scores[i] = from_ordinal((int64_t)(key >> 1 | (uint64_t)(start + i < negative) << 63));
  }
  return rows;
}

/* Count the bit lengths of differences between the ids of consecutive sorted rows. */
static void sorting_differences(Sorting *s, int64_t start, int64_t stop, int thread) {
  double scores[ORDER_BLOCK];
  int64_t ids[ORDER_BLOCK], *lengths = s->lengths[thread], distinct = 0;
  uint8_t codes[ORDER_BLOCK];
  for (int64_t rows; start + 1 < stop; start += rows - 1) { /* blocks overlap by one row */
    rows = sorting_read(s, start, stop, scores, codes);
    cells_ids(ids, scores, rows, s->base);
    for (int64_t i = 1; i < rows; i++) {
      lengths[bit_length((uint64_t)(ids[i] ^ ids[i - 1]))]++;
      distinct += bits_of(scores[i]) != bits_of(scores[i - 1]);
    }
  }
  s->distinct[thread] += distinct;
}

/* How many cells of level 0 a thread has written, and the last cell, to which rows may still be added. */
typedef struct {
  int64_t size, order;
  uint64_t counts;
} Filling;

/* Write the cells of some sorted keys. Cells may overwrite keys that have been read. */
static void sorting_fill(const CellsOut *out, Filling *filling, const uint64_t *keys, int64_t n, int negative) {
  Filling f = *filling;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t key = keys[i];
    const int64_t order = (int64_t)(key >> 1 | (uint64_t)negative << 63), fresh = order != f.order;
    const double score = from_ordinal(order);
    f.size += fresh;
    f.order = order;
    f.counts = (fresh ? 0 : f.counts) + (UINT64_C(1) << 32 * (key & 1));
    memcpy(&out->scores[f.size - 1], &score, sizeof score);
    write_counts(out, f.size - 1, f.counts);
  }
  *filling = f;
}

/* Sort the buckets of a thread, and write their cells if the level is known to be 0. */
static void sorting_sort(void *work, int thread) {
  Sorting *s = work;
  int64_t longest = 0, first = s->starts[s->firsts[thread]];
  for (int64_t b = s->firsts[thread]; b < s->firsts[thread + 1]; b++)
    if (s->starts[b + 1] - s->starts[b] > longest) longest = s->starts[b + 1] - s->starts[b];
  void *spare = new_array(longest, s->pairs ? sizeof(Pair) : sizeof(uint64_t));
  if (!spare) {
    s->failed[thread] = 1;
    return;
  }
  Filling filling = {.size = first, .order = INT64_MIN};
  for (int64_t b = s->firsts[thread]; b < s->firsts[thread + 1]; b++) {
    int64_t start = s->starts[b], rows = s->starts[b + 1] - start;
    if (s->inside) {
      sorting_fill(s->out, &filling, sort_keys(s->keys + start, spare, rows), rows, b < s->split.base[1]);
    } else if (s->pairs) {
      Pair *sorted = sort_pairs(s->pairs + start, spare, rows);
      if (sorted == spare) memcpy(s->pairs + start, spare, sizeof *sorted * (size_t)rows);
    } else {
      uint64_t *sorted = sort_keys(s->keys + start, spare, rows);
      if (sorted == spare) memcpy(s->keys + start, spare, sizeof *sorted * (size_t)rows);
    }
    if (s->tell) sorting_differences(s, start > first ? start - 1 : start, start + rows, thread);
  }
  s->cells[thread] = filling.size - first;
  free(spare);
}

/* Write the cells of a thread's sorted rows at their positions, and count them. */
static void sorting_write(void *work, int thread) {
  Sorting *s = work;
  CellsOut *out = s->out;
  double scores[ORDER_BLOCK];
  int64_t ids[ORDER_BLOCK], places[ORDER_BLOCK], size = s->to[thread], classes = s->rows.codes ? 2 : 1;
  uint64_t before = 0, known = 0, counts = 0; /* of the current cell */
  uint8_t codes[ORDER_BLOCK];
  int64_t fresh = 1, summed = -1; /* summed: the cell whose weights are being summed */
  int wrong = 0;
  const int64_t low = out->low, width = out->mass.width;
  const int power = out->power, times = s->rows.times != NULL;
  Window sums;
  if (out->mass.sums) memset(sums, 0, sizeof sums);
  for (int64_t start = s->from[thread], rows; start < s->from[thread + 1]; start += rows) {
    rows = sorting_read(s, start, s->from[thread + 1], scores, codes);
    cells_ids(ids, scores, rows, out->level);
    for (int64_t i = 0; i < rows; i++) {
      /* Few branches: whether a cell is new is unpredictable. */
      fresh |= (uint64_t)ids[i] != before;
      size += fresh;
      known = one_score(known, bits_of(scores[i]), fresh);
      counts = (fresh ? 0 : counts) + row_count(times ? s->pairs[start + i].row : 1, codes[i]);
      before = (uint64_t)ids[i];
      if (out->ids && out->level) out->ids[size - 1] = ids[i];
      memcpy(&out->scores[size - 1], &known, sizeof known);
      write_counts(out, size - 1, counts);
      places[i] = size - 1;
      fresh = 0;
    }
    for (int64_t i = 0; out->mass.sums && i < rows; i++) {
      if (places[i] != summed && summed >= 0) write_sums(out, summed, sums, &s->seen[thread]);
      summed = places[i];
      wrong |= add_weight(sums[codes[i]], from_bits((uint64_t)s->pairs[start + i].row), low, width, power);
    }
    for (int64_t i = 0; s->index && i < rows; i++) {
      s->index[start + i] = places[i] * classes + codes[i];
      s->weight[start + i] = from_bits((uint64_t)s->pairs[start + i].row);
    }
  }
  if (summed >= 0) write_sums(out, summed, sums, &s->seen[thread]);
  s->cells[thread] = size - s->to[thread];
  s->failed[thread] = wrong;
}

/* Whether a sorted row and its neighbour share a cell. */
static int sorting_alike(const Sorting *s, int64_t row) {
  double scores[2];
  int64_t ids[2];
  uint8_t codes[2];
  sorting_read(s, row - 1, row + 1, scores, codes);
  cells_ids(ids, scores, 2, s->out->level);
  return ids[0] == ids[1];
}

/* Find the level of sorted rows and the output range of each thread; a cell belongs to one thread. */
static void sorting_places(Sorting *s, int64_t most) {
  CellsOut *out = s->out;
  int64_t lengths[LEVELS + 1] = {0}, distinct = 1;
  for (int t = 0; t < s->threads; t++) {
    s->from[t] = s->starts[s->firsts[t]];
    if (s->from[t] && s->from[t] < s->starts[s->firsts[t + 1]])
      sorting_differences(s, s->from[t] - 1, s->from[t] + 1, t);
    for (int k = 0; k <= LEVELS; k++) lengths[k] += s->lengths[t][k];
    distinct += s->distinct[t];
  }
  if (s->level || distinct > most) out->level = level_of(lengths, s->base, most);
  int shared = (int)(out->level - s->base); /* ids whose difference has at most this many bits share a cell */
  out->size = 0;
  for (int t = 0; t < s->threads; t++) {
    int64_t cells = !s->from[t] && s->starts[s->firsts[t + 1]];
    if (out->level)
      for (int k = shared + 1; k <= LEVELS; k++) cells += s->lengths[t][k];
    else
      cells += s->distinct[t];
    s->to[t] = out->size;
    out->size += cells;
    while (t && s->from[t] < s->n && s->from[t] && sorting_alike(s, s->from[t])) s->from[t]++;
  }
}

static void sorting_free(Sorting *s) {
  for (int t = 0; t < s->threads; t++) free(s->next[t]);
  free(s->buckets);
  free(s->starts);
  if ((void *)s->keys != (void *)s->out->scores) free(s->keys);
  free(s->pairs);
}

/* Move the rows to buckets, and divide these among threads. */
static int64_t sorting_begin(Sorting *s) {
  int64_t number = s->n / BUCKET_ROWS, sum = 0, thread = 0;
  split_scores(&s->split, s->rows.scores, s->n, number < MOST_BUCKETS ? number : MOST_BUCKETS);
  s->number = s->split.base[1] + s->split.last[1] + 1;
  s->buckets = new_array(s->n, sizeof *s->buckets);
  s->starts = new_array(s->number + 1, sizeof *s->starts);
  int failed = !s->buckets || !s->starts || !(s->keys || s->pairs);
  for (int t = 0; t < s->threads; t++) {
    s->from[t] = s->n / s->threads * t;
    failed |= !(s->next[t] = calloc((size_t)s->number, sizeof **s->next));
  }
  s->from[s->threads] = s->n;
  if (failed) return NO_MEMORY;
  run_phase(sorting_split, s, s->threads);
  for (int t = 0; t < s->threads; t++)
    if (s->failed[t]) return BAD_ROWS;
  for (int64_t b = 0; b < s->number; b++) {
    s->starts[b] = sum;
    while (thread < s->threads && sum >= s->n / s->threads * thread) s->firsts[thread++] = b;
    for (int t = 0; t < s->threads; t++) {
      int64_t rows = s->next[t][b];
      s->next[t][b] = (uint32_t)sum;
      sum += rows;
    }
  }
  s->starts[s->number] = s->n;
  while (thread <= s->threads) s->firsts[thread++] = s->number;
  run_phase(sorting_move, s, s->threads);
  return OK;
}

/* Write the cells of rows by sorting. */
static int64_t count_sorted(Sorting *s, int64_t most) {
  CellsOut *out = s->out;
  s->level = out->level;
  s->base = out->level ? out->level : 1;
  const int paired = s->weight || s->rows.times;
  s->tell = out->level || s->n > most || s->n > out->room || (paired && s->threads > 1);
  s->inside = !s->tell && !paired; /* keys are stored in the output array of scores */
  if (paired)
    s->pairs = new_array(s->n, sizeof *s->pairs);
  else
    s->keys = s->inside ? (uint64_t *)(void *)out->scores : new_array(s->n, sizeof *s->keys);
  int64_t done = sorting_begin(s);
  if (done == OK) run_phase(sorting_sort, s, s->threads);
  for (int t = 0; t < s->threads && done == OK; t++)
    if (s->failed[t]) done = NO_MEMORY;
  if (done == OK && s->tell) {
    sorting_places(s, most);
    if (out->size > out->room) done = OUT_OF_RANGE;
  } else if (done == OK) {
    for (int t = 0; t < s->threads; t++) s->from[t] = s->to[t] = s->starts[s->firsts[t]];
  }
  if (done == OK) {
    if (!s->inside) run_phase(sorting_write, s, s->threads);
    out->size = s->to[0] + s->cells[0];
    for (int t = 1; t < s->threads; t++) {
      size_t to = (size_t)out->size, from = (size_t)s->to[t], cells = (size_t)s->cells[t];
      size_t counts = sizeof(int32_t) * (size_t)out->mass.classes;
      char *all = out->mass.counts;
      if (to != from && !s->tell) {
        memmove(out->scores + to, out->scores + from, sizeof(double) * cells);
        if (counts) memmove(all + to * counts, all + from * counts, counts * cells);
      }
      out->size += s->cells[t];
    }
    for (int t = 0; t < s->threads && out->mass.sums; t++)
      if (s->failed[t]) done = OUT_OF_RANGE;
    if (out->mass.sums) out->odd = are_odd(s->seen, s->threads, out->size);
  }
  sorting_free(s);
  return done;
}

/* ---- rows, by a table ---- */

/* Counts of each class in a cell, 31 bits a class, with a top bit that marks a cell of several scores; and the
 * first score. */
#define SEVERAL (UINT64_C(1) << 63)

typedef struct {
  uint64_t counts;
  double found;
} DenseCell;

/* A thread's table of the cells of a range of ids. */
typedef struct {
  DenseCell *cells;
  uint8_t *used; /* whether a page has cells */
  int64_t level, low, span, pages;
} DenseTable;

typedef struct {
  Rows rows;
  int64_t *index;
  int64_t most, level, lowest, highest; /* the expected smallest and largest score */
  int threads;
  int64_t done[MOST_THREADS], least[MOST_THREADS], largest[MOST_THREADS];
  DenseTable tables[MOST_THREADS];
} Dense;

static int64_t thread_start(int64_t n, int threads, int thread) {
  return thread < threads ? n / threads * thread : n;
}

/* Find the smallest and the largest score of rows, by their ordinals. */
static APART void dense_range(void *work, int thread) {
  Dense *d = work;
  const int64_t n = d->rows.n;
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (int64_t i = thread_start(n, d->threads, thread); i < thread_start(n, d->threads, thread + 1); i++) {
    int64_t order = ordinal(d->rows.scores[i]);
    low = order < low ? order : low;
    high = order > high ? order : high;
  }
  d->least[thread] = low;
  d->largest[thread] = high;
}

/* The next cell from `k` on that is on a page with cells, or at least `span`. */
static int64_t dense_next(const DenseTable *t, int64_t k) {
  while (k < t->span && !t->used[k >> PAGE_BITS]) k = ((k >> PAGE_BITS) + 1) << PAGE_BITS;
  return k;
}

/* Add counts and a score to a cell of a table. */
static inline void dense_add(DenseTable *t, int64_t k, uint64_t more, double score) {
  DenseCell *cell = &t->cells[k];
  uint64_t known = cell->counts;
  if (!known) {
    cell->found = score;
    t->pages += !t->used[k >> PAGE_BITS];
    t->used[k >> PAGE_BITS] = 1;
  } else if (!((known | more) & SEVERAL) && cell->found != score) {
    known |= SEVERAL;
  }
  cell->counts = ((known & ~SEVERAL) + (more & ~SEVERAL)) | ((known | more) & SEVERAL);
}

/* Raise the level of a table in place, page by page: a cell never moves up. */
static void dense_raise(DenseTable *t, int64_t level) {
  const int shift = (int)(level - t->level);
  const int64_t low = t->low >> shift;
  for (int64_t k = dense_next(t, 0), page; k < t->span; k = dense_next(t, page)) {
    page = ((k >> PAGE_BITS) + 1) << PAGE_BITS;
    t->used[k >> PAGE_BITS] = 0;
    t->pages--;
    for (; k < page && k < t->span; k++) {
      DenseCell cell = t->cells[k];
      if (!cell.counts) continue;
      t->cells[k].counts = 0;
      dense_add(t, ((k + t->low) >> shift) - low, cell.counts, cell.found);
    }
  }
  t->span = ((t->span - 1 + t->low) >> shift) - low + 1;
  t->low = low;
  t->level = level;
}

/* The level at which the cells of a table are at most `most`. Also counts all cells and those of several scores. */
static int64_t dense_needs(const DenseTable *t, int64_t most, int64_t *size, int64_t *several) {
  int64_t lengths[LEVELS + 1] = {0}, last = 0;
  *size = *several = 0;
  for (int64_t k = dense_next(t, 0); k < t->span; k = dense_next(t, k + 1)) {
    if (!t->cells[k].counts) continue;
    *several += (int64_t)(t->cells[k].counts >> 63);
    if ((*size)++) lengths[bit_length((uint64_t)((k + t->low) ^ (last + t->low)))]++;
    last = k;
  }
  return *size > most ? level_of(lengths, t->level, most) : t->level;
}

/* Count the rows of a thread; `done` receives OK or the reason for stopping. */
static void dense_count(void *work, int thread) {
  Dense *d = work;
  DenseTable *t = &d->tables[thread];
  double scores[ORDER_BLOCK];
  uint8_t codes[ORDER_BLOCK];
  int64_t *index = d->index, ids[ORDER_BLOCK];
  const int64_t *times = d->rows.times, n = d->rows.n, begin = thread_start(n, d->threads, thread), stop = thread_start(n, d->threads, thread + 1);
  int64_t raise = begin + 2 * d->most;
  d->done[thread] = OK;
  for (int64_t start = begin, rows; start < stop; start += rows) {
    /* Fewer cells fit the cache better, and all rows need at least the level of the rows so far. */
    if ((start >= raise || t->pages > MOST_PAGES) && d->level && !index) {
      int64_t size, several, level = dense_needs(t, d->most, &size, &several);
      if (level > t->level) dense_raise(t, level);
      raise = start + 4 * (raise - begin);
    }
    if (t->pages > MOST_PAGES) {
      d->done[thread] = NOT_DENSE;
      return;
    }
    const int64_t low = t->low, last = t->span - 1;
    DenseCell *cells = t->cells;
    int64_t beyond = 0;
    rows = stop - start < ORDER_BLOCK ? stop - start : ORDER_BLOCK;
    if (!read_rows(&d->rows, start, rows, scores, codes)) {
      d->done[thread] = BAD_ROWS;
      return;
    }
    cells_ids(ids, scores, rows, t->level);
    for (int64_t i = 0; i < rows; i++) {
      ids[i] -= low;
      beyond |= ids[i] | (last - ids[i]);
    }
    if (beyond < 0) {
      d->done[thread] = OUT_OF_RANGE;
      return;
    }
    for (int64_t i = 0; last > CACHED_CELLS && i < rows; i++) PREFETCH(&cells[ids[i]]);
    for (int64_t i = 0; i < rows; i++) {
      uint64_t one = row_count(times ? times[start + i] : 1, codes[i]), known = cells[ids[i]].counts;
      if (known & SEVERAL)
        cells[ids[i]].counts = known + one;
      else
        dense_add(t, ids[i], one, scores[i]);
    }
    for (int64_t i = 0; index && i < rows; i++) index[start + i] = ids[i] << 1 | codes[i];
  }
}

static void dense_index(void *work, int thread) {
  const Dense *d = work;
  const int64_t classes = d->rows.codes ? 2 : 1, n = d->rows.n;
  for (int64_t i = thread_start(n, d->threads, thread); i < thread_start(n, d->threads, thread + 1); i++)
    d->index[i] = (int64_t)d->tables[0].cells[d->index[i] >> 1].counts * classes + (d->index[i] & 1);
}

/* Write the cells of a table; at level 0 each has a single score. */
static int64_t dense_write(CellsOut *out, DenseTable *t, int64_t level) {
  const int shift = level ? (int)(level - t->level) : 0;
  int64_t size = 0, before = 0;
  uint64_t known = 0, counts = 0;
  for (int64_t k = dense_next(t, 0); k < t->span; k = dense_next(t, k + 1)) {
    const uint64_t more = t->cells[k].counts;
    if (!more) continue;
    int64_t id = (k + t->low) >> shift, fresh = !size || id != before;
    if (fresh && size == out->room) return OUT_OF_RANGE;
    size += fresh;
    known = one_score(known, more & SEVERAL ? MIXED : bits_of(t->cells[k].found), fresh);
    counts = (fresh ? 0 : counts) + (more & ~SEVERAL);
    if (out->ids && level) out->ids[size - 1] = id;
    memcpy(&out->scores[size - 1], &known, sizeof known);
    write_counts(out, size - 1, counts);
    t->cells[k].counts = (uint64_t)(size - 1);
    before = id;
  }
  out->level = level;
  out->size = size;
  return OK;
}

/* Allocate empty tables for the expected range of scores, at the lowest level, from `level` on, at which the
 * range has at most `widest` cells. The range is extended by `pad` times its size on both sides, if that fits. */
static int64_t dense_tables(Dense *d, int64_t level, int64_t widest, int64_t pad) {
  DenseTable all = {.level = level ? level : 1};
  for (;; all.level++) {
    all.low = cell_id(from_ordinal(d->lowest), (int)all.level);
    uint64_t others = (uint64_t)cell_id(from_ordinal(d->highest), (int)all.level) - (uint64_t)all.low;
    all.span = (int64_t)others + 1;
    if (others < (uint64_t)widest || all.level == LEVELS) break;
  }
  if (level && all.level > level) return NOT_DENSE;
  if (all.span * (2 * pad + 1) > widest) pad = (widest / all.span - 1) / 2;
  all.low -= pad * all.span;
  all.span += 2 * pad * all.span;
  for (int t = 0; t < d->threads; t++) {
    d->tables[t] = all;
    d->tables[t].cells = calloc((size_t)all.span, sizeof *all.cells);
    d->tables[t].used = calloc(((size_t)all.span >> PAGE_BITS) + 1, 1);
    if (!d->tables[t].cells || !d->tables[t].used) return NOT_DENSE;
  }
  return OK;
}

static void dense_free(Dense *d) {
  for (int t = 0; t < d->threads; t++) {
    free(d->tables[t].cells);
    free(d->tables[t].used);
    d->tables[t] = (DenseTable){.level = 0};
  }
}

/* Add the tables of all threads to the first one. */
static void dense_gather(Dense *d) {
  DenseTable *all = &d->tables[0];
  for (int t = 1; t < d->threads; t++) {
    DenseTable *more = &d->tables[t];
    if (more->level < all->level) dense_raise(more, all->level);
    if (all->level < more->level) dense_raise(all, more->level);
    for (int64_t k = dense_next(more, 0); k < more->span; k = dense_next(more, k + 1))
      if (more->cells[k].counts) dense_add(all, k, more->cells[k].counts, more->cells[k].found);
  }
}

/* Write the cells of rows by a table of all cells between the smallest and the largest score. NOT_DENSE if
 * there are too many, or if at level 0 a cell has several scores. The range is first estimated from a sample. */
static int64_t count_dense(CellsOut *out, const Rows *rows, int64_t most, int64_t *index, int64_t level, int threads) {
  Dense d = {.rows = *rows, .index = index, .most = most, .level = level, .threads = threads};
  const int64_t n = rows->n, widest = level ? DENSE_CELLS : DENSE_CELLS >> 6; /* repeated scores have few cells */
  int64_t done = OUT_OF_RANGE, size, several;
  for (int exact = !level; done == OUT_OF_RANGE && exact < 2; exact++) {
    if (exact) {
      d.lowest = INT64_MAX, d.highest = INT64_MIN;
      run_phase(dense_range, &d, threads);
      for (int t = 0; t < threads; t++) {
        d.lowest = d.least[t] < d.lowest ? d.least[t] : d.lowest;
        d.highest = d.largest[t] > d.highest ? d.largest[t] : d.highest;
      }
    } else {
      sampled_range(rows->scores, n, &d.lowest, &d.highest);
    }
    done = dense_tables(&d, level, n < widest / 8 ? 8 * n : widest, exact ? 0 : 1);
    if (done == OK) run_phase(dense_count, &d, threads);
    for (int t = 0; t < threads && done == OK; t++) done = d.done[t];
    if (done == OUT_OF_RANGE) dense_free(&d);
  }
  if (done == OUT_OF_RANGE) done = NOT_DENSE; /* another thread has changed scores */
  if (done == OK) {
    dense_gather(&d);
    int64_t needs = dense_needs(&d.tables[0], most, &size, &several);
    if (!level && (several || size > most))
      done = NOT_DENSE;
    else
      done = dense_write(out, &d.tables[0], level ? needs : 0);
    if (done == OK && index) run_phase(dense_index, &d, threads);
  }
  dense_free(&d);
  return done;
}

/* Write the sums of weights of the cells, given the cell of each row, or its cell and class. */
static int64_t sum_dense(CellsOut *out, const int64_t *places, const double *weight, int64_t n) {
  const int64_t sums = out->size * out->mass.classes, low = out->low, width = out->mass.width, stride = width + SPARE;
  const int power = out->power;
  int64_t *digits = calloc((size_t)(sums * stride), sizeof *digits);
  int wrong = 0;
  Digits seen = {0, 0, 0};
  if (!digits) return NO_MEMORY;
  for (int64_t i = 0; i < n; i++) {
    PREFETCH(digits + places[i + AHEAD < n ? i + AHEAD : i] * stride);
    wrong |= add_weight(digits + places[i] * stride, weight[i], low, width, power);
  }
  for (int64_t k = 0; k < sums; k++) write_sum(out->mass.sums + k * width, digits + k * stride, width, &seen);
  free(digits);
  out->odd = are_odd(&seen, 1, out->size);
  return wrong ? OUT_OF_RANGE : OK;
}

/* Write the cells of rows at the lowest level, from out->level on, with at most `most` cells.
 *
 * `codes` are the classes 0 and 1; NULL for one class. BAD_ROWS if a score is nan or a code is neither. Each row
 * counts as often as `times`, which may be NULL, says; with weights, sums are written. With `index`, it receives
 * the cell of each row instead, or with codes twice the cell plus the code; the rows may then be reordered, and
 * `weight` in the same way. NOT_DENSE if no table fits and there are too many rows to sort. */
static int64_t cells_count(CellsOut *out, const double *scores, const Column *codes, double *weight,
                           const int64_t *times, int64_t n, int64_t most, int64_t *index, int threads) {
  const Rows rows = {scores, codes, times, n};
  const int known = out->level && n / 2 > most && (!weight || most <= CACHED_CELLS);
  const int sampled = !out->level && n / 4 > most && most <= MOST_SAMPLED;
  if (n && (known || sampled || repeat_often(scores, n))) {
    int64_t level = sampled ? sampled_level(scores, n, most) : out->level, done;
    if (level < 0) return level;
    int64_t *places = out->mass.sums ? new_array(n, sizeof *places) : index;
    if (out->mass.sums && !places) return NO_MEMORY;
    done = count_dense(out, &rows, most, places, level, threads);
    if (done == OK && out->mass.sums) done = sum_dense(out, places, weight, n);
    if (out->mass.sums) free(places);
    if (done != NOT_DENSE) return done;
  }
  if (n > MOST_SORTED && n > most) return NOT_DENSE;
  Sorting sorting = {.out = out, .rows = rows, .weight = weight, .index = index, .n = n, .threads = threads};
  return count_sorted(&sorting, most);
}

/* ---- cells ---- */

static inline int64_t key_at(const CellsIn *part, int64_t i, int64_t level) {
  if (i >= part->size) return INT64_MAX;
  return level ? part->ids[i] : ordinal(part->scores[i]);
}

/* The position in each of two parts that are merged: the next row and its key. */
typedef struct {
  int64_t rows[2], keys[2];
} Front;

static inline Front front_of(const CellsIn parts[2], int64_t level) {
  return (Front){{0, 0}, {key_at(&parts[0], 0, level), key_at(&parts[1], 0, level)}};
}

/* Advance past the lower key; returns its part. There is no branch on which part it is. */
static inline int front_next(Front *front, const CellsIn parts[2], int64_t level) {
  int side = front->keys[1] < front->keys[0] || front->rows[0] == parts[0].size;
  front->rows[0] += !side;
  front->rows[1] += side;
  front->keys[0] = key_at(&parts[0], front->rows[0], level);
  front->keys[1] = key_at(&parts[1], front->rows[1], level);
  return side;
}

/* The lowest level, from `level` on, at which the union of two parts has at most `most` cells. */
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

/* Write the union of the cells of two parts at the lowest level, from out->level on, within `most` cells.
 *
 * Both parts are at out->level. Their ids, or scores at level 0, are ascending and may repeat. */
static int64_t cells_merge(CellsOut *out, const CellsIn parts[2], int64_t most) {
  const int64_t n = parts[0].size + parts[1].size, classes = out->mass.classes, before = out->level;
  const int64_t level = merged_level(parts, before, most);
  int64_t size = 0, last = 0, counts[2] = {0, 0};
  uint64_t known = 0;
  Window sums;
  Digits seen = {0, 0, 0};
  if (out->mass.sums) memset(sums, 0, sizeof sums);
  Front front = front_of(parts, before);
  for (int64_t k = 0; k < n; k++) {
    int64_t rows[2] = {front.rows[0], front.rows[1]}, keys[2] = {front.keys[0], front.keys[1]};
    int side = front_next(&front, parts, before);
    const CellsIn *part = &parts[side];
    int64_t row = rows[side], id = keys[side];
    if (level > before) id = before ? shifted(id, (int)(level - before)) : cell_id(from_ordinal(id), (int)level);
    int64_t fresh = !k || id != last, old = fresh - 1;
    uint64_t score = bits_of(part->scores[row] + 0.0);
    if (out->mass.sums && fresh && k) write_sums(out, size - 1, sums, &seen);
    size += fresh;
    if (size > out->room) break;
    known = one_score(known, score, fresh);
    out->scores[size - 1] = from_bits(known);
    if (out->ids) out->ids[size - 1] = id;
    for (int64_t c = 0; c < classes && out->mass.sums; c++)
      for (int64_t d = 0; d < part->mass.width; d++)
        sums[c][part->shift + d] += part->mass.sums[(row * classes + c) * part->mass.width + d];
    for (int64_t c = 0; c < classes && out->mass.counts; c++) {
      counts[c] = (counts[c] & old) + count_at(part->mass.counts, part->mass.wide, row * classes + c);
      set_count(out->mass.counts, out->mass.wide, (size - 1) * classes + c, counts[c]);
    }
    last = id;
  }
  if (out->mass.sums && n && size <= out->room) write_sums(out, size - 1, sums, &seen);
  if (out->mass.sums) out->odd = are_odd(&seen, 1, size);
  out->level = level;
  out->size = size;
  return size > out->room ? OUT_OF_RANGE : OK;
}

/* Add cells at the given places of a table; returns the sum of their counts. */
static inline int64_t add_cells(const CellsOut *table, const int64_t *places, const CellsIn *part, int wide,
                                int64_t classes) {
  int64_t sum = 0;
  for (int64_t i = 0; i < part->size; i++) {
    int64_t some = 0, cell = places[i];
    for (int64_t c = 0; c < classes; c++) {
      int64_t count = count_at(part->mass.counts, part->mass.wide && wide, i * classes + c);
      int64_t total = count_at(table->mass.counts, wide, cell * classes + c);
      set_count(table->mass.counts, wide, cell * classes + c, total + count);
      some |= total;
      sum += count;
    }
    uint64_t known = bits_of(table->scores[cell]), score = bits_of(part->scores[i] + 0.0);
    table->scores[cell] = from_bits(one_score(known, score, !some));
  }
  return sum;
}

/* Add cells to a table of consecutive ids from `low` on, at their level or a higher one; `weight` receives the
 * sum of their counts.
 *
 * Cells of the table with zero counts are empty. Nothing is written if an id is out of range. If the counts
 * of the part are wide, those of the table must be too. */
static int64_t cells_add(const CellsOut *table, int64_t low, const CellsIn *part, int64_t level,
                         int64_t *weight) {
  uint64_t largest = 0;
  int64_t *places = new_array(part->size, sizeof *places);
  if (!places) return NO_MEMORY;
  if (!level) cells_ids(places, part->scores, part->size, table->level);
  for (int64_t i = 0; i < part->size; i++) {
    int64_t id = level ? shifted(part->ids[i], (int)(table->level - level)) : places[i];
    uint64_t place = (uint64_t)id - (uint64_t)low;
    largest = place > largest ? place : largest;
    places[i] = (int64_t)place;
  }
  const int fits = !part->size || largest < (uint64_t)table->room;
  if (fits && table->mass.classes == 2 && !table->mass.wide)
    *weight = add_cells(table, places, part, 0, 2); /* specialized for these constants */
  else if (fits)
    *weight = add_cells(table, places, part, table->mass.wide, table->mass.classes);
  free(places);
  return fits ? OK : OUT_OF_RANGE;
}

/* Twice the pairs of a row of the second class and one of the first with a lower score, ties once. `slack`
 * receives the number of ties within cells of several scores; without `scores`, there are none. Sums of more
 * than 63 bits wrap. */
static int64_t cells_area(const CellsIn *cells, int64_t *slack) {
  uint64_t area = 0, below = 0, unsure = 0;
  for (int64_t k = 0; k < cells->size; k++) {
    uint64_t n = (uint64_t)count_at(cells->mass.counts, cells->mass.wide, 2 * k);
    uint64_t p = (uint64_t)count_at(cells->mass.counts, cells->mass.wide, 2 * k + 1);
    area += p * (2 * below + n);
    if (cells->scores) unsure += p * n & (0 - (uint64_t)(cells->scores[k] != cells->scores[k]));
    below += n;
  }
  *slack = (int64_t)unsure;
  return (int64_t)area;
}
