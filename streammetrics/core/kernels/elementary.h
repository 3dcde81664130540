/* Logarithms, exponentials and powers by IEEE additions, multiplications and divisions in a fixed order, so
 * that the bits are the same on every processor. reference.py does the same operations. */

typedef struct {
  double high, low;
} TwoParts;

/* The leading 21 bits; products of two of these are exact. */
static inline double head_of(double x) { return from_bits(bits_of(x) & 0xFFFFFFFF00000000u); }

#define LOG2_HIGH 0x1.62e42fefa38p-1 /* 42 bits, so that multiples by exponents are exact */
#define LOG2_LOW 0x1.ef35793c7673p-45
#define INTEGERS 0x1.8p52 /* adding this to a number rounds it to the nearest integer, in the last bits */

/* f in [sqrt(1/2) - 1, sqrt(2) - 1) and k with x = (1 + f) 2**k */
static inline TwoParts split_number(double x) {
  const uint64_t first = 0x3fe6a09e667f3bcd; /* sqrt(1/2) */
  double tiny = x < 0x1p-1022 ? 54.0 : 0.0;
  uint64_t bits = bits_of(x < 0x1p-1022 ? x * 0x1p54 : x) + (0x3ff0000000000000 - first);
  double k = from_bits(bits >> 52 | 0x4330000000000000) - (0x1p52 + 1023.0) - tiny;
  return (TwoParts){from_bits((bits & 0x000fffffffffffff) + first) - 1.0, k};
}

/* log(1 + f) + k log 2 + rest; with s = f / (2 + f), log(1 + f) = f - f**2 / 2 + s (f**2 / 2 + R(s**2)) */
static inline TwoParts log_pair(double f, double k, double rest) {
  double s = f / (2.0 + f), z = s * s, z2 = z * z;
  double series = z * (((0x1.5555555555555p-1 + 0x1.9999999999a38p-2 * z) +
                        z2 * (0x1.2492492476ba1p-2 + 0x1.c71c72017a15cp-3 * z)) +
                       z2 * z2 * ((0x1.745cf8f6c9119p-3 + 0x1.3b1c38474d3eep-3 * z) +
                                  z2 * (0x1.0fbe478772696p-3 + 0x1.0c06cf14c641bp-3 * z)));
  double head = head_of(f), square = 0.5 * head * head, square_low = 0.5 * (f - head) * (f + head);
  double first = f - square, top = k * LOG2_HIGH, high = top + first;
  double low = ((f - first) - square) - square_low + s * ((square + square_low) + series) +
               (k * LOG2_LOW + rest);
  return (TwoParts){high, low + ((top - high) + first)};
}

/* e**(x + low) = (high + low) 2**n; `scales` receives 2**n as a product of two normal numbers */
static inline TwoParts exp_pair(double x, double low, TwoParts *scales) {
  double at = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x;
  double shifted = at * 0x1.71547652b82fep+0 + INTEGERS, n = shifted - INTEGERS;
  double a = at - n * LOG2_HIGH, b = n * LOG2_LOW - low, r = a - b, c = (a - r) - b;
  double r2 = r * r, r4 = r2 * r2;
  double series = ((0x1.5555555555557p-3 + 0x1.5555555555556p-5 * r) +
                   r2 * (0x1.11111111100dap-7 + 0x1.6c16c16c162d3p-10 * r)) +
                  r4 * (((0x1.a01a01abe89b8p-13 + 0x1.a01a01a6d8e3bp-16 * r) +
                         r2 * (0x1.71de022fa2b45p-19 + 0x1.27e4db634dd1cp-22 * r)) +
                        r4 * (0x1.af4ded8bc133cp-26 + 0x1.1f73059b2800fp-29 * r));
  double head = head_of(r), square = 0.5 * head * head, square_low = 0.5 * (r - head) * (r + head);
  double first = 1.0 + r, high = first + square;
  double rest = ((1.0 - first) + r) + ((first - high) + square);
  uint64_t power = bits_of(shifted) - 0x4338000000000000 + 2046, half = power >> 1;
  *scales = (TwoParts){from_bits(half << 52), from_bits((power - half) << 52)};
  return (TwoParts){high, rest + (c * high + (square_low + r * r2 * series))};
}

static inline double log_of_number(double x) {
  TwoParts split = split_number(x), log = log_pair(split.high, split.low, 0.0);
  double value = log.high + log.low;
  return x > 0.0 ? (x < HUGE_VAL ? value : x) : x == 0.0 ? -HUGE_VAL : NAN;
}

static inline double log1p_of_number(double x) {
  double sum = 1.0 + x, part = sum - 1.0, rest = (1.0 - (sum - part)) + (x - part);
  TwoParts split = split_number(sum);
  int near = split.low == 0.0;
  TwoParts log = log_pair(near ? x : split.high, split.low, near ? 0.0 : rest / sum);
  double value = log.high + log.low;
  return x > -1.0 ? (x < HUGE_VAL ? value : x) : x == -1.0 ? -HUGE_VAL : NAN;
}

static inline double exp_of_number(double x) {
  TwoParts scales, value = exp_pair(x, 0.0, &scales);
  return x == x ? (value.high + value.low) * scales.high * scales.low : NAN;
}

static inline double expm1_of_number(double x) {
  TwoParts scales, value = exp_pair(x, 0.0, &scales);
  double high = value.high * scales.high * scales.low, low = value.low * scales.high * scales.low;
  double less = high - 1.0, part = less - high, rest = (high - (less - part)) + (-1.0 - part);
  return x == x ? (high < HUGE_VAL ? less + (rest + low) : high) : NAN;
}

/* x**p for x >= 0 and finite p; the results for 0 and infinity are given */
static inline double power_of_number(double x, double p, double of_zero, double of_infinity) {
  TwoParts split = split_number(x), log = log_pair(split.high, split.low, 0.0), scales;
  double high = log.high + log.low, low = (log.high - high) + log.low;
  double p_head = head_of(p), p_tail = p - p_head, head = head_of(high), tail = high - head;
  double product = p * high;
  double rest = ((p_head * head - product) + (p_head * tail + p_tail * head)) + p_tail * tail;
  TwoParts value = exp_pair(product, rest + p * low, &scales);
  double power = (value.high + value.low) * scales.high * scales.low;
  return x > 0.0 ? (x < HUGE_VAL ? power : of_infinity) : x == 0.0 ? of_zero : NAN;
}

/* Write the function of each number; `p` is the exponent of the power function. */
static int64_t elementary(double *out, const double *x, int64_t n, int64_t function, double p) {
  double of_zero = p == 0.0 ? 1.0 : p > 0.0 ? 0.0 : HUGE_VAL;
  double of_infinity = p == 0.0 ? 1.0 : p > 0.0 ? HUGE_VAL : 0.0;
  switch (function) {
    case 0: for (int64_t i = 0; i < n; i++) out[i] = log_of_number(x[i]); return OK;
    case 1: for (int64_t i = 0; i < n; i++) out[i] = log1p_of_number(x[i]); return OK;
    case 2: for (int64_t i = 0; i < n; i++) out[i] = exp_of_number(x[i]); return OK;
    case 3: for (int64_t i = 0; i < n; i++) out[i] = expm1_of_number(x[i]); return OK;
    case 4:
      for (int64_t i = 0; i < n; i++) out[i] = power_of_number(x[i], p, of_zero, of_infinity);
      return OK;
    default: return OUT_OF_RANGE;
  }
}
