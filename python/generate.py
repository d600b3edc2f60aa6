#!/usr/bin/env python3
"""Writes what binds the functions, links, optimizers and initializers of the public headers for Python.

    python3 python/generate.py FOLDER     bound_<part>.cc there, of each of PARTS

A parameter becomes an argument of its name, a struct of options one argument for each field, with the defaults
of the header; an Array* that gets something beside the result a flag, which makes the result a tuple. What has no
counterpart in Python is left out: --missing lists it, with the reason. The comments are the docstrings.
"""
import argparse
import copy
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from declarations import declarations, fields_of, types_of_fields  # noqa: E402

# What arguments.h converts, beside numbers and texts, and std::optional of each.
KNOWN = {"Variable", "Variables", "Array", "Initializer", "Shape", "AxisList", "Axes", "OptionalAxis", "IntegerList",
         "Scalar", "Dtype", "Device", "xp::PadWidth", "None", "bool", "int", "double", "std::int64_t", "std::string",
         "std::string_view", "std::vector<std::int64_t>", "std::vector<double>", "WeightLists",
         "std::vector<std::string>", "std::function<Variable(const Variable&)>",
         "std::vector<std::pair<std::int64_t, std::int64_t>>", "std::pair<double, double>", "training::Trigger", "Optimizer"}
# What arguments.h gives back.
RESULTS = {"Variable", "Variables", "Array", "std::pair<Variable, Variable>", "std::pair<Variable, Array>",
           "std::pair<Variable, std::vector<Array>>", "NStepOutput", "NStepLSTMOutput", "F::NStepOutput",
           "F::NStepLSTMOutput", "Activations"}
# What may be None, whatever its default.
NONE_TOO = {"None", "Variable", "Array", "Initializer", "Shape", "AxisList", "Axes", "OptionalAxis",
            "std::function<Variable(const Variable&)>", "training::Trigger"}
# Python's word, or Chainer's, where the header's cannot be an argument's name or is another one.
NAMES = {"in": "in_size", "out": "out_size", "lambda": "lam", "in_out": "in_out_size", "pool": "pool_size", "left": "left_size",
         "right": "right_size"}
CHANNELS = {"in": "in_channels", "out": "out_channels"}  # of layers of filters
FILTERS = ("convolution_links.h", "deformable_convolution_links.h", "inception.h", "mlp_convolution.h")
# The methods of links that Python has beside a call.
METHODS = {"set_state", "start_finetuning", "init_hx", "argmax"}
# Where a field of a type that Python has no counterpart of is left out, and stays what it is.
LEFT_OUT = {"extensions"}
# Chainer's order of arguments where it is not that of the fields.
ORDER = {name: order.split() for names, order in {
    "AdaBound AMSBound": "alpha beta1 beta2 final_lr gamma eps eta weight_decay_rate amsgrad",
    "BatchNormalization": "size decay eps dtype use_gamma use_beta initial_gamma initial_beta axis initial_avg_mean "
                          "initial_avg_var",
    "DilatedConvolution2D": "in_channels out_channels ksize stride pad dilate nobias initialW initial_bias",
    "HeNormal": "scale dtype fan_option", "Orthogonal": "scale dtype mode",
}.items() for name in names.split()}
# The last argument before those that are given by name alone: Chainer has others in between.
BY_POSITION_TO = {"softmax_cross_entropy": "normalize"}
# Bound by hand: what takes functions or links of Python's, or has a class of its own there.
BY_HAND = {"functions.get_item", "functions.forget", "functions.scatter_add", "functions.classification_summary",
           "functions.discriminative_margin_based_clustering_loss", "functions.negative_sampling", "links.Classifier", "links.Parameter", "links.ChainList",
           "links.Sequential", "links.Pipeline", "extensions.Evaluator",
           "extensions.Snapshot", "extensions.LogReport", "extensions.ObserveValue", "extensions.Shift"}


# xp::random's types, by their names there.
RANDOM = {"Parameter": "xp::random::Parameter", "Size": "xp::random::Size", "Placement": "Placement"}


class Unknown(Exception):
    """A type that has no counterpart in Python."""


def plain(kind):
    return re.sub(r"^const |[& ]+$", "", kind)


def check_known(kind):
    kind = plain(kind)
    inner = re.fullmatch(r"std::optional<(.*)>", kind)
    if (inner[1] if inner else kind) not in KNOWN:
        raise Unknown(kind)


def none_of(kind):
    return ".none()" if kind in NONE_TOO or kind.startswith("std::optional") else ""


@functools.lru_cache(maxsize=None)
def lines_of(header):
    return (ROOT / header).read_text().splitlines()


def comment_of(function):
    """The comment above a declaration, or behind it."""
    lines, end = lines_of(function.header), function.line - 1
    begin = end
    while begin and lines[begin - 1].lstrip().startswith("///"):
        begin -= 1
    text = " ".join(line.strip().removeprefix("///").strip() for line in lines[begin:end])
    if not text and "// " in lines[end]:
        text = lines[end].split("// ", 1)[1].strip()
    return text


class Call:
    """A call of one overload: its arguments in Python, and the text that makes it."""

    def __init__(self, function, scope, structs, types, names, own_options=None):
        self.arguments, self.texts, self.before, self.flags = [], [], [], []
        self.link = None  # the parameter that is a link
        self.kinds = {}   # {argument: type}
        nones = 0
        for place, p in enumerate(function.parameters):
            name, kind = p.name or f"unnamed{place}", plain(p.type)
            if kind == "None" and not p.name:
                # Stands for a size: named as the parameter of the overload that takes one.
                stands_for = own_options["none"].split()[min(nones, len(own_options["none"].split()) - 1)]
                nones += 1
                self.argument(stands_for, "None", p.default, names)
                continue
            if kind == "Options":
                kind = own_options["class"]
            fields = fields_of(function.name, kind.replace("F::", "functions::"), structs)
            if fields is not None:
                self.options(kind, p, fields, structs, types, names, scope, own_options)
            elif p.type == "Array*":
                self.flag(name, f"&{name}_")
            elif kind == "Link":
                self.link = name
                self.kinds[name] = kind
                self.arguments.append((name, f"Link& {name}", f'nb::arg("{name}")'))
                self.texts.append(name)
            else:
                check_known(kind)
                self.argument(name, kind, p.default, names)

    def argument(self, name, kind, default, names):
        python_name = names.get(name, name)
        self.kinds[python_name] = kind
        value = f" = shown<{kind}>({default})" if default else ""
        if default in ("{}", "none", "std::nullopt"):
            value = f" = shown<{kind}>({kind}({'' if default == '{}' else default}))"
        self.arguments.append((python_name, f"In<{kind}> {name}_given", f'nb::arg("{python_name}"){none_of(kind)}{value}'))
        self.texts.append(f"give({name}_given)")

    def flag(self, name, place):
        self.before.append(f"Array {name}_;")
        self.flags.append(name)
        self.kinds[name] = "Array*"
        self.arguments.append((name, f"bool {name}_given", f'nb::arg("{name}") = false'))
        self.texts.append(f"{name}_given ? &{name}_ : nullptr")

    def options(self, struct, parameter, fields, structs, types, names, scope, own_options):
        variable, default = f"{parameter.name}_options", parameter.default
        taken = {name for name, _, _ in self.arguments}
        known = own_options["struct"] if own_options and struct == own_options["class"] else None
        full = known or self.full_name(struct, scope, structs)
        initial = default if default not in ("", "{}") else "{}"
        self.before.append(f"{struct} {variable} = {initial};")
        for field in fields:
            field_type = types[full, field]
            if field == "named":
                continue
            name = names.get(field, field)
            if name in taken:  # two structs of options: the later one's fields have the parameter's name before them
                name = f"{parameter.name}_{name}"
            self.kinds[name] = plain(field_type)
            given = f"{name}_given"
            if field_type == "Array*":
                self.before.append(f"Array {field}_; if ({given}) {variable}.{field} = &{field}_;")
                self.flags.append(field)
                self.arguments.append((name, f"bool {field}_given", f'nb::arg("{name}") = false'))
                continue
            try:
                check_known(field_type)
            except Unknown:
                if scope not in LEFT_OUT:
                    raise
                continue
            kind_of = f"decltype({struct}::{field})"
            self.arguments.append((name, f"In<{kind_of}> {given}",
                                   f'nb::arg("{name}"){none_of(field_type)} = shown<{kind_of}>('
                                   f'[] {{ {struct} o = {initial}; return o.{field}; }}())'))
            self.before.append(f"{variable}.{field} = give({given});")
        self.texts.append(variable)

    def preamble(self, indent):
        """What stands before the call: its structs of options."""
        return "".join(f"{' ' * indent}{line}\n" for line in self.before)

    def arrange(self, name):
        """Chainer's order."""
        order = ORDER.get(name)
        if order:
            self.arguments.sort(key=lambda a: order.index(a[0]) if a[0] in order else len(order))
        last = BY_POSITION_TO.get(name)
        if last:
            at = [a[0] for a in self.arguments].index(last)
            name_, declared, argument = self.arguments[at]
            self.arguments[at] = (name_, declared, argument + ", nb::kw_only()")

    def without_channels(self):
        """Chainer's shorter form of a layer of filters: (out_channels, ksize), what else is given by name."""
        short = copy.copy(self)
        short.texts = ["none" if text == "give(in_given)" else text for text in self.texts]
        short.arguments = [a for a in self.arguments if a[0] != "in_channels"]
        at = [a[0] for a in short.arguments].index("ksize")
        name, declared, argument = short.arguments[at]
        short.arguments[at] = (name, declared, argument + ", nb::kw_only()")
        return short

    @classmethod
    def of_nothing(cls):
        """The call of a constructor without parameters."""
        call = cls.__new__(cls)
        call.arguments, call.texts, call.before, call.flags, call.link, call.kinds = [], [], [], [], None, {}
        return call

    @staticmethod
    def full_name(kind, scope, structs):
        name = kind.replace("F::", "functions.").replace("::", ".")
        return name if name in structs else f"{scope}.{name}"

    def key(self):
        """What tells overloads apart: names, and their types."""
        return tuple((name, self.kinds[name]) for name, _, _ in self.arguments)

    def wrapped(self, call, result):
        """The body: what is given is converted, the engine called without the interpreter's lock."""
        lines = self.preamble(8)
        if result == "void":
            return lines + f"        unlocked([&] {{ {call}; }});\n"
        lines += f"        auto result_ = unlocked([&] {{ return {call}; }});\n"
        text = "given(result_)"
        for flag in self.flags:
            text = f"with_more({text}, {flag}_given, {flag}_)"
        kind = "nb::object" if self.flags else f"Returned<{result}>"
        return lines + f"        return {kind}({text});\n"


def parameter_list(call, first=()):
    return ", ".join([*first, *(declared for _, declared, _ in call.arguments)])


def argument_list(call):
    return "".join(", " + argument for _, _, argument in call.arguments)


def quoted(text):
    return 'R"doc(' + text.replace("Throws", "Raises") + ')doc"'


class Module:
    """What is bound of one namespace."""

    def __init__(self, header, scope):
        self.scope = scope
        self.functions, self.structs = declarations(header)
        self.types = types_of_fields(header)
        self.missing = []  # (name, reason)

    def named(self, name):
        return f"{self.scope}.{name}"

    def place(self, header, line):
        """A declaration there, for its comment."""
        return next(iter(self.functions.values()))[0]._replace(header=header, line=line)

    def overloads(self, name, functions, names, own_options=None):
        """The calls that Python can make of a name, each signature once."""
        seen, reason = {}, None
        for function in functions:
            try:
                if function.result and function.result not in RESULTS | {"void"}:
                    raise Unknown(function.result)
                call = Call(function, self.scope, self.structs, self.types, names, own_options)
                seen.setdefault(call.key(), (function, call))
            except Unknown as error:
                reason = f"{error} has no counterpart"
        found = list(seen.values())
        if not found:
            self.missing.append((name, reason or "nothing to call"))
        for _, call in found:
            call.arrange(name.rpartition(".")[2])
        return found


def bind_functions(module):
    lines = []
    for full in sorted(module.functions):
        scope, _, name = full.rpartition(".")
        if scope != module.scope or name.endswith("_") or full in BY_HAND or full in module.structs:
            continue
        if not module.functions[full][0].result:
            continue
        for function, call in module.overloads(full, module.functions[full], NAMES):
            body = call.wrapped(f"{module.scope}::{name}({', '.join(call.texts)})", function.result)
            lines.append(f'  m.def(\n      "{name}",\n      []({parameter_list(call)}) {{\n{body}      }}'
                         f"{argument_list(call)},\n      {quoted(comment_of(function))});\n")
    return lines


def classes_of(module, base, folder=None):
    """{class: (header, line, declaration)} of a folder's headers that derive from `base`."""
    found = {}
    for path in sorted((ROOT / "rensa" / (folder or module.scope)).rglob("*.h")):
        header = str(path.relative_to(ROOT))
        for i, line in enumerate(lines_of(header)):
            match = re.match(r"(?:class|struct) (\w+)(?: final)? ?: ?(.*)$", line)
            if i and lines_of(header)[i - 1].startswith("template"):
                continue
            if match and re.search(base, match[2] + (lines_of(header)[i + 1] if "{" not in match[2] else "")):
                found[match[1]] = (header, i + 1, match[2])
    return found


def options_alias(header, name):
    """The struct that a class calls Options."""
    text, depth = (ROOT / header).read_text(), re.compile(rf"\b(class|struct) {name}\b[^;]*?using Options = (\w+);", re.S)
    match = depth.search(text)
    return match[2] if match else None


def link_classes(module):
    """classes_of() the links, those with whose names a macro makes classes too."""
    classes = classes_of(module, r"\b(Chain|StagedNetwork|NStepNetwork|ConvolutionLink|DeconvolutionLink|Fixed\w+|ResNetLink|"
                                 r"VGGLink)<")
    header = "rensa/links/n_step_rnn.h"
    for match in re.finditer(r"^RENSA_\w*N_STEP\w*\((\w+),", (ROOT / header).read_text(), re.M):
        classes[match[1]] = (header, 1, "NStepNetwork<")
    return classes


def none_stands_for(name):
    """The argument that a parameter of type None stands for: a size that is left out."""
    sizes = {"RMSNorm": "size", "LayerNormalization": "size", "BatchNormalization": "size", "Swish": "beta_shape",
             "LocalConvolution2D": "in in_size"}
    return sizes.get(name, "in")


def bind_constructor(name, call):
    """The lines of one form of a link's constructor."""
    parameters = parameter_list(call, (f"links::{name}* self",))
    return (f"    link.def(\n        \"__init__\",\n        []({parameters}) {{\n{call.preamble(10)}"
            f"          new (self) links::{name}({', '.join(call.texts)});\n        }}{argument_list(call)},\n"
            f"        nb::call_policy<Remembers<\"{' '.join(argument[0] for argument in call.arguments)}\">>());\n")


def bind_link(module, name, header, line, derived):
    """The lines of one link: its constructors, its call as `forward`, and METHODS."""
    full = module.named(name)
    family = re.match(r"(?:public )?(Fixed\w+|ConvolutionLink|DeconvolutionLink|NStepNetwork|ResNetLink|VGGLink)?", derived)[1]
    base = family if family and family.startswith(("Fixed", "NStep")) else None
    names = {**NAMES, **(CHANNELS if header.endswith(FILTERS) else {})}
    alias = options_alias(header, base or name)
    own = {"class": alias, "struct": f"links.{alias}" if alias else None, "none": none_stands_for(name)}
    constructors = [f._replace(name=full, result="") for f in module.functions.get(module.named(base) if base else full, [])]
    made = module.overloads(full, constructors, names, own)
    if not made:
        return []
    comment = comment_of(module.place(header, line)) if full in module.functions else ""
    lines = [f'  nb::class_<links::{name}, Link> link(m, "{name}", {quoted(comment)});\n']
    shapes, nones = ({name for _, call in made for name in call.kinds if call.kinds[name] == kind}
                     for kind in ("Shape", "None"))
    if shapes & nones:  # the first form that takes what is given is called, and None is a shape too: one without axes
        made = sorted(made, key=lambda form: "None" not in form[1].kinds.values())
    for function, call in made:
        lines.append(bind_constructor(name, call))
        if call.kinds.get("in_channels") == "None" and " = " not in dict((a[0], a[2]) for a in call.arguments).get("ksize", " = "):
            lines.append(bind_constructor(name, call.without_channels()))
    for method in ["call_of", *sorted(METHODS)]:
        lines += bind_method(module, name, method, names, methods_of(module, name, method, family, derived))
    return lines


def methods_of(module, name, method, family, derived):
    """The overloads of a link's method, of its own or of the class above."""
    above = {"FixedConvolution": "ConvolutionLink", "FixedDeconvolution": "DeconvolutionLink"}.get(family, family)
    staged = "StagedNetwork" if family in ("ResNetLink", "VGGLink") or "StagedNetwork" in derived else None
    owners = [module.named(owner) for owner in (name, above, staged) if owner]
    functions = next((module.functions[f"{o}.{method}"] for o in owners if f"{o}.{method}" in module.functions), [])
    if family == "NStepNetwork" and method == "call_of":
        functions = [f for f in functions if ("LSTM" in f.result) == ("LSTM" in name)]
    return functions


def bind_method(module, name, method, names, functions):
    python_name = "forward" if method == "call_of" else method
    lines = []
    for function, call in module.overloads(f"{module.named(name)}.{python_name}", functions, names) if functions else []:
        called = "self" if method == "call_of" else f"self.{method}"
        body = call.wrapped(f"{called}({', '.join(call.texts)})", function.result)
        lines.append(f'    link.def(\n        "{python_name}",\n        '
                     f"[]({parameter_list(call, (f'links::{name}& self',))}) {{\n{body}        }}"
                     f"{argument_list(call)},\n        {quoted(comment_of(function))});\n")
    return lines


def bind_links(module):
    lines = []
    for name, (header, line, derived) in sorted(link_classes(module).items()):
        if module.named(name) not in BY_HAND:
            lines.append("".join(bind_link(module, name, header, line, derived)))
    return lines


def bind_optimizers(module):
    lines = []
    for name, (header, line, _) in sorted(classes_of(module, r"public (Optimizer|Adam)\b").items()):
        full = module.named(name)
        if name == "ElementwiseOptimizer":
            continue
        functions = [f for f in module.functions.get(full, []) if any("Options" in p.type for p in f.parameters)]
        made = module.overloads(full, functions, NAMES)
        for function, call in made:
            comment = comment_of(module.place(header, line))
            lines.append(f'  nb::class_<optimizers::{name}, Optimizer>(m, "{name}", {quoted(comment)})\n      .def(\n          "__init__",\n'
                         f"          []({parameter_list(call, (f'optimizers::{name}* self',))}) {{\n{call.preamble(10)}"
                         f"            new (self) optimizers::{name}({', '.join(call.texts)});\n          }}{argument_list(call)});\n")
    return lines


def bind_initializers(module):
    lines = []
    for full, fields in sorted(module.structs.items()):
        scope, _, name = full.rpartition(".")
        if scope != module.scope:
            continue
        fields = fields or module.structs[module.named("Constant")]
        if name in ("Zero", "One", "NaN"):
            fields = ["dtype"]
        if name in ORDER:
            fields = ORDER[name]
        arguments = ", ".join(f"In<decltype(initializers::{name}::{f})> {f}_given" for f in fields)
        named = "".join(f', nb::arg("{f}").none() = shown<decltype(initializers::{name}::{f})>(initializers::{name}{{}}.{f})'
                        for f in fields)
        if name == "Constant":
            named = named.replace(" = shown<decltype(initializers::Constant::value)>(initializers::Constant{}.value)", "")
            named = named.replace('"value"', '"fill_value"')
        sets = "".join(f" made.{f} = give({f}_given);" for f in fields)
        lines.append(f'  m.def("{name}", []({arguments}) {{ initializers::{name} made;{sets} return Initializer(made); }}{named});\n')
    return lines


def bind_extensions(module):
    lines = []
    found = classes_of(module, r"public (training::Extension|Shift)\b", "training/extensions")
    for name, (header, line, _) in sorted(found.items()):
        full = module.named(name)
        if full in BY_HAND:
            continue
        functions = module.functions.get(full, [])
        made = module.overloads(full, functions, NAMES) if functions else [(None, Call.of_nothing())]
        for function, call in made:
            comment = comment_of(module.place(header, line))
            target = f'        made.attr("_target") = nb::find({call.link});\n' if call.link else ""
            lines.append(f'  m.def(\n      "{name}",\n      []({parameter_list(call)}) {{\n{call.preamble(8)}'
                         f"        nb::object made = nb::cast(any_extension(extensions::{name}({', '.join(call.texts)})));\n"
                         f"{target}        return made;\n      }}{argument_list(call)},\n      {quoted(comment)});\n")
    return lines


def bind_triggers(module):
    lines = []
    for name in ("EarlyStoppingTrigger", "ManualScheduleTrigger", "MaxValueTrigger", "MinValueTrigger", "OnceTrigger",
                 "TimeTrigger"):
        for function, call in module.overloads(module.named(name), module.functions[module.named(name)], NAMES):
            lines.append(f'  m.def(\n      "{name}",\n      []({parameter_list(call)}) {{\n{call.preamble(8)}'
                         f"        return training::Trigger(triggers::{name}({', '.join(call.texts)}));\n"
                         f"      }}{argument_list(call)});\n")
    return lines


def bind_random(module):
    """The distributions and orders of xp::random. Floating numbers are NumPy's float64 unless told otherwise."""
    lines = []
    for full, functions in sorted(module.functions.items()):
        scope, _, name = full.rpartition(".")
        for function in functions if scope == module.scope else []:
            kinds = [plain(p.type) for p in function.parameters]
            known = all(k in {"Dtype", "Array", "std::int64_t", "bool", "int", *RANDOM} for k in kinds)
            if not known or function.result not in ("Array", "void") or name in ("seed", "take", "rand", "randn"):
                continue
            arguments, texts, named = [], [], []
            for p, kind in zip(function.parameters, kinds):
                of = RANDOM.get(kind, kind)
                default = "" if not p.default else f" = shown<{of}>({of}{p.default if p.default == '{}' else f'({p.default})'})"
                if kind == "Dtype":
                    natural = "float64" if p.default == "float32" else p.default
                    arguments.append(f"std::optional<In<Dtype>> {p.name}")
                    texts.append(f"given_dtype({p.name}, {natural})")
                    named.append(f'nb::arg("{p.name}").none() = nb::none()')
                else:
                    arguments.append(f"In<{of}> {p.name}")
                    texts.append(f"give({p.name})")
                    named.append(f'nb::arg("{p.name}").none(){default}' if kind in ("Size", "Placement", "Array")
                                 else f'nb::arg("{p.name}"){default}')
            returned = "return " if function.result == "Array" else ""
            lines.append(f'  m.def(\n      "{name}",\n      []({", ".join(arguments)}) {{\n        {returned}unlocked([&] {{ '
                         f'return xp::random::{name}({", ".join(texts)}); }});\n      }}'
                         f'{"".join(", " + n for n in named)},\n      {quoted(comment_of(function))});\n')
    return lines


HEAD = """// Written by python/generate.py from {header}; do not edit.
#include "bind.h"
#include "link.h"
#include "training.h"

namespace rensa {{

using namespace rensa::python;  // NOLINT
{using}
{pieces}void python::bind_{name}(nb::module_& m) {{
{calls}}}

}}  // namespace rensa
"""

PARTS = {  # file: (header, namespace, what writes the body, names that the headers leave out)
    "functions": ("rensa/functions/functions.h", "functions", bind_functions, "using namespace functions;  // NOLINT"),
    "links": ("rensa/rensa.h", "links", bind_links, "using namespace links;  // NOLINT"),
    "optimizers": ("rensa/rensa.h", "optimizers", bind_optimizers, "using namespace optimizers;  // NOLINT"),
    "initializers": ("rensa/rensa.h", "initializers", bind_initializers, ""),
    "extensions": ("rensa/rensa.h", "extensions", bind_extensions, "using namespace extensions;  // NOLINT"),
    "random": ("rensa/array.h", "random", bind_random, ""),
    "triggers": ("rensa/rensa.h", "triggers", bind_triggers, "using namespace triggers;  // NOLINT"),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    for name, (header, scope, bind, using) in PARTS.items():
        module = Module(header, scope)
        pieces = [piece for piece in bind(module) if piece]
        if options.missing:
            print("".join(f"{left}: {reason}\n" for left, reason in module.missing), end="")
        if options.folder:
            # A function each: of one long function the compiler takes half as long again.
            text = HEAD.format(
                header=header, name=name, using=using,
                pieces="".join(f"static void bind_{i}(nb::module_& m) {{\n{piece}}}\n" for i, piece in enumerate(pieces)),
                calls="".join(f"  bind_{i}(m);\n" for i in range(len(pieces))))
            path = pathlib.Path(options.folder) / f"bound_{name}.cc"
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text() != text:
                path.write_text(text)


if __name__ == "__main__":
    main()
