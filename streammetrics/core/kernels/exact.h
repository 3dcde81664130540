/* Exact sums of float64, and of products of two or three of them.
 *
 * A total is an integer in base 2^32: int64 digits, lowest first, which may be negative or above 2^32 until
 * they are carried. A float64 is an integer of 53 bits times a power of two, so adding one changes three
 * digits. Long columns use a fast path: with |x| <= 2^e and sigma = 1.5 * 2^(e + 1),
 *
 *     t = x + sigma;  lane += bits(t) - bits(sigma);  x = x - (t - sigma)
 *
 * adds the upper 51 bits of x as an integer, exactly, and leaves the rest for the next fold
 * (Demmel, Nguyen, IEEE Trans. Comput. 64, 2015). Two folds suffice for nearly every block; others take more,
 * and numbers near the ends of the exponent range are added digit by digit. A product is hi + lo with
 * lo = fma(x, y, -hi), or Dekker's product if there is no FMA (Numer. Math. 18, 1971).
 */

#define BLOCK 1024 /* rows; the sum of 1024 folds of 51 bits stays below 2^62 */
#define FOLD 51
#define LANES 16 /* independent sums, so that compilers vectorize */
#define MASK32 UINT64_C(0xFFFFFFFF)
#define ABSOLUTE UINT64_C(0x7FFFFFFFFFFFFFFF)
#define INFINITE UINT64_C(0x7FF0000000000000)
#define EXPONENT(b) ((int64_t)((b) >> 52 & 0x7FF))
#define FOLDS 4 /* of products */
#define FOLD_LEAST (-860) /* range of exponents in which folds and their remainders are normal numbers */
#define FOLD_MOST 1000
/* Products in this range have an exact error term: no overflow, no subnormals. */
#define PRODUCT_LEAST ((uint64_t)(1023 - 900) << 52)
#define PRODUCT_MOST ((uint64_t)(1023 + 900) << 52)
#define FACTOR_MOST 0x1p500
#define LANE_TOTALS 512 /* maximum number of totals with their own lanes */
#define MOST_RUNS 64 /* maximum number of runs of one group in a block; with more, rows are added one by one */
#define RUN_LANES 8
#define AHEAD 16 /* rows whose totals are prefetched before they are added to */
#define CARRY_ROWS ((int64_t)1 << 26) /* elements between carries: 16 additions each stay below 2^63 */

static inline uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline double from_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

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

/* Add value * 2^at to digits; `at` counts bits from the lowest digit. */
static inline void add_at(int64_t *digits, int64_t value, int64_t at) {
  int64_t *digit = digits + (at >> 5);
  unsigned shift = (unsigned)(at & 31);
  uint64_t low = (uint64_t)value << shift;
  digit[0] += (int64_t)(low & MASK32);
  digit[1] += (int64_t)(low >> 32);
  digit[2] += shift ? value >> (64 - shift) : value >> 63;
}

/* The integer and the unit of a finite float64: x == integer * 2^unit. */
static inline int64_t integer_of(double x, int64_t *unit) {
  uint64_t bits = bits_of(x);
  int64_t exponent = EXPONENT(bits), integer = (int64_t)(bits & ((UINT64_C(1) << 52) - 1));
  int64_t sign = -(int64_t)(bits >> 63);
  integer |= (int64_t)(exponent != 0) << 52;
  *unit = exponent - 1075 + (exponent == 0);
  return (integer ^ sign) - sign;
}

static inline void add_one(int64_t *digits, double x, int64_t low) {
  int64_t unit, integer = integer_of(x, &unit);
  if (integer) add_at(digits, integer, unit - low);
}

/* Add the product of one to three factors digit by digit, for any exponents. */
static void add_long(int64_t *digits, const double *factors, int count, int64_t low) {
  uint64_t limbs[7] = {1};
  int64_t total = 0;
  int negative = 0;
  for (int k = 0; k < count; k++) {
    int64_t unit, integer = integer_of(factors[k], &unit);
    uint64_t magnitude = integer < 0 ? -(uint64_t)integer : (uint64_t)integer, product[7] = {0};
    uint64_t pieces[2] = {magnitude & MASK32, magnitude >> 32};
    for (int i = 0; i < 2; i++) {
      uint64_t carry = 0;
      for (int j = 0; i + j < 7; j++) {
        carry += product[i + j] + limbs[j] * pieces[i];
        product[i + j] = carry & MASK32;
        carry >>= 32;
      }
    }
    memcpy(limbs, product, sizeof limbs);
    negative ^= integer < 0;
    total += unit;
  }
  for (int k = 0; k < 6; k++)
    if (limbs[k])
      add_at(digits, negative ? -(int64_t)limbs[k] : (int64_t)limbs[k], total - low + 32 * k);
}

static void carry_row(int64_t *digits, int64_t width) {
  int64_t carry = 0;
  for (int64_t k = 0; k < width - 1; k++) {
    carry += digits[k];
    digits[k] = carry & (int64_t)MASK32;
    carry >>= 32;
  }
  digits[width - 1] += carry;
}

/* The row of the first element that is not finite, or n. */
static int64_t first_infinite(const double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if ((bits_of(x[i]) & INFINITE) == INFINITE) return i;
  return n;
}

/* Add a block in two folds that start below 2^top. If `keep`, write their remainders to rest.
 *
 * Returns 0 if nothing is left; 1 if there are remainders (without `keep`, nothing is added then); -1 if a
 * value is too large or not finite, with nothing added. */
static inline int add_folds(int64_t *digits, const double *x, double *rest, int64_t n, int64_t top, int keep) {
  double first = ldexp(1.5, (int)top + 1), second = ldexp(1.5, (int)top - FOLD);
  uint64_t first_bits = bits_of(first), second_bits = bits_of(second);
  uint64_t above[LANES] = {0}, below[LANES] = {0}, beyond[LANES] = {0}, left[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) {
      double high = x[i + j] + first, middle = x[i + j] - (high - first);
      double low = middle + second;
      above[j] += bits_of(high);
      beyond[j] |= bits_of(high) ^ first_bits;
      below[j] += bits_of(low);
      low = middle - (low - second);
      left[j] |= bits_of(low);
      if (keep) rest[i + j] = low;
    }
  for (; i < n; i++) {
    double high = x[i] + first, middle = x[i] - (high - first);
    double low = middle + second;
    above[0] += bits_of(high);
    beyond[0] |= bits_of(high) ^ first_bits;
    below[0] += bits_of(low);
    low = middle - (low - second);
    left[0] |= bits_of(low);
    if (keep) rest[i] = low;
  }
  for (int j = 1; j < LANES; j++) {
    above[0] += above[j];
    below[0] += below[j];
    beyond[0] |= beyond[j];
    left[0] |= left[j];
  }
  if (beyond[0] >> 52) return -1; /* a sign or an exponent differs */
  if ((left[0] & ABSOLUTE) && !keep) return 1;
  add_at(digits, (int64_t)(above[0] - (uint64_t)n * first_bits), top + 1 - 52 - TOTAL_LOW);
  add_at(digits, (int64_t)(below[0] - (uint64_t)n * second_bits), top - FOLD - 52 - TOTAL_LOW);
  return (left[0] & ABSOLUTE) != 0;
}

/* Lower `least` to the bits of the smallest nonzero |x| minus 1, and raise `most` to those of the largest. */
static void size_extent(const double *x, int64_t n, int64_t *least, int64_t *most) {
  int64_t low = *least, high = *most;
  for (int64_t i = 0; i < n; i++) {
    int64_t bits = (int64_t)(bits_of(x[i]) & ABSOLUTE), before = (bits - 1) & INT64_MAX; /* 0 wraps */
    high = bits > high ? bits : high;
    low = before < low ? before : low;
  }
  *least = low;
  *most = high;
}

/* The exponent above all numbers of a block. */
static int64_t exponent_above(const double *x, int64_t n) {
  int64_t least = INT64_MAX, most = 0;
  size_extent(x, n, &least, &most);
  return EXPONENT(most) - 1022;
}

/* Add a block; returns 0, with digits invalid, if a number is not finite.
 *
 * `top` is an estimate of the exponent above all numbers, kept from block to block. */
static int add_block(int64_t *digits, const double *x, int64_t n, int64_t *top) {
  double rest[BLOCK];
  const double *from = x;
  int64_t guess = *top;
  if (n >= 8) {
    int left = guess <= FOLD_MOST ? add_folds(digits, x, rest, n, guess, 0) : -1;
    if (left == 0) return 1;
    guess = *top = exponent_above(x, n);
    if (guess > 1024) return 0;
    if (guess < FOLD_LEAST) guess = *top = FOLD_LEAST;
    if (guess <= FOLD_MOST) left = add_folds(digits, x, rest, n, guess, 1);
    /* Remainders are at most 2^(guess - 104); a fold requires numbers strictly below its top. */
    while (left > 0 && guess - 103 >= FOLD_LEAST) {
      guess -= 103;
      from = rest;
      left = add_folds(digits, rest, rest, n, guess, 1);
    }
    if (left == 0) return 1;
    if (left > 0) from = rest;
  }
  for (int64_t i = 0; i < n; i++) {
    if ((bits_of(from[i]) & INFINITE) == INFINITE) return 0;
    add_one(digits, from[i], TOTAL_LOW);
  }
  return 1;
}

static inline double product_error(double x, double y, double product) {
#ifdef HAVE_FMA
  return __builtin_fma(x, y, -product);
#else
  double cx = 134217729.0 * x, cy = 134217729.0 * y;
  double xh = cx - (cx - x), yh = cy - (cy - y), xl = x - xh, yl = y - yh;
  return ((xh * yh - product) + xh * yl + xl * yh) + xl * yl;
#endif
}

/* 0 if hi + lo is exactly the product; nonzero if its exponent or, without FMA, a factor's is out of range. */
static inline uint64_t product_inexact(double x, double y, double product) {
  uint64_t size = bits_of(product) & ABSOLUTE;
  uint64_t zero = (uint64_t)((x == 0.0) | (y == 0.0));
  uint64_t outside = (uint64_t)(size - PRODUCT_LEAST > PRODUCT_MOST - PRODUCT_LEAST) & (zero ^ 1);
#ifndef HAVE_FMA
  outside |= !((fabs(x) < FACTOR_MOST) & (fabs(y) < FACTOR_MOST));
#endif
  return outside;
}

/* Write x * y as hi + lo; returns whether every row is exact. */
static int multiply(double *restrict hi, double *restrict lo, const double *restrict x,
                    const double *restrict y, int64_t n) {
  uint64_t inexact = 0;
  for (int64_t i = 0; i < n; i++) {
    double product = x[i] * y[i];
    hi[i] = product;
    lo[i] = product_error(x[i], y[i], product);
    inexact |= product_inexact(x[i], y[i], product);
  }
  return !inexact;
}

/* Split the product of two or three blocks into columns with the same sum; 0 if a row is out of range. */
static int split(double terms[4][BLOCK], const double *const *factors, int count, int64_t rows) {
  double hi[BLOCK], lo[BLOCK];
  if (count == 2) return multiply(terms[0], terms[1], factors[0], factors[1], rows) ? 2 : 0;
  return multiply(hi, lo, factors[0], factors[1], rows) &&
                 multiply(terms[0], terms[1], hi, factors[2], rows) &&
                 multiply(terms[2], terms[3], lo, factors[2], rows)
             ? 4
             : 0;
}

/* Add the products of two blocks in folds that start below 2^top: three of each product, and three, from the second
 * on, of its error term, which is at most 2^-53 of it. Returns whether the sum is exact; otherwise nothing is added. */
static int add_product_folds(int64_t *digits, const double *x, const double *y, int64_t n, int64_t top) {
  if (top > FOLD_MOST) return 0;
  double sigma[FOLDS], ends[2][RUN_LANES] = {{0}};
  uint64_t sums[FOLDS][RUN_LANES] = {{0}}, wrong[RUN_LANES] = {0}, rows = 0;
  for (int k = 0; k < FOLDS; k++) sigma[k] = ldexp(1.5, (int)top + 1 - (FOLD + 1) * k);
  for (int64_t i = 0; i < n; i += RUN_LANES, rows += RUN_LANES) {
    const double *one = x + i, *other = y + i;
    if (n - i < RUN_LANES) {
      one = memcpy(ends[0], one, sizeof *one * (size_t)(n - i));
      other = memcpy(ends[1], other, sizeof *other * (size_t)(n - i));
    }
    for (int j = 0; j < RUN_LANES; j++) {
      double product = one[j] * other[j], error = product_error(one[j], other[j], product), t = product + sigma[0];
      wrong[j] |= (bits_of(t) ^ bits_of(sigma[0])) >> 52 | product_inexact(one[j], other[j], product);
      for (int k = 0; k < FOLDS - 1; k++) {
        t = product + sigma[k];
        sums[k][j] += bits_of(t);
        product -= t - sigma[k];
        t = error + sigma[k + 1];
        sums[k + 1][j] += bits_of(t);
        error -= t - sigma[k + 1];
      }
      wrong[j] |= (bits_of(product) | bits_of(error)) & ABSOLUTE;
    }
  }
  for (int j = 1; j < RUN_LANES; j++) wrong[0] |= wrong[j];
  if (wrong[0]) return 0;
  for (int k = 0; k < FOLDS; k++) {
    uint64_t sum = 0 - (k && k < FOLDS - 1 ? 2 : 1) * rows * bits_of(sigma[k]);
    for (int j = 0; j < RUN_LANES; j++) sum += sums[k][j];
    add_at(digits, (int64_t)sum, top + 1 - (FOLD + 1) * k - 52 - TOTAL_LOW);
  }
  return 1;
}

/* Add the products of two or three blocks; returns 0, with digits invalid, if a factor is not finite.
 *
 * `tops` has the exponents of two terms for two factors, four for three, as `add_block` keeps them. */
static int add_products(int64_t *digits, const double *const *factors, int count, int64_t rows, int64_t *tops) {
  double hi[BLOCK], lo[BLOCK];
  if (count == 2 && add_product_folds(digits, factors[0], factors[1], rows, tops[0])) return 1;
  if (multiply(hi, lo, factors[0], factors[1], rows)) {
    const double *one[2] = {hi, factors[count - 1]}, *other[2] = {lo, factors[count - 1]};
    if (count == 3) return add_products(digits, one, 2, rows, tops) && add_products(digits, other, 2, rows, tops + 2);
    tops[0] = exponent_above(hi, rows);
    if (tops[0] < FOLD_LEAST) tops[0] = FOLD_LEAST;
    if (add_product_folds(digits, factors[0], factors[1], rows, tops[0])) return 1;
    return add_block(digits, hi, rows, &tops[0]) && add_block(digits, lo, rows, &tops[1]);
  }
  for (int64_t i = 0; i < rows; i++) {
    double row[3];
    for (int k = 0; k < count; k++) {
      row[k] = factors[k][i];
      if ((bits_of(row[k]) & INFINITE) == INFINITE) return 0;
    }
    add_long(digits, row, count, TOTAL_LOW);
  }
  return 1;
}

/* The float64 of a block of weights: these, or whole numbers from 0 to 2^53. */
static const double *weights_of(const Column *weights, int64_t start, int64_t n, double *to) {
  const double two52 = 0x1p52;
  if (weights->kind == KIND_F64) return (const double *)weights->data + start;
  const uint64_t *counts = (const uint64_t *)weights->data + start;
  for (int64_t i = 0; i < n; i++) { /* compilers do not vectorize conversions of 64-bit integers */
    double high = from_bits(counts[i] >> 32 | bits_of(two52)) - two52;
    double low = from_bits((counts[i] & MASK32) | bits_of(two52)) - two52;
    to[i] = high * 0x1p32 + low;
  }
  return to;
}

/* Add the sum of x * y * w to digits[TOTAL_DIGITS]; y and w may be NULL.
 *
 * Returns the first row that is not finite, with digits invalid, or n. */
static int64_t exact_sum(int64_t *digits, const double *x, const double *y, const Column *w, int64_t n) {
  double weights[BLOCK];
  int64_t tops[4] = {FOLD_MOST + 1, FOLD_MOST + 1, FOLD_MOST + 1, FOLD_MOST + 1}, uncarried = 0;
  for (int64_t start = 0; start < n; start += BLOCK) {
    int64_t rows = n - start < BLOCK ? n - start : BLOCK, bad = rows;
    const double *block[3] = {x + start};
    int factors = 1;
    if (y) block[factors++] = y + start;
    if (w) block[factors++] = weights_of(w, start, rows, weights);
    if (!(factors == 1 ? add_block(digits, block[0], rows, &tops[0])
                       : add_products(digits, block, factors, rows, tops))) {
      for (int k = 0; k < factors; k++) {
        int64_t first = first_infinite(block[k], rows);
        bad = first < bad ? first : bad;
      }
      return start + (bad < rows ? bad : 0);
    }
    uncarried += rows;
    if (uncarried >= CARRY_ROWS) carry_row(digits, TOTAL_DIGITS), uncarried = 0;
  }
  return n;
}

/* Add sums of products of x and the weights to digits[POWER_SUMS][TOTAL_DIGITS]: w x, w x^2, w x^4, w, w^2, w^2 x and
 * w^2 x^2, those that the mask `powers` selects. Each power of x is the square of the previous one, rounded to float64
 * and clipped to 2^1023. Rows weigh w, or 1 if it is NULL. extremes receives the smallest nonzero and the largest |x|;
 * 0 and 0 if all are zero.
 *
 * Returns the first row that is not finite, with digits invalid, or n. */
static int64_t exact_powers(int64_t *digits, double *extremes, const double *x, const Column *w, int64_t n,
                            int64_t powers) {
  enum { SQUARE = 1, FOURTH, WEIGHT, NONE };
  static const int terms[POWER_SUMS][3] = {{WEIGHT, 0, NONE}, {WEIGHT, SQUARE, NONE}, {WEIGHT, FOURTH, NONE},
                                           {WEIGHT, NONE, NONE}, {WEIGHT, WEIGHT, NONE}, {WEIGHT, WEIGHT, 0},
                                           {WEIGHT, WEIGHT, SQUARE}};
  double squares[2][BLOCK], weights[BLOCK];
  int64_t tops[POWER_SUMS][4], uncarried = 0, most = 0, least = INT64_MAX;
  for (int k = 0; k < 4 * POWER_SUMS; k++) tops[k / 4][k % 4] = FOLD_MOST + 1;
  for (int64_t start = 0; start < n; start += BLOCK) {
    int64_t rows = n - start < BLOCK ? n - start : BLOCK;
    const double *columns[NONE + 1] = {x + start, squares[0], squares[1]};
    if (w) columns[WEIGHT] = weights_of(w, start, rows, weights);
    size_extent(columns[0], rows, &least, &most);
    if (most >= (int64_t)INFINITE) return start + first_infinite(columns[0], rows);
    for (int p = 0; p < ((powers & 4) ? 2 : (powers & ~INT64_C(57)) != 0); p++)
      for (int64_t i = 0; i < rows; i++) {
        double square = columns[p][i] * columns[p][i];
        squares[p][i] = square < 0x1p1023 ? square : 0x1p1023;
      }
    for (int k = 0; k < POWER_SUMS; k++) {
      const double *factors[3];
      int count = 0;
      for (int f = 0; f < 3; f++)
        if (columns[terms[k][f]]) factors[count++] = columns[terms[k][f]];
      if (powers >> k & 1 && !(count == 1 ? add_block(digits + k * TOTAL_DIGITS, factors[0], rows, tops[k])
                                          : add_products(digits + k * TOTAL_DIGITS, factors, count, rows, tops[k])))
        return start + first_infinite(columns[WEIGHT], rows);
    }
    uncarried += rows;
    if (uncarried >= CARRY_ROWS) {
      for (int k = 0; k < POWER_SUMS; k++) carry_row(digits + k * TOTAL_DIGITS, TOTAL_DIGITS);
      uncarried = 0;
    }
  }
  extremes[0] = most ? from_bits((uint64_t)least + 1) : 0.0;
  extremes[1] = from_bits((uint64_t)most);
  return n;
}

/* The lowest and the highest exponent of the bits of x: x == integer * 2^lowest, |x| < 2^highest.
 *
 * Both are 0 if all numbers are zero. Returns the first row that is not finite, or n. */
static int64_t exact_extent(const double *x, int64_t n, int64_t *lowest, int64_t *highest) {
  int64_t most = 0, least = INT64_MAX;
  size_extent(x, n, &least, &most);
  *lowest = *highest = 0;
  if (most >= (int64_t)INFINITE) return first_infinite(x, n);
  if (most) {
    int64_t exponent = EXPONENT(least + 1);
    *lowest = exponent - 1075 + (exponent == 0);
    *highest = EXPONENT(most) - 1022;
  }
  return n;
}

/* Write four numbers whose sum is the product of three; returns nonzero if an exponent makes it inexact. */
static inline uint64_t are_inexact(const double factors[3], double parts[4]) {
  double product = factors[0] * factors[1], error = product_error(factors[0], factors[1], product);
  uint64_t inexact = product_inexact(factors[0], factors[1], product);
  parts[0] = product * factors[2];
  parts[1] = product_error(product, factors[2], parts[0]);
  parts[2] = error * factors[2];
  parts[3] = product_error(error, factors[2], parts[2]);
  return inexact | product_inexact(product, factors[2], parts[0]) | product_inexact(error, factors[2], parts[2]);
}

/* Add one product to a total whose lowest digit has the weight 2^low; 0 if it does not fit. */
static inline int add_product(int64_t *digits, const double *factors, int count, int64_t low,
                              int64_t high) {
  int64_t least = count > 1 ? -53 : 0, most = 0; /* an error term may extend 53 bits further down */
  double product = 1.0, parts[4];
  for (int k = 0; k < count; k++) {
    int64_t unit, integer = integer_of(factors[k], &unit);
    if (!integer) return 1;
    product *= factors[k];
    least += unit;
    most += unit + 54;
  }
  if (least < low || most > high) return 0;
  if (count == 1) {
    add_one(digits, factors[0], low);
  } else if (count == 2 && !product_inexact(factors[0], factors[1], product)) {
    add_one(digits, product, low);
    add_one(digits, product_error(factors[0], factors[1], product), low);
  } else if (count == 3 && !are_inexact(factors, parts)) {
    for (int k = 0; k < 4; k++) add_one(digits, parts[k], low);
  } else {
    add_long(digits, factors, count, low);
  }
  return 1;
}

/* An addition to totals digits[groups * columns][width], whose lowest digit has the weight 2^low: x * y * w
 * (n, columns), row i to group[i], or all to group 0 if group is NULL. y (n, columns) and w (n) may be
 * NULL. */
typedef struct {
  int64_t *digits, groups, width, low;
  const double *x, *y, *w;
  const int64_t *group;
  int64_t n, columns;
} Addition;

/* Add rows one by one; returns `stop`, or the first row that is not finite or does not fit. */
static int64_t add_rows_singly(const Addition *a, int64_t start, int64_t stop) {
  int64_t columns = a->columns, width = a->width, high = a->low + 32 * (width - 3);
  for (int64_t i = start; i < stop; i++) {
    int64_t g = a->group ? a->group[i] : 0;
    if ((uint64_t)g >= (uint64_t)a->groups) return i;
    if (a->group && i + AHEAD < a->n) { /* a total may span two cache lines */
      int64_t later = a->group[i + AHEAD];
      later = (uint64_t)later < (uint64_t)a->groups ? later : g;
      PREFETCH(a->digits + later * columns * width);
      PREFETCH(a->digits + later * columns * width + width - 1);
    }
    for (int64_t j = 0; j < columns; j++) {
      double factors[3] = {a->x[i * columns + j]};
      int count = 1;
      if (a->y) factors[count++] = a->y[i * columns + j];
      if (a->w) factors[count++] = a->w[i];
      for (int k = 0; k < count; k++)
        if ((bits_of(factors[k]) & INFINITE) == INFINITE) return i;
      if (!add_product(a->digits + (g * columns + j) * width, factors, count, a->low, high)) return i;
    }
  }
  return stop;
}

/* Fold rows (n, columns) twice into the lanes of their totals; place[i] is the first total of row i. Returns 0
 * if there are remainders, or if a number is 2^top or more. */
static int fold_lanes(int64_t *above, int64_t *below, const double *x, const int64_t *place, int64_t n,
                      int64_t columns, int64_t top) {
  double first = ldexp(1.5, (int)top + 1), second = ldexp(1.5, (int)top - FOLD);
  uint64_t first_bits = bits_of(first), second_bits = bits_of(second), beyond = 0, left = 0;
  for (int64_t i = 0; i < n; i++, x += columns) {
    int64_t *up = above + place[i], *down = below + place[i];
    for (int64_t j = 0; j < columns; j++) {
      double high = x[j] + first, middle = x[j] - (high - first), low = middle + second;
      up[j] += (int64_t)(bits_of(high) - first_bits);
      down[j] += (int64_t)(bits_of(low) - second_bits);
      beyond |= bits_of(high) ^ first_bits;
      left |= bits_of(middle - (low - second));
    }
  }
  return !(beyond >> 52) && !(left & ABSOLUTE);
}

/* Add an integer whose bits below the lowest digit are 0. */
static inline void add_within(int64_t *digits, int64_t value, int64_t at) {
  int64_t below = at < 0 ? -at : 0;
  if (below < 64) add_at(digits, value >> below, at + below);
}

/* Fold rows (n) of one total twice and write the remainders; returns whether any is not zero. */
static int fold_run(int64_t *above, int64_t *below, const double *x, double *rest, int64_t n, int64_t top) {
  const uint64_t first_bits = (uint64_t)(2 * (top + 1024) + 1) << 51; /* 1.5 * 2^(top + 1) */
  const uint64_t second_bits = (uint64_t)(2 * (top - FOLD + 1023) + 1) << 51;
  const double first = from_bits(first_bits), second = from_bits(second_bits);
  double tail[RUN_LANES] = {0};
  uint64_t ups = 0, downs = 0;
  uint64_t up[RUN_LANES] = {0}, down[RUN_LANES] = {0}, left[RUN_LANES] = {0};
  for (int64_t i = 0; i < n; i += RUN_LANES) {
    const double *row = x + i;
    double *to = rest + i;
    if (i + RUN_LANES > n) row = to = memcpy(tail, row, sizeof(double) * (size_t)(n - i));
    for (int j = 0; j < RUN_LANES; j++) {
      double high = row[j] + first, middle = row[j] - (high - first), low = middle + second;
      up[j] += bits_of(high) - first_bits;
      down[j] += bits_of(low) - second_bits;
      to[j] = middle - (low - second);
      left[j] |= bits_of(to[j]);
    }
    if (i + RUN_LANES > n) memcpy(rest + i, tail, sizeof(double) * (size_t)(n - i));
  }
  for (int j = 0; j < RUN_LANES; j++) {
    ups += up[j];
    downs += down[j];
    left[0] |= left[j];
  }
  *above = (int64_t)ups;
  *below = (int64_t)downs;
  return (left[0] & ABSOLUTE) != 0;
}

/* Add at most BLOCK rows of one total; they are multiples of 2^low and below 2^top. */
static void add_run(int64_t *digits, int64_t low, const double *x, int64_t n, int64_t top) {
  double rest[BLOCK];
  int64_t above, below;
  int left = 1;
  for (const double *from = x; left && top >= FOLD_LEAST; top -= 2 * FOLD + 1, from = rest) {
    left = fold_run(&above, &below, from, rest, n, top);
    add_within(digits, above, top + 1 - 52 - low);
    add_within(digits, below, top - FOLD - 52 - low);
  }
  for (int64_t i = 0, unit; left && i < n; i++) {
    int64_t integer = integer_of(rest[i], &unit);
    if (integer && unit <= top) add_within(digits, integer, unit - low); /* always, unless rows change meanwhile */
  }
}

/* Find the runs of rows of one group: where each ends, and its total. Returns their number, or 0 if there are
 * too many. */
static int64_t find_runs(const Addition *a, int64_t start, int64_t rows, int64_t *ends, int64_t *totals) {
  int64_t runs = 0;
  if (a->columns > 1) return 0;
  for (int64_t i = 0; i < rows; runs++) {
    int64_t g = a->group ? a->group[start + i] : 0;
    if (runs == MOST_RUNS || (uint64_t)g >= (uint64_t)a->groups) return 0;
    for (i++; i < rows && (!a->group || a->group[start + i] == g);) i++;
    ends[runs] = i;
    totals[runs] = g;
  }
  return runs;
}

/* Add at most BLOCK numbers of few groups, or in few runs, by folds. Returns 0, with nothing added, if there
 * are too many runs, a row does not fit or folds do not suffice: the rows are then added one by one. */
static int add_rows_folded(const Addition *a, int64_t start, int64_t rows, int few) {
  double factors[3][BLOCK], terms[4][BLOCK];
  const double *columns[3] = {factors[0], factors[1], factors[2]};
  int64_t place[BLOCK], lanes[4][2][LANE_TOTALS], ends[MOST_RUNS], to[MOST_RUNS], tops[4], size = rows * a->columns;
  int64_t least = 0, most = 0, totals = a->groups * a->columns, runs = find_runs(a, start, rows, ends, to);
  int count = 1, parts = 1;
  if (!runs && !few) return 0;
  const double *first = a->x + start * a->columns;
  if (a->y || a->w) memcpy(factors[0], first, sizeof(double) * (size_t)size);
  if (a->y) memcpy(factors[count++], a->y + start * a->columns, sizeof(double) * (size_t)size);
  if (a->w) {
    double *weights = factors[count++];
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < a->columns; j++) *weights++ = a->w[start + i];
  }
  for (int64_t i = 0; i < rows && !runs; i++) {
    int64_t g = a->group ? a->group[start + i] : 0;
    if ((uint64_t)g >= (uint64_t)a->groups) return 0;
    place[i] = g * a->columns;
  }
  for (int k = 0; k < count; k++) {
    int64_t low, high;
    if (exact_extent(count > 1 ? factors[k] : first, size, &low, &high) < size) return 0;
    least += low;
    most += high + 1;
    tops[0] = high;
  }
  if (least - (count > 1 ? 53 : 0) < a->low || most > a->low + 32 * (a->width - 3)) return 0;
  if (count > 1 && !(parts = split(terms, columns, count, size))) return 0;
  for (int k = 0; k < parts; k++) {
    const double *term = count > 1 ? terms[k] : first;
    if (count > 1) tops[k] = exponent_above(term, size);
    if (tops[k] < FOLD_LEAST) tops[k] = FOLD_LEAST;
    if (tops[k] > FOLD_MOST) return 0;
    if (runs) continue;
    memset(lanes[k][0], 0, sizeof(int64_t) * (size_t)totals);
    memset(lanes[k][1], 0, sizeof(int64_t) * (size_t)totals);
    if (!fold_lanes(lanes[k][0], lanes[k][1], term, place, rows, a->columns, tops[k])) return 0;
  }
  for (int k = 0; k < parts; k++) {
    const double *term = count > 1 ? terms[k] : first;
    for (int64_t r = 0, from = 0; r < runs; from = ends[r++])
      add_run(a->digits + to[r] * a->width, a->low, term + from, ends[r] - from, tops[k]);
    for (int fold = 0; fold < 2 && !runs; fold++) {
      int64_t at = (fold ? tops[k] - FOLD : tops[k] + 1) - 52 - a->low;
      for (int64_t t = 0; t < totals; t++)
        if (lanes[k][fold][t]) add_within(a->digits + t * a->width, lanes[k][fold][t], at);
    }
  }
  return 1;
}

/* Returns n, or the first row that is not finite or whose bits or group are out of range; digits are then
 * invalid. */
static int64_t exact_add(int64_t *digits, int64_t groups, int64_t width, int64_t low, const double *x,
                         const double *y, const double *w, const int64_t *group, int64_t n,
                         int64_t columns) {
  const Addition addition = {digits, groups, width, low, x, y, w, group, n, columns};
  int64_t uncarried = 0, totals = groups * columns, step = BLOCK / columns;
  int few = columns <= BLOCK && totals <= LANE_TOTALS && totals <= n * columns / 4; /* lanes pay */
  if (!few) step = BLOCK; /* rows of one column may form runs */
  for (int64_t start = 0; start < n; start += step) {
    int64_t stop = start + step < n ? start + step : n;
    if (columns > BLOCK || !add_rows_folded(&addition, start, stop - start, few)) {
      int64_t bad = add_rows_singly(&addition, start, stop);
      if (bad < stop) return bad;
    }
    uncarried += (stop - start) * columns;
    if (uncarried >= CARRY_ROWS) {
      for (int64_t r = 0; r < totals; r++) carry_row(digits + r * width, width);
      uncarried = 0;
    }
  }
  return n;
}

/* Add numbers x (n) to the first totals and their squares to the second, row i to group[i]. Squares are rounded
 * to float64 and limited to 2^1023. Returns the same as exact_add. */
static int64_t exact_add_squares(const Totals totals[2], int64_t groups, const double *x, const int64_t *group,
                                 int64_t n) {
  double squares[BLOCK];
  int64_t uncarried = 0;
  for (int64_t start = 0; start < n; start += BLOCK) {
    int64_t rows = n - start < BLOCK ? n - start : BLOCK;
    for (int64_t i = 0; i < rows; i++) {
      double square = x[start + i] * x[start + i];
      squares[i] = square < 0x1p1023 ? square : 0x1p1023;
    }
    int64_t first = rows;
    for (int k = 0; k < 2; k++) {
      const Addition part = {totals[k].digits, groups, totals[k].width, totals[k].low, k ? squares : x + start,
                             NULL, NULL, group + start, rows, 1};
      if (add_rows_folded(&part, 0, rows, groups <= LANE_TOTALS && groups <= rows / 4)) continue;
      int64_t bad = add_rows_singly(&part, 0, rows);
      first = bad < first ? bad : first;
    }
    if (first < rows) return start + first;
    uncarried += rows;
    if (uncarried >= CARRY_ROWS) {
      for (int64_t r = 0; r < groups; r++)
        for (int k = 0; k < 2; k++) carry_row(totals[k].digits + r * totals[k].width, totals[k].width);
      uncarried = 0;
    }
  }
  return n;
}

/* Carry totals [rows][width] in place: digits below 2^32, the highest one signed.
 *
 * Writes the range of columns that holds all totals canonically, `first` to before `last`; 0 and 0 for zeros. */
static void exact_carry(int64_t *digits, int64_t rows, int64_t width, int64_t *first, int64_t *last) {
  int64_t low = width, high = 0;
  for (int64_t r = 0; r < rows; r++) {
    int64_t *row = digits + r * width, top = width, signed_top;
    carry_row(row, width);
    signed_top = row[width - 1];
    while (top > 1 && signed_top + (row[top - 2] >> 31) == 0) {
      /* The digit only repeats the sign of the one below: drop it and make that one signed. */
      top--;
      signed_top = row[top - 1] - (row[top - 1] >> 31) * ((int64_t)1 << 32);
    }
    if (top == 1 && signed_top == 0) continue;
    high = top > high ? top : high;
    for (int64_t k = 0; k < low; k++)
      if (row[k]) low = k;
  }
  *first = high ? low : 0;
  *last = high;
}

/* The float64 nearest to digits[width] * 2^exponent, ties to even; digits are canonical. */
static double round_row(const int64_t *digits, int64_t width, int64_t exponent) {
  uint64_t word = 0, sticky = 0, carry = 0, size[TOTAL_DIGITS];
  int negative = width && digits[width - 1] < 0;
  int64_t top = -1;
  if (width > TOTAL_DIGITS) return NAN;
  const uint64_t sign = negative ? MASK32 : 0;
  carry = sign & 1;
  for (int64_t k = 0; k < width; k++) {
    carry += ((uint64_t)digits[k] ^ sign) & MASK32;
    size[k] = carry & MASK32;
    carry >>= 32;
    if (size[k]) top = k;
  }
  if (top < 0) return 0.0;
  int used = bit_length(size[top]);
  /* The leading 64 bits, and whether any lower bits are set. */
  word = size[top] << (64 - used);
  if (top >= 1) word |= used <= 32 ? size[top - 1] << (32 - used) : 0;
  if (top >= 2) {
    word |= size[top - 2] >> used;
    sticky = size[top - 2] & ((UINT64_C(1) << used) - 1);
  }
  for (int64_t k = 0; k < top - 2; k++) sticky |= size[k];
  int64_t unit = exponent + 32 * top + used - 64; /* the value is word * 2^unit plus a remainder */
  int64_t drop = unit < -1074 - 11 ? -1074 - unit : 11;
  if (drop > 64) return negative ? -0.0 : 0.0;
  uint64_t half = UINT64_C(1) << (drop - 1);
  uint64_t rest = word & (half | (half - 1)), kept = drop < 64 ? word >> drop : 0;
  kept += rest > half || (rest == half && (sticky || (kept & 1)));
  unit += drop;
  /* A power of two, so that the product is exact; larger units overflow. */
  double scale = from_bits(unit < -1022 ? UINT64_C(1) << (unit + 1074) : (uint64_t)(unit + 1023) << 52);
  double value = unit > 971 ? HUGE_VAL : (double)kept * scale;
  return negative ? -value : value;
}

static void exact_round(double *values, const int64_t *digits, int64_t rows, int64_t width,
                        int64_t exponent) {
  for (int64_t r = 0; r < rows; r++) values[r] = round_row(digits + r * width, width, exponent);
}

/* Add digits (n, other_width) to totals[groups][width], row i to index[i], starting at column `shift`.
 *
 * Returns n, or the first row whose group is out of range; totals are then invalid. Totals may get carried. */
static int64_t exact_merge(int64_t *totals, int64_t groups, int64_t width, const int64_t *digits,
                           int64_t other_width, const int64_t *index, int64_t n, int64_t shift) {
  int64_t uncarried = 0;
  if (shift < 0 || shift + other_width > width) return 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t g = index ? index[i] : i;
    if ((uint64_t)g >= (uint64_t)groups) return i;
    for (int64_t k = 0; k < other_width; k++) totals[g * width + shift + k] += digits[i * other_width + k];
    if (++uncarried >= CARRY_ROWS) {
      for (int64_t r = 0; r < groups; r++) carry_row(totals + r * width, width);
      uncarried = 0;
    }
  }
  return n;
}
