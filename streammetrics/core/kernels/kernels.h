/* The kernels: performance-critical loops over contiguous arrays, without Python objects.
 *
 * Each variant (baseline, avx2) compiles the same bodies into one table of functions. A kernel checks every
 * index that it reads from an array before writing, and reads it once, because another thread may change the
 * array meanwhile. Every result is an exact integer or, in elementary.h, computed by IEEE operations in a
 * fixed order, so all variants give the same bytes; reference.py defines them.
 */
#ifndef STREAMMETRICS_KERNELS_H
#define STREAMMETRICS_KERNELS_H

#ifdef __linux__
#define _DEFAULT_SOURCE 1 /* for madvise */
#include <sys/mman.h>
#endif
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address, 1)
#define PREFETCH_READ(address) __builtin_prefetch(address, 0)
#define APART __attribute__((noinline)) /* for loops that are not vectorized if inlined */
#else
#define PREFETCH(address) ((void)(address))
#define PREFETCH_READ(address) ((void)(address))
#define APART
#endif

#define MOST_THREADS 4
#if defined(__unix__) || defined(__APPLE__)
#define HAVE_THREADS 1
#include <pthread.h>
#endif

#define OK 0
#define NO_MEMORY (-1)      /* an allocation failed; nothing was written */
#define OUT_OF_RANGE (-2)   /* an index is out of range; outputs are invalid */
#define NOT_DENSE (-3)      /* the cells do not fit a table, and there are too many rows to sort */
#define BAD_ROWS (-4)       /* a score is nan, or a code is neither 0 nor 1; outputs are invalid */

/* Digits of a total: base 2^32, the lowest of weight 2^TOTAL_LOW. */
#define TOTAL_LOW (-3328)
#define TOTAL_DIGITS 208
#define POWER_SUMS 7 /* sums that exact_powers has */

/* A column of any numeric type; for codes also their number, counted from 0. */
enum {
  KIND_I8, KIND_U8, KIND_I16, KIND_U16, KIND_I32, KIND_U32, KIND_I64, KIND_U64, KIND_F32, KIND_F64
};

typedef struct {
  const void *data;
  int64_t size;
  int kind;
} Column;

/* Totals of `width` digits each; the lowest digit has the weight 2^low. */
typedef struct {
  int64_t *digits, width, low;
} Totals;

/* A column with rows of `width` bytes, and where its rows are moved. */
typedef struct {
  const void *from;
  void *to;
  int64_t width;
} Moved;

/* A table of keys; see tables.h. */
typedef struct {
  uint32_t *slots;
  int bits;
  const uint8_t *keys;
  int64_t width, used; /* bytes of a key, and number of keys */
  uint64_t seed;       /* of hashes */
} Table;
#define MAX_LEVEL 64 /* at this level there are two cells */
#define MOST_CELLS ((int64_t)1 << 30)

/* cells.h: the weights of classes in cells: counts (rows, classes) of 32 bits or, if wide, 64 bits; or digits
 * of sums (rows, classes, width); or neither if there are no classes. */
typedef struct {
  int64_t rows, classes, width;
  void *counts;
  int64_t *sums;
  int wide;
} Mass;

/* Output of cells; the arrays have capacity `room`. */
typedef struct {
  int64_t room, level, size;
  int64_t *ids; /* may be NULL at level 0 */
  double *scores;
  Mass mass;
  int64_t low;    /* the weight of the lowest digit of sums is 2^low */
  int power, odd; /* power of weights to sum; whether sums are not canonical */
} CellsOut;

/* Cells to be merged. */
typedef struct {
  int64_t size;
  const int64_t *ids; /* not read at level 0 */
  const double *scores;
  Mass mass;
  int64_t shift; /* the digit of the output that the lowest digit of sums is added to */
} CellsIn;

/* Cells of segments, see segments.h. Ids are not read at level 0. */
typedef struct {
  int64_t groups, n;
  const int64_t *starts, *levels;
  CellsIn cells;
} Segments;

/* K(result, name, arguments) of each kernel. */
#define EACH_KERNEL(K) \
  K(int64_t, exact_sum, (int64_t *digits, const double *x, const double *y, const Column *w, int64_t n)) \
  K(int64_t, exact_powers, (int64_t *digits, double *extremes, const double *x, const Column *w, int64_t n, \
      int64_t powers)) \
  K(int64_t, exact_add, (int64_t *digits, int64_t groups, int64_t width, int64_t low, const double *x, \
      const double *y, const double *w, const int64_t *group, int64_t n, int64_t columns)) \
  K(int64_t, exact_add_squares, (const Totals totals[2], int64_t groups, const double *x, \
      const int64_t *group, int64_t n)) \
  K(int64_t, exact_extent, (const double *x, int64_t n, int64_t *lowest, int64_t *highest)) \
  K(void, exact_carry, (int64_t *digits, int64_t rows, int64_t width, int64_t *first, int64_t *last)) \
  K(void, exact_round, (double *values, const int64_t *digits, int64_t rows, int64_t width, int64_t exponent)) \
  K(int64_t, exact_merge, (int64_t *totals, int64_t groups, int64_t width, const int64_t *digits, \
      int64_t other_width, const int64_t *index, int64_t n, int64_t shift)) \
  K(int64_t, count, (int64_t *counts, int64_t size, const int64_t *times, const Column *columns, int64_t number, \
      const double *score, double threshold, int64_t n)) \
  K(int64_t, add_rows, (int64_t *totals, int64_t width, const int64_t *rows, const Column *codes, int64_t n)) \
  K(void, extent, (const void *values, int kind, int64_t n, void *least, void *largest)) \
  K(int64_t, bits, (uint8_t *out, const void *values, int kind, int64_t n)) \
  K(int64_t, group_rows, (int64_t *starts, int64_t groups, const Column *codes, int64_t n, \
      const Moved *columns, int64_t number)) \
  K(int64_t, inversions, (uint64_t *result, const int32_t *ranks, const int64_t *first, const int64_t *second, \
      int64_t n, int threads)) \
  K(int64_t, factorize, (int64_t *codes, const uint8_t *keys, int64_t n, Table *table, uint8_t *stored, \
      int64_t capacity, int64_t *firsts)) \
  K(int64_t, table_put, (Table *table, int64_t start, int64_t stop)) \
  K(int64_t, table_move, (Table *table, const int64_t *numbers, const int64_t *others, int64_t n)) \
  K(int64_t, hash_texts, (uint64_t *hashes, const uint32_t *letters, int64_t n, int64_t width, \
      const uint64_t *factors, uint64_t start)) \
  K(void, cells_ids, (int64_t *ids, const double *scores, int64_t n, int64_t level)) \
  K(int64_t, cells_count, (CellsOut *out, const double *scores, const Column *codes, double *weight, \
      const int64_t *times, int64_t n, int64_t most, int64_t *index, int threads)) \
  K(int64_t, cells_merge, (CellsOut *out, const CellsIn parts[2], int64_t most)) \
  K(int64_t, cells_add, (const CellsOut *table, int64_t low, const CellsIn *part, int64_t level, \
      int64_t *weight)) \
  K(int64_t, cells_area, (const CellsIn *cells, int64_t *slack)) \
  K(int64_t, segments_count, (CellsOut *out, const int64_t *starts, int64_t groups, const double *scores, \
      const uint8_t *codes, int64_t n, int64_t most, int64_t *levels, int64_t *sizes)) \
  K(int64_t, segments_merge, (CellsOut *out, const Segments sides[2], int64_t most, int64_t *levels, \
      int64_t *sizes)) \
  K(int64_t, segments_area, (int64_t *areas, int64_t *slacks, const int64_t *starts, int64_t groups, \
      const CellsIn *cells)) \
  K(int64_t, elementary, (double *out, const double *x, int64_t n, int64_t function, double p))

#define POINTER(result, name, arguments) result(*name) arguments;
typedef struct {
  EACH_KERNEL(POINTER)
} Kernels;

extern const Kernels kernels_baseline;
#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_AVX2 1
extern const Kernels kernels_avx2;
#endif

#endif
