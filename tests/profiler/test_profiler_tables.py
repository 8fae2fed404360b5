"""Forms of a profile: averages, tables, traces and stacks, of events with times set by hand."""

import gzip
import json
import threading

import pytest

import cygrad as cg
from cygrad.autograd.profiler import EventList, FunctionEvent, FunctionEventAvg, profile, record_function


def event(number, name, start, stop, parent=None, **others):
    """Return an event of the thread 7, as a child of another one if that is given."""
    kind = others.pop("kind", "operator")
    record = FunctionEvent(number, name, 7, start, stop, kind=kind, trace_name=name, is_user_annotation=kind == "user", **others)
    if parent is not None:
        record.cpu_parent = parent
        parent.cpu_children.append(record)
    return record


def event_list(events, **options):
    tree = EventList(events, **options)
    tree._tree_built = True
    return tree


@pytest.fixture
def events():
    """A range around two products; an addition on its own, which frees memory."""
    outer = event(1, "label", 0, 10_000, kind="user", cpu_memory_usage=3000)
    first = event(2, "aten::matmul", 1000, 3000, outer, input_shapes=[[2, 3], [3, 4]], stack=["a.py(1): f", "b.py(2): <module>"],
                  flops=48_000, cpu_memory_usage=2000)
    second = event(3, "aten::matmul", 4000, 5000, outer, input_shapes=[[5, 5], [5, 5]], stack=["a.py(1): f", "c.py(3): <module>"],
                   flops=250_000, cpu_memory_usage=1000)
    last = event(4, "aten::add", 11_000, 11_500, input_shapes=[[2], [2]], stack=["c.py(9): <module>"], cpu_memory_usage=-5000)
    return [outer, first, second, last]


# ----- Averages -----
def test_averages_by_name(events):
    label, matmul, add = event_list(events).key_averages()
    assert [average.key for average in (label, matmul, add)] == ["label", "aten::matmul", "aten::add"]
    assert (matmul.count, matmul.cpu_time_total, matmul.self_cpu_time_total, matmul.cpu_time) == (2, 3000, 3000, 1500)
    assert (matmul.cpu_memory_usage, matmul.flops, matmul.input_shapes, matmul.stack) == (3000, 298_000, "", [])
    assert (label.count, label.cpu_time_total, label.self_cpu_time_total) == (1, 10_000, 7000)
    assert (label.cpu_memory_usage, label.self_cpu_memory_usage) == (3000, 0)
    assert label.cpu_parent is None and matmul.cpu_parent is events[0] and label.is_user_annotation and not add.is_user_annotation
    assert (label.cpu_time_str, label.cpu_time_total_str, label.self_cpu_time_total_str) == ("10.000ms", "10.000ms", "7.000ms")
    assert repr(add).startswith("<FunctionEventAvg key=aten::add self_cpu_time=500.000us cpu_time=500.000us")


def test_averages_by_shapes(events):
    averages = event_list(events).key_averages(group_by_input_shapes=True)
    assert [(average.key, average.input_shapes, average.count) for average in averages] == [
        ("label", [], 1), ("aten::matmul", [[2, 3], [3, 4]], 1), ("aten::matmul", [[5, 5], [5, 5]], 1), ("aten::add", [[2], [2]], 1)]


def test_averages_by_stack(events):
    for calls, count in ((0, 3), (1, 3), (2, 4), (9, 4), (-1, 3)):
        averages = event_list(events).key_averages(group_by_stack_n=calls)
        assert len(averages) == count
        assert max(len(average.stack) for average in averages) == min(max(calls, 0), 2)
    innermost = event_list(events).key_averages(group_by_stack_n=1)[1]
    assert innermost.count == 2 and innermost.stack == ["a.py(1): f"]


def test_a_range_and_an_operator_of_one_name_are_two():
    averages = event_list([event(1, "same", 0, 1, kind="user"), event(2, "same", 2, 3)]).key_averages()
    assert [average.is_user_annotation for average in averages] == [True, False]


def test_averages_of_a_profile():
    x = cg.ones(2, 2, requires_grad=True)
    with profile(record_shapes=True, with_stack=True) as prof:
        for size in (2, 2, 3):
            cg.ones(size) * 2
        (x @ x).sum().backward()
    products = [average for average in prof.key_averages(True) if average.key == "aten::mul"]
    assert [(average.input_shapes, average.count) for average in products] == [([[2], []], 2), ([[3], []], 1)]
    assert [average.count for average in prof.key_averages() if average.key == "aten::mul"] == [3]
    assert prof.key_averages(group_by_overload_name=True)[0].overload_name == ""
    by_stack = prof.key_averages(group_by_stack_n=1)
    assert all(len(average.stack) <= 1 for average in by_stack)
    assert sum(average.count for average in by_stack) == len(prof.function_events) == prof.total_average().count
    assert prof.key_averages().self_cpu_time_total == pytest.approx(prof.self_cpu_time_total)


def test_total_average(events):
    total = event_list(events).total_average()
    assert (total.key, total.count, total.cpu_time_total, total.self_cpu_time_total) == ("Total", 4, 13_500, 10_500)
    assert (total.cpu_memory_usage, total.self_cpu_memory_usage, total.flops) == (1000, -2000, 298_000)
    assert event_list(events).self_cpu_time_total == 10_500


def test_averages_of_averages_are_refused(events):
    with pytest.raises(AssertionError, match="Expected tree to be built before calling key_averages"):
        event_list(events).key_averages().key_averages()
    assert event_list(events).key_averages().total_average().count == 4


def test_only_equal_keys_are_added(events):
    average = FunctionEventAvg().add(events[1])
    average += events[2]
    assert average.count == 2
    with pytest.raises(AssertionError, match="Expected keys to match, but got aten::add vs aten::matmul"):
        average.add(events[3])
    with pytest.raises(AssertionError, match="Expected other to be a FunctionEvent or FunctionEventAvg"):
        average.add("aten::matmul")


def test_an_event_without_a_device(events):
    for name in ("device_time", "cuda_time", "device_time_total", "self_cuda_time_total", "device_memory_usage", "self_cuda_memory_usage"):
        assert getattr(events[0], name) == getattr(event_list(events).key_averages()[0], name) == 0
    assert events[0].use_device is None and events[0].node_id == -1 and not events[0].is_remote
    assert repr(events[0]) == ("<FunctionEvent id=1 name=label cpu_time=10.000ms start_us=0 end_us=10000 cpu_children=[2, 3] thread=7 "
                               "input_shapes=[] cpu_memory_usage=3000 is_async=False seq_nr=-1>")


# ----- Tables -----
TABLE = """\
----------------  ------------  ------------  ------------  ------------  ------------  ------------  \n\
            Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  \n\
----------------  ------------  ------------  ------------  ------------  ------------  ------------  \n\
           label        66.67%       7.000ms        95.24%      10.000ms      10.000ms             1  \n\
    aten::matmul        28.57%       3.000ms        28.57%       3.000ms       1.500ms             2  \n\
       aten::add         4.76%     500.000us         4.76%     500.000us     500.000us             1  \n\
----------------  ------------  ------------  ------------  ------------  ------------  ------------  \n\
Self CPU time total: 10.500ms
"""


def rows(table):
    """Return the cells of a table's lines, without the rules and the last line."""
    lines = [line for line in table.splitlines() if not line.startswith(("--", "Self CPU time"))]
    return [line.split() for line in lines]


def test_a_table_looks_as_torchs_does(events):
    averages = event_list(events).key_averages()
    assert averages.table() == str(averages) == TABLE


def test_sorting(events):
    averages = event_list(events).key_averages()

    def order(**options):
        return [line[0] for line in rows(averages.table(**options))[1:]]

    assert order() == order(sort_by="cuda_time_total") == order(sort_by="self_cpu_time_total") == ["label", "aten::matmul", "aten::add"]
    assert order(sort_by="count") == ["aten::matmul", "label", "aten::add"]
    assert order(sort_by="cpu_time") == order(sort_by="cpu_time_total") == ["label", "aten::matmul", "aten::add"]
    assert order(sort_by="self_cpu_memory_usage") == ["aten::matmul", "label", "aten::add"]
    assert [average.key for average in averages] == ["label", "aten::matmul", "aten::add"], "the list itself stays as it is"
    for key in ("cpu_time", "cuda_time", "cpu_time_total", "cuda_time_total", "cpu_memory_usage", "cuda_memory_usage",
                "self_cpu_memory_usage", "self_cuda_memory_usage", "count"):
        assert sorted(order(sort_by=key)) == ["aten::add", "aten::matmul", "label"]
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'nonsense': sort by cpu_time"):
        averages.table(sort_by="nonsense")


def test_row_limit(events):
    averages = event_list(events).key_averages()
    assert [len(rows(averages.table(row_limit=limit))) - 1 for limit in (0, 1, 2, 100, -1)] == [0, 1, 2, 3, 3]
    assert averages.table(row_limit=1).endswith("Self CPU time total: 10.500ms\n")


def test_header_and_top_level_events(events):
    listed = event_list(events)
    lines = listed.table(header="A header", top_level_events_only=True).splitlines()
    assert lines[0] == lines[2] == "=" * len(lines[4].rstrip())
    assert lines[1] == "A header" and lines[3] == "This report only display top-level ops statistics"
    assert [line.split()[0] for line in lines if "%" in line and "CPU" not in line] == ["label", "aten::add"]
    assert "aten::add" in listed.table(top_level_events_only=True, row_limit=2), "rows that are left out do not count"
    assert "matmul" in listed.table() and "A header" not in listed.table()


@pytest.mark.parametrize("unit, time", [("s", "0.010s"), ("ms", "10.000ms"), ("us", "10000.000us"), (None, "10.000ms")])
def test_time_units(events, unit, time):
    assert f" {time} " in event_list(events).key_averages().table(time_unit=unit)


@pytest.mark.parametrize("microseconds, text", [(0, "0.000us"), (999.9, "999.900us"), (1000, "1.000ms"), (2.5e6, "2.500s")])
def test_times_as_texts(microseconds, text):
    assert event(1, "x", 0, microseconds).cpu_time_str == text


@pytest.mark.parametrize("nbytes, text", [(0, "0 B"), (-5, "-5 B"), (1023, "1023 B"), (1024, "1.00 KB"), (-1.5 * 2**20, "-1.50 MB"),
                                          (3 * 2**30, "3.00 GB")])
def test_memory_as_texts(nbytes, text):
    table = event_list([event(1, "x", 0, 1, cpu_memory_usage=int(nbytes))], profile_memory=True).table()
    assert table.count(f" {text}  ") == 2 and "CPU Mem" in table and "Self CPU Mem" in table


def test_memory_only_if_profiled(events):
    assert "Mem" not in event_list(events).table()


def test_shapes_have_a_column_if_there_are_any(events):
    table = event_list(events).key_averages(group_by_input_shapes=True).table()
    assert "Input Shapes" in table and "  [[2, 3], [3, 4]]  " in table
    assert "  [[2, 3  " in event_list(events).table(max_shapes_column_width=6)
    assert "Input Shapes" not in event_list(events).key_averages().table()


@pytest.mark.parametrize("flops, title, first", [(48, "Total FLOPs", "48.000"), (48_000, "Total KFLOPs", "48.000"),
                                                 (48 * 10**18, "Total PFLOPs", "48000.000"), (999, "Total FLOPs", "999.000")])
def test_operations_in_the_unit_of_the_smallest(flops, title, first):
    events = [event(1, "x", 0, 1, flops=flops), event(2, "y", 1, 2, flops=2 * flops), event(3, "z", 2, 3)]
    table = event_list(events, with_flops=True).table()
    assert title in table and [line[-1] for line in rows(table)[1:]] == [first, f"{2 * float(first):.3f}", "--"]


def test_operations_have_no_column_where_there_are_none(events):
    assert "FLOPs" not in event_list([event(1, "x", 0, 1)], with_flops=True).table()
    assert "FLOPs" not in event_list(events).table()


def test_stacks_in_a_table(events):
    listed = event_list(events, with_flops=True)
    table = listed.table(row_limit=2)
    first, second = (line for line in table.splitlines() if ".py" in line)
    assert "Source Location" in table and first.endswith("  a.py(1): f             ") and second.split() == ["b.py(2):", "<module>"]
    assert "48.000" in first
    narrow = listed.table(max_src_column_width=10)
    assert "  ...module>  " in narrow and "a.py(1): f  " in narrow
    assert "b.py(2): <module>" in listed.table(max_src_column_width=None)


def test_names_are_cut():
    long = "n" * 70
    listed = event_list([event(1, long, 0, 1)])
    assert "n" * 52 + "...  " in listed.table() and long not in listed.table()
    assert "n" * 7 + "...  " in listed.table(max_name_column_width=10)
    assert long in listed.table(max_name_column_width=None)


def test_shares_of_nothing():
    assert rows(event_list([event(1, "x", 5, 5)]).table())[1] == ["x", "NaN", "0.000us", "NaN", "0.000us", "0.000us", "1"]


def test_a_profiles_table_passes_its_arguments_on():
    with profile(profile_memory=True) as prof, record_function("label"):
        cg.ones(100) * 2
    table = prof.table(sort_by="cpu_time", row_limit=1, max_src_column_width=9, max_name_column_width=40, max_shapes_column_width=9,
                       header="above", top_level_events_only=True)
    assert "above" in table and [line.split()[0] for line in table.splitlines()[7:-2]] == ["label"] and "CPU Mem" in table
    assert prof.table() == str(prof) == prof.function_events.table()


# ----- Traces -----
def trace_of(prof, folder, **options):
    prof.export_chrome_trace(folder / "trace.json", **options)
    return json.loads((folder / "trace.json").read_text())


def records(trace, phase):
    return [record for record in trace["traceEvents"] if record["ph"] == phase]


@pytest.fixture
def traced():
    x = cg.ones(2, 3, requires_grad=True)
    with profile(record_shapes=True, with_flops=True, profile_memory=True, with_stack=True) as prof:
        with record_function('a "quoted" \\ näme\n'):
            y = (x * 2).sum()
        y.backward()
    return prof


def test_a_trace_has_the_fields_that_perfetto_needs(traced, tmp_path):
    trace = trace_of(traced, tmp_path, metadata={"note": "of mine"})
    assert trace["note"] == "of mine" and trace["displayTimeUnit"] == "ms" and trace["trace_id"] == traced.trace_id
    assert trace["baseTimeNanoseconds"] > 10**18
    phases = {record["ph"] for record in trace["traceEvents"]}
    assert phases == {"M", "X", "i", "s", "f"}
    for record in trace["traceEvents"]:
        assert isinstance(record["name"], str) and isinstance(record["pid"], int) and isinstance(record["tid"], int)
        if record["ph"] != "M":
            assert isinstance(record["cat"], str) and record["ts"] >= 0
    assert all(record["dur"] >= 0 for record in records(trace, "X")) and all(record["s"] == "t" for record in records(trace, "i"))
    assert {record["name"] for record in records(trace, "M")} == {"process_name", "thread_name"}
    assert threading.get_native_id() in {record["tid"] for record in records(trace, "M")}


def test_a_trace_has_an_event_for_each_event(traced, tmp_path):
    shown = records(trace_of(traced, tmp_path), "X")
    events = [event for event in traced.function_events if event.name != "[memory]"]
    assert [record["name"] for record in shown] == [event.name for event in events]
    assert [(record["ts"], record["dur"]) for record in shown] == [(event.time_range.start, event.cpu_time_total) for event in events]
    product, = (record["args"] for record in shown if record["name"] == "aten::mul")
    assert product["Input Dims"] == [[2, 3], []] and product["Concrete Inputs"] == ["", "2"]
    assert product["FLOPs"] == 6 and product["Bytes"] == 24 and "test_profiler_tables.py" in product["Call stack"]
    assert {record["cat"] for record in shown if "quoted" in record["name"]} == {"user_annotation"}


def test_intervals_of_a_trace_nest(traced, tmp_path):
    """Perfetto does not show intervals of one thread that overlap in part."""
    open_until = []
    for record in records(trace_of(traced, tmp_path), "X"):
        while open_until and open_until[-1] <= record["ts"]:
            open_until.pop()
        assert not open_until or record["ts"] + record["dur"] <= open_until[-1] + 1e-3
        open_until.append(record["ts"] + record["dur"])


def test_arrows_lead_from_operators_to_their_nodes(traced, tmp_path):
    trace = trace_of(traced, tmp_path)
    starts, ends = ({record["id"]: record for record in records(trace, phase)} for phase in "sf")
    assert starts.keys() == ends.keys() and len(starts) == 2
    at = {(record["ts"], record["tid"]): record for record in records(trace, "X")}
    pairs = set()
    for identifier, start in starts.items():
        end = ends[identifier]
        assert start["cat"] == end["cat"] == start["name"] == end["name"] == "fwdbwd" and end["bp"] == "e"
        source, target = at[start["ts"], start["tid"]], at[end["ts"], end["tid"]]
        assert source["args"]["Sequence number"] == target["args"]["Sequence number"]
        assert target["args"]["Fwd thread id"] == source["tid"]
        pairs.add((source["name"], target["name"]))
    assert pairs == {("aten::mul", "MulBackward0"), ("aten::sum", "SumBackward0")}


def test_memory_in_a_trace(traced, tmp_path):
    instants = records(trace_of(traced, tmp_path), "i")
    assert instants and all(record["name"] == "[memory]" and record["args"]["Bytes"] != 0 for record in instants)


def test_compressed_traces(traced, tmp_path):
    traced.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    with gzip.open(tmp_path / "trace.json.gz", "rt") as file:
        assert json.load(file)["traceEvents"] == trace_of(traced, tmp_path, use_python_export=True)["traceEvents"]


def test_traces_of_nothing_and_of_events(traced, tmp_path):
    with profile() as prof:
        pass
    assert [record["ph"] for record in trace_of(prof, tmp_path)["traceEvents"]] == ["M"]
    traced.function_events.export_chrome_trace(tmp_path / "events.json")
    assert json.loads((tmp_path / "events.json").read_text())["traceEvents"] == trace_of(traced, tmp_path)["traceEvents"]


def test_traces_that_cannot_be_written(traced, tmp_path):
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'time_range'"):
        traced.key_averages().export_chrome_trace(tmp_path / "averages.json")
    assert not (tmp_path / "averages.json").exists()
    with pytest.raises(FileNotFoundError):
        traced.export_chrome_trace(tmp_path / "nowhere" / "trace.json")


# ----- Stacks -----
def test_stacks_for_flame_graphs(events, tmp_path):
    events[1].stack[0] = "a b.py(1):\tf;g"
    event_list(events).export_stacks(tmp_path / "stacks", "self_cpu_time_total")
    assert (tmp_path / "stacks").read_text().splitlines() == [
        "b.py(2):_<module>;a_b.py(1):_f_g 2000", "c.py(3):_<module>;a.py(1):_f 1000", "c.py(9):_<module> 500"]
    event_list(events).export_stacks(tmp_path / "stacks", "self_cuda_time_total")
    assert (tmp_path / "stacks").read_text() == ""


def test_stacks_of_a_profile(tmp_path):
    with profile(with_stack=True) as prof:
        cg.ones(200, 200) @ cg.ones(200, 200)
    prof.export_stacks(tmp_path / "stacks")
    line, = (tmp_path / "stacks").read_text().splitlines()
    calls, _, time = line.rpartition(" ")
    assert calls.split(";")[-1].endswith("test_stacks_of_a_profile") and int(time) == int(prof.function_events[0].self_cpu_time_total)


def test_stacks_that_cannot_be_written(events, tmp_path):
    with profile() as prof:
        pass
    with pytest.raises(AssertionError, match=r"export_stacks\(\) requires with_stack=True"):
        prof.export_stacks(tmp_path / "stacks")
    with pytest.raises(ValueError, match="metric should be one of"):
        event_list(events).export_stacks(tmp_path / "stacks", "count")
    assert not (tmp_path / "stacks").exists()


def test_events_are_made_by_the_signature_of_torch():
    made = FunctionEvent(3, "name", 7, 10.0, 30.0, overload_name="out", fwd_thread=8, input_shapes=[[2]], node_id=5, is_remote=True,
                         device_index=1, trace_name="shown", is_user_annotation=True, external_id=9, python_id=4)
    assert (made.time_range.elapsed_us(), made.cpu_time_total, made.device_resource_id) == (20, 20, 7)
    assert (made.node_id, made.fwd_thread, made.trace_name, made.is_user_annotation) == (5, 8, "shown", True)
    assert (made.kernels, made.cpu_children, made.cpu_parent, made.count) == ([], [], None, 1)
    average = event_list([made]).key_averages()[0]
    assert (average.key, average.flops, average.count) == ("name", 0, 1)
