/* The extension module: parses arguments, runs kernels without the GIL, and returns their results.
 *
 * build.py defines Py_LIMITED_API, or Py_GIL_DISABLED for a free-threaded Python. The only shared state is
 * `kernels` and `hash_seed`, which are written when the module is imported (`use` is for tests).
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdarg.h>
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include "kernels.h"
#include "tensors.h"

#ifdef HAVE_AVX2
#include <cpuid.h>

/* Whether the processor and the operating system support AVX2, FMA and BMI2. In zig's compiler runtime,
 * __builtin_cpu_supports always answers no. */
static int has_avx2(void) {
  const unsigned first = bit_FMA | bit_OSXSAVE, seventh = bit_AVX2 | bit_BMI2;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first) return 0;
  __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a & 6) == 6 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & seventh) == seventh;
}
#endif

static const Kernels *kernels = &kernels_baseline;

/* ---- arguments ---- */

#define MOST_ARGUMENTS 16

/* The buffers of one call, released together. */
typedef struct {
  Py_buffer views[MOST_ARGUMENTS];
  int count;
} Buffers;

/* Whether a buffer's format is of this kind ('f', 'i' or 'u'), in native byte order. */
static int is_kind(const char *format, char kind) {
  if (!format) return kind == 'u';
  if (*format == '@' || *format == '=') format++;
  if (!*format || format[1]) return 0;
  return strchr(kind == 'f' ? "df" : kind == 'i' ? "bhilqn" : "?cBHILQN", *format) != NULL;
}

/* Get a contiguous array of any type as the next view. */
static int take_view(Buffers *buffers, PyObject *object, int flags) {
  if (PyObject_GetBuffer(object, &buffers->views[buffers->count], PyBUF_C_CONTIGUOUS | flags) < 0) {
    if (PyErr_ExceptionMatches(PyExc_ValueError)) { /* NumPy raises it for other layouts */
      PyErr_Clear();
      PyErr_SetString(PyExc_BufferError, "expected a contiguous array");
    }
    return 0;
  }
  buffers->count++;
  return 1;
}

/* Get a contiguous, aligned array with items of one kind and size.
 *
 * Raises BufferError for other arrays: callers convert them and call again. */
static int take(Buffers *buffers, PyObject *object, char kind, Py_ssize_t size, int flags, void *data,
                int64_t *length) {
  Py_buffer *view = &buffers->views[buffers->count];
  if (!take_view(buffers, object, PyBUF_FORMAT | flags)) return 0;
  if (view->itemsize != size || !is_kind(view->format, kind) || (uintptr_t)view->buf % (size_t)size) {
    PyErr_Format(PyExc_BufferError, "expected contiguous, aligned items of %zd bytes of kind '%c'", size,
                 kind);
    return 0;
  }
  *(void **)data = view->buf;
  *length = (int64_t)(view->len / size);
  return 1;
}

static int take_integer(PyObject *object, int64_t *value) {
  *value = PyLong_AsLongLong(object);
  return !(*value == -1 && PyErr_Occurred());
}

static int wrong(const char *what) {
  PyErr_SetString(PyExc_ValueError, what);
  return 0;
}

static PyObject *refuse(const char *what) {
  return wrong(what), NULL;
}

/* A function of the module, documented in reference.py; its buffers are released when it returns. */
#define KERNEL(name)                                                                              \
  static PyObject *name##_in(Buffers *buffers, PyObject *const *args, Py_ssize_t count);            \
  static PyObject *name##_(PyObject *self, PyObject *const *args, Py_ssize_t count) {               \
    Buffers buffers = {.count = 0};                                                                 \
    PyObject *result = ((void)self, name##_in(&buffers, args, count));                              \
    while (buffers.count) PyBuffer_Release(&buffers.views[--buffers.count]);                        \
    return result;                                                                                  \
  }                                                                                                 \
  static PyObject *name##_in(Buffers *buffers, PyObject *const *args, Py_ssize_t count)

/* Get a contiguous, aligned array of integers of any type, or if `floats` also of floating-point numbers. */
static int take_numbers(Buffers *buffers, PyObject *object, int floats, Column *column,
                        int64_t *length) {
  Py_buffer *view = &buffers->views[buffers->count];
  if (!take_view(buffers, object, PyBUF_FORMAT)) return 0;
  int is_signed = is_kind(view->format, 'i'), is_float = floats && is_kind(view->format, 'f');
  int power = view->itemsize == 1 ? 0 : view->itemsize == 2 ? 1 : view->itemsize == 4 ? 2 : 3;
  if (view->itemsize != 1 << power || (uintptr_t)view->buf % (size_t)view->itemsize ||
      !(is_signed || is_float || is_kind(view->format, 'u'))) {
    PyErr_SetString(PyExc_BufferError, "expected contiguous, aligned numbers");
    return 0;
  }
  column->data = view->buf;
  column->kind = is_float ? KIND_F32 + (power == 3) : 2 * power + !is_signed;
  *length = (int64_t)(view->len / view->itemsize);
  return 1;
}

/* Get the weights of classes: counts (rows, classes) of 32 or 64 bits, or digits (rows, classes, width); None
 * for no weights. */
static int take_mass(Buffers *buffers, PyObject *object, int flags, Mass *mass) {
  Py_buffer *view = &buffers->views[buffers->count];
  int64_t size;
  void *data;
  *mass = (Mass){.rows = -1, .classes = 0};
  if (object == Py_None) return 1;
  if (!take(buffers, object, 'i', 4, flags, &data, &size)) {
    if (!PyErr_ExceptionMatches(PyExc_BufferError)) return 0;
    PyErr_Clear();
    mass->wide = 1;
    if (!take(buffers, object, 'i', 8, flags, &data, &size)) return 0;
  }
  if (view->ndim < 2 || view->ndim > 3 || view->shape[1] < 1 || view->shape[1] > 2) return wrong("counts do not fit");
  mass->rows = view->shape[0];
  mass->classes = view->shape[1];
  if (view->ndim == 2) {
    mass->counts = data;
  } else {
    mass->sums = data;
    mass->width = view->shape[2];
    if (!mass->wide || mass->width < 1 || mass->width > TOTAL_DIGITS) return wrong("digits do not fit");
  }
  return 1;
}

#define TAKE(...) \
  if (!take_all(buffers, args, count, __VA_ARGS__)) return NULL

/* Parse arguments, given a letter for each, a pointer to its destination, and for arrays one to its length:
 *
 * l: an integer; d: a number; c: a Column of integers; t: one of float64 or int64; f, i, r, u: an array of float64,
 * int64, int32 or uint8; w, o, b: a writable array of float64, int64 or uint8; m, n: a Mass or None, to be read or
 * written. A capital letter allows None: data NULL, length -1. */
static int take_all(Buffers *buffers, PyObject *const *args, Py_ssize_t count, const char *format, ...) {
  static const char letters[] = "firuwob", kinds[] = "fiiufiu", sizes[] = {8, 8, 4, 1, 8, 8, 1};
  va_list to;
  int ok = 1;
  if (count != (Py_ssize_t)strlen(format))
    return PyErr_Format(PyExc_ValueError, "expected %zd arguments", (Py_ssize_t)strlen(format)), 0;
  va_start(to, format);
  for (; *format && ok; format++, args++) {
    if (*format == 'l') {
      ok = take_integer(*args, va_arg(to, int64_t *));
      continue;
    }
    void *data = va_arg(to, void *);
    if (*format == 'd') {
      double number = *(double *)data = PyFloat_AsDouble(*args);
      ok = !(number == -1.0 && PyErr_Occurred());
      continue;
    }
    if (*format == 'm' || *format == 'n') {
      ok = take_mass(buffers, *args, *format == 'n' ? PyBUF_WRITABLE : 0, data);
      continue;
    }
    int64_t *length = va_arg(to, int64_t *);
    if (*format < 'a' && *args == Py_None) {
      *(void **)data = NULL;
      *length = -1;
    } else if ((*format | ('a' - 'A')) == 'c') {
      ok = take_numbers(buffers, *args, 0, data, length);
    } else if ((*format | ('a' - 'A')) == 't') {
      Column *column = data;
      ok = take_numbers(buffers, *args, 1, column, length);
      if (ok && column->kind != KIND_F64 && column->kind != KIND_I64)
        ok = (PyErr_SetString(PyExc_BufferError, "expected float64 or int64"), 0);
    } else {
      int64_t k = strchr(letters, *format | ('a' - 'A')) - letters;
      ok = take(buffers, *args, kinds[k], sizes[k], k < 4 ? 0 : PyBUF_WRITABLE, data, length);
    }
  }
  va_end(to);
  return ok;
}

#define THREAD_ROWS (1 << 18) /* rows from which on more than one thread is used */
#define SHORT 4096 /* rows up to which releasing the GIL costs more than it gains */

/* Run a call, without the GIL if there are many rows. */
#define RUN(rows, call)      \
  if ((rows) > SHORT) {      \
    Py_BEGIN_ALLOW_THREADS   \
    call;                    \
    Py_END_ALLOW_THREADS     \
  } else {                   \
    call;                    \
  }

/* The number of threads for this many rows; it does not affect results. */
static int threads_for(int64_t rows) {
#ifdef HAVE_THREADS
  long most = rows < THREAD_ROWS ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
  return most < 1 ? 1 : most > MOST_THREADS ? MOST_THREADS : (int)most;
#else
  return (void)rows, 1;
#endif
}

/* ---- exact sums ---- */

/* The Python integer of canonical digits[width], built from 64 bits at a time. */
static PyObject *integer_from(const int64_t *digits, int64_t width) {
  PyObject *result = NULL, *shift = NULL;
  int64_t k = width - 1;
  if (width == 0) return PyLong_FromLong(0);
  if (width % 2 == 0) {
    k -= 1;
    result = PyLong_FromLongLong((int64_t)((uint64_t)digits[k + 1] << 32 | (uint64_t)digits[k]));
  } else {
    result = PyLong_FromLongLong(digits[k]);
  }
  if (k > 0) shift = PyLong_FromLong(64);
  for (k -= 2; k >= 0 && result && shift; k -= 2) {
    PyObject *low = PyLong_FromUnsignedLongLong((uint64_t)digits[k + 1] << 32 | (uint64_t)digits[k]);
    PyObject *high = low ? PyNumber_Lshift(result, shift) : NULL;
    Py_DECREF(result);
    result = high ? PyNumber_Or(high, low) : NULL;
    Py_XDECREF(high);
    Py_XDECREF(low);
  }
  Py_XDECREF(shift);
  return result;
}

/* The (integer, unit) of digits[TOTAL_DIGITS]; the digits in use are carried in place. */
static PyObject *total_from(int64_t *digits) {
  int64_t first = 0, top = TOTAL_DIGITS - 1, carry = 0, k;
  while (first <= top && !digits[first]) first++;
  while (top > first && !digits[top]) top--;
  for (k = first; k <= top || (carry != 0 && carry != -1); k++) {
    carry += digits[k];
    digits[k] = carry & 0xFFFFFFFF;
    carry >>= 32;
  }
  while (first < k && !digits[first]) first++;
  if (first == k && !carry) return Py_BuildValue("(ii)", 0, 0);
  digits[k] = carry; /* the top digits are the sign: no possible number of rows fills them */
  return Py_BuildValue("(NL)", integer_from(digits + first, k + 1 - first), (long long)(TOTAL_LOW + 32 * first));
}

KERNEL(exact_sum) {
  const double *x = NULL, *y = NULL;
  Column w = {.data = NULL};
  int64_t digits[TOTAL_DIGITS] = {0}, lengths[3] = {0, -1, -1}, done;
  if (count < 1 || count > 3) return refuse("expected one to three columns");
  TAKE(count == 1 ? "f" : count == 2 ? "fF" : "fFT", (void *)&x, &lengths[0], (void *)&y, &lengths[1], (void *)&w,
       &lengths[2]);
  for (int k = 1; k < 3; k++)
    if (lengths[k] >= 0 && lengths[k] != lengths[0]) return refuse("columns differ in length");
  RUN(lengths[0], done = kernels->exact_sum(digits, x, y, w.data ? &w : NULL, lengths[0]))
  if (done < lengths[0]) return PyLong_FromLongLong(done);
  return total_from(digits);
}

KERNEL(exact_powers) {
  const double *x;
  double extremes[2];
  int64_t digits[POWER_SUMS * TOTAL_DIGITS] = {0}, n, weighed = -1, done, powers;
  Column w = {.data = NULL};
  TAKE(count == 2 ? "fl" : "flT", (void *)&x, &n, &powers, (void *)&w, &weighed);
  if (powers < 1 || powers >= (w.data ? 1 << POWER_SUMS : 8)) return refuse("expected powers among 1, 2 and 4");
  if (weighed >= 0 && weighed != n) return refuse("columns differ in length");
  RUN(n, done = kernels->exact_powers(digits, extremes, x, w.data ? &w : NULL, n, powers))
  if (done < n) return PyLong_FromLongLong(done);
  PyObject *sums = PyList_New(0);
  for (int k = 0; k < POWER_SUMS && sums; k++) {
    PyObject *sum = powers >> k & 1 ? total_from(digits + k * TOTAL_DIGITS) : NULL;
    if (powers >> k & 1 && (!sum || PyList_Append(sums, sum))) Py_CLEAR(sums);
    Py_XDECREF(sum);
  }
  return sums ? Py_BuildValue("(ddN)", extremes[0], extremes[1], sums) : NULL;
}

KERNEL(exact_extent) {
  const double *x;
  int64_t n, done, lowest, highest;
  TAKE("f", (void *)&x, &n);
  RUN(n, done = kernels->exact_extent(x, n, &lowest, &highest))
  if (done < n) return PyLong_FromLongLong(done);
  return Py_BuildValue("(LL)", (long long)lowest, (long long)highest);
}

KERNEL(exact_add) {
  int64_t *digits, low, size, n, other = -1, rows, weights = -1, indices = -1, columns, done, width;
  const double *x, *y, *w;
  const int64_t *group;
  TAKE("ollfFFIl", (void *)&digits, &size, &width, &low, (void *)&x, &n, (void *)&y, &other, (void *)&w,
       &weights, (void *)&group, &indices, &columns);
  if (columns < 1 || n % columns || width < 4 || size % width || (size / width) % columns)
    return refuse("shapes do not fit");
  rows = n / columns;
  if ((other >= 0 && other != n) || (weights >= 0 && weights != rows) || (indices >= 0 && indices != rows))
    return refuse("columns differ in length");
  RUN(rows, done = kernels->exact_add(digits, size / width / columns, width, low, x, y, w, group, rows, columns))
  return PyLong_FromLongLong(done);
}

KERNEL(exact_add_squares) {
  Totals totals[2];
  int64_t sizes[2], n, indices, done;
  const double *x;
  const int64_t *group;
  TAKE("ollollfi", (void *)&totals[0].digits, &sizes[0], &totals[0].width, &totals[0].low, (void *)&totals[1].digits,
       &sizes[1], &totals[1].width, &totals[1].low, (void *)&x, &n, (void *)&group, &indices);
  for (int k = 0; k < 2; k++)
    if (totals[k].width < 4 || sizes[k] % totals[k].width) return refuse("shapes do not fit");
  if (sizes[0] / totals[0].width != sizes[1] / totals[1].width) return refuse("shapes do not fit");
  if (indices != n) return refuse("columns differ in length");
  RUN(n, done = kernels->exact_add_squares(totals, sizes[0] / totals[0].width, x, group, n))
  return PyLong_FromLongLong(done);
}

KERNEL(exact_carry) {
  int64_t *digits, size, width, first = 0, last = 0;
  TAKE("ol", (void *)&digits, &size, &width);
  if (width < 0 || (width == 0 && size) || (width && size % width))
    return refuse("shapes do not fit");
  if (width) kernels->exact_carry(digits, size / width, width, &first, &last);
  return Py_BuildValue("(LL)", (long long)first, (long long)last);
}

KERNEL(exact_round) {
  int64_t *digits, rows, size, exponent;
  double *values;
  TAKE("wil", (void *)&values, &rows, (void *)&digits, &size, &exponent);
  if ((rows ? size % rows : size) || (rows && size / rows > TOTAL_DIGITS) || exponent < -100000 ||
      exponent > 100000)
    return refuse("shapes do not fit");
  if (rows) kernels->exact_round(values, digits, rows, size / rows, exponent);
  Py_RETURN_NONE;
}

KERNEL(exact_merge) {
  int64_t *totals, *digits, *index, size, width, other, other_width, indices = -1, shift, rows, done;
  TAKE("olilIl", (void *)&totals, &size, &width, (void *)&digits, &other, &other_width, (void *)&index,
       &indices, &shift);
  if (width < 1 || size % width || other_width < 1 || other % other_width || shift < 0 ||
      other_width > width || shift > width - other_width)
    return refuse("shapes do not fit");
  rows = other / other_width;
  if (indices >= 0 && indices != rows) return refuse("columns differ in length");
  RUN(rows, done = kernels->exact_merge(totals, size / width, width, digits, other_width, index, rows, shift))
  return PyLong_FromLongLong(done);
}

/* ---- counts ---- */

#define MOST_CODES 4
#define MOST_GROUPS ((int64_t)1 << 31)
/* Common part of count and count_above: counts, (codes, size)... and times, if any; `score` may be NULL. */
static PyObject *counted(Buffers *buffers, PyObject *const *args, Py_ssize_t count, int64_t *counts,
                         int64_t size, const double *score, double threshold, int64_t n) {
  Column columns[MOST_CODES];
  int64_t cells = score ? 2 : 1, done, repeated = -1;
  const int64_t *times = NULL;
  if (count % 2 && !take_all(buffers, args + --count, 1, "i", (void *)&times, &repeated)) return NULL;
  if (count < 0 || count % 2 || count > 2 * MOST_CODES || (!count && !score))
    return refuse("expected one to four columns, each with the number of its codes");
  for (Py_ssize_t k = 0; k < count / 2; k++) {
    int64_t rows;
    if (!take_numbers(buffers, args[2 * k], 0, &columns[k], &rows) ||
        !take_integer(args[2 * k + 1], &columns[k].size))
      return NULL;
    if (n < 0) n = rows;
    if (rows != n) return refuse("columns differ in length");
    if (columns[k].size < 0 || columns[k].size > MOST_GROUPS || cells > MOST_GROUPS)
      return refuse("shapes do not fit");
    cells *= columns[k].size;
  }
  if (cells != size || cells > MOST_GROUPS) return refuse("shapes do not fit");
  if (repeated >= 0 && repeated != n) return refuse("columns differ in length");
  RUN(n, done = kernels->count(counts, size, times, columns, count / 2, score, threshold, n))
  return PyLong_FromLongLong(done);
}

KERNEL(count) {
  int64_t *counts, size;
  if (count < 1) return refuse("expected counts");
  if (!take_all(buffers, args, 1, "o", (void *)&counts, &size)) return NULL;
  return counted(buffers, args + 1, count - 1, counts, size, NULL, 0.0, -1);
}

KERNEL(count_above) {
  int64_t *counts, size, n;
  const double *score;
  double threshold;
  if (count < 3) return refuse("expected counts, scores and a threshold");
  if (!take_all(buffers, args, 3, "ofd", (void *)&counts, &size, (void *)&score, &n, (void *)&threshold)) return NULL;
  return counted(buffers, args + 3, count - 3, counts, size, score, threshold, n);
}

KERNEL(add_rows) {
  Column codes;
  int64_t *totals, *rows, width, size, all, n, done;
  TAKE("olic", (void *)&totals, &size, &width, (void *)&rows, &all, (void *)&codes, &n);
  if (width < 1 || size % width || all % width || all / width != n || size / width > MOST_GROUPS)
    return refuse("shapes do not fit");
  codes.size = size / width;
  RUN(n, done = kernels->add_rows(totals, width, rows, &codes, n))
  return PyLong_FromLongLong(done);
}

static PyObject *number_from(const void *value, int kind) {
  switch (kind) {
    case KIND_I8: return PyLong_FromLong(*(const int8_t *)value);
    case KIND_I16: return PyLong_FromLong(*(const int16_t *)value);
    case KIND_I32: return PyLong_FromLong(*(const int32_t *)value);
    case KIND_I64: return PyLong_FromLongLong(*(const int64_t *)value);
    case KIND_U8: return PyLong_FromLong(*(const uint8_t *)value);
    case KIND_U16: return PyLong_FromLong(*(const uint16_t *)value);
    case KIND_U32: return PyLong_FromUnsignedLong(*(const uint32_t *)value);
    case KIND_U64: return PyLong_FromUnsignedLongLong(*(const uint64_t *)value);
    case KIND_F32: return PyFloat_FromDouble(*(const float *)value);
    default: return PyFloat_FromDouble(*(const double *)value);
  }
}

KERNEL(extent) {
  Column column;
  int64_t n, least = 0, largest = 0;
  if (count != 1) return refuse("expected 1 argument");
  if (!take_numbers(buffers, args[0], 1, &column, &n)) return NULL;
  if (!n) return Py_BuildValue("(dd)", HUGE_VAL, -HUGE_VAL);
  RUN(n, kernels->extent(column.data, column.kind, n, &least, &largest))
  PyObject *low = number_from(&least, column.kind), *high = number_from(&largest, column.kind);
  if (low && high && column.kind >= KIND_F32) {
    double first = PyFloat_AsDouble(low), last = PyFloat_AsDouble(high);
    if (first != first || last != last) {
      Py_DECREF(low);
      Py_DECREF(high);
      return Py_BuildValue("(dd)", Py_NAN, Py_NAN);
    }
  }
  return Py_BuildValue("(NN)", low, high); /* returns NULL if an argument is NULL */
}

KERNEL(bits) {
  Column column;
  uint8_t *out;
  int64_t size, n, ones;
  TAKE("bc", (void *)&out, &size, (void *)&column, &n);
  if (size != n) return refuse("columns differ in length");
  RUN(n, ones = kernels->bits(out, column.data, column.kind, n))
  return PyLong_FromLongLong(ones);
}

/* ---- orders ---- */

#define MOST_MOVED 7
KERNEL(group_rows) {
  Column codes;
  Moved columns[MOST_MOVED];
  int64_t *starts, groups, n, done, number = count / 2 - 1;
  if (count < 2 || count % 2 || number > MOST_MOVED) return refuse("expected up to seven columns");
  if (!take_all(buffers, args, 2, "oc", (void *)&starts, &groups, (void *)&codes, &n)) return NULL;
  if (groups < 1 || groups > MOST_GROUPS || n > MOST_GROUPS) return refuse("shapes do not fit");
  for (int64_t k = 0; k < number; k++) {
    Py_buffer *from = &buffers->views[buffers->count], *to = from + 1;
    if (!take_view(buffers, args[2 * k + 2], 0) || !take_view(buffers, args[2 * k + 3], PyBUF_WRITABLE)) return NULL;
    if (from->len != to->len || (n ? from->len % n : from->len)) return refuse("columns differ in length");
    columns[k] = (Moved){from->buf, to->buf, from->len > n ? from->len / n : 1};
  }
  RUN(n, done = kernels->group_rows(starts, groups - 1, &codes, n, columns, number))
  if (done == NO_MEMORY) return PyErr_NoMemory();
  return PyLong_FromLongLong(done);
}

KERNEL(inversions) {
  const int32_t *ranks;
  const int64_t *first = NULL, *second = NULL;
  int64_t n, sizes[2] = {-1, -1}, done;
  uint64_t result[2] = {0, 0};
  if (count != 1 && count != 3) return refuse("expected ranks, or ranks and two counts");
  TAKE(count == 1 ? "r" : "rII", (void *)&ranks, &n, (void *)&first, &sizes[0], (void *)&second, &sizes[1]);
  if (!first != !second || (first && (sizes[0] != n || sizes[1] != n)) ||
      n > MOST_GROUPS)
    return refuse("columns differ in length");
  RUN(n, done = kernels->inversions(result, ranks, first, second, n, threads_for(n)))
  if (done == NO_MEMORY) return PyErr_NoMemory();
  if (done == OUT_OF_RANGE) return refuse("counts are negative, or 2**62 together");
  int64_t digits[5] = {0};
  for (int k = 0; k < 4; k++) digits[k] = (int64_t)(result[k / 2] >> 32 * (k % 2) & 0xFFFFFFFF);
  return integer_from(digits, 5);
}

/* ---- tables of keys ---- */

static uint64_t hash_seed = 0; /* random, so that colliding keys cannot be constructed */

/* Get slots and keys, `used` of which are stored. */
static int take_table(Buffers *buffers, PyObject *const *args, PyObject *used, int writable, Table *table,
                      int64_t *capacity) {
  Py_buffer *view = &buffers->views[1];
  int64_t size;
  if (!take(buffers, args[0], 'u', 4, PyBUF_WRITABLE, (void *)&table->slots, &size) ||
      !take_view(buffers, args[1], writable ? PyBUF_WRITABLE : 0) || !take_integer(args[2], &table->width) ||
      !take_integer(used, &table->used))
    return 0;
  table->keys = view->buf;
  table->seed = hash_seed;
  for (table->bits = 3; table->bits < 31 && (int64_t)1 << table->bits < size; table->bits++) {}
  if ((int64_t)1 << table->bits != size || table->width < 1 || view->len % table->width)
    return wrong("shapes do not fit");
  *capacity = (int64_t)(view->len / table->width);
  if (table->used < 0 || table->used > *capacity)
    return wrong("shapes do not fit");
  return 1;
}

KERNEL(factorize) {
  Table table;
  int64_t capacity, n, size, firsts_size = -1, add, done, *codes, *firsts = NULL;
  Py_buffer *view;
  if (count != 8) return refuse("expected 8 arguments");
  if (!take_integer(args[6], &add) ||
      !take_table(buffers, args, args[3], add != 0, &table, &capacity) || !take_view(buffers, args[4], 0) ||
      !take_all(buffers, args + 5, 1, "o", (void *)&codes, &size) ||
      !take_all(buffers, args + 7, 1, "O", (void *)&firsts, &firsts_size))
    return NULL;
  view = &buffers->views[2];
  n = (int64_t)view->len / table.width;
  if (view->len % table.width || n != size || (firsts && firsts_size < capacity))
    return refuse("shapes do not fit");
  RUN(n, done = kernels->factorize(codes, view->buf, n, &table, add ? (uint8_t *)table.keys : NULL,
                                   capacity, firsts))
  return Py_BuildValue("(LL)", (long long)done, (long long)table.used);
}

KERNEL(table_put) {
  Table table;
  int64_t capacity, start, done;
  if (count != 5) return refuse("expected 5 arguments");
  if (!take_table(buffers, args, args[4], 0, &table, &capacity) ||
      !take_integer(args[3], &start))
    return NULL;
  if (start < 0 || start > table.used || table.used >= (int64_t)1 << table.bits)
    return refuse("shapes do not fit");
  RUN(table.used - start, done = kernels->table_put(&table, start, table.used))
  if (done < table.used) return refuse("the slots are full");
  Py_RETURN_NONE;
}

KERNEL(table_move) {
  Table table;
  int64_t capacity, n, size = -1, done;
  const int64_t *numbers, *others = NULL;
  if (count != 6) return refuse("expected 6 arguments");
  if (!take_table(buffers, args, args[3], 0, &table, &capacity) ||
      !take_all(buffers, args + 4, 2, "iI", (void *)&numbers, &n, (void *)&others, &size))
    return NULL;
  if (others && size != n) return refuse("columns differ in length");
  RUN(n, done = kernels->table_move(&table, numbers, others, n))
  if (done < n) return refuse("a key is not in the table");
  Py_RETURN_NONE;
}

/* Hash the texts of a list, up to one that is no plain str, ends in NUL or has more letters than there are factors. */
static int64_t hash_items(uint64_t *hashes, PyObject *items, int64_t n, const uint64_t *factors, int64_t most,
                          uint64_t start) {
  uint32_t letters[1 << 8];
  int64_t done = 0;
  for (; done < n; done++) {
    PyObject *item = PySequence_GetItem(items, (Py_ssize_t)done);
    Py_ssize_t length = item && PyUnicode_CheckExact(item) ? PyUnicode_GetLength(item) : -1;
    int good = length >= 0 && length <= most && length <= 1 << 8 &&
               PyUnicode_AsUCS4(item, letters, 1 << 8, 0) && (!length || letters[length - 1]);
    if (good) kernels->hash_texts(hashes + done, letters, 1, length, factors, start);
    Py_XDECREF(item);
    if (!good) break;
  }
  return done;
}

KERNEL(hash_texts) {
  int64_t n, width, size, start, done, *hashes, *factors;
  int32_t *letters;
  if (count != 4) return refuse("expected 4 arguments");
  if (!take_all(buffers, args, 1, "o", (void *)&hashes, &n) ||
      !take_all(buffers, args + 2, 2, "il", (void *)&factors, &width, &start))
    return NULL;
  if (!PyObject_CheckBuffer(args[1])) {
    if (PySequence_Size(args[1]) != (Py_ssize_t)n) return PyErr_Occurred() ? NULL : refuse("shapes do not fit");
    done = hash_items((uint64_t *)hashes, args[1], n, (uint64_t *)factors, width, (uint64_t)start);
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(done);
  }
  if (!take_all(buffers, args + 1, 1, "r", (void *)&letters, &size)) return NULL;
  if (size != n * width) return refuse("shapes do not fit");
  RUN(n, done = kernels->hash_texts((uint64_t *)hashes, (uint32_t *)letters, n, width, (uint64_t *)factors,
                                    (uint64_t)start))
  return PyLong_FromLongLong(done);
}

/* ---- cells ---- */

KERNEL(cells_ids) {
  int64_t *ids, size, n, level;
  const double *scores;
  TAKE("ofl", (void *)&ids, &size, (void *)&scores, &n, &level);
  if (size != n || level < 0 || level > MAX_LEVEL)
    return refuse("shapes do not fit");
  RUN(n, kernels->cells_ids(ids, scores, n, level))
  Py_RETURN_NONE;
}

/* Whether the output arrays of cells, of which there are so many ids, are of one length. */
static int are_cells(const CellsOut *out, int64_t ids) {
  return (ids < 0 || ids == out->room) && (!out->mass.classes || out->mass.rows == out->room);
}

static PyObject *cells_found(int64_t done, const CellsOut *out) {
  if (done == NO_MEMORY) return PyErr_NoMemory();
  if (done != OK || out->level > MAX_LEVEL) return wrong("the cells do not fit"), NULL;
  return Py_BuildValue("(LLN)", (long long)out->level, (long long)out->size, PyBool_FromLong(!out->odd));
}

KERNEL(cells_count) {
  CellsOut out = {.odd = 0};
  int64_t n, ids, coded, weighed, placed, most, power, done, *index;
  const double *scores;
  double *weight = NULL;
  Column codes = {.data = NULL}, weights = {.data = NULL};
  if (count < 4) return refuse("expected 11 arguments");
  /* With an index, weights are reordered in place. */
  TAKE(args[3] == Py_None ? "fCTOllOwnll" : "fCWOllOwnll", (void *)&scores, &n, (void *)&codes, &coded,
       args[3] == Py_None ? (void *)&weights : (void *)&weight, &weighed, (void *)&index, &placed, &most, &out.level, (void *)&out.ids, &ids,
       (void *)&out.scores, &out.room, &out.mass, &out.low, &power);
  out.power = (int)power;
  const int64_t *times = weights.data && weights.kind == KIND_I64 ? weights.data : NULL;
  if (weights.data && !times) weight = (double *)(uintptr_t)weights.data; /* only read */
  if ((coded >= 0 && coded != n) || (weighed >= 0 && weighed != n) || (placed >= 0 && placed != n) ||
      !are_cells(&out, ids))
    return refuse("columns differ in length");
  if (most < 2 || most > MOST_CELLS || out.level < 0 || out.level > MAX_LEVEL || n > INT32_MAX ||
      (!out.ids && (out.level || n > most)) || power < 1 || power > 2 || out.low < TOTAL_LOW || out.low > -TOTAL_LOW)
    return refuse("shapes do not fit");
  if (index ? !weight || out.mass.classes : !weight != !out.mass.sums || out.mass.classes != 1 + (coded >= 0) ||
                                                (out.mass.counts && out.mass.wide))
    return refuse("expected counts, sums of weights or an index, and codes for two classes");
  RUN(n, done = kernels->cells_count(&out, scores, coded < 0 ? NULL : &codes, weight, times, n, most, index,
                                     threads_for(n)))
  if (done == NOT_DENSE) return Py_BuildValue("(iiO)", -1, 0, Py_True);
  if (done == BAD_ROWS) return refuse("a score is nan, or a code is neither 0 nor 1");
  return cells_found(done, &out);
}

KERNEL(cells_merge) {
  CellsOut out = {.odd = 0};
  CellsIn parts[2] = {{.size = 0}, {.size = 0}};
  CellsIn *one = &parts[0], *other = &parts[1];
  int64_t most, done, ids[3];
  TAKE("lIfmlIfmllOwn", &out.level, (void *)&one->ids, &ids[0], (void *)&one->scores, &one->size, &one->mass,
       &one->shift, (void *)&other->ids, &ids[1], (void *)&other->scores, &other->size, &other->mass, &other->shift,
       &most, (void *)&out.ids, &ids[2], (void *)&out.scores, &out.room, &out.mass);
  if (!are_cells(&out, ids[2])) return refuse("columns differ in length");
  for (int p = 0; p < 2; p++) {
    const CellsIn *part = &parts[p];
    const Mass *mass = &part->mass;
    if ((out.level && ids[p] != part->size) || mass->rows != part->size ||
        mass->classes != out.mass.classes || !mass->sums != !out.mass.sums || part->shift < 0 ||
        part->shift > out.mass.width || mass->width > out.mass.width - part->shift)
      return refuse("shapes do not fit");
  }
  if (most < 2 || most > MOST_CELLS || out.level < 0 || out.level > MAX_LEVEL || !out.mass.classes ||
      (!out.ids && (out.level || parts[0].size + parts[1].size > most)))
    return refuse("shapes do not fit");
  RUN(parts[0].size + parts[1].size, done = kernels->cells_merge(&out, parts, most))
  return cells_found(done, &out);
}

KERNEL(cells_add) {
  CellsOut table = {.odd = 0};
  CellsIn part = {.size = 0};
  int64_t low, level, ids, weight, done;
  TAKE("nwlllIfm", &table.mass, (void *)&table.scores, &table.room, &low, &table.level, &level, (void *)&part.ids,
       &ids, (void *)&part.scores, &part.size, &part.mass);
  if (!table.mass.counts || !part.mass.counts || table.mass.rows != table.room || part.mass.rows != part.size ||
      part.mass.classes != table.mass.classes || part.mass.wide > table.mass.wide || (level && ids != part.size) ||
      level < 0 || level > table.level || table.level < 1 || table.level > MAX_LEVEL)
    return refuse("shapes do not fit");
  RUN(part.size, done = kernels->cells_add(&table, low, &part, level, &weight))
  if (done == NO_MEMORY) return PyErr_NoMemory();
  if (done != OK) return wrong("the cells do not fit"), NULL;
  return PyLong_FromLongLong(weight);
}

KERNEL(cells_area) {
  CellsIn cells = {.size = 0};
  int64_t area, slack;
  TAKE("Fm", (void *)&cells.scores, &cells.size, &cells.mass);
  if (!cells.scores) cells.size = cells.mass.rows;
  if (!cells.mass.counts || cells.mass.classes != 2 || cells.mass.rows != cells.size)
    return refuse("shapes do not fit");
  RUN(cells.size, area = kernels->cells_area(&cells, &slack))
  return Py_BuildValue("(LL)", (long long)area, (long long)slack);
}

/* ---- segments of cells ---- */

static PyObject *segments_found(int64_t total) {
  if (total == NO_MEMORY) return PyErr_NoMemory();
  if (total < 0) return wrong("the cells do not fit"), NULL;
  return PyLong_FromLongLong(total);
}

/* Whether cells have counts of 32 bits. */
static int is_narrow(const Mass *mass) {
  return mass->counts && !mass->wide;
}

KERNEL(segments_count) {
  CellsOut out = {.odd = 0};
  int64_t n, ids, coded, most, starts_size, levels_size, sizes_size, done, *levels, *sizes;
  const int64_t *starts;
  const double *scores;
  const uint8_t *codes;
  TAKE("ifUlooOwn", (void *)&starts, &starts_size, (void *)&scores, &n, (void *)&codes, &coded, &most, (void *)&levels,
       &levels_size, (void *)&sizes, &sizes_size, (void *)&out.ids, &ids, (void *)&out.scores, &out.room, &out.mass);
  if ((coded >= 0 && coded != n) || !are_cells(&out, ids) || starts_size != levels_size + 1 || sizes_size != levels_size || most < 2 ||
      most > MOST_CELLS || n > INT32_MAX || !is_narrow(&out.mass) || out.mass.classes != 1 + (coded >= 0))
    return refuse("shapes do not fit");
  RUN(n, done = kernels->segments_count(&out, starts, levels_size, scores, codes, n, most, levels, sizes))
  return segments_found(done);
}

KERNEL(segments_merge) {
  CellsOut out = {.odd = 0};
  Segments sides[2];
  int64_t most, done, levels_size, sizes_size, out_ids, *levels, *sizes;
  if (count != 16) return refuse("expected 16 arguments");
  for (int k = 0; k < 2; k++) {
    Segments *side = &sides[k];
    int64_t starts_size, ids;
    side->cells = (CellsIn){.size = 0};
    if (!take_all(buffers, args + 5 * k, 5, "iiIfm", (void *)&side->starts, &starts_size, (void *)&side->levels,
                  &side->groups, (void *)&side->cells.ids, &ids, (void *)&side->cells.scores, &side->n,
                  &side->cells.mass))
      return NULL;
    if (starts_size != side->groups + 1 || (ids >= 0 && ids != side->n) || !is_narrow(&side->cells.mass) ||
        side->cells.mass.rows != side->n)
      return refuse("shapes do not fit");
  }
  if (!take_all(buffers, args + 10, 6, "looOwn", &most, (void *)&levels, &levels_size, (void *)&sizes, &sizes_size,
                (void *)&out.ids, &out_ids, (void *)&out.scores, &out.room, &out.mass))
    return NULL;
  if (!are_cells(&out, out_ids) || sides[0].groups != sides[1].groups || levels_size != sides[0].groups || sizes_size != levels_size || most < 2 ||
      most > MOST_CELLS || !is_narrow(&out.mass) || out.mass.classes != sides[0].cells.mass.classes ||
      out.mass.classes != sides[1].cells.mass.classes)
    return refuse("shapes do not fit");
  RUN(sides[0].n + sides[1].n, done = kernels->segments_merge(&out, sides, most, levels, sizes))
  return segments_found(done);
}

KERNEL(segments_area) {
  CellsIn cells = {.size = 0};
  int64_t *areas, *slacks, done, sizes[3];
  const int64_t *starts;
  TAKE("ooifm", (void *)&areas, &sizes[0], (void *)&slacks, &sizes[1], (void *)&starts, &sizes[2],
       (void *)&cells.scores, &cells.size, &cells.mass);
  if (!is_narrow(&cells.mass) || cells.mass.classes != 2 || cells.mass.rows != cells.size || sizes[0] != sizes[1] ||
      sizes[2] != sizes[0] + 1)
    return refuse("shapes do not fit");
  RUN(cells.size, done = kernels->segments_area(areas, slacks, starts, sizes[0], &cells))
  return done < sizes[0] ? refuse("a segment is out of range") : PyLong_FromLongLong(done);
}

/* ---- elementary functions ---- */

KERNEL(elementary) {
  const double *x;
  double *out, exponent;
  int64_t size, n, function, done;
  TAKE("wfld", (void *)&out, &size, (void *)&x, &n, &function, (void *)&exponent);
  if (size != n) return refuse("columns differ in length");
  RUN(n, done = kernels->elementary(out, x, n, function, exponent))
  if (done != OK) return refuse("expected a function from 0 to 4");
  Py_RETURN_NONE;
}

KERNEL(copy_tensors) {
  (void)buffers;
  if (count != 4 || !PyTuple_Check(args[0])) return refuse("expected a tuple, a type, a capsule and a method");
  Py_ssize_t n = PyTuple_Size(args[0]);
  for (Py_ssize_t i = 0; i < n; i++)
    if ((PyObject *)Py_TYPE(PyTuple_GetItem(args[0], i)) != args[1]) Py_RETURN_NONE;
  const Exchange *exchange = PyCapsule_GetPointer(args[2], "dlpack_exchange_api");
  if (!exchange) return NULL;
  PyObject *copies = exchange->major == 1 && exchange->view ? PyTuple_New(n) : NULL;
  for (Py_ssize_t i = 0; copies && i < n; i++) {
    PyObject *copy = copied_tensor(PyTuple_GetItem(args[0], i), exchange, args[3]);
    if (!copy || PyTuple_SetItem(copies, i, copy)) Py_CLEAR(copies);
  }
  if (copies) return copies;
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL; /* an interrupt */
  PyErr_Clear();
  Py_RETURN_NONE;
}

/* ---- the module ---- */

PyDoc_STRVAR(variants_doc, "variants() -> tuple of the variants that this processor can run, the best last.");

static PyObject *variants_(PyObject *self, PyObject *ignored) {
  (void)self;
  (void)ignored;
#ifdef HAVE_AVX2
  if (has_avx2()) return Py_BuildValue("(ss)", "baseline", "avx2");
#endif
  return Py_BuildValue("(s)", "baseline");
}

PyDoc_STRVAR(use_doc, "use(variant, /): run this variant from now on, in the whole process.");

static PyObject *use_(PyObject *self, PyObject *name) {
  (void)self;
  PyObject *bytes = PyUnicode_AsUTF8String(name);
  char *text = bytes ? PyBytes_AsString(bytes) : NULL;
  const Kernels *found = NULL;
  if (!text) return Py_XDECREF(bytes), NULL;
  if (!strcmp(text, "baseline")) found = &kernels_baseline;
#ifdef HAVE_AVX2
  if (!strcmp(text, "avx2") && has_avx2()) found = &kernels_avx2;
#endif
  Py_DECREF(bytes);
  if (!found) return PyErr_SetString(PyExc_ValueError, "no such variant on this processor"), NULL;
  kernels = found;
  Py_RETURN_NONE;
}

#define METHOD(result, name, arguments) {#name, (PyCFunction)(void (*)(void))name##_, METH_FASTCALL, NULL},

static PyMethodDef methods[] = {
    EACH_KERNEL(METHOD) METHOD(int64_t, count_above, ())
    METHOD(void, copy_tensors, ())
    {"variants", variants_, METH_NOARGS, variants_doc},
    {"use", use_, METH_O, use_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_kernels",
    .m_doc = "The compiled kernels; reference.py defines what they compute.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernels(void) {
  PyObject *text = PyUnicode_FromString("streammetrics"); /* Python randomizes its hash */
  if (!text) return NULL;
  hash_seed = (uint64_t)PyObject_Hash(text);
  Py_DECREF(text);
  return PyModuleDef_Init(&definition);
}
