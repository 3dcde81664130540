/* All kernels, once for each variant. */
#include "exact.h"
#include "counts.h"
#include "cells.h"
#include "segments.h"
#include "order.h"
#include "tables.h"
#include "elementary.h"

const Kernels KERNELS = {
    exact_sum,
    exact_powers,
    exact_add,
    exact_add_squares,
    exact_extent,
    exact_carry,
    exact_round,
    exact_merge,
    count,
    add_rows,
    extent,
    bits,
    group_rows,
    inversions,
    factorize,
    table_put,
    table_move,
    cells_ids,
    cells_count,
    cells_merge,
    cells_add,
    cells_area,

    segments_count,
    segments_merge,
    segments_area,

    elementary,
};
