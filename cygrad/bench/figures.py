"""The pictures of a record: where operators stand below this machine's ceilings, ratios to NumPy by size, scaling over threads.

Matplotlib draws them, into a file and without a display. Colours are Okabe and Ito's, distinct for the colour-blind; their meaning,
is also in markers or places.
"""
from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from cygrad.bench.record import FORWARD, OPERATOR, Record, Row
from cygrad.bench.tables import CONTROL, counted, memory, quantity

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX*"
STYLE: Any = {"svg.hashsalt": "cygrad", "svg.fonttype": "none", "font.size": 9, "axes.titlesize": 10, "legend.fontsize": 8,
              "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False}
WIDTH = 8.5     # inches, of a page
ROOFS = ("-", "--", "-.", ":")      # of ever fewer threads
MARK = 8        # pixels of a mark
PANELS = 3      # side by side
DTYPES_SHOWN = ("float64", "float32")


def fault(file: Path) -> str:
    """Return the error of a picture in such a file, by writing one word; an empty text if there is none."""
    from matplotlib.backend_bases import FigureCanvasBase
    from matplotlib.figure import Figure

    formats, kind = sorted(FigureCanvasBase.get_supported_filetypes()), suffix(file).removeprefix(".")
    if kind not in formats:
        return f"Matplotlib writes files that end in {', '.join(f'.{name}' for name in formats)}"
    figure = Figure()
    figure.text(0, 0, "word")
    try:
        figure.savefig(BytesIO(), format=kind)
    except Exception as error:      # each format has needs of its own: LaTeX, codecs of Pillow
        return f"Matplotlib cannot write .{kind} here: {error}"
    return ""


def suffix(file: Path) -> str:
    """Return the end of a file's name as Matplotlib reads it."""
    return file.suffix.lower()


def plot(record: Record, file: Path) -> list[str]:
    """Write the pictures that a record has data for, one below the other, into one file; return their names."""
    names = drawable(record)
    if names:
        draw(record, names, file)
    return names


def drawable(record: Record) -> list[str]:
    """Return the names of the pictures that a record has data for."""
    return [name for name, picture in PICTURES.items() if picture.height(record)]


def draw(record: Record, names: Sequence[str], file: Path) -> None:
    """Write named pictures into a file."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)    # of letters that the font lacks, and panels without room
        heights = [PICTURES[name].height(record) for name in names]
        figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
        places = figure.subfigures(len(names), 1, height_ratios=heights, squeeze=False)[:, 0]
        FigureCanvasAgg(figure)
        finish = [PICTURES[name].draw(record, place) for place, name in zip(places, names, strict=True)]
        figure.canvas.draw()        # lays the pictures out
        for place_names in filter(None, finish):
            place_names()
        figure.savefig(file, dpi=110, metadata={"Date": None} if suffix(file) == ".svg" else None)


# ----- Common parts of pictures -----
class Picture(NamedTuple):
    """A picture: the inches that it needs for a record, 0 where that has no data for it, and the function that draws it.

    A drawing may be finished when the layout is known: by the function that is returned.
    """

    height: Callable[[Record], float]
    draw: Callable[[Record, Any], Callable[[], None] | None]


def good(record: Record) -> list[Row]:
    """Return the rows that may be believed."""
    return [row for row in record["rows"] if row["times"] and not row["error"]]


def at_largest(rows: Iterable[Row]) -> list[Row]:
    """Return, of rows that differ by their size alone, the largest."""
    best: dict[tuple[object, ...], Row] = {}
    for row in rows:
        name = row["family"], row["work"], row["dtype"], row["direction"], row["threads"]
        best[name] = max(best.get(name, row), row, key=lambda each: each["size"])
    return list(best.values())


Looks = dict[str, dict[str, Any]]


def look(names: Iterable[str]) -> Looks:
    """Return a colour and a marker for each name."""
    return {name: {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]} for number, name in enumerate(names)}


def label(text: str) -> str:
    """Return a text as Matplotlib takes it: dollars would begin formulas, and legends leave out texts that begin like a private name."""
    return (" " if text[:1] in ("", "_") else "") + text.replace("$", r"\$")


def titled(figure: Any, record: Record, title: str) -> None:
    """Give a picture its title, and name the machine, and how much of the measurements is noisy."""
    machine = f"{record['info']['processor']}, {counted(record['info']['node_cpus'], 'CPU')}, cygrad {record['version']}"
    noisy = sum(bool(row["noise"]) for row in record["rows"])
    doubt = f"; {noisy} of {counted(len(record['rows']), 'row')} noisy" if noisy else ""
    figure.suptitle(label(f"{title}\n{machine}{doubt}"), fontsize=10)


# ----- Roofline -----
def bounded(record: Record) -> list[Row]:
    """Return the rows below a ceiling, at the largest size."""
    return at_largest(row for row in good(record) if row["share"])


def roofs(record: Record) -> list[Row]:
    """Return the rows of the roofline: of one dtype, forward."""
    rows = [row for row in bounded(record) if row["flops"] and row["bytes"] and row["direction"] == FORWARD]
    dtypes = [row["dtype"] for row in rows]
    return [row for row in rows if row["dtype"] == max(DTYPES_SHOWN, key=dtypes.count)]


def draw_roofline(record: Record, figure: Any) -> Callable[[], None]:
    """Draw operations a second over operations a byte, below the ceilings."""
    rows = roofs(record)
    dtype = rows[0]["dtype"]
    titled(figure, record, f"Roofline: operators on large {dtype} arrays, forward, below this machine's ceilings")
    axes = figure.subplots()
    counts = [int(threads) for threads in record["ceilings"]]
    at = {id(row): (row["flops"] / row["bytes"], row["flops"] / row["times"]["cygrad"]["median"]) for row in rows}
    left, right = min(x for x, _ in at.values()) / 2, max(x for x, _ in at.values()) * 3
    for number, threads in enumerate(reversed(counts)):
        _roof(axes, record, threads, dtype, (left, right), ROOFS[min(number, len(ROOFS) - 1)])
    looks = look(dict.fromkeys(row["family"] for row in rows))
    for row in rows:
        is_last = row["threads"] == counts[-1]
        axes.plot(*at[id(row)], linestyle="", markersize=6, markerfacecolor=None if is_last else "white", **looks[row["family"]])
    axes.set(xscale="log", yscale="log", xlim=(left, right), xlabel="operations a byte that has to move",
             ylabel=f"{dtype} operations in a second")
    _legend(axes, looks, counts)
    named = {row["work"]: at[id(row)] for row in sorted(rows, key=lambda row: row["threads"])}
    return lambda: _names(axes, named, [*at.values()])


def _roof(axes: Any, record: Record, threads: int, dtype: str, span: tuple[float, float], style: str) -> None:
    """Draw the ceilings of a number of threads: memory's, and, in grey, the ceiling of the smallest working set, which a cache may hold."""
    ceiling = record["ceilings"][str(threads)]
    bandwidth, peak = ceiling["bandwidth"], ceiling["flops"].get(dtype, math.inf)
    said = f"{counted(threads, 'thread')}: {quantity(bandwidth['bytes_per_second'], 'B/s')}"
    for level, colour in ((bandwidth, "black"), *((level, "#999999") for level in bandwidth["levels"][:1])):
        rate = level["bytes_per_second"]
        at = (span[0], min(max(peak / rate, span[0]), span[1]), span[1])
        if level is not bandwidth:
            said += f" ({memory(level['working_set'])}: {quantity(rate, 'B/s')})"
        axes.plot(at, [min(x * rate, peak) for x in at], color=colour, linewidth=1.2, linestyle=style, zorder=1)
    if peak < math.inf:
        said += f", {quantity(peak, 'flop/s')}"
    axes.plot([], [], color="black", linewidth=1.2, linestyle=style, label=said)


def _legend(axes: Any, looks: Looks, counts: Sequence[int]) -> None:
    """Show below a picture the meaning of lines, colours and markers."""
    from matplotlib.lines import Line2D

    lines = axes.get_legend_handles_labels()[0]
    handles = [Line2D([], [], linestyle="", label=label(name), **each) for name, each in looks.items()]
    if len(counts) > 1:
        fewer = f"{', '.join(map(str, counts[:-1]))} thread" + "s" * (counts[-2] > 1)
        handles += [Line2D([], [], linestyle="", marker="o", color="black", label=counted(counts[-1], "thread")),
                    Line2D([], [], linestyle="", marker="o", color="black", markerfacecolor="white", label=fewer)]
    axes.figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8), frameon=False)
    if lines:
        axes.legend(handles=lines, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=min(len(lines), 2), frameon=False)


def _names(axes: Any, names: dict[str, tuple[float, float]], points: Sequence[tuple[float, float]]) -> None:
    """Write names beside their points, wherever there is room; names without room stand in the next picture."""
    from matplotlib.transforms import Bbox

    renderer = axes.figure.canvas.get_renderer()
    boxes = [Bbox.from_bounds(x - MARK / 2, y - MARK / 2, MARK, MARK) for x, y in map(axes.transData.transform, points)]
    for name, point in names.items():
        for offset, alignment in (((7, -3), "left"), ((-7, -3), "right"), ((0, 7), "center"), ((0, -13), "center")):
            text = axes.annotate(label(name), point, offset, textcoords="offset points", ha=alignment, fontsize=7, in_layout=False,
                                 bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5})
            box = text.get_window_extent(renderer)
            if axes.bbox.contains(box.x0, box.y0) and axes.bbox.contains(box.x1, box.y1) and not box.count_overlaps(boxes):
                boxes.append(box)
                break
            text.remove()


# ----- Shares -----
def draw_shares(record: Record, figure: Any) -> None:
    """Draw the part of its ceiling that each operator reaches: memory for operators that move bytes, products for those that multiply."""
    from matplotlib.ticker import PercentFormatter

    rows = shared(record)
    titled(figure, record, "Share of the ceiling, at the largest size that was measured")
    works = list(dict.fromkeys((row["family"], row["work"]) for row in rows))
    directions, counts = list(dict.fromkeys(row["direction"] for row in rows)), sorted({row["threads"] for row in rows})
    panels = figure.subplots(1, len(directions), sharey=True, squeeze=False)[0]
    looks = look(DTYPES_SHOWN)
    for axes, direction in zip(panels, directions, strict=True):
        for row in rows:
            if row["direction"] == direction:
                place = works.index((row["family"], row["work"]))
                axes.plot(max(row["share"].values()), place, linestyle="", markersize=5,
                          markerfacecolor=None if row["threads"] == counts[-1] else "white", **looks[row["dtype"]])
        axes.set(title=direction, xlabel="of the ceiling", ylim=(len(works) - 0.5, -0.5))
        axes.set_xlim(0, max(1.05, 1.03 * max(max(row["share"].values()) for row in rows)))
        axes.axvline(1, color="black", linewidth=1)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        starts = [number for number, (family, _) in enumerate(works) if not number or works[number - 1][0] != family]
        for start in starts[1:]:
            axes.axhline(start - 0.5, color="black", linewidth=0.6)
    panels[0].set_yticks(range(len(works)), [label(work) for _, work in works], fontsize=7.5)
    _legend(panels[0], {dtype: looks[dtype] for dtype in looks if any(row["dtype"] == dtype for row in rows)}, counts)


def shared(record: Record) -> list[Row]:
    """Return the rows below a ceiling, at the largest size, in the dtypes that are drawn."""
    return [row for row in bounded(record) if row["dtype"] in DTYPES_SHOWN]


# ----- Panels of families -----
Points = dict[float, list[float]]


def draw_panels(figure: Any, families: dict[str, dict[str, Points]], names: tuple[str, str], references: dict[str, Points]) -> None:
    """Draw a panel for each family, with all points and the line of their geometric means, and the libraries they are compared with."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    columns = min(PANELS, len(families))
    panels = list(figure.subplots(math.ceil(len(families) / columns), columns, sharex=True, sharey=True, squeeze=False).flat)
    looks = look(sorted({name for family in families.values() for name in family}))
    for axes, (family, groups) in zip(panels, families.items(), strict=False):
        for (name, points), style in zip(references.items(), ("-", "--", ":"), strict=False):
            axes.plot(*_means(points), color="black", linewidth=1, linestyle=style, label=name, zorder=1)
        for name, points in sorted(groups.items()):
            every = [(x, y) for x, values in points.items() for y in values]
            axes.plot(*zip(*every, strict=True), linestyle="", markersize=2.5, alpha=0.5, zorder=2, **looks[name])
            axes.plot(*_means(points), linewidth=1.8, markersize=5.5, zorder=3, label=name, **looks[name])
        axes.set(title=label(family), xscale="log", yscale="log")
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 30 * low else (1,)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_locator(NullLocator())
    for axes in panels[len(families):]:
        axes.set_visible(False)
    for axes in panels[:len(families)][-columns:]:      # the lowest of each column
        axes.tick_params(labelbottom=True)
        axes.set_xlabel(names[0])
    figure.supylabel(names[1], fontsize=9)
    handles = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False)


def _means(points: Points) -> tuple[list[float], list[float]]:
    return sorted(points), [statistics.geometric_mean(points[x]) for x in sorted(points)]


def panels_height(families: dict[str, dict[str, Points]]) -> float:
    """Return the inches of so many panels."""
    return 1.3 + 1.9 * math.ceil(len(families) / PANELS) if families else 0.0


def ratios_by_size(record: Record) -> dict[str, dict[str, Points]]:
    """Return cygrad's time by NumPy's, by family, direction and size, with the fewest threads."""
    results: dict[str, dict[str, Points]] = {}
    rows = [row for row in good(record) if CONTROL in row["ratios"] and row["kind"] == OPERATOR]
    fewest = min((row["threads"] for row in rows), default=1)
    for row in rows:
        if row["threads"] == fewest:
            points = results.setdefault(row["family"], {}).setdefault(row["direction"], {})
            points.setdefault(row["size"], []).append(row["ratios"][CONTROL]["median"])
    return results


def draw_ratios(record: Record, figure: Any) -> None:
    """Draw cygrad's time by NumPy's over the size."""
    families = ratios_by_size(record)
    fewest = counted(min(row["threads"] for row in good(record)), "thread")
    titled(figure, record, f"Ratio to NumPy by size, {fewest}: below 1 cygrad takes less")
    sizes = [size for family in families.values() for points in family.values() for size in points]
    references: dict[str, Points] = {"as long as NumPy": {min(sizes): [1.0], max(sizes): [1.0]}}
    draw_panels(figure, families, ("elements", "cygrad's time / NumPy's time"), references)


def speeds_by_threads(record: Record) -> dict[str, dict[str, Points]]:
    """Return how many times as fast further threads are than the fewest, by family and direction, at the largest size of each row."""
    times: dict[tuple[str, str, str, str, int], dict[int, float]] = {}
    for row in good(record):
        place = row["family"], row["work"], row["dtype"], row["direction"], row["size"]
        times.setdefault(place, {})[row["threads"]] = row["times"]["cygrad"]["median"]
    largest = {place[:-1]: place for place in sorted(times, key=lambda place: place[-1]) if len(times[place]) > 1}
    results: dict[str, dict[str, Points]] = {}
    for place in largest.values():
        points = results.setdefault(place[0], {}).setdefault(place[3], {})
        fewest = min(times[place])
        for threads, seconds in times[place].items():
            points.setdefault(threads, []).append(times[place][fewest] / seconds)
    return results


def draw_scaling(record: Record, figure: Any) -> None:
    """Draw how many times as fast more threads are, beside the gain of the ceilings."""
    titled(figure, record, "Scaling over threads, at the largest size that was measured")
    counts = sorted(map(int, record["ceilings"]))
    ceilings = [record["ceilings"][str(count)] for count in counts]
    rates = [ceiling["bandwidth"]["bytes_per_second"] for ceiling in ceilings]
    references: dict[str, Points] = {"as many times as threads": {count: [count / counts[0]] for count in counts},
                                     "this machine's memory": {count: [rate / rates[0]] for count, rate in zip(counts, rates, strict=True)}}
    draw_panels(figure, speeds_by_threads(record), ("threads", "times as fast"), references)
    for axes in figure.axes:
        axes.set_xticks(counts, [str(count) for count in counts])


PICTURES = {
    "roofline": Picture(lambda record: 5.0 if roofs(record) else 0.0, draw_roofline),
    "shares": Picture(lambda record: 1.6 + 0.17 * len({(row["family"], row["work"]) for row in shared(record)}) if shared(record) else 0.0,
                      draw_shares),
    "ratios": Picture(lambda record: panels_height(ratios_by_size(record)), draw_ratios),
    "scaling": Picture(lambda record: panels_height(speeds_by_threads(record)), draw_scaling),
}
