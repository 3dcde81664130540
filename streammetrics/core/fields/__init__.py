"""What a state is made of: each field is of a type that is itself a commutative monoid.

A statistic declares its fields as class attributes without an annotation, and with that its empty
state, `merge`, bytes, reading with every check, size, `check`, `scaled` and `minus` are written.
An attribute of a field holds an immutable value; `update` rebinds it, mostly by ``+=``::

    class LogSum(Statistic):
        '''Exact sums of log(x) and of the weights.'''

        logs = Sum()
        rows = Weight()

        @property
        def schema(self):
            return Schema((Numbers("values", above=0.0),))

        def update(self, values, *, weight):
            self.logs += ExactSum.of(np.log(values), weight)
            self.rows += WeightedCount.of_rows(len(values), weight)

        def check_fields(self):
            if self.logs.digits.any() and not self.rows:
                raise StateFormatError("there are logarithms of no rows")

`check_fields` says how fields must fit each other, where they do: it is called for every state that
is read. Which fields there are, and where:

- `sums`: `Sum`, `NamedSums`, `SquareWeighted`, `SquaredWeight`; `Width`, `Extreme`;
- `weights`: `Weight`, how much there is of something: whole rows are counted while none has a
  weight; `Counts`, of rows that cannot have any; `WideWeights`, of as many things as rows turn out
  to have. What these hold is a `WeightedCount`;
- `tables`: `PairTable`; `keyed`: `LabelTable`, of columns that are monoids themselves, `KeyCounts`,
  `Largest` and `HashSketch`;
- `histograms`: `Histograms`; `WeighedHistograms`, with the squares of weights.

Another one is a subclass of `StateField` in `streammetrics.core.field`: its values need not be of
one array, nor be held in the form in which they are written.
"""
