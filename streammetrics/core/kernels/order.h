/* Rows ordered by group, and inversions. */

#define CHECKED_ROWS 2048 /* rows whose codes are checked at a time */

#define MOVE(type)                                                                       \
  for (int64_t i = 0; i < n; i++) ((type *)column->to)[place[i]] = ((const type *)column->from)[i]

/* Write the rows of columns ordered by group, stably, and where each group starts. Codes are copied as they are
 * checked.
 *
 * Returns n, or the first row whose code is out of range, with nothing moved. */
static int64_t group_rows(int64_t *starts, int64_t groups, const Column *codes, int64_t n, const Moved *columns,
                          int64_t number) {
  uint32_t *place = new_array(n, sizeof *place);
  int64_t *next = new_array(groups, sizeof *next);
  Column column = *codes;
  column.size = groups;
  if (!place || !next) {
    free(place);
    free(next);
    return NO_MEMORY;
  }
  memset(place, 0, (size_t)n * sizeof *place);
  memset(starts, 0, (size_t)(groups + 1) * sizeof *starts);
  for (int64_t start = 0; start < n; start += CHECKED_ROWS) {
    int64_t rows = n - start < CHECKED_ROWS ? n - start : CHECKED_ROWS;
    if (fill_cells(place + start, &column, start, rows) < 0) {
      int64_t bad = first_bad(place + start, &column, start, rows);
      free(place);
      free(next);
      return bad;
    }
    for (int64_t i = 0; i < rows; i++) starts[place[start + i] + 1]++;
  }
  for (int64_t k = 0; k < groups; k++) {
    next[k] = starts[k];
    starts[k + 1] += starts[k];
  }
  for (int64_t i = 0; i < n; i++) place[i] = (uint32_t)next[place[i]]++;
  for (const Moved *column = columns; column < columns + number; column++) {
    uintptr_t odd = ((uintptr_t)column->from | (uintptr_t)column->to) % (uintptr_t)column->width;
    switch (odd ? 0 : column->width) {
      case 1: MOVE(uint8_t); break;
      case 2: MOVE(uint16_t); break;
      case 4: MOVE(uint32_t); break;
      case 8: MOVE(uint64_t); break;
      default:
        for (int64_t i = 0; i < n; i++)
          memcpy((char *)column->to + place[i] * column->width, (const char *)column->from + i * column->width,
                 (size_t)column->width);
    }
  }
  free(place);
  free(next);
  return n;
}
#undef MOVE

/* 128-bit unsigned integers as two words. */
typedef struct {
  uint64_t low, high;
} Wide;

static inline void add_wide(Wide *sum, uint64_t a, uint64_t b) {
  uint64_t a0 = a & 0xFFFFFFFF, a1 = a >> 32, b0 = b & 0xFFFFFFFF, b1 = b >> 32;
  uint64_t p0 = a0 * b0, p1 = a0 * b1, p2 = a1 * b0, p3 = a1 * b1;
  uint64_t middle = (p0 >> 32) + (p1 & 0xFFFFFFFF) + (p2 & 0xFFFFFFFF);
  uint64_t low = (middle << 32) | (p0 & 0xFFFFFFFF);
  sum->low += low;
  sum->high += p3 + (p1 >> 32) + (p2 >> 32) + (middle >> 32) + (sum->low < low);
}

typedef struct {
  int64_t rank;
  uint64_t before, behind; /* multiplicities before a lower rank, and behind a higher one */
} Entry;

/* Merge two sorted runs, ties from the left first. Each element taken from the right run adds the number of
 * elements left in the left run. The order is unpredictable, so the loop does not branch on it. */
static uint64_t merge_plain(int32_t *to, const int32_t *left, int64_t n, const int32_t *right,
                            int64_t m) {
  uint64_t inversions = 0;
  int64_t i = 0, j = 0;
  while (i < n && j < m) {
    int32_t a = left[i], b = right[j];
    int64_t lower = b < a;
    *to++ = lower ? b : a;
    inversions += (uint64_t)(n - i) & (uint64_t)-lower;
    j += lower;
    i += 1 - lower;
  }
  memcpy(to, left + i, (size_t)(n - i) * sizeof *to);
  memcpy(to + (n - i), right + j, (size_t)(m - j) * sizeof *to);
  return inversions;
}

/* The same for two runs of equal length, from both ends at once: neither end goes beyond a run. */
static uint64_t merge_equal(int32_t *to, const int32_t *left, const int32_t *right, int64_t run) {
  uint64_t inversions = 0;
  for (int64_t k = 0, i = 0, j = 0, p = run - 1, q = run - 1; k < run; k++) {
    int32_t a = left[i], b = right[j], c = left[p], d = right[q];
    int64_t lower = b < a, above = d < c;
    to[k] = lower ? b : a;
    to[2 * run - 1 - k] = above ? c : d;
    inversions += (uint64_t)(run - i) & (uint64_t)-lower;
    inversions += (uint64_t)(run - 1 - p) & (uint64_t)(above - 1);
    j += lower;
    i += 1 - lower;
    p -= above;
    q -= 1 - above;
  }
  return inversions;
}

static void merge_counted(Entry *to, const Entry *left, int64_t n, const Entry *right, int64_t m,
                          Wide *sum) {
  uint64_t waiting = 0; /* sum over the rest of the left run */
  int64_t i = 0, j = 0;
  for (int64_t k = 0; k < n; k++) waiting += left[k].before;
  while (i < n && j < m) {
    if (right[j].rank < left[i].rank) {
      add_wide(sum, waiting, right[j].behind);
      *to++ = right[j++];
    } else {
      waiting -= left[i].before;
      *to++ = left[i++];
    }
  }
  memcpy(to, left + i, (size_t)(n - i) * sizeof *to);
  memcpy(to + (n - i), right + j, (size_t)(m - j) * sizeof *to);
}

/* Insertion sort of a few ranks; returns the number of moves, which is the number of inversions. */
static uint64_t insert_plain(int32_t *ranks, int64_t n) {
  uint64_t inversions = 0;
  for (int64_t i = 1; i < n; i++) {
    int32_t rank = ranks[i];
    int64_t j = i;
    for (; j && ranks[j - 1] > rank; j--) ranks[j] = ranks[j - 1];
    ranks[j] = rank;
    inversions += (uint64_t)(i - j);
  }
  return inversions;
}

#define INSERTED 8 /* ranks sorted by insertion before runs are merged */

/* A merge sort of ranks between two arrays; a second thread sorts the rows before `split`. */
typedef struct {
  int32_t *from, *to;
  int64_t n, split, first, last; /* first, last: lengths of the initial and of the final runs */
  uint64_t sums[2];              /* below 2^63, because memory holds fewer than 2^32 ranks */
} Merging;

static void merge_runs(void *work, int thread) {
  Merging *merging = work;
  int32_t *from = merging->from, *to = merging->to;
  const int64_t stop = thread ? merging->n : merging->split;
  uint64_t sum = 0;
  for (int64_t run = merging->first; run < merging->last; run *= 2) {
    for (int64_t i = thread ? merging->split : 0; i < stop; i += 2 * run) {
      int64_t left = stop - i < run ? stop - i : run, right = stop - i - left < run ? stop - i - left : run;
      sum += left == right ? merge_equal(to + i, from + i, from + i + left, left)
                           : merge_plain(to + i, from + i, left, from + i + left, right);
    }
    int32_t *read = from;
    from = to;
    to = read;
  }
  merging->sums[thread] += sum;
}

static int64_t plain_inversions(uint64_t *result, const int32_t *ranks, int64_t n, int threads) {
  int32_t *mine = malloc((size_t)(n ? n : 1) * 2 * sizeof *mine);
  Merging merging = {.from = mine, .to = mine + n, .n = n, .split = INSERTED, .first = INSERTED};
  if (!mine) return NO_MEMORY;
  memcpy(mine, ranks, (size_t)n * sizeof *mine);
  for (int64_t i = 0; i < n; i += INSERTED)
    merging.sums[0] += insert_plain(mine + i, n - i < INSERTED ? n - i : INSERTED);
  while (2 * merging.split < n) merging.split *= 2;
  if (threads > 1 && merging.split < n) {
    int swapped = 0;
    merging.last = merging.split;
    run_phase(merge_runs, &merging, 2);
    for (int64_t run = merging.first; run < merging.last; run *= 2) swapped ^= 1;
    merging.from = swapped ? mine + n : mine;
    merging.to = swapped ? mine : mine + n;
    merging.first = merging.split;
  }
  merging.last = n;
  merging.split = n;
  merge_runs(&merging, 0);
  free(mine);
  result[0] = merging.sums[0] + merging.sums[1];
  result[1] = 0;
  return OK;
}
#undef INSERTED

/* Sum first[i] * second[j] over i < j with ranks[i] > ranks[j]; NULL stands for counts of 1.
 *
 * Counts must be non-negative, with sums below 2^62. */
static int64_t inversions(uint64_t *result, const int32_t *ranks, const int64_t *first,
                          const int64_t *second, int64_t n, int threads) {
  if (!first) return plain_inversions(result, ranks, n, threads);
  Entry *mine = malloc((size_t)(n ? n : 1) * 2 * sizeof *mine), *from = mine, *to = mine + n;
  Wide sum = {0, 0};
  uint64_t firsts = 0, seconds = 0;
  if (!mine) return NO_MEMORY;
  for (int64_t i = 0; i < n; i++) {
    from[i] = (Entry){ranks[i], (uint64_t)first[i], (uint64_t)second[i]};
    if ((from[i].before | from[i].behind | (firsts += from[i].before) | (seconds += from[i].behind)) >>
        62) {
      free(mine);
      return OUT_OF_RANGE;
    }
  }
  for (int64_t run = 1; run < n; run *= 2) {
    for (int64_t i = 0; i < n; i += 2 * run) {
      int64_t left = n - i < run ? n - i : run, right = n - i - left < run ? n - i - left : run;
      merge_counted(to + i, from + i, left, from + i + left, right, &sum);
    }
    Entry *read = from;
    from = to;
    to = read;
  }
  free(mine);
  result[0] = sum.low;
  result[1] = sum.high;
  return OK;
}
