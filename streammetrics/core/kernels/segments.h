/* Cells of many histograms, stored one after the other: counted from rows ordered by group, and merged group
 * by group.
 *
 * Segment g of an array is starts[g] to starts[g + 1]. Each result is the one that cells.h computes for the
 * segment alone. Scratch memory is allocated once per call.
 */

#define TABLE_ROWS 64 /* minimum number of rows for a hash table */

typedef struct {
  int64_t id;
  uint64_t counts; /* as in Dense; 0 if the slot is free */
  double score;
} Slot;

typedef struct {
  int64_t most, guess, slots; /* `guess`: the level of the last segment above level 0 */
  uint64_t *keys, *spare;
  Slot *table;
  Pair *pairs;
} Scratch;

/* The same arrays, starting at cell `at`. */
static CellsOut out_from(const CellsOut *out, int64_t at) {
  CellsOut rest = *out;
  rest.room -= at;
  rest.scores += at;
  if (rest.ids) rest.ids += at;
  rest.mass.rows -= at;
  rest.mass.counts = (int32_t *)rest.mass.counts + at * rest.mass.classes;
  return rest;
}

static CellsIn in_from(const CellsIn *cells, int64_t at, int64_t size) {
  CellsIn part = *cells;
  part.size = size;
  part.scores += at;
  if (part.ids) part.ids += at;
  part.mass.counts = (int32_t *)part.mass.counts + at * part.mass.classes;
  return part;
}

/* Write the cells of rows by sorting them; NOT_DENSE if scores have both signs. */
static int64_t segment_sorted(CellsOut *out, const double *scores, const uint8_t *codes, int64_t n, Scratch *s) {
  int64_t size = 0, distinct = 0, below = 0, lengths[LEVELS + 1] = {0}, last = 0, level = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t order = ordinal(scores[i]);
    below += order < 0;
    s->keys[i] = (uint64_t)order << 1 | (codes ? codes[i] & 1 : 0);
  }
  if (below && below < n) return NOT_DENSE;
  const uint64_t sign = below ? UINT64_C(1) << 63 : 0;
  const uint64_t *keys = sort_keys(s->keys, s->spare, n);
  for (int64_t i = 0; i < n; i++) distinct += !i || keys[i] >> 1 != keys[i - 1] >> 1;
  if (distinct > s->most) {
    for (int64_t i = 0; i < n; i++) {
      int64_t id = cell_id(from_ordinal((int64_t)(keys[i] >> 1 | sign)), 1);
      if (i && keys[i] >> 1 != keys[i - 1] >> 1) lengths[bit_length((uint64_t)(id ^ last))]++;
      last = id;
    }
    level = level_of(lengths, 1, s->most);
  }
  uint64_t known = 0, counts = 0;
  for (int64_t i = 0; i < n; i++) {
    double score = from_ordinal((int64_t)(keys[i] >> 1 | sign));
    int64_t id = level ? cell_id(score, (int)level) : (int64_t)(keys[i] >> 1), fresh = !i || id != last;
    size += fresh;
    if (size > out->room) return OUT_OF_RANGE;
    known = one_score(known, bits_of(score), fresh);
    counts = (fresh ? 0 : counts) + (UINT64_C(1) << 32 * (keys[i] & 1));
    memcpy(&out->scores[size - 1], &known, sizeof known);
    if (level) out->ids[size - 1] = id;
    write_counts(out, size - 1, counts);
    last = id;
  }
  out->level = level;
  out->size = size;
  return OK;
}

/* Write the cells of rows with a hash table at a level not above the final one; NOT_DENSE if there are too
 * many cells at this level. */
static int64_t segment_hashed(CellsOut *out, const double *scores, const uint8_t *codes, int64_t n, int64_t level,
                              Scratch *s) {
  int64_t ids[ORDER_BLOCK], lengths[LEVELS + 1] = {0}, size = 0, used = 0;
  const int64_t mask = s->slots - 1;
  for (int64_t start = 0, rows; start < n && used <= s->slots / 2; start += rows) {
    rows = n - start < ORDER_BLOCK ? n - start : ORDER_BLOCK;
    cells_ids(ids, scores + start, rows, level);
    for (int64_t i = 0; i < rows; i++) {
      uint64_t code = codes ? codes[start + i] & 1 : 0;
      int64_t at = ids[i] & mask; /* neighbouring cells use neighbouring slots */
      double score = scores[start + i] + 0.0;
      while (s->table[at].counts && s->table[at].id != ids[i]) at = (at + 1) & mask;
      Slot *slot = &s->table[at];
      if (!slot->counts) {
        s->pairs[used++] = (Pair){SIGNED(ids[i]), at};
        *slot = (Slot){ids[i], 0, score};
      } else if (slot->score != score)
        slot->counts |= SEVERAL;
      slot->counts += UINT64_C(1) << (code << 5);
    }
  }
  int64_t to = level, before = 0;
  const Pair *pairs = sort_pairs(s->pairs, s->pairs + s->slots, used);
  for (int64_t k = 1; k < used; k++) lengths[bit_length(pairs[k].key ^ pairs[k - 1].key)]++;
  if (used > s->most) to = level_of(lengths, level, s->most);
  const int many = used > s->slots / 2, shift = (int)(to - level);
  uint64_t known = 0, sum = 0;
  for (int64_t k = 0; k < used; k++) {
    Slot *slot = &s->table[pairs[k].row];
    const uint64_t more = slot->counts;
    int64_t id = slot->id >> shift, fresh = !k || id != before;
    slot->counts = 0;
    size += fresh;
    if (many || size > out->room) continue;
    known = one_score(known, more & SEVERAL ? MIXED : bits_of(slot->score), fresh);
    sum = (fresh ? 0 : sum) + (more & ~SEVERAL);
    out->ids[size - 1] = before = id;
    memcpy(&out->scores[size - 1], &known, sizeof known);
    write_counts(out, size - 1, sum);
  }
  out->level = to;
  out->size = size;
  return many ? NOT_DENSE : size > out->room ? OUT_OF_RANGE : OK;
}

/* Write the cells of one segment's rows at the lowest level that fits, starting at out->level. */
static int64_t segment_count(CellsOut *out, const double *scores, const uint8_t *codes, int64_t n, Scratch *s) {
  const int64_t base = out->level;
  int64_t done = NOT_DENSE;
  if (out->ids && n > (base ? TABLE_ROWS : s->most)) {
    /* Segments are usually alike: try levels just below that of the previous one. */
    for (int64_t level = s->guess - 1; level > base && done == NOT_DENSE; level -= 3) {
      done = segment_hashed(out, scores, codes, n, level, s);
      if (done == NOT_DENSE) break;
      if (done == OK && out->level == level) done = NOT_DENSE; /* a lower one may suffice */
    }
    if (done == NOT_DENSE && base) done = segment_hashed(out, scores, codes, n, base, s);
  }
  if (done == NOT_DENSE && !base && n <= 2 * s->most) done = segment_sorted(out, scores, codes, n, s);
  if (done == NOT_DENSE) {
    out->level = base;
    const Column column = {codes, 2, KIND_U8};
    done = cells_count(out, scores, codes ? &column : NULL, NULL, NULL, n, s->most, NULL, 1);
  }
  if (done == OK && out->level) s->guess = out->level;
  return done;
}

/* Write the cells of rows (n) of each segment at the lowest level, starting at levels[g], with at most `most`
 * cells. Writes the level and the number of cells of each; returns the total number of cells. */
static int64_t segments_count(CellsOut *out, const int64_t *starts, int64_t groups, const double *scores,
                              const uint8_t *codes, int64_t n, int64_t most, int64_t *levels, int64_t *sizes) {
  Scratch s = {.most = most, .slots = 4 * ORDER_BLOCK};
  const int64_t longest = n < 2 * most ? n : 2 * most;
  int64_t total = 0, from = 0, done = OK;
  while (s.slots < 4 * most && s.slots < 2 * n) s.slots *= 2;
  s.keys = new_array(longest, sizeof *s.keys);
  s.spare = new_array(longest, sizeof *s.spare);
  s.table = out->ids ? calloc((size_t)s.slots, sizeof *s.table) : NULL;
  s.pairs = out->ids ? new_array(2 * s.slots, sizeof *s.pairs) : NULL;
  if (!s.keys || !s.spare || (out->ids && (!s.table || !s.pairs))) done = NO_MEMORY;
  for (int64_t g = 0; g < groups && done == OK; g++) {
    int64_t to = starts[g + 1], level = levels[g];
    if (!g) from = starts[0];
    CellsOut part = out_from(out, total);
    if (from < 0 || to < from || to > n || level < 0 || level > MAX_LEVEL || (!out->ids && (level || to - from > most)))
      done = OUT_OF_RANGE;
    else if (to > from) {
      part.level = level;
      done = segment_count(&part, scores + from, codes ? codes + from : NULL, to - from, &s);
    }
    sizes[g] = to > from ? part.size : 0;
    levels[g] = to > from ? part.level : level;
    total += sizes[g];
    from = to;
  }
  free(s.keys);
  free(s.spare);
  free(s.table);
  free(s.pairs);
  return done == OK ? total : done;
}

/* Merge two sets of segments, group by group, in the same way. */
static int64_t segments_merge(CellsOut *out, const Segments sides[2], int64_t most, int64_t *levels, int64_t *sizes) {
  int64_t total = 0, done = OK, froms[2], *ids[2];
  for (int k = 0; k < 2; k++)
    if (!(ids[k] = new_array(sides[k].n, sizeof *ids[k]))) done = NO_MEMORY;
  for (int k = 0; k < 2; k++) froms[k] = sides[k].groups ? sides[k].starts[0] : 0;
  for (int64_t g = 0; g < sides[0].groups && done == OK; g++) {
    CellsOut part = out_from(out, total);
    CellsIn cells[2];
    int64_t each[2];
    for (int k = 0; k < 2; k++) {
      int64_t to = sides[k].starts[g + 1];
      each[k] = sides[k].levels[g];
      if (froms[k] < 0 || to < froms[k] || to > sides[k].n || each[k] < 0 || each[k] > MAX_LEVEL ||
          (each[k] && (!out->ids || !sides[k].cells.ids)))
        done = OUT_OF_RANGE;
      else
        cells[k] = in_from(&sides[k].cells, froms[k], to - froms[k]);
      froms[k] = to;
    }
    if (done != OK) break;
    part.level = each[0] > each[1] ? each[0] : each[1];
    for (int k = 0; k < 2; k++) {
      if (each[k] == part.level) continue;
      if (each[k])
        for (int64_t i = 0; i < cells[k].size; i++) ids[k][i] = shifted(cells[k].ids[i], (int)(part.level - each[k]));
      else
        cells_ids(ids[k], cells[k].scores, cells[k].size, part.level);
      cells[k].ids = ids[k];
    }
    if (!out->ids && cells[0].size + cells[1].size > most)
      done = OUT_OF_RANGE;
    else
      done = cells_merge(&part, cells, most);
    sizes[g] = part.size;
    levels[g] = part.level;
    total += part.size;
  }
  free(ids[0]);
  free(ids[1]);
  return done == OK ? total : done;
}

/* Write what cells_area returns for each segment; returns the number of groups, or the first out of range. */
static int64_t segments_area(int64_t *areas, int64_t *slacks, const int64_t *starts, int64_t groups,
                             const CellsIn *cells) {
  int64_t from = groups ? starts[0] : 0;
  for (int64_t g = 0; g < groups; g++) {
    int64_t to = starts[g + 1];
    if (from < 0 || to < from || to > cells->size) return g;
    CellsIn part = in_from(cells, from, to - from);
    areas[g] = cells_area(&part, &slacks[g]);
    from = to;
  }
  return groups;
}
