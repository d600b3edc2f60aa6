"""Pretty printers for gdb: arrays with their elements (on the CPU), shapes, dtypes, devices and variables.

In gdb, or in ~/.gdbinit:

    source <prefix>/share/rensa/gdb/rensa_printers.py

`set print elements N` says from how many elements on an array is cut short.
"""
import struct

import gdb
import gdb.printing

DTYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
          "complex64 complex128").split()
# As struct knows them; bfloat16 is read as the upper half of a float.
CODES = dict(zip(DTYPES, ("?", "b", "h", "i", "q", "B", "H", "I", "Q", "e", "H", "f", "d", "2f", "2d")))


def dtype_name(value):
    number = int(value)
    return DTYPES[number] if 0 <= number < len(DTYPES) else f"dtype {number}"


def device_name(value):
    return "cpu" if int(value["type"]) == 0 else f"cuda:{int(value['index'])}"


def shape_list(value):
    return [int(value["values_"][i]) for i in range(int(value["ndim_"]))]


def shape_text(extents):
    return f"({extents[0]},)" if len(extents) == 1 else f"({', '.join(map(str, extents))})"


def number_text(data, dtype):
    values = struct.unpack("=" + CODES[dtype], data)
    if dtype == "bfloat16":
        values = struct.unpack("=f", struct.pack("=I", values[0] << 16))
    if dtype.startswith("complex"):
        return f"{values[0]:g}{values[1]:+g}j"
    return f"{values[0]:.6g}" if isinstance(values[0], float) else str(values[0])


def limit():
    """How many elements are shown."""
    number = gdb.parameter("print elements")
    return number if number else 10**6


class Elements:
    """The elements of an array in host memory, in brackets."""

    def __init__(self, view):
        self.dtype = dtype_name(view["dtype"])
        self.size = struct.calcsize("=" + CODES[self.dtype])
        self.shape, self.strides = shape_list(view["shape"]), shape_list(view["strides"])
        self.memory = gdb.selected_inferior()
        self.left = limit()

    def write(self, address, axis=0):
        if axis == len(self.shape):
            self.left -= 1
            return number_text(self.memory.read_memory(address, self.size).tobytes(), self.dtype)
        parts = []
        for i in range(self.shape[axis]):
            if self.left <= 0:
                parts.append("...")
                break
            parts.append(self.write(address + i * self.strides[axis], axis + 1))
        return f"[{', '.join(parts)}]"


def array_text(value):
    if int(value["storage_"]["storage_"]) == 0:
        return "array(undefined)"
    view = value["view_"]
    shape, device = shape_text(shape_list(view["shape"])), device_name(view["device"])
    looks = f"shape={shape}, dtype={dtype_name(view['dtype'])}, device='{device}')"
    if device != "cpu":
        return f"array({looks}"
    try:
        return f"array({Elements(view).write(int(view['data']))}, {looks}"
    except gdb.MemoryError:
        return f"array(<memory that cannot be read>, {looks}"


class TextPrinter:
    """A value that prints as one text."""

    def __init__(self, text):
        self.text = text

    def to_string(self):
        return self.text


def printer(write):
    return lambda value: TextPrinter(write(value))


def selection_text(value):
    if int(value["selector_"]) != 0:
        return f"selection of {array_text(value['array_'])}"
    return array_text(value["array_"])


def variable_text(value):
    body = value["body_"]["_M_ptr"]
    if int(body) == 0:
        return "variable(undefined)"
    name = body["name"]["_M_dataplus"]["_M_p"].string()
    return f"variable({name + ': ' if name else ''}{array_text(body['array'])})"


def make_printers():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("rensa")
    for name, pattern, write in [
            ("Array", "^rensa::(Array|View)$", array_text),
            ("Selection", "^rensa::Array::Selection$", selection_text),
            ("Shape", "^rensa::Shape$", lambda value: shape_text(shape_list(value))),
            ("Dtype", "^rensa::Dtype$", dtype_name),
            ("Device", "^rensa::Device$", device_name),
            ("Variable", "^rensa::(Variable|Parameter)$", variable_text)]:
        printers.add_printer(name, pattern, printer(write))
    return printers


gdb.printing.register_pretty_printer(gdb.current_objfile(), make_printers(), replace=True)
