"""PyTorch: update metrics off the critical path, reduce them over the ranks of a process group.

`Offload` is that of `streammetrics.engines.offload`, which needs no PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from streammetrics.core.errors import IncompatibleMetricsError, needs
from streammetrics.core.loading import from_bytes
from streammetrics.engines.offload import Offload

with needs("torch"):
    import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.utils.data import DistributedSampler

    from streammetrics.core.mergeable import Mergeable

__all__ = ["Offload", "all_reduce", "n_repeated"]

M = TypeVar("M", bound="Mergeable")


def all_reduce(metric: M, group: dist.ProcessGroup | None = None) -> M:
    """Merge the metrics of all ranks into the metric of each rank, in place, and return it.

    A collective: every rank of the group calls it with its own metric or set, which has seen any
    number of rows, or none. States travel, rows do not, and all ranks end with the same bytes.
    Either all ranks succeed, or all raise the same error and no metric has changed.

    Call it once, at the end of the epoch, and `reset` the metric for the next: reduced twice, each
    row would count once per rank. For a value in between, reduce a copy:
    ``all_reduce(metric.copy()).compute()``.

    Args:
        metric: A metric, or a set as a whole rather than a view into it.
        group: The process group; by default that of all ranks. On a rank that is not in it,
            PyTorch warns and nothing happens, as with its own collectives.

    Memory and cost: each rank receives and merges the states of all. With NCCL they pass through
    the GPU that `torch.cuda.set_device` has chosen; large states are better reduced on the CPU,
    over ``torch.distributed.new_group(backend="gloo")``.

    Raises:
        IncompatibleMetricsError: Configurations differ, or the state of a rank cannot be made or
            read. The message names the rank by its place in the group.
        ValueError: The process group is not initialised.

    Example::

        for inputs, labels in loader:
            metric.update(labels, model(inputs))
        if all_reduce(metric).compute() > best:  # the same value on every rank
            ...
        metric.reset()
    """
    # To merge nothing changes nothing, but a view into a set refuses it here and not at the end.
    states: list[bytes] = _on_all_ranks(lambda: metric.merge().to_bytes(), group)
    if not states:  # this rank is not in the group
        return metric
    merged: list[M] = []
    _on_all_ranks(lambda: merged.append(_merged(metric, states)), group)
    return metric.reset().merge(*merged)


def n_repeated(sampler: DistributedSampler[object]) -> int:
    """Return how many rows at the end of this rank's share are repeats: 0 or 1.

    Where the ranks do not divide the dataset, `DistributedSampler` gives all of them equally many
    rows and repeats some to do so. A repeat is the last row of its rank, and would be
    counted twice; leave it out, or give it the weight 0. It is found for any dataset, also one
    smaller than the number of ranks, shuffled or not; with ``drop_last=True`` there is none, but
    rows are missing.

    There is nothing to leave out with ``sampler=range(rank, len(dataset), world_size)``, which
    splits the dataset without repeats; ranks then differ by up to one row, which `all_reduce`
    allows. Models that synchronise in the forward pass need equally many rows.

    Args:
        sampler: The sampler of a `DataLoader` that keeps all rows and their order, its defaults.

    Example::

        left = len(sampler) - n_repeated(sampler)
        for inputs, labels in loader:
            scores, keep = model(inputs), min(left, len(labels))
            metric.update(labels[:keep], scores[:keep])
            left -= keep
        all_reduce(metric)
    """
    distinct = range(sampler.rank, len(sampler.dataset), sampler.num_replicas)
    return max(0, len(sampler) - len(distinct))


def _merged(metric: M, states: list[bytes]) -> M:
    merged = metric.copy().reset()
    for rank, state in enumerate(states):
        what: Any = from_bytes(state)
        try:
            merged.merge(what)
        except IncompatibleMetricsError as error:
            raise IncompatibleMetricsError(f"the state of rank {rank}: {error}") from error
    return merged


def _on_all_ranks(step: Callable[[], object], group: dist.ProcessGroup | None) -> list[Any]:
    """Take a step and return what it gave on each rank; where it fails on one, raise on all.

    A rank that raised before the collective would leave the others waiting in it.
    """
    outcomes: list[Any] = [None] * dist.get_world_size(group)
    result, failure = None, None
    try:
        result = step()
    except Exception as error:  # of whatever kind, the other ranks must hear of it
        failure = error
    told = None if failure is None else f"{type(failure).__name__}: {failure}"
    dist.all_gather_object(outcomes, (result, told), group=group)
    for rank, (_, reason) in enumerate(outcomes):
        if reason is not None:
            raise IncompatibleMetricsError(
                f"no metric was changed, as rank {rank} failed with {reason}"
            ) from failure
    return [result for result, _ in outcomes]
