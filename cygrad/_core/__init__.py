"""The compiled core: storage, tensors, graph nodes, dispatch, engine."""
