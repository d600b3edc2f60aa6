"""From examples to arrays on a device."""

from rensa import _engine, xp


def to_device(device, array):
    """The array on a device: a Device or its name, the number of a GPU, the CPU below 0; None leaves it where it is."""
    if device is None:
        return array
    if hasattr(device, "__index__"):
        device = _engine.networks.gpu_of(int(device)) if device >= 0 else "cpu"
    return xp.asarray(array, device=device)


def concat_examples(batch, device=None, padding=None):
    """Arrays of a list of examples, each stacked along a new first axis: a tuple of columns, or the one. With `padding`
    shorter examples are filled up with it to the largest of the batch."""

    import numpy

    def stacked(column, padding):
        arrays = [numpy.asarray(value.get() if isinstance(value, xp.ndarray) else value) for value in column]
        if padding is not None:
            shape = numpy.max([array.shape for array in arrays], axis=0)
            filled = numpy.full((len(arrays), *map(int, shape)), padding, arrays[0].dtype)
            for i, array in enumerate(arrays):
                filled[(i, *(slice(extent) for extent in array.shape))] = array
            arrays = filled
        return to_device(device, numpy.stack(arrays))

    if isinstance(batch[0], tuple):
        columns = list(zip(*batch))
        paddings = padding if isinstance(padding, tuple) else [padding] * len(columns)
        return tuple(stacked(column, fill) for column, fill in zip(columns, paddings))
    if isinstance(batch[0], dict):
        paddings = padding if isinstance(padding, dict) else dict.fromkeys(batch[0], padding)
        return {key: stacked([example[key] for example in batch], paddings[key]) for key in batch[0]}
    return stacked(batch, padding)
