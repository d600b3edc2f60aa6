// Index expressions and the routines that index against NumPy's answers (numpy_indexing.txt).
#include "rensa/array/indexing_routines.h"

#include "tests/array/replay.h"

namespace rensa {
namespace {

using testing::Call;
using Arrays = std::vector<Array>;

// "s1::-2" without its s.
Slice parse_slice(const std::string& text) {
  std::size_t first = text.find(':'), second = text.find(':', first + 1);
  std::string start = text.substr(0, first), stop = text.substr(first + 1, second - first - 1);
  std::int64_t step = second + 1 < text.size() ? std::stoll(text.substr(second + 1)) : 1;
  if (start.empty() && stop.empty()) return Slice(none, none, step);
  if (start.empty()) return Slice(none, std::stoll(stop), step);
  if (stop.empty()) return Slice(std::stoll(start), none, step);
  return Slice(std::stoll(start), std::stoll(stop), step);
}

// "i3;s1:5:-2;e;n;a0" as make_indexing_cases.py writes it.
std::vector<Index> parse_index(const Call& call) {
  std::vector<Index> index;
  std::istringstream stream(call.text("index"));
  for (std::string entry; std::getline(stream, entry, ';');) {
    std::string rest = entry.substr(1);
    switch (entry[0]) {
      case 'i': index.push_back(std::stoll(rest)); break;
      case 's': index.push_back(parse_slice(rest)); break;
      case 'e': index.push_back(ellipsis); break;
      case 'n': index.push_back(newaxis); break;
      default: index.push_back(call.in[std::stoul(rest)]);
    }
  }
  return index;
}

// The array that expressions are about, in one of three layouts.
Array base_of(const Call& call) {
  Shape shape = call.shape("shape");
  Array a = (xp::arange(shape.total(), call.device) % 127).astype(int8).reshape(shape);
  return testing::relaid(a, static_cast<int>(call.text("index").size() % 3));
}

// Waits, so that an index out of range is told here.
Arrays waited(const Array& a) {
  a.get();
  return {a};
}

// Writes through `selection`, or at its index, and gives what became of `a`.
template <class F> Arrays written(const Array& a, F write) {
  write();
  return waited(a);
}

IndexMode mode_of(const Call& call) {
  const std::string& mode = call.text("mode");
  return mode == "wrap" ? IndexMode::wrap : mode == "clip" ? IndexMode::clip : IndexMode::raise;
}

// scatter_add and its like take a list of entries: this calls them with as many as there are.
using Scatter = void (*)(const Array&, std::initializer_list<Index>, const Array&);
void scatter_at(Scatter scatter, const Array& a, const std::vector<Index>& e, const Array& v) {
  switch (e.size()) {
    case 1: return scatter(a, {e[0]}, v);
    case 2: return scatter(a, {e[0], e[1]}, v);
    case 3: return scatter(a, {e[0], e[1], e[2]}, v);
    case 4: return scatter(a, {e[0], e[1], e[2], e[3]}, v);
    case 5: return scatter(a, {e[0], e[1], e[2], e[3], e[4]}, v);
    case 6: return scatter(a, {e[0], e[1], e[2], e[3], e[4], e[5]}, v);
    case 7: return scatter(a, {e[0], e[1], e[2], e[3], e[4], e[5], e[6]}, v);
    default: FAIL() << "an expression of " << e.size() << " entries";
  }
}

auto scatter_expression(Scatter scatter) {
  return [scatter](const Call& call) {
    Array a = base_of(call);
    return written(a, [&] { scatter_at(scatter, a, parse_index(call), call.in.back()); });
  };
}

auto scatter_typed(Scatter scatter) {
  return [scatter](const Call& call) {
    const Array &a = call.in[0], &i = call.in[1], &v = call.in[2];
    return written(a, [&] {
      scatter(a, {ellipsis, i, 0}, v[{Slice(), 0}]);
      scatter(a, {i, Slice(), 2}, v);
    });
  };
}

testing::Routines expressions() {
  return {
      {"get", [](const Call& call) { return waited(base_of(call)[parse_index(call)]); }},
      {"set",
       [](const Call& call) {
         Array a = base_of(call);
         return written(a, [&] { a[parse_index(call)] = call.in.back(); });
       }},
      {"iadd",
       [](const Call& call) {
         Array a = base_of(call);
         return written(a, [&] { a[parse_index(call)] += call.in.back(); });
       }},
      {"add_at", scatter_expression(xp::scatter_add)},
      {"max_at", scatter_expression(xp::scatter_max)},
      {"min_at", scatter_expression(xp::scatter_min)},
      {"get_of",
       [](const Call& call) {
         return waited(call.in[0][{call.in[1], Slice(), call.in[2]}]);
       }},
      {"set_of",
       [](const Call& call) {
         return written(call.in[0], [&] {
           call.in[0][{call.in[1], Slice(), call.in[2]}] = call.in[3];
         });
       }},
      {"add_at_of", scatter_typed(xp::scatter_add)},
      {"max_at_of", scatter_typed(xp::scatter_max)},
      {"min_at_of", scatter_typed(xp::scatter_min)},
  };
}

testing::Routines routines() {
  testing::Routines table = expressions();
  table["nonzero"] = [](const Call& call) { return xp::where(call.in[0]); };
  table["argwhere"] = [](const Call& call) { return Arrays{xp::argwhere(call.in[0])}; };
  table["flatnonzero"] = [](const Call& call) { return Arrays{xp::flatnonzero(call.in[0])}; };
  table["take"] = [](const Call& call) {
    IndexMode mode = mode_of(call);
    Axes axis = call.has("axis") ? Axes(call.axis()) : Axes();
    return waited(xp::take(call.in[0], call.in[1], {.axis = axis, .mode = mode}));
  };
  table["put"] = [](const Call& call) {
    return written(call.in[0], [&] { xp::put(call.in[0], call.in[1], call.in[2], mode_of(call)); });
  };
  table["take_along_axis"] = [](const Call& call) {
    return waited(xp::take_along_axis(call.in[0], call.in[1], call.axis()));
  };
  table["put_along_axis"] = [](const Call& call) {
    return written(call.in[0],
                   [&] { xp::put_along_axis(call.in[0], call.in[1], call.in[2], call.axis()); });
  };
  table["extract"] = [](const Call& call) { return waited(xp::extract(call.in[0], call.in[1])); };
  table["compress"] = [](const Call& call) {
    return waited(call.has("axis") ? xp::compress(call.in[0], call.in[1], call.axis())
                                   : xp::compress(call.in[0], call.in[1]));
  };
  table["place"] = [](const Call& call) {
    return written(call.in[0], [&] { xp::place(call.in[0], call.in[1], call.in[2]); });
  };
  table["putmask"] = [](const Call& call) {
    return written(call.in[0], [&] { xp::putmask(call.in[0], call.in[1], call.in[2]); });
  };
  table["choose"] = [](const Call& call) {
    std::span<const Array> choices(call.in.data() + 1, call.in.size() - 1);
    return waited(xp::choose(call.in[0], choices, {.mode = mode_of(call)}));
  };
  table["select"] = [](const Call& call) {
    std::span<const Array> all(call.in);
    std::size_t n = all.size() / 2;
    bool truths = all[n].dtype() == bool_ && all.back().dtype() == bool_;
    return Arrays{xp::select(all.first(n), all.last(n), truths ? Scalar(false) : Scalar(5))};
  };
  return table;
}

TEST(IndexingCases, MatchNumPy) { testing::replay("numpy_indexing.txt", routines(), 3000); }

}  // namespace
}  // namespace rensa
