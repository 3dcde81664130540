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
 * between the smallest and the largest score, at the level that a sample of rows needs.
 *
 * Two states are merged cell by cell; many states are added to a table of this kind, one after the other.
 */

#define LEVELS 64
#define ORDER_BLOCK 256
#define SHORT_RUN 24      /* rows up to which insertion sort is used */
#define DIGIT_BITS 11     /* maximum bits of a radix pass */
#define BUCKET_ROWS 4096  /* rows that are sorted in the cache */
#define MOST_BUCKETS 2048
#define DENSE_CELLS ((int64_t)1 << 25) /* maximum size of a table; unused pages take no memory */
#define PAGE_BITS 9       /* log2 of the cells of a page */
#define MOST_PAGES 8192   /* maximum used pages, of 8 KB each */
#define SAMPLE_ROWS 2048  /* rows sampled to find whether scores repeat */
#define MIXED UINT64_C(0x7FF8000000000000) /* the nan of a cell of several scores */
#define NOT_DENSE (-3)

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

/* Define NAME(a, other, n, starts): a stable sort of items by KEY; returns the array with the result.
 *
 * The leading bits that differ are radix-sorted, a few more than are needed to distinguish n values. Items
 * that are equal in these bits are sorted by insertion or, if there are many, by the lower bits. */
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
DEFINE_SORT(sort_keys, uint64_t, KEY_ITSELF)
DEFINE_SORT(sort_pairs, Pair, KEY_OF_PAIR)
#define SIGNED(key) ((uint64_t)(key) ^ UINT64_C(1) << 63)

static void *new_array(int64_t n, size_t size) {
  return (uint64_t)n > PTRDIFF_MAX / size ? NULL : malloc(n ? (size_t)n * size : 1);
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
static inline void write_counts(CellsOut *out, int64_t cell, uint64_t counts) {
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

/* ---- samples ---- */

/* Sort the keys of evenly spaced rows; `keys` has room for twice as many. Returns the sorted keys. */
static uint64_t *sample(uint64_t *keys, int64_t count, const double *scores, int64_t n) {
  for (int64_t k = 0; k < count; k++) keys[k] = SIGNED(ordinal(scores[k * (n / count)]));
  return sort_keys(keys, keys + count, count);
}

/* The level that a sample of rows needs, a lower bound of the level for all rows. */
static int64_t sampled_level(const double *scores, int64_t n, int64_t most) {
  int64_t lengths[LEVELS + 1] = {0}, distinct = 1, last = 0;
  uint64_t *keys = new_array(4 * most, sizeof *keys), *sorted;
  if (!keys) return NO_MEMORY;
  sorted = sample(keys, 2 * most, scores, n);
  for (int64_t k = 0; k < 2 * most; k++) {
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
  const double *scores;
  const uint8_t *codes;
  double *weight;
  int64_t *index;
  int64_t n, level, base; /* the resulting level, and the lowest level at which ids are computed */
  int threads, tell;      /* tell: whether cells are counted before they are written */
  Split split;
  uint16_t *buckets;                        /* bucket of each row */
  int64_t *next[MOST_THREADS], *starts, number; /* of each bucket */
  uint64_t *keys;                           /* unsigned ordinals combined with the code */
  Pair *pairs;                              /* or keys together with the bits of a weight */
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
    split->low[side] = (int64_t)SIGNED(low);
    split->shift[side] = shift;
    split->last[side] = (int64_t)(range >> shift);
    split->base[side] = side ? split->last[0] + 1 : 0;
  }
}

/* Store the bucket of each row, and count the rows of each bucket. */
static void sorting_split(void *work, int thread) {
  Sorting *s = work;
  const Split split = s->split;
  for (int64_t start = s->from[thread], stop = s->from[thread + 1], rows; start < stop; start += rows) {
    uint16_t *buckets = s->buckets + start;
    rows = stop - start < ORDER_BLOCK ? stop - start : ORDER_BLOCK;
    for (int64_t i = 0; i < rows; i++) {
      int64_t order = ordinal(s->scores[start + i]);
      int64_t low = order < 0 ? split.low[0] : split.low[1], last = order < 0 ? split.last[0] : split.last[1];
      int64_t base = order < 0 ? split.base[0] : split.base[1];
      uint64_t shift = (uint64_t)(order < 0 ? split.shift[0] : split.shift[1]);
      int64_t bucket = (int64_t)((uint64_t)(order < low ? 0 : order - low) >> shift);
      buckets[i] = (uint16_t)(base + (bucket < last ? bucket : last));
    }
    for (int64_t i = 0; i < rows; i++) s->next[thread][buckets[i]]++;
  }
}

/* Move the rows to their buckets. */
static void sorting_move(void *work, int thread) {
  Sorting *s = work;
  int64_t *next = s->next[thread];
  for (int64_t i = s->from[thread]; i < s->from[thread + 1]; i++) {
    uint64_t key = (uint64_t)ordinal(s->scores[i]) << 1 | (s->codes ? s->codes[i] & 1 : 0);
    int64_t place = next[s->buckets[i]]++;
    if (s->pairs)
      s->pairs[place] = (Pair){key, (int64_t)bits_of(s->weight[i])};
    else
      s->keys[place] = key;
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
  for (int64_t b = s->firsts[thread]; b < s->firsts[thread + 1]; b++) {
    int64_t start = s->starts[b], rows = s->starts[b + 1] - start;
    if (s->pairs) {
      Pair *sorted = sort_pairs(s->pairs + start, spare, rows);
      if (sorted == spare) memcpy(s->pairs + start, spare, sizeof *sorted * (size_t)rows);
    } else {
      uint64_t *sorted = sort_keys(s->keys + start, spare, rows);
      if (sorted == spare) memcpy(s->keys + start, spare, sizeof *sorted * (size_t)rows);
    }
    if (s->tell) sorting_differences(s, start > first ? start - 1 : start, start + rows, thread);
  }
  free(spare);
}

/* Write the cells of a thread's sorted rows at their positions, and count them. */
static void sorting_write(void *work, int thread) {
  Sorting *s = work;
  CellsOut *out = s->out;
  double scores[ORDER_BLOCK];
  int64_t ids[ORDER_BLOCK], places[ORDER_BLOCK], size = s->to[thread], classes = s->codes ? 2 : 1;
  uint64_t before = 0, known = 0, counts = 0; /* of the current cell */
  uint8_t codes[ORDER_BLOCK];
  int64_t fresh = 1, summed = -1; /* summed: the cell whose weights are being summed */
  int wrong = 0;
  const int64_t low = out->low, width = out->mass.width;
  const int power = out->power;
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
      counts = (fresh ? 0 : counts) + (UINT64_C(1) << 32 * codes[i]);
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
  split_scores(&s->split, s->scores, s->n, number < MOST_BUCKETS ? number : MOST_BUCKETS);
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
  for (int64_t b = 0; b < s->number; b++) {
    s->starts[b] = sum;
    while (thread < s->threads && sum >= s->n / s->threads * thread) s->firsts[thread++] = b;
    for (int t = 0; t < s->threads; t++) {
      int64_t rows = s->next[t][b];
      s->next[t][b] = sum;
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
  s->tell = out->level || s->n > most || (s->weight && s->threads > 1);
  const int inside = !s->tell && !s->weight && out->room >= s->n; /* keys are stored in the output array of scores */
  if (s->weight)
    s->pairs = new_array(s->n, sizeof *s->pairs);
  else
    s->keys = inside ? (uint64_t *)(void *)out->scores : new_array(s->n, sizeof *s->keys);
  int64_t done = sorting_begin(s);
  if (done == OK) run_phase(sorting_sort, s, s->threads);
  for (int t = 0; t < s->threads; t++)
    if (s->failed[t]) done = NO_MEMORY;
  if (done == OK && s->tell) {
    sorting_places(s, most);
    if (out->size > out->room) done = OUT_OF_RANGE;
  } else if (done == OK) {
    for (int t = 0; t < s->threads; t++) s->from[t] = s->to[t] = s->starts[s->firsts[t]];
  }
  if (done == OK) {
    run_phase(sorting_write, s, s->threads);
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

/* Counts of each class in the cells of a range of ids, one table per thread: 31 bits a class, and a top bit
 * that marks cells of several scores. */
#define SEVERAL (UINT64_C(1) << 63)

typedef struct {
  const double *scores;
  const uint8_t *codes;
  int64_t *index;
  int64_t n, level, lowest[MOST_THREADS], highest[MOST_THREADS], low, span;
  int threads;
  uint64_t *counts[MOST_THREADS];
  double *found[MOST_THREADS];
  uint8_t *used[MOST_THREADS]; /* whether a page has cells */
  int64_t pages[MOST_THREADS]; /* number of pages with cells */
} Dense;

static int64_t thread_start(int64_t n, int threads, int thread) {
  return thread < threads ? n / threads * thread : n;
}

/* Find the smallest and the largest score of rows, by their ordinals. */
static APART void dense_range(void *work, int thread) {
  Dense *d = work;
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (int64_t i = thread_start(d->n, d->threads, thread); i < thread_start(d->n, d->threads, thread + 1); i++) {
    int64_t order = ordinal(d->scores[i]);
    low = order < low ? order : low;
    high = order > high ? order : high;
  }
  d->lowest[thread] = low;
  d->highest[thread] = high;
}

static void dense_count(void *work, int thread) {
  Dense *d = work;
  uint64_t *counts = d->counts[thread];
  double *found = d->found[thread], scores[ORDER_BLOCK];
  uint8_t *used = d->used[thread];
  const uint8_t *codes = d->codes;
  int64_t *index = d->index;
  const int64_t low = d->low, span = d->span, level = d->level;
  int64_t ids[ORDER_BLOCK], stop = thread_start(d->n, d->threads, thread + 1), pages = 0;
  for (int64_t start = thread_start(d->n, d->threads, thread), rows; start < stop; start += rows) {
    if (pages > MOST_PAGES) break;
    rows = stop - start < ORDER_BLOCK ? stop - start : ORDER_BLOCK;
    for (int64_t i = 0; i < rows; i++) scores[i] = d->scores[start + i] + 0.0;
    cells_ids(ids, scores, rows, level);
    /* Compute all positions first, so that cells are prefetched while others are computed. */
    for (int64_t i = 0; i < rows; i++) {
      uint64_t id = (uint64_t)(ids[i] - low);
      if (id >= (uint64_t)span) id = 0; /* another thread has changed the score */
      ids[i] = (int64_t)id;
      PREFETCH(&counts[id]);
    }
    for (int64_t i = 0; i < rows; i++) {
      uint64_t id = (uint64_t)ids[i], code = codes ? codes[start + i] & 1 : 0;
      uint64_t known = counts[id];
      if ((int64_t)known >= 0) {
        if (!known) {
          found[id] = scores[i];
          pages += !used[id >> PAGE_BITS];
          used[id >> PAGE_BITS] = 1;
        } else if (found[id] != scores[i])
          known |= SEVERAL;
      }
      counts[id] = known + (UINT64_C(1) << (code << 5));
      if (index) index[start + i] = (int64_t)(id << 1 | code);
    }
  }
  d->pages[thread] = pages;
}

/* The next cell from `k` on that is on a page with cells, or at least `span`. */
static int64_t dense_next(const Dense *d, int64_t k) {
  while (k < d->span && !d->used[0][k >> PAGE_BITS]) k = ((k >> PAGE_BITS) + 1) << PAGE_BITS;
  return k;
}

/* Add the tables of all threads to the first one; returns the number of occupied cells. */
static int64_t dense_gather(Dense *d, int64_t lengths[LEVELS + 1], int64_t *several) {
  int64_t size = 0, last = 0;
  for (int t = 1; t < d->threads; t++)
    for (int64_t p = 0; p <= d->span >> PAGE_BITS; p++) d->used[0][p] |= d->used[t][p];
  for (int64_t k = dense_next(d, 0); k < d->span; k = dense_next(d, k + 1)) {
    uint64_t known = d->counts[0][k];
    for (int t = 1; t < d->threads; t++) {
      uint64_t more = d->counts[t][k];
      if (!more) continue;
      if (!known)
        d->found[0][k] = d->found[t][k];
      else if (!((known | more) & SEVERAL) && d->found[0][k] != d->found[t][k])
        known |= SEVERAL;
      known = ((known & ~SEVERAL) + (more & ~SEVERAL)) | ((known | more) & SEVERAL);
    }
    if (!known) continue;
    d->counts[0][k] = known;
    *several += (int64_t)(known >> 63);
    if (size++) lengths[bit_length((uint64_t)((k + d->low) ^ (last + d->low)))]++;
    last = k;
  }
  return size;
}

static void dense_index(void *work, int thread) {
  const Dense *d = work;
  const int64_t classes = d->codes ? 2 : 1;
  for (int64_t i = thread_start(d->n, d->threads, thread); i < thread_start(d->n, d->threads, thread + 1); i++)
    d->index[i] = (int64_t)d->counts[0][d->index[i] >> 1] * classes + (d->index[i] & 1);
}

/* Write the cells of a table; at level 0 each has a single score. */
static int64_t dense_write(CellsOut *out, Dense *d, int64_t level) {
  const int shift = level ? (int)(level - d->level) : 0;
  int64_t size = 0, before = 0;
  uint64_t known = 0, counts = 0;
  for (int64_t k = dense_next(d, 0); k < d->span; k = dense_next(d, k + 1)) {
    const uint64_t more = d->counts[0][k];
    if (!more) continue;
    int64_t id = (k + d->low) >> shift, fresh = !size || id != before;
    if (fresh && size == out->room) return OUT_OF_RANGE;
    size += fresh;
    known = one_score(known, more & SEVERAL ? MIXED : bits_of(d->found[0][k]), fresh);
    counts = (fresh ? 0 : counts) + (more & ~SEVERAL);
    if (out->ids && level) out->ids[size - 1] = id;
    memcpy(&out->scores[size - 1], &known, sizeof known);
    write_counts(out, size - 1, counts);
    d->counts[0][k] = (uint64_t)(size - 1);
    before = id;
  }
  out->level = level;
  out->size = size;
  return OK;
}

/* The lowest level, from `level` on, at which the range of scores has at most `most` cells. */
static int64_t dense_level(Dense *d, int64_t level, int64_t most) {
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (int t = 0; t < d->threads; t++) {
    low = d->lowest[t] < low ? d->lowest[t] : low;
    high = d->highest[t] > high ? d->highest[t] : high;
  }
  for (level = level ? level : 1;; level++) {
    d->low = cell_id(from_ordinal(low), (int)level);
    uint64_t others = (uint64_t)cell_id(from_ordinal(high), (int)level) - (uint64_t)d->low;
    d->span = (int64_t)others + 1;
    if (others < (uint64_t)most || level == LEVELS) return level;
  }
}

/* Write the cells of rows by a table of all cells between the smallest and the largest score. NOT_DENSE if
 * there are too many, or if at level 0 a cell has several scores. */
static int64_t count_dense(CellsOut *out, const double *scores, const uint8_t *codes, int64_t n, int64_t most,
                           int64_t *index, int64_t level, int threads) {
  Dense d = {.scores = scores, .codes = codes, .index = index, .n = n, .threads = threads};
  int64_t lengths[LEVELS + 1] = {0}, several = 0, size, done = OK;
  int64_t widest = level ? DENSE_CELLS : DENSE_CELLS >> 6; /* repeated scores have few cells */
  run_phase(dense_range, &d, threads);
  d.level = dense_level(&d, level, n < widest / 8 ? 8 * n : widest);
  if (level && d.level > level) return NOT_DENSE;
  for (int t = 0; t < threads; t++) {
    d.counts[t] = calloc((size_t)d.span, sizeof **d.counts);
    d.found[t] = new_array(d.span, sizeof **d.found);
    d.used[t] = calloc(((size_t)d.span >> PAGE_BITS) + 1, 1);
    if (!d.counts[t] || !d.found[t] || !d.used[t]) done = NOT_DENSE;
  }
  if (done == OK) {
    run_phase(dense_count, &d, threads);
    for (int t = 0; t < threads; t++)
      if (d.pages[t] > MOST_PAGES) done = NOT_DENSE;
  }
  if (done == OK) {
    size = dense_gather(&d, lengths, &several);
    if (level)
      done = dense_write(out, &d, size > most ? level_of(lengths, level, most) : level);
    else
      done = several || size > most ? NOT_DENSE : dense_write(out, &d, 0);
    if (done == OK && index) run_phase(dense_index, &d, threads);
  }
  for (int t = 0; t < threads; t++) {
    free(d.counts[t]);
    free(d.found[t]);
    free(d.used[t]);
  }
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
  for (int64_t i = 0; i < n; i++) wrong |= add_weight(digits + places[i] * stride, weight[i], low, width, power);
  for (int64_t k = 0; k < sums; k++) write_sum(out->mass.sums + k * width, digits + k * stride, width, &seen);
  free(digits);
  out->odd = are_odd(&seen, 1, out->size);
  return wrong ? OUT_OF_RANGE : OK;
}

/* Write the cells of rows at the lowest level, from out->level on, with at most `most` cells.
 *
 * `codes` (n) are the classes 0 and 1; NULL for one class. With weights, sums are written. With `index`, it
 * receives the cell of each row instead, or with codes twice the cell plus the code; the rows may then be
 * reordered, and `weight` in the same way. */
static int64_t cells_count(CellsOut *out, const double *scores, const uint8_t *codes, double *weight,
                           int64_t n, int64_t most, int64_t *index, int threads) {
  const int few = n / 4 <= most;
  if (n && (!few || repeat_often(scores, n))) {
    int64_t level = few || out->level ? out->level : sampled_level(scores, n, most), done;
    if (level < 0) return level;
    int64_t *places = out->mass.sums ? new_array(n, sizeof *places) : index;
    if (out->mass.sums && !places) return NO_MEMORY;
    done = count_dense(out, scores, codes, n, most, places, level, threads);
    if (done == OK && out->mass.sums) done = sum_dense(out, places, weight, n);
    if (out->mass.sums) free(places);
    if (done != NOT_DENSE) return done;
  }
  Sorting sorting = {.out = out, .scores = scores, .codes = codes, .weight = weight, .index = index, .n = n,
                     .threads = threads};
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
 * receives the number of ties within cells of several scores. Sums of more than 63 bits wrap. */
static int64_t cells_area(const CellsIn *cells, int64_t *slack) {
  uint64_t area = 0, below = 0, unsure = 0;
  for (int64_t k = 0; k < cells->size; k++) {
    uint64_t n = (uint64_t)count_at(cells->mass.counts, cells->mass.wide, 2 * k);
    uint64_t p = (uint64_t)count_at(cells->mass.counts, cells->mass.wide, 2 * k + 1);
    area += p * (2 * below + n);
    unsure += p * n & (0 - (uint64_t)(cells->scores[k] != cells->scores[k]));
    below += n;
  }
  *slack = (int64_t)unsure;
  return (int64_t)area;
}
