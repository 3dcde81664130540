/* Counts of codes, the extremes of a column, and columns of zeros and ones.
 *
 * Codes are integers of any width, used without conversion. A block of rows is first converted to cell
 * numbers in a private buffer and checked there, so that concurrent changes to the arrays do no harm.
 */

#define COUNT_BLOCK 1024 /* rows */
#define COUNT_LANES 4    /* tables used in turn, so that increments do not wait for each other */
#define COUNT_CELLS 1024 /* maximum cells of a table with lanes: its 16 KB fit the L1 cache */
#define COUNT_FLUSH ((int64_t)1 << 20) /* blocks after which 32-bit lanes could overflow */

/* cell = cell * size + code for each row. The result is negative if a code is negative or not below size,
 * which is at most 2^31: as 32-bit integers, larger codes are negative. */
static int64_t fill_cells(uint32_t *cells, const Column *column, int64_t start, int64_t n) {
  const int64_t size = column->size;
#define FILL(kind, type, wide, unsigned_wide)                                                    \
  case kind: {                                                                                   \
    const type *code = (const type *)column->data + start;                                       \
    wide bad = 0, most = (wide)(size - 1);                                                       \
    for (int64_t i = 0; i < n; i++) {                                                            \
      wide value = (wide)code[i];                                                                \
      bad |= value | (wide)((unsigned_wide)most - (unsigned_wide)value);                         \
      cells[i] = cells[i] * (uint32_t)size + (uint32_t)value;                                    \
    }                                                                                            \
    return (int64_t)bad;                                                                         \
  }
  switch (column->kind) {
    FILL(KIND_I8, int8_t, int32_t, uint32_t)
    FILL(KIND_U8, uint8_t, int32_t, uint32_t)
    FILL(KIND_I16, int16_t, int32_t, uint32_t)
    FILL(KIND_U16, uint16_t, int32_t, uint32_t)
    FILL(KIND_I32, int32_t, int32_t, uint32_t)
    FILL(KIND_U32, uint32_t, int32_t, uint32_t)
    FILL(KIND_I64, int64_t, int64_t, uint64_t)
    FILL(KIND_U64, uint64_t, int64_t, uint64_t)
    default: return -1;
  }
#undef FILL
}

/* The first row whose code is out of range; `cells` may be overwritten. */
static int64_t first_bad(uint32_t *cells, const Column *column, int64_t start, int64_t n) {
  int64_t i = 0;
  for (; i < n - 1; i++)
    if (cells[i] = 0, fill_cells(cells + i, column, start + i, 1) < 0) break;
  return start + i;
}

/* An integer that orders float64 values, with nan at both ends. Compilers do not vectorize floating-point
 * comparisons, which may trap. */
static inline int64_t key_64(int64_t bits) {
  return bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1);
}

static inline int32_t key_32(int32_t bits) {
  return bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1);
}

/* The same for a score cut at a threshold: code 1 for scores at or above it; nan is rejected. */
static int64_t fill_above(uint32_t *cells, const double *score, int64_t n, double threshold) {
  const int64_t infinity = INT64_C(0x7FF) << 52;
  int64_t bad = 0, least = key_64((int64_t)bits_of(threshold == 0 ? -0.0 : threshold));
  if (threshold != threshold) least = INT64_MAX;
  for (int64_t i = 0; i < n; i++) {
    int64_t bits;
    memcpy(&bits, &score[i], sizeof bits);
    bad |= infinity - (bits & INT64_MAX);
    cells[i] = cells[i] * 2 + (key_64(bits) >= least);
  }
  return bad;
}

/* Compute the cells of n rows; negative if a row has a code out of range. */
static int64_t cells_of(uint32_t *cells, const Column *columns, int64_t number, const double *score,
                        double threshold, int64_t start, int64_t n) {
  int64_t bad = 0;
  memset(cells, 0, (size_t)n * sizeof *cells);
  for (int64_t k = 0; k < number; k++) bad |= fill_cells(cells, &columns[k], start, n);
  if (score) bad |= fill_above(cells, score + start, n, threshold);
  return bad;
}

static void count_four(int64_t *counts, const uint32_t *cells, int64_t n) {
  uint32_t low = 0, high = 0, both = 0;
  for (int64_t i = 0; i < n; i++) {
    low += cells[i] & 1;
    high += cells[i] >> 1;
    both += cells[i] == 3;
  }
  counts[0] += n - low - high + both;
  counts[1] += low - both;
  counts[2] += high - both;
  counts[3] += both;
}

/* The same for rows that count several times; sums wrap. */
static void sum_four(int64_t *counts, const uint32_t *cells, const int64_t *times, int64_t n) {
  uint64_t every = 0, low = 0, high = 0, both = 0;
  for (int64_t i = 0; i < n; i++) {
    uint64_t more = (uint64_t)times[i], first = 0 - (uint64_t)(cells[i] & 1), second = 0 - (uint64_t)(cells[i] >> 1);
    every += more;
    low += more & first;
    high += more & second;
    both += more & first & second;
  }
  uint64_t sums[4] = {every - low - high + both, low - both, high - both, both};
  for (int k = 0; k < 4; k++) counts[k] = (int64_t)((uint64_t)counts[k] + sums[k]);
}

static int64_t count(int64_t *counts, int64_t size, const int64_t *times, const Column *columns, int64_t number,
                     const double *score, double threshold, int64_t n) {
  uint32_t cells[COUNT_BLOCK], lanes[COUNT_LANES * COUNT_CELLS];
  int use_lanes = !times && size != 4 && size <= COUNT_CELLS && n >= COUNT_LANES * size;
  int64_t blocks = 0;
  if (use_lanes) memset(lanes, 0, (size_t)(COUNT_LANES * size) * sizeof *lanes);
  for (int64_t start = 0; start < n; start += COUNT_BLOCK) {
    int64_t rows = n - start < COUNT_BLOCK ? n - start : COUNT_BLOCK, i = 0;
    if (cells_of(cells, columns, number, score, threshold, start, rows) < 0) {
      for (; i < rows - 1; i++)
        if (cells_of(cells, columns, number, score, threshold, start + i, 1) < 0) break;
      return start + i;
    }
    if (size == 4 && times) sum_four(counts, cells, times + start, rows);
    if (size == 4 && !times) count_four(counts, cells, rows);
    if (size == 4) continue;
    for (; times && i < rows; i++) counts[cells[i]] = (int64_t)((uint64_t)counts[cells[i]] + (uint64_t)times[start + i]);
    if (use_lanes)
      for (; i + COUNT_LANES <= rows; i += COUNT_LANES)
        for (int j = 0; j < COUNT_LANES; j++) lanes[j * size + cells[i + j]]++;
    for (; i < rows; i++) counts[cells[i]]++;
    if (use_lanes && (++blocks == COUNT_FLUSH || start + rows == n)) {
      for (int64_t k = 0; k < COUNT_LANES * size; k++) counts[k % size] += lanes[k];
      memset(lanes, 0, (size_t)(COUNT_LANES * size) * sizeof *lanes);
      blocks = 0;
    }
  }
  return n;
}

/* Add rows of `width` integers to the rows of totals given by codes; sums wrap. */
static int64_t add_rows(int64_t *totals, int64_t width, const int64_t *rows, const Column *codes,
                        int64_t n) {
  uint32_t places[COUNT_BLOCK];
  for (int64_t start = 0; start < n; start += COUNT_BLOCK) {
    int64_t block = n - start < COUNT_BLOCK ? n - start : COUNT_BLOCK;
    if (cells_of(places, codes, 1, NULL, 0.0, start, block) < 0) return first_bad(places, codes, start, block);
    for (int64_t i = 0; i < block; i++) {
      int64_t *total = totals + places[i] * width;
      const int64_t *row = rows + (start + i) * width;
      for (int64_t k = 0; k < width; k++) total[k] = (int64_t)((uint64_t)total[k] + (uint64_t)row[k]);
    }
  }
  return n;
}

/* The smallest and the largest of n > 0 values, in their own type; nan is beyond all others. */
static void extent(const void *data, int kind, int64_t n, void *least, void *largest) {
  const char *values = data;
#define SAME(value) (value)
#define EXTENT(kind, type, key)                                                         \
  case kind: {                                                                          \
    enum { WIDE_LANES = 64 / sizeof(type) };                                            \
    type low[WIDE_LANES], high[WIDE_LANES], value;                                      \
    int64_t i = 0;                                                                      \
    memcpy(&value, values, sizeof value);                                               \
    for (int j = 0; j < WIDE_LANES; j++) low[j] = high[j] = key(value);                 \
    for (; i + WIDE_LANES <= n; i += WIDE_LANES)                                        \
      for (int j = 0; j < WIDE_LANES; j++) {                                            \
        type each;                                                                      \
        memcpy(&each, values + (i + j) * (int64_t)sizeof each, sizeof each);            \
        each = key(each);                                                               \
        low[j] = each < low[j] ? each : low[j];                                         \
        high[j] = each > high[j] ? each : high[j];                                      \
      }                                                                                 \
    for (; i < n; i++) {                                                                \
      memcpy(&value, values + i * (int64_t)sizeof value, sizeof value);                 \
      value = key(value);                                                               \
      low[0] = value < low[0] ? value : low[0];                                         \
      high[0] = value > high[0] ? value : high[0];                                      \
    }                                                                                   \
    for (int j = 1; j < WIDE_LANES; j++) {                                              \
      low[0] = low[j] < low[0] ? low[j] : low[0];                                       \
      high[0] = high[j] > high[0] ? high[j] : high[0];                                  \
    }                                                                                   \
    low[0] = key(low[0]); /* key is its own inverse */                                  \
    high[0] = key(high[0]);                                                             \
    memcpy(least, low, sizeof(type));                                                   \
    memcpy(largest, high, sizeof(type));                                                \
    return;                                                                             \
  }
  switch (kind) {
    EXTENT(KIND_I8, int8_t, SAME)
    EXTENT(KIND_U8, uint8_t, SAME)
    EXTENT(KIND_I16, int16_t, SAME)
    EXTENT(KIND_U16, uint16_t, SAME)
    EXTENT(KIND_I32, int32_t, SAME)
    EXTENT(KIND_U32, uint32_t, SAME)
    EXTENT(KIND_I64, int64_t, SAME)
    EXTENT(KIND_U64, uint64_t, SAME)
    EXTENT(KIND_F32, int32_t, key_32)
    EXTENT(KIND_F64, int64_t, key_64)
  }
#undef EXTENT
#undef SAME
}

/* Write zeros and ones as bytes; returns the number of ones, or -1 if there is another number. */
static int64_t bits(uint8_t *out, const void *values, int kind, int64_t n) {
  int64_t ones = 0;
#define BITS(signed_kind, kind, type)                                   \
  case signed_kind:                                                     \
  case kind: {                                                          \
    const type *x = values;                                             \
    for (int64_t start = 0; start < n; start += COUNT_BLOCK) {          \
      int64_t rows = n - start < COUNT_BLOCK ? n - start : COUNT_BLOCK; \
      type every = 0;                                                   \
      uint32_t sum = 0;                                                 \
      for (int64_t i = start; i < start + rows; i++) {                  \
        type value = x[i];                                              \
        every |= value;                                                 \
        out[i] = (uint8_t)(value & 1);                                  \
      }                                                                 \
      if (every > 1) return -1;                                         \
      for (int64_t i = start; i < start + rows; i++) sum += out[i];     \
      ones += sum;                                                      \
    }                                                                   \
    return ones;                                                        \
  }
  switch (kind) {
    BITS(KIND_I8, KIND_U8, uint8_t)
    BITS(KIND_I16, KIND_U16, uint16_t)
    BITS(KIND_I32, KIND_U32, uint32_t)
    BITS(KIND_I64, KIND_U64, uint64_t)
    default: return -1;
  }
#undef BITS
}

#undef COUNT_BLOCK
#undef COUNT_LANES
#undef COUNT_CELLS
#undef COUNT_FLUSH
