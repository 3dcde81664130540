"""Statistics kept by key: slices, panes of time and units are all read from these.

    from streammetrics.statistics.grouped.grouped import Grouped, Groups, grouped_plan

    inner = suite._layout                         # of a metric or a set, without keys
    outer = grouped_plan(inner)                 # the same statistics, each kept by key
    accumulator = Accumulator(outer)
    accumulator.update(Batch({**columns, KEY: keys}, renamed))    # integers or text, one a row

    groups = Groups.of(inner, accumulator.flush())
    groups.keys                                   # sorted; int64, or str
    groups.state(np.array([2]))                   # the State of one key, for `suite._at(state)`
    groups.state(np.array([0, 2, 5]))             # of several together, exactly
    groups.regrouped(places, keys)                # coarser groups: key i becomes keys[places[i]]

    state.statistics[0].only(np.array([1, 2]))    # a Grouped of some of its keys, without others

`Grouped` is a statistic as any other: laws, bytes, restore, fork, merge and nbytes hold. A state
of it is a function of the multiset of rows with their keys, and what it holds for a key is, to the
byte, what the statistics of a fresh metric hold that has seen the rows of this key alone.
"""
