/* Tensors as their library describes them to C: structures of DLPack 1, and copies of small tensors. */
#ifndef TENSORS_H
#define TENSORS_H

#include <Python.h>
#include <stdint.h>

typedef struct {
  void *data;
  int32_t device, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t offset;
} Tensor;

typedef struct {
  uint32_t major, minor;
  void *previous, *allocate, *export_tensor, *import_tensor;
  int (*view)(void *object, Tensor *tensor); /* may be NULL */
  void *stream;
} Exchange;

enum { TENSOR_CPU = 1, TENSOR_FLOAT = 2 };
#define TENSOR_CODES 0x57 /* integers, unsigned ones, floats (0 to 2), bfloat16 (4), Booleans (6) */
#define MOST_BYTES (1 << 20) /* larger tensors are copied without the GIL, by their library */

/* Return (bytearray, code, bits, shape) of a tensor; NULL without an error if it is not plain. */
static PyObject *copied_tensor(PyObject *object, const Exchange *exchange, PyObject *is_negated) {
  Tensor tensor;
  if (exchange->view(object, &tensor)) return NULL;
  /* Zeros may have no memory. */
  if (!tensor.data || tensor.device != TENSOR_CPU || tensor.lanes != 1 || tensor.bits % 8 || tensor.code > 6 ||
      !(TENSOR_CODES >> tensor.code & 1))
    return NULL;
  int64_t size = tensor.bits / 8;
  for (int32_t axis = tensor.ndim; axis--;) {
    int64_t length = tensor.shape[axis];
    if (length < 1 || length > MOST_BYTES / size) return NULL;
    if (length > 1 && tensor.strides && tensor.strides[axis] * (tensor.bits / 8) != size) return NULL;
    size *= length;
  }
  if (tensor.code == TENSOR_FLOAT) { /* the memory may have the negative values */
    PyObject *negated = PyObject_CallFunctionObjArgs(is_negated, object, NULL);
    Py_XDECREF(negated);
    if (negated != Py_False) return NULL;
  }
  PyObject *shape = PyTuple_New(tensor.ndim);
  PyObject *bytes = PyByteArray_FromStringAndSize((const char *)tensor.data + tensor.offset, (Py_ssize_t)size);
  for (int32_t axis = 0; shape && axis < tensor.ndim; axis++) {
    PyObject *length = PyLong_FromLongLong(tensor.shape[axis]);
    if (!length || PyTuple_SetItem(shape, axis, length)) Py_CLEAR(shape);
  }
  if (!shape || !bytes) return Py_XDECREF(shape), Py_XDECREF(bytes), NULL;
  return Py_BuildValue("NiiN", bytes, (int)tensor.code, (int)tensor.bits, shape);
}

#endif
