class Backend:
    pass


class Options:
    pass


AllreduceOptions = ReduceOptions = BroadcastOptions = AllgatherOptions = GatherOptions = ScatterOptions = Options
ReduceScatterOptions = AllToAllOptions = BarrierOptions = Options
